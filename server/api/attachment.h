/* Names under which clients save what they receive (RFC 6266). */
#ifndef API_ATTACHMENT_H
#define API_ATTACHMENT_H

#include "http/exchange/request.h"

/* Returns the value of Content-Disposition for a file of that name and ending (".npy"): in ASCII
 * and, if the name has other characters, also unchanged (filename*, RFC 8187). Long names are cut
 * between characters. It lives as long as the request. Returns NULL if out of memory. */
const char *attachment_named(struct request *request, struct zt_text name, const char *ending);

/* Does the same with the last part of a model's name. */
const char *attachment_of_model(struct request *request, struct zt_text model, const char *ending);

#endif
