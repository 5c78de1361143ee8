/* JSON answers that are compressed for the client who takes it: manifests, listings, the
 * description of the interface. */
#ifndef API_CODED_REPLY_H
#define API_CODED_REPLY_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "http/fields/negotiate.h"

/* Begins what request->context points to, so that the worker finds it. */
struct coded_reply {
    enum coding coding;
    bool identity_taken; /* by the client */
    bool coded;
    struct json *json;
};

/* Chooses what the client takes, and says that the answer varies by it. False: replied with 406. */
bool coded_reply_choose(struct request *request, struct coded_reply *reply);

/* Compresses the JSON once it is written, on a worker, unless that is not worth it; coding says
 * then what became of it. */
enum outcome coded_reply_code(struct request *request, struct coded_reply *reply);

/* A strong tag that has the coding's name at its end, where there is a coding. NULL when memory is
 * out. */
const char *coded_reply_etag(struct request *request, const struct coded_reply *reply,
                             const char *etag);

#endif
