/* The verifier: components against the digests their file states, once per version of the file, remembered across
 * restarts in the state folder (in memory only where that cannot be written). */
#ifndef MODEL_VERIFIER_H
#define MODEL_VERIFIER_H

#include "http/json_write.h"
#include "model/generation.h"
#include "runtime/server.h"

struct verifier *verifier_new(struct server *server);
/* Writes down what is known and not yet saved. */
void verifier_free(struct verifier *verifier);

/* A new generation: recalls what an earlier run found out about these very bytes (same identity and manifest), and with
 * verify: eager begins hashing in the background. */
void verifier_adopt(struct verifier *verifier, struct generation *generation);

/* generation.c calls this when the last reference goes. */
void verification_free(struct verification *verification);

/* What is known of a component. COMPONENT_CHECKING: it is being checked (begun by this call if need be) and waiter will
 * be woken; several may wait for one check. Never CHECKING with verify: off. */
enum component_state verifier_ask(struct verifier *verifier, struct generation *generation, uint32_t component,
                                  struct waiter *waiter);

/* POST verification: hashes every component anew, in the background; nothing when that is running already. Content rules
 * of layouts and types are checked too. */
void verifier_start(struct verifier *verifier, struct generation *generation);

/* The object of GET …/verification (http-api, section 2). */
void verifier_report(struct verifier *verifier, struct generation *generation, struct json *json);

/* With verify: eager: whether every loaded generation was hashed. Else true. */
bool verifier_is_ready(const struct verifier *verifier);

#endif
