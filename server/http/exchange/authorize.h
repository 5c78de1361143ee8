/* Whether the client of a request may do what it asks for (RFC 6750 section 3): 401 if it is not
 * known, 403 if it may do less, both before the body is read. */
#ifndef HTTP_EXCHANGE_AUTHORIZE_H
#define HTTP_EXCHANGE_AUTHORIZE_H

#include "base/name_filter.h"
#include "http/exchange/request.h"

/* Finds the client and sets request->grant and request->client. Replies with 401 if it must be
 * known and is not; so paths that do not exist are no different from others. After router_find. */
void authorize_client(struct request *request);

/* Whether the client is known, or need not be; also where everybody may ask. */
bool authorize_knows_client(struct request *request);

/* Compares the client's scope with what the operation needs, and its globs with the model that the
 * path names. Replies with 403. After router_match. */
void authorize_operation(struct request *request);

/* Whether the client may see a model. */
bool authorize_sees(const struct request *request, struct zt_text model);

/* Whether the client may see a stored file that is no model: as the model that has its path without
 * the extension. */
bool authorize_sees_file(const struct request *request, struct zt_text path);

/* Whether the client may see anything in a folder, be it there or not; "": the root. */
bool authorize_sees_folder(const struct request *request, struct zt_text folder);

/* authorize_sees as a filter, which may be used as long as the request lives. */
struct name_filter authorize_filter(const struct request *request);

/* True, and replied with 403, if the client may not see a model that the request names outside its
 * path. */
bool authorize_refuse_model(struct request *request, struct zt_text model);

#endif
