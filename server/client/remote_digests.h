/* Digests of a model's components that this program's server has computed (?digests of its
 * manifest). */
#ifndef CLIENT_REMOTE_DIGESTS_H
#define CLIENT_REMOTE_DIGESTS_H

#include "client/client.h"
#include "zt/model.h"

struct json_t;

/* Requests the manifest of the model whose file is at a place, BASE/files/PATH, until the server
 * has hashed all components, or makes no progress. Returns NULL if there is none. The caller frees
 * it with json_object_free. */
struct json_t *remote_digests_ask(struct client *client, const struct client_place *place);

/* Finds the SHA-256 of a component's stored bytes in such a manifest, which is of this file. */
bool remote_digests_find(const struct json_t *manifest, const struct zt_object *object,
                         const struct zt_component *component, uint8_t out_sha256[32]);

/* Makes the target of a request for a component of that model, with a query. Returns NULL if the
 * file is not at such a place, or if out of memory. The caller frees it. */
char *remote_component_target(const struct client_place *place, const struct zt_object *object,
                              const struct zt_component *component, const char *query);

#endif
