/* Paths of the API in URLs that users type. A server may be below a path of a proxy (base_path);
 * all of its addresses then begin with that path. */
#ifndef CLIENT_API_ADDRESS_H
#define CLIENT_API_ADDRESS_H

#include "client/client.h"

enum api_kind {
    API_SHORT, /* http://host/NAME */
    API_MODEL, /* BASE/v1/models/NAME */
    API_FILE,  /* a file that is read unchanged: /files/PATH, a path below a model, and any other
                * path that ends like a model's file, or has a query, and is not a model of the
                * API */
};

struct api_address {
    enum api_kind kind;
    struct zt_text base; /* "/some/path" before "/v1/models/"; empty without these */
    struct zt_text name; /* encoded: the rest after "/v1/models/"; without it, the rest after the
                          * first slash */
};

/* Splits the path of an address at the first "/v1/models/", unless it begins with "/files/". After
 * a base, a name that ends like a model's file is a file, because other servers have such paths
 * too. The texts are borrowed from the address. */
struct api_address api_address_read(const struct web_address *address);

/* Makes another path of the same API: target, which is encoded and may have a query, after the base
 * of place. Fails as client_place_beside does. */
enum zt_status api_address_beside(const struct client_place *place, const char *target,
                                  struct client_place *out_place, struct zt_error *error);

#endif
