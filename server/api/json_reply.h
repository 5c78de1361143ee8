/* JSON answers: the text belongs to the request, and is compressed if the client accepts that. */
#ifndef API_JSON_REPLY_H
#define API_JSON_REPLY_H

#include "base/json_write.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "http/fields/negotiate.h"

/* The first member of what request->context points to, where the compressing worker finds it. */
struct json_reply {
    enum coding coding;
    bool accepts_identity; /* the client does */
    bool encoded;
    struct json *json;
};

/* A text that the request keeps until its last byte is sent. NULL: replied with a problem. */
struct json *json_reply_new(struct request *request, bool pretty);

/* Chooses a coding that the client accepts, and adds Vary. False: replied with 406. */
bool json_reply_negotiate(struct request *request, struct json_reply *reply);

/* Compresses the finished text on a worker if that is worth it, and states its coding. */
enum outcome json_reply_encode(struct request *request, struct json_reply *reply);

/* Sends the text with status 200, or a problem if writing it failed. */
enum outcome json_reply_send(struct request *request, struct json *json);

/* 422: the JSON of a valid manifest would be out of proportion (manifest_write). */
enum outcome json_reply_too_long(struct request *request);

/* The tag of the coded text: the plain text's with the name of the coding at its end. NULL if
 * out of memory. */
const char *json_reply_etag(struct request *request, const struct json_reply *reply,
                            const char *etag);

#endif
