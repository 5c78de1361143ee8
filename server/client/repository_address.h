/* URLs of repositories, as users write them: http://host/owner/name, BASE/v1/models/owner/name and
 * BASE/files/any/folder, each also with a '/' at the end. */
#ifndef CLIENT_REPOSITORY_ADDRESS_H
#define CLIENT_REPOSITORY_ADDRESS_H

#include "client/client.h"
#include "store/store.h"

struct repository_address {
    struct client_place place;     /* of the URL */
    char base[WEB_TARGET_SIZE];    /* "/some/path" before the API's paths; usually empty */
    char name[MODEL_NAME_MAX + 1]; /* decoded, without the '/' at the end; may be empty */
    bool ends_in_slash;
};

/* Returns ZT_ARGUMENT if the URL cannot name a repository. */
enum zt_status repository_address_read(const char *url, struct repository_address *out_address,
                                       struct zt_error *error);

/* Makes the place of a file or folder of the repository, below /files: path is relative and not
 * encoded; query is encoded, "?limit=10" or empty. Fails as client_place_beside does. */
enum zt_status repository_address_beside(const struct repository_address *address, const char *path,
                                         const char *query, struct client_place *out_place,
                                         struct zt_error *error);

#endif
