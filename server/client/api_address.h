/* Paths of the API in URLs that people type. A server may lie below a path of a proxy's
 * (base_path): all of its addresses then begin with that. */
#ifndef CLIENT_API_ADDRESS_H
#define CLIENT_API_ADDRESS_H

#include "client/client.h"

enum api_kind {
    API_SHORT, /* http://host/NAME */
    API_MODEL, /* BASE/v1/models/NAME */
    API_FILE,  /* what is read as it is: /files/PATH, what lies below a model, and whatever ends
                  like a model's file, or has a query, and is no model of the API */
};

struct api_address {
    enum api_kind kind;
    struct zt_text base; /* "/some/path" before "/v1/models/"; empty without these */
    struct zt_text name; /* encoded: what is behind them, else behind the first slash */
};

/* Takes the path of an address apart: at the first "/v1/models/", unless it begins with "/files/".
 * Below a base, a name that ends like a model's file is one: other servers have such paths too. The
 * texts are borrowed from the address. */
struct api_address api_address_read(const struct web_address *address);

/* Another path of the same API: target, which is encoded and may have a query, behind the base of
 * place. Fails as client_place_beside does. */
enum zt_status api_address_beside(const struct client_place *place, const char *target,
                                  struct client_place *out_place, struct zt_error *error);

#endif
