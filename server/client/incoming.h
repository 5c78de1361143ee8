/* A file that is being fetched in pieces: the part file on disk, the pieces that have arrived, and
 * sources over it whose reads wait for missing pieces. So ordinary code can check the file while it
 * arrives. */
#ifndef CLIENT_INCOMING_H
#define CLIENT_INCOMING_H

#include <pthread.h>

#include "client/part_file.h"
#include "client/piece_map.h"
#include "zt/source.h"

struct incoming_source {
    struct zt_source source; /* first; ends with the incoming file */
    struct incoming *incoming;
};

struct incoming {
    struct incoming_source wanted;    /* pieces that its reads wait for are fetched next */
    struct incoming_source following; /* its reads only wait */
    const struct part_file *file;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a piece arrived, a read waits, reading has failed, a request ended */
    /* Under the lock. */
    struct piece_map map;
    uint32_t cursor; /* the piece to fetch next: where the last read waits */
    bool has_failed;
    struct zt_error error;
};

/* Starts with no piece. The file is open, and borrowed. ZT_LIMIT if the disk has no room for
 * size_bytes. */
enum zt_status incoming_open(struct incoming *incoming, const struct part_file *file,
                             uint64_t size_bytes, struct zt_error *error);
/* Called after the map was read from a journal: sets the file's length, and discards its bytes if
 * it has no pieces. Returns ZT_IO. */
enum zt_status incoming_begin(struct incoming *incoming, struct zt_error *error);
void incoming_close(struct incoming *incoming);

/* Records a complete piece. wakes_readers: wakes the waiting reads so that they check whether they
 * have enough. That is more expensive than a piece, so it is not done for each. */
void incoming_take_piece(struct incoming *incoming, uint32_t piece, bool wakes_readers);

/* Ends all reads, including waiting ones, with the first error passed here. */
void incoming_fail(struct incoming *incoming, const struct zt_error *error);

#endif
