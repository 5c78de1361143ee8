/* A request's body that is a short JSON text. */
#ifndef UPLOAD_WRITER_JSON_BODY_H
#define UPLOAD_WRITER_JSON_BODY_H

#include "http/exchange/request.h"

/* Attributes may be long; longer ones belong into components. */
#define JSON_BODY_MAX ((size_t)4 << 20)

struct json_body {
    char *bytes;
    size_t length;
    size_t capacity;
    bool too_long;
    bool failed; /* out of memory */
};

/* To be called before the body: refuses one that is coded, or too long by its declared length.
 * True: replied. */
bool json_body_refuse(struct request *request);
void json_body_receive(struct json_body *body, const void *bytes, size_t length);
/* To be called after the body: refuses one that is too long. True: replied. */
bool json_body_refuse_received(struct request *request, const struct json_body *body);
struct zt_text json_body_text(const struct json_body *body);
void json_body_free(struct json_body *body);

#endif
