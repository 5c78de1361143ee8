/* Statistics and previews of the numbers of components. Each is made once for each version of a
 * file, by all workers side by side, and shared by all requests. The most recently used are kept in
 * a memo, within bounds. */
#ifndef NUMBERS_COMPONENT_STATISTICS_H
#define NUMBERS_COMPONENT_STATISTICS_H

#include "base/memo.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "zt/preview.h"

/* What is to be computed. */
struct statistics_query {
    uint32_t object;
    uint32_t component;
    const struct zt_slice *slice; /* of zt_elements_tensor; NULL: everything */
    uint64_t bytes;               /* about how many must be read */
    unsigned bins;                /* of statistics; 0: a preview is made */
    struct zt_preview preview;
};

/* Statistics are JSON (statistics_json.h), previews floats in the machine's order. */
struct statistics_entry {
    void *bytes;
    size_t length;
};

/* For server->statistics_memo. NULL when out of memory. */
struct memo *statistics_memo_new(void);

/* An entry, made or not, which the caller holds until memo_release. NULL when out of memory. */
struct statistics_entry *statistics_hold(struct memo *statistics_memo,
                                         const struct generation *generation,
                                         const struct statistics_query *order);

/* READY: the entry can be read. PENDING: waiter is woken when it has been made; then ask again.
 * FAILED: error says why, as decoded_elements_open does. It is given up when the clients of all
 * that hold it are gone. Never MAKE. */
enum memo_answer statistics_ask(struct server *server, struct statistics_entry *statistics_entry,
                                struct generation *generation, const struct statistics_query *order,
                                struct waiter *waiter, struct zt_error *error);

/* The length of an entry that has been made and is kept; 0 without one. */
size_t statistics_length(struct memo *statistics_memo, const struct generation *generation,
                         const struct statistics_query *order);

#endif
