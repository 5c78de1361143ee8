/* Shards against the digest that the model states for them: for components in a shard that state
 * none of their own. Known for as long as the generation lives. Where it is wrong these are
 * corrupt, and the report says so. */
#ifndef VERIFY_VERIFIER_SHARDS_H
#define VERIFY_VERIFIER_SHARDS_H

#include "verify/verifier_runs.h"

/* COMPONENT_VERIFIED, COMPONENT_CORRUPT, COMPONENT_UNSUPPORTED (a digest of an unknown kind:
 * nothing can be said), or COMPONENT_CHECKING: the shard is being hashed, begun by this call if
 * need be, and waiter will be woken. One that cannot be read is CORRUPT for a second, and is then
 * tried again. */
enum component_state verifier_ask_shard(struct verifier *verifier, struct generation *generation,
                                        uint32_t shard, struct waiter *waiter);

/* Hashes the shard here and now, unless this round of the generation's runs had it before. On a
 * worker. */
void verifier_check_shard_now(struct verifier *verifier, struct generation *generation,
                              uint32_t shard);

#endif
