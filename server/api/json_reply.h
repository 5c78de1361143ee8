/* JSON responses. The text belongs to the request, and is compressed if the client accepts that. */
#ifndef API_JSON_REPLY_H
#define API_JSON_REPLY_H

#include "base/json_write.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "http/fields/negotiate.h"

/* The first member of the structure in request->context, where the compressing worker finds it. */
struct json_reply {
    enum coding coding;
    bool accepts_identity; /* the client accepts the uncompressed text */
    bool encoded;
    struct json *json;
};

/* Makes a text that the request keeps until its last byte is sent. Returns NULL if it has replied
 * with a problem. */
struct json *json_reply_new(struct request *request, bool pretty);

/* Chooses a coding that the client accepts, and adds Vary. Returns false if it has replied with
 * 406. */
bool json_reply_negotiate(struct request *request, struct json_reply *reply);

/* Compresses the finished text on a worker if it is long enough, and states its coding. */
enum outcome json_reply_encode(struct request *request, struct json_reply *reply);

/* Sends the text with status 200, or a problem if writing it failed. */
enum outcome json_reply_send(struct request *request, struct json *json);

/* Sends the text with this status, for no one to keep: it describes the server at this moment. */
enum outcome json_reply_send_now(struct request *request, struct json *json, unsigned status);

/* Replies with 422: the JSON of a valid manifest would be out of proportion (manifest_write). */
enum outcome json_reply_too_long(struct request *request);

/* Returns the coded text's ETag: the plain text's with the name of the coding at its end. Returns
 * NULL if out of memory. */
const char *json_reply_etag(struct request *request, const struct json_reply *reply,
                            const char *etag);

#endif
