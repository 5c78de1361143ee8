/* The verifier: checks components against the digests that their file states, once for each version
 * of the file. Verdicts are saved in the state folder, or kept in memory if that cannot be
 * written. */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/json_write.h"
#include "base/server.h"
#include "catalog/catalog.h"

struct run; /* over all components of a generation (verifier_runs.c) */

struct verifier *verifier_new(struct server *server);
/* Saves what is not saved yet. Takes NULL. */
void verifier_free(struct verifier *verifier);

/* How the catalog reports to the verifier: new generations get the verdicts and digests that an
 * earlier run saved for these very bytes, and with verify: eager are hashed in the background;
 * those shown and dropped are followed by the index of blobs; when the first scan is done, saved
 * files of paths that are gone are removed. */
struct catalog_observer verifier_observer(struct verifier *verifier);

/* Ends checks under way soon, without a verdict, and wakes their waiters; no more are begun. For
 * the end of the program: to be called before loops and workers are stopped, since hashing may take
 * minutes. */
void verifier_stop(struct verifier *verifier);

/* What is known of a component. CHECKING: it is being checked, begun by this call if need be, and
 * waiter will be woken. With verify: off never CHECKING: an UNCHECKED component is served as it is,
 * but one known to be CORRUPT is still CORRUPT. Otherwise never UNCHECKED: a component that cannot
 * be read is CORRUPT for a second and then tried again. A component in a shard that states no
 * digest of its own is CORRUPT if the shard does not match the digest that the model states for
 * it. */
enum component_state verifier_ask(struct verifier *verifier, struct generation *generation,
                                  uint32_t component, struct waiter *waiter);

/* As verifier_ask, but never as with verify: off: for bytes that are sent together with their
 * digest. */
enum component_state verifier_insist(struct verifier *verifier, struct generation *generation,
                                     uint32_t component, struct waiter *waiter);

/* On a worker: checks one component at once, and wakes those that wait for it too. run, which may
 * be NULL, counts the progress. Nothing for a generation without verdicts. */
void verifier_check_now(struct verifier *verifier, struct generation *generation,
                        uint32_t component, struct run *run);

/* Takes over verdicts (enum zt_verdict, one for each component) about these very bytes from an
 * upload, which was read to its end before it was published. Components that are known already, or
 * being checked, stay as they are. */
void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count);

/* POST verification: hashes every component again, in the background, and checks the content rules
 * of layouts and types. Nothing if that is running already. */
void verifier_start(struct verifier *verifier, struct generation *generation);

/* Whether a run over all components found, now or earlier, that the component's content breaks a
 * rule. */
bool verifier_breaks_rule(struct generation *generation, uint32_t component);

/* Writes the object of GET …/verification (http-api, section 2). */
void verifier_report(struct generation *generation, struct json *json);

/* With verify: eager: whether every generation of the first scan has been hashed; stays true from
 * then on. Otherwise true. */
bool verifier_is_ready(const struct verifier *verifier);

#endif
