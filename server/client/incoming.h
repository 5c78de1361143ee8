/* A file that is arriving: the part file on the disk, which pieces of it are there, and a source
 * over it whose reads wait for what has not come yet. So a file is checked while it comes, by code
 * that knows nothing of it. */
#ifndef CLIENT_INCOMING_H
#define CLIENT_INCOMING_H

#include <pthread.h>

#include "client/piece_map.h"
#include "zt/source.h"

struct incoming {
    struct zt_source source; /* closed with incoming_close */
    int descriptor;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a piece has come, a read waits, it has failed, or the caller says */
    /* Under the lock. */
    struct piece_map map;
    uint32_t cursor; /* the piece to be brought next: where the last read waits */
    bool has_failed;
    struct zt_error error;
};

/* The descriptor is the part file's, which nobody else may be writing; it is borrowed. ZT_LIMIT if
 * the disk has no room for size bytes. The map has no piece. */
enum zt_status incoming_open(struct incoming *incoming, int descriptor, uint64_t size,
                             struct zt_error *error);
/* After the map has been filled in: gives the file its length; drops what is there if no piece
 * counts. */
enum zt_status incoming_begin(struct incoming *incoming, struct zt_error *error);
void incoming_close(struct incoming *incoming);

/* Writes bytes that have come. ZT_IO. */
enum zt_status incoming_write(struct incoming *incoming, uint64_t offset, const void *bytes,
                              size_t length, struct zt_error *error);

/* A piece is whole. is_told: reads that wait look whether they have enough; not for each piece,
 * since looking costs more than a piece. */
void incoming_take_piece(struct incoming *incoming, uint32_t piece, bool is_told);

/* Ends all reads, also those that wait: nothing more will come. The first reason counts. */
void incoming_fail(struct incoming *incoming, const struct zt_error *error);

/* The SHA-256 of the whole, in order while it comes; moves no cursor. Fails as reads do. */
enum zt_status incoming_hash(struct incoming *incoming, uint8_t out_sha256[32],
                             struct zt_error *error);

#endif
