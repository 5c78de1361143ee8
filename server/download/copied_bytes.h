/* Bytes of a pulled file that local files have too: copied into the part file before the requests
 * start, so that they are not fetched. File systems that can share blocks do not copy them. Tensors
 * that are made of local ones and differences are treated in the same way.
 *
 * The local files may change or be wrong: whoever copies checks the whole as if it had been
 * fetched. */
#ifndef DOWNLOAD_COPIED_BYTES_H
#define DOWNLOAD_COPIED_BYTES_H

#include "download/differences.h"

struct copied_range;

/* All 0: empty. */
struct copied_bytes {
    struct copied_range *ranges;
    size_t count;
    size_t capacity;
    /* The digests by which they were found are the server's, not the file's own: the file must be
     * compared with the server's digest of the whole. */
    bool needs_digest;
    struct differences differences;
};

/* Adds length bytes at a position of the pulled file, which are at from in a local one. The
 * descriptor is borrowed. ZT_NO_MEMORY. */
enum zt_status copied_bytes_add(struct copied_bytes *copied, uint64_t at, uint64_t length,
                                int descriptor, uint64_t from, struct zt_error *error);
void copied_bytes_free(struct copied_bytes *copied);

/* Called now and then with the bytes made and copied so far. */
typedef void (*copied_bytes_watcher)(void *context, uint64_t bytes);

/* Makes differences and copies all ranges, except pieces that are here, and marks the pieces that
 * are whole then. What cannot be copied is forgotten, so that it is fetched. From then on the
 * ranges are sorted and apart. */
void copied_bytes_make(struct copied_bytes *copied, const struct part_file *file,
                       struct piece_map *map, copied_bytes_watcher watch, void *context);

/* Returns the state of a piece that has arrived: HERE if no byte of it was copied, else COPIED. */
enum piece_state copied_bytes_state(const struct copied_bytes *copied, const struct piece_map *map,
                                    uint32_t piece);

/* Shortens a run of missing pieces to bytes that must be fetched: none in it was copied, apart from
 * small gaps within a piece. Returns the run's new end. */
uint32_t copied_bytes_shorten(const struct copied_bytes *copied, const struct piece_map *map,
                              uint32_t first, uint32_t end, uint64_t *out_at, uint64_t *out_end);

#endif
