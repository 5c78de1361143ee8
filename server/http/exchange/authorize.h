/* Decides whether a client may do what it requests (RFC 6750 section 3): 401 if the client is
 * unknown, 403 if it lacks the permission, both before the body is read. */
#ifndef HTTP_EXCHANGE_AUTHORIZE_H
#define HTTP_EXCHANGE_AUTHORIZE_H

#include "base/name_filter.h"
#include "http/exchange/request.h"

/* Returns true if some requests need credentials. */
bool authorize_is_needed(const struct request *request);

/* Identifies the client and sets request->grant and request->client. Replies with 401 if the client
 * must be known and is not, even if the path does not exist, so that the status reveals nothing.
 * Call it after router_find, and only if authorize_is_needed. */
void authorize_client(struct request *request);

/* Returns true if the client is known or need not be, also on public routes. */
bool authorize_knows_client(struct request *request);

/* Checks the client's scope against the operation, and its globs against the model in the path.
 * Replies with 403. Call it after router_match. */
void authorize_operation(struct request *request);

/* Returns true if the client may write. For requests that read and may thereby complete a
 * change. */
bool authorize_writes(const struct request *request);

/* Returns true if the client may see a model. */
bool authorize_sees(const struct request *request, struct zt_text model);

/* Returns the path of a stored file without its extension, borrowed from path. */
struct zt_text authorize_name_of_file(struct zt_text path);

/* Returns true if the client may see a stored file that is not a model. It may if it may see a
 * model whose name is authorize_name_of_file. */
bool authorize_sees_file(const struct request *request, struct zt_text path);

/* Returns true if the client may see anything in a folder, whether or not it exists; "" is the
 * root. */
bool authorize_sees_folder(const struct request *request, struct zt_text folder);

/* Returns true if the client may see everything that can be in a folder. */
bool authorize_sees_whole_folder(const struct request *request, struct zt_text folder);

/* Returns authorize_sees as a filter, valid as long as the request. */
struct name_filter authorize_filter(const struct request *request);

/* Returns true after replying with 403 if the client may not see a model that the request names
 * outside its path. */
bool authorize_refuse_model(struct request *request, struct zt_text model);

/* Returns true after replying with 403 if the client may not see everything that can be in a
 * folder. For requests that concern the folder as a whole. */
bool authorize_refuse_folder(struct request *request, struct zt_text folder);

#endif
