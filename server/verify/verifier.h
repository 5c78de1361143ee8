/* The verifier: components against the digests their file states, once per version of the file,
 * remembered across restarts in the state folder (in memory only where that cannot be written). */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/json_write.h"
#include "base/server.h"
#include "catalog/generation.h"

struct verifier *verifier_new(struct server *server);
/* Writes down what is known and not yet saved. */
void verifier_free(struct verifier *verifier);

/* The first scan is done, and paths are all that there is: what is remembered of other files is
 * forgotten. Until then verifier_is_ready says no with verify: eager. */
void verifier_loaded(struct verifier *verifier, const char *const *paths, size_t count);

/* Makes checks under way end soon, without a verdict, and wakes who waits for them; none is begun
 * any more. For the end of the program: before loops and workers are stopped, since hashing may
 * take minutes. */
void verifier_stop(struct verifier *verifier);

/* A new generation, before anybody else has it: recalls what an earlier run found out about these
 * very bytes (same identity and manifest), and with verify: eager begins hashing in the background.
 */
void verifier_adopt(struct verifier *verifier, struct generation *generation);

/* generation.c calls this when the last reference goes. */
void verification_free(struct verification *verification);

/* What is known of a component. COMPONENT_CHECKING: it is being checked (begun by this call if need
 * be) and waiter will be woken; several may wait for one check. With verify: off never CHECKING:
 * UNCHECKED is served as it is, but what is known to be CORRUPT is still CORRUPT. Without verify:
 * off never UNCHECKED: a component that cannot be checked because its bytes cannot be read is
 * answered as CORRUPT, for a second, and is then tried again. What lies in a shard and states no
 * digest of its own is CORRUPT when the shard has not the digest that the model states for it. */
enum component_state verifier_ask(struct verifier *verifier, struct generation *generation,
                                  uint32_t component, struct waiter *waiter);

/* As verifier_ask without verify: off, whatever is configured: for bytes that go out under their
 * digest. */
enum component_state verifier_insist(struct verifier *verifier, struct generation *generation,
                                     uint32_t component, struct waiter *waiter);

/* Takes over verdicts (enum zt_verdict, one a component) that somebody found out about these very
 * bytes, and remembers them: an upload's, which was read to its end before it got its name. What is
 * known or being checked stays. */
void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count);

/* POST verification: hashes every component anew, in the background; nothing when that is running
 * already. Content rules of layouts and types are checked too. */
void verifier_start(struct verifier *verifier, struct generation *generation);

/* Whether a run over everything found that the component's content breaks a rule, this time or
 * before. */
bool verifier_found_broken(struct generation *generation, uint32_t component);

/* The object of GET …/verification (http-api, section 2). */
void verifier_report(struct verifier *verifier, struct generation *generation, struct json *json);

/* With verify: eager: whether every generation of the first scan was hashed; stays true from then
 * on. Else true. */
bool verifier_is_ready(const struct verifier *verifier);

#endif
