/* Asks a server for a JSON object. */
#ifndef CLIENT_JSON_ANSWER_H
#define CLIENT_JSON_ANSWER_H

#include "client/client.h"

struct json_t;

/* Requests a place, which redirects change. The caller frees the object with json_object_free.
 * Fails as client_ask and client_refusal do; *out_is_problem, unless NULL, then says whether the
 * refusal was JSON too, as every refusal of this program's server is. ZT_INVALID: the response is
 * not a JSON object. */
enum zt_status json_answer_ask(struct client *client, struct client_place *place,
                               struct json_t **out_object, bool *out_is_problem,
                               struct zt_error *error);

/* Starts work on the server: an empty POST, which is accepted (202) with an object. Fails as
 * json_answer_ask does. */
enum zt_status json_answer_start(struct client *client, struct client_place *place,
                                 struct json_t **out_object, struct zt_error *error);

#endif
