/* Statistics and previews of the numbers of components. Each is made once for each version of a
 * file, by all workers side by side, and shared by all requests. The most recently used are kept in
 * a memo, within bounds. */
#ifndef NUMBERS_COMPONENT_NUMBERS_H
#define NUMBERS_COMPONENT_NUMBERS_H

#include "base/memo.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "zt/preview.h"

/* What is to be computed. */
struct numbers_query {
    uint32_t object;
    uint32_t component;
    const struct zt_slice *slice; /* of zt_elements_tensor; NULL: everything */
    uint64_t bytes;               /* about how many must be read */
    unsigned bins;                /* of statistics; 0: a preview is made */
    struct zt_preview preview;
};

/* Statistics are JSON (statistics_json.h), previews floats in the machine's order. */
struct numbers_entry {
    void *bytes;
    size_t length;
};

/* For server->numbers_memo. NULL when out of memory. */
struct memo *numbers_memo_new(void);

/* An entry, made or not, which the caller holds until memo_release. NULL when out of memory. */
struct numbers_entry *numbers_hold(struct memo *numbers_memo, const struct generation *generation,
                                   const struct numbers_query *order);

/* READY: the entry can be read. PENDING: waiter is woken when it has been made; then ask again.
 * FAILED: error says why: ZT_CORRUPT, ZT_LIMIT, ZT_UNSUPPORTED, ZT_NO_MEMORY, ZT_IO. The work stops
 * when the clients of all holders are gone. Never returns MAKE. */
enum memo_answer numbers_ask(struct server *server, struct numbers_entry *entry,
                             struct generation *generation, const struct numbers_query *order,
                             struct waiter *waiter, struct zt_error *error);

/* The length of an entry that has been made and is kept; 0 without one. */
size_t numbers_length(struct memo *numbers_memo, const struct generation *generation,
                      const struct numbers_query *order);

#endif
