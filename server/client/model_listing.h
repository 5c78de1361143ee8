/* The models of a server: its listing, page after page. */
#ifndef CLIENT_MODEL_LISTING_H
#define CLIENT_MODEL_LISTING_H

#include "client/client.h"

struct json_t;

/* Returns true if a URL can only name a listing of models, since it ends in '/' or "/v1/models". */
bool model_listing_is_meant(const char *url);

/* Calls visit with each model, as the server describes it, by name. The URL is the address of a
 * server, which may be below a path of a proxy, or of a folder of models on it. Parts of models in
 * several files are left out. visit returns false if out of memory. Fails as json_answer_ask
 * does. */
enum zt_status model_listing_fetch(struct client *client, const char *url,
                                   bool (*visit)(void *context, const struct json_t *model),
                                   void *context, struct zt_error *error);

#endif
