/* The verifier checks components against the digests stated in their file, once per version of the
 * file. Verdicts are saved in the state folder, or kept in memory if it cannot be written. */
#ifndef VERIFY_VERIFIER_H
#define VERIFY_VERIFIER_H

#include "base/json_write.h"
#include "base/server.h"
#include "catalog/catalog.h"

struct run; /* a check of all components of a generation (verifier_runs.c) */

struct verifier *verifier_new(struct server *server);
/* Saves the verdicts that are not saved yet, ends the thread that saves them, and releases all
 * generations. To be called after the workers have ended. Takes NULL, and may be called again. */
void verifier_finish(struct verifier *verifier);
/* Finishes and frees. Accepts NULL. */
void verifier_free(struct verifier *verifier);

/* Returns the verifier's observer of the catalog. New generations get the verdicts and digests that
 * an earlier run saved for exactly these bytes; with verify: eager, they are hashed in the
 * background. The index of blobs follows generations that are shown and dropped. After the first
 * scan, saved files of missing paths are removed. */
struct catalog_observer verifier_observer(struct verifier *verifier);

/* Makes running checks end soon without a verdict, wakes their waiters, and prevents new checks.
 * Call it before loops and workers are stopped, since hashing may take minutes. */
void verifier_stop(struct verifier *verifier);

/* Returns the state of a component. CHECKING: a check is running (this call starts it if
 * necessary), and waiter will be woken. With verify: off, never returns CHECKING: an UNCHECKED
 * component is served unchecked, but a component known to be CORRUPT stays CORRUPT. Otherwise never
 * returns UNCHECKED: a component that cannot be read is CORRUPT for a second (or UNAVAILABLE, if
 * its bytes are remote and cannot be fetched) and is then tried again. A component without its own
 * digest is CORRUPT if its shard does not match the digest that the model states. */
enum component_state verifier_ask(struct verifier *verifier, struct generation *generation,
                                  uint32_t component, struct waiter *waiter);

/* Does the same as verifier_ask, but ignores verify: off. For bytes that are sent together with
 * their digest. */
enum component_state verifier_insist(struct verifier *verifier, struct generation *generation,
                                     uint32_t component, struct waiter *waiter);

/* Checks one component on this worker, and wakes all requests that wait for it. Does nothing for a
 * generation without verdicts. */
void verifier_check_now(struct verifier *verifier, struct generation *generation,
                        uint32_t component);

/* Records verdicts (one enum zt_verdict per component) of an upload that was read completely before
 * it was published. Components that are already known or being checked do not change. */
void verifier_learn(struct verifier *verifier, struct generation *generation,
                    const unsigned char *verdicts, uint32_t count);

/* Implements POST verification: hashes every component again in the background and checks the
 * content rules of layouts and types. Does nothing if that is already running. client is the
 * job's. */
void verifier_start(struct verifier *verifier, struct generation *generation, uint64_t client);

/* Returns true if a run over all components has found that the component's content breaks a
 * rule. */
bool verifier_breaks_rule(struct generation *generation, uint32_t component);

/* Writes the JSON object of GET …/verification. */
void verifier_report(struct generation *generation, struct json *json);

/* The number of components by state, as in the report. */
struct verifier_tally {
    uint64_t unchecked;
    uint64_t verified;
    uint64_t undigested;
    uint64_t unsupported;
    uint64_t failed;
};

/* Adds the components of a generation. */
void verifier_tally(const struct generation *generation, struct verifier_tally *tally);

/* With verify: eager, returns true once all generations of the first scan have been hashed.
 * Otherwise always returns true. */
bool verifier_is_ready(const struct verifier *verifier);

#endif
