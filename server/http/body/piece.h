/* What one system call sends of an answer: a range of a file, by sendfile, or a list of pieces of
 * memory, mappings and gathered bytes, by sendmsg.
 *
 * Runs of slices and short ranges of files are sent from the mapping of their file, which is one
 * copy, done by the kernel; shorter runs are gathered first. A file that is truncated meanwhile
 * cannot kill the program that way, since the kernel reports what it cannot read; but a mapping
 * ends at a whole page, whose rest reads as zeros. So the file's length is checked after each such
 * piece, and the end of an answer is always read: an answer with such zeros never becomes whole. */
#ifndef HTTP_BODY_PIECE_H
#define HTTP_BODY_PIECE_H

#include <sys/uio.h>

#include "http/body/place.h"

/* As many as the kernel takes. */
#define PIECE_PARTS 1024

struct piece {
    uint64_t length;
    struct zt_source *file; /* what sendfile sends, or whose mapping is sent; NULL: neither */
    uint64_t offset;        /* for sendfile */
    uint64_t last;          /* the last byte of the mapping that is sent */
    bool gathered;          /* some bytes were copied for it */
    unsigned count;         /* of parts; 0: for sendfile */
    struct iovec parts[PIECE_PARTS];
};

/* Where the bytes of one piece are gathered. */
struct piece_buffer {
    uint8_t *bytes;
    size_t size;
    size_t used;
};

/* Whether the bytes of every segment can be sent this way; those that are elsewhere, once they are
 * pinned. Takes time with their number, and says
 * no to very many. */
bool pieces_can_send(const struct answer *answer);

/* Makes the piece that begins at `from`, which is not the answer's end, of at most `most` bytes,
 * which are in the page cache. False if bytes cannot be read: the file has become too short. */
bool piece_make(struct piece *piece, const struct answer *answer, struct place from, uint64_t most,
                struct piece_buffer *buffer);

/* Sends it, without waiting. Returns how much was taken; 0: nothing now; -1: never, or the file has
 * become too short. more: another piece follows at once. */
ssize_t piece_send(const struct piece *piece, int descriptor, bool more);

#endif
