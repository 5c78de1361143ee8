/* Tensors of a pulled file that the server sends as their difference from a local one
 * (coding=xor-zstd, docs/api.md). Each is decoded into its place in the part file and compared with
 * its digest; those that fail are fetched like all other bytes. */
#ifndef DOWNLOAD_DIFFERENCES_H
#define DOWNLOAD_DIFFERENCES_H

#include <stdatomic.h>

#include "client/client.h"
#include "download/part_file.h"
#include "download/piece_map.h"
#include "zt/digest.h"
#include "zt/source.h"

struct difference {
    uint64_t at; /* in the pulled file */
    uint64_t length;
    struct zt_source *base; /* borrowed */
    uint64_t base_at;
    char *target;            /* of the request, on the file's server; owned */
    struct zt_digest digest; /* of the tensor */
    bool is_made;
};

/* All 0: empty. */
struct differences {
    struct difference *list;
    size_t count;
    size_t capacity;
    struct client *client;
    const struct client_place *place; /* of the file */
    unsigned jobs;                    /* requests at once */
    atomic_uint *refusals;            /* in a row; shared by the files of a pull */
    uint64_t made_bytes;              /* of tensors */
    uint64_t received_bytes;          /* of differences */
};

/* Adds a difference, and takes over its target. ZT_NO_MEMORY. */
enum zt_status differences_add(struct differences *differences, const struct difference *difference,
                               struct zt_error *error);
void differences_free(struct differences *differences);

/* Called now and then with the bytes of tensors made so far. */
typedef void (*differences_watcher)(void *context, uint64_t bytes);

/* Makes all tensors that are not here yet. After a few refusals in a row the server is not asked
 * any more: it does not have the client's tensors, or is another program. */
void differences_make(struct differences *differences, const struct part_file *file,
                      const struct piece_map *map, differences_watcher watch, void *context);

#endif
