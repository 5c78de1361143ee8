/* Decides whether a client may read a stored file by path. */
#include "api/file_access.h"

#include "catalog/catalog.h"
#include "http/exchange/authorize.h"

bool client_may_read_file(const struct request *request, struct zt_text path)
{
    char name[MODEL_NAME_MAX + 1];

    if (request->grant == NULL)
        return true;
    if (!model_path_name(path.bytes, name))
        return authorize_sees_file(request, path);
    return authorize_sees(request, zt_text_from(name)) ||
           catalog_has_shard_of(request->server->catalog, path, authorize_filter(request));
}
