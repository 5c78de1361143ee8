/* Who may see a file that is not asked for as a model. */
#include "api/file_sight.h"

#include "catalog/catalog.h"
#include "http/exchange/authorize.h"

bool file_is_seen(const struct request *request, struct zt_text path)
{
    size_t name_length;
    unsigned rank;

    if (request->grant == NULL)
        return true;
    if (!model_path_split(path.bytes, &name_length, &rank))
        return authorize_sees_file(request, path);
    return authorize_sees(request, (struct zt_text){path.bytes, name_length}) ||
           catalog_has_shard_of(request->server->catalog, path, authorize_filter(request));
}
