/* The verifier: checks components against the digests stated in their file, once for each version
 * of the file. Verdicts are saved in the state folder, or kept in memory if that cannot be
 * written. */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/json_write.h"
#include "base/server.h"
#include "catalog/catalog.h"

struct run; /* over all components of a generation (verifier_runs.c) */

struct verifier *verifier_new(struct server *server);
/* Saves what has not been saved yet. Takes NULL. */
void verifier_free(struct verifier *verifier);

/* The verifier's view of the catalog. New generations get the verdicts and digests that an earlier
 * run saved for these very bytes, and with verify: eager are hashed in the background. The index of
 * blobs follows those that are shown and dropped. After the first scan, saved files of missing
 * paths are removed. */
struct catalog_observer verifier_observer(struct verifier *verifier);

/* Makes running checks end soon, without a verdict, and wakes their waiters; no more are begun. To
 * be called before loops and workers are stopped, since hashing may take minutes. */
void verifier_stop(struct verifier *verifier);

/* Returns the state of a component. CHECKING: a check is running (this call begins it if
 * necessary), and waiter will be woken. With verify: off never CHECKING: an UNCHECKED component is
 * served as it is, but one known to be CORRUPT stays CORRUPT. Otherwise never UNCHECKED: a
 * component that cannot be read is CORRUPT for a second and then tried again (UNAVAILABLE if its
 * bytes are elsewhere and cannot be had). A component in a
 * shard without a digest of its own is CORRUPT if the shard does not match the digest that the
 * model states. */
enum component_state verifier_ask(struct verifier *verifier, struct generation *generation,
                                  uint32_t component, struct waiter *waiter);

/* Like verifier_ask, but ignores verify: off. For bytes that are sent together with their
 * digest. */
enum component_state verifier_insist(struct verifier *verifier, struct generation *generation,
                                     uint32_t component, struct waiter *waiter);

/* Checks one component at once, on this worker, and wakes all who wait for it. run, which may be
 * NULL, counts the progress. Does nothing for a generation without verdicts. */
void verifier_check_now(struct verifier *verifier, struct generation *generation,
                        uint32_t component, struct run *run);

/* Takes over verdicts (enum zt_verdict, one for each component) about these very bytes from an
 * upload, which was read completely before it was published. Components that are already known or
 * being checked stay as they are. */
void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count);

/* POST verification: hashes every component again, in the background, and checks the content rules
 * of layouts and types. Does nothing if that is already running. */
void verifier_start(struct verifier *verifier, struct generation *generation);
/* The same for a client (struct job), with whom others share the workers. */
void verifier_start_for(struct verifier *verifier, struct generation *generation, uint64_t client);

/* Whether a run over all components has found that the component's content breaks a rule. */
bool verifier_breaks_rule(struct generation *generation, uint32_t component);

/* Writes the JSON object of GET …/verification. */
void verifier_report(struct generation *generation, struct json *json);

/* Components by what is known about them, as the report counts them. */
struct verifier_tally {
    uint64_t unchecked;
    uint64_t verified;
    uint64_t undigested;
    uint64_t unsupported;
    uint64_t failed;
};

/* Adds the components of a generation. */
void verifier_tally(const struct generation *generation, struct verifier_tally *tally);

/* With verify: eager, whether every generation of the first scan has been hashed; true from then
 * on. Otherwise always true. */
bool verifier_is_ready(const struct verifier *verifier);

#endif
