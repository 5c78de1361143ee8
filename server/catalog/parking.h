/* Parking: a folder may contain more files than a process may open. So the files of unused models
 * are closed, and opened again when they are needed. Models that were requested recently stay open
 * if others can be closed. */
#ifndef CATALOG_PARKING_H
#define CATALOG_PARKING_H

#include "catalog/catalog_content.h"

void parking_init(struct catalog_content *content);
void parking_clear(struct catalog_content *content);

/* Returns how many files the generations of the index hold open. */
size_t parking_count(struct catalog_content *content);

/* Returns true if an error means that the process or the system has no descriptors left, which says
 * nothing about the file. */
bool parking_is_out_of_files(const struct zt_error *error);

/* Call these when a generation enters or leaves the index. It must be retired before it leaves. */
void parking_enter(struct catalog_content *content, struct generation *generation);
void parking_leave(struct catalog_content *content, struct generation *generation);

/* Parks a generation that is not in the index yet. Returns false if it is in use. */
bool parking_close_new(struct generation *generation);

/* Closes unused files if too many are open. Takes the index's lock. */
void parking_limit(struct catalog_content *content);

/* Closes half of the unused files, when no descriptors are left. */
void parking_make_room(struct catalog_content *content);

/* Opens the files of a held generation that is parked; in_turn: returns false while too many files
 * are being read. */
bool parking_open_again(struct catalog_content *content, struct generation *generation,
                        bool in_turn);

/* Notes that a held generation is used, and opens its files again if it was parked. Returns false
 * if a file is gone or has changed, or if no descriptors are left; in_turn, for a request: also
 * while too many files are being read, so that it waits and retries. */
static inline bool parking_open(struct catalog_content *content, struct generation *generation,
                                bool in_turn)
{
    /* Usually the flag is set already; then the cache line stays shared. */
    if (!atomic_load_explicit(&generation->used, memory_order_relaxed))
        atomic_store_explicit(&generation->used, true, memory_order_relaxed);
    return !atomic_load(&generation->parked) || parking_open_again(content, generation, in_turn);
}

#endif
