/* The catalog: which models there are. Maps names and paths to generations, and notices changes
 * (the store's watch, SIGHUP, uploads). All functions may be called from any thread. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/server.h"
#include "catalog/generation.h"

struct catalog *catalog_new(struct server *server);
/* Ends a running scan after the file at hand; wakes who waits. Takes NULL. */
void catalog_free(struct catalog *catalog);

/* Scans the store in the background, soon; scans asked for while one runs become one more. Files
 * that did not change keep their generation. */
void catalog_refresh(struct catalog *catalog);

/* Whether the first scan is done. */
bool catalog_is_loaded(const struct catalog *catalog);

/* Waits for the first scan: for the program's start. */
void catalog_wait_loaded(struct catalog *catalog);

enum catalog_answer { CATALOG_FOUND, CATALOG_NOT_FOUND, CATALOG_PENDING };

/* Finds a model, or a file, and hands out a reference. When the open file's size or time of
 * modification is no longer what it was, it is opened anew in the background and PENDING said:
 * waiter is woken when that is done. PENDING, too, for what is not found before the first scan is
 * done. Data shards are found by path only. */
enum catalog_answer catalog_find(struct catalog *catalog, struct zt_text name,
                                 struct waiter *waiter, struct generation **out_generation);
enum catalog_answer catalog_find_path(struct catalog *catalog, struct zt_text path,
                                      struct waiter *waiter, struct generation **out_generation);

/* Up to limit models in order of name, those with the prefix and after the name given (empty: from
 * the first). Returns how many were written to out_generations, each with a reference; *out_more:
 * others follow. */
size_t catalog_list(struct catalog *catalog, struct zt_text prefix, struct zt_text after,
                    size_t limit, struct generation **out_generations, bool *out_more);

struct component_place {
    struct generation *generation;
    uint32_t component;
};

enum catalog_blob {
    CATALOG_BLOB_FOUND,
    CATALOG_BLOB_NONE,
    CATALOG_BLOB_CORRUPT,
    CATALOG_BLOB_BUSY
};

/* Finds a component by the SHA-256 of its stored bytes, as a file states it or as it was found.
 * Components known to be corrupt, and the first skip others, are passed over; CORRUPT: there are
 * none but those. Hands out a reference, maybe of a parked generation: catalog_find_path tells
 * whether it still is what it was. BUSY: not to be told without taking long; only where the caller
 * said so by may_wait (on a worker) is it never answered. */
enum catalog_blob catalog_find_blob(struct catalog *catalog, const uint8_t sha256[32],
                                    unsigned skip, bool may_wait,
                                    struct component_place *out_place);

/* Finds one that is stored compressed by the SHA-256 of its decoded bytes, where somebody has told
 * it (kept_facts.h). False where there is none. Looks through all that is kept: on a worker. */
bool catalog_find_decoded(struct catalog *catalog, const uint8_t sha256[32],
                          struct component_place *out_place);

/* A component's digest was found. */
void catalog_note_digest(struct catalog *catalog, struct generation *generation,
                         uint32_t component);

/* Takes a just published or removed path into account at once and returns its new generation
 * (held), NULL when it is gone. On a worker. */
struct generation *catalog_update(struct catalog *catalog, const char *path);

#endif
