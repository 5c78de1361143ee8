/* Lengths and digests of decoded components that an export has read for, kept with the generation:
 * the next question to the same version of a file does not read them again. Likewise those that an
 * upload had when it was committed. */
#ifndef VERIFY_KEPT_FACTS_H
#define VERIFY_KEPT_FACTS_H

#include "catalog/generation.h"
#include "zt/file_plan.h"

/* False where nothing is kept. Never waits. The caller sets same_as. */
bool kept_fact_find(const struct generation *generation, uint32_t component,
                    enum zt_digest_algorithm algorithm, struct zt_fingerprint *out_fact);

/* What is small is not kept: it is sooner read again. Nor is anything when memory is out. From any
 * thread. */
void kept_fact_add(struct generation *generation, uint32_t component,
                   const struct zt_fingerprint *fact);

/* The SHA-256 that whoever stored the bytes had of them: kept, however small they are. */
void kept_fact_learn(struct generation *generation, uint32_t component, const uint8_t sha256[32]);

/* generation.c calls this. */
void kept_facts_free(struct generation *generation);

#endif
