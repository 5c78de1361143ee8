/* A piece of an answer that one system call sends: a range of a file (sendfile), or a list of
 * memory, mappings and gathered bytes (sendmsg).
 *
 * Runs of slices and short ranges of files are sent from the mapping of their file; the kernel
 * copies them once. Shorter runs are gathered first. Truncating a file while its mapping is sent
 * cannot kill the program, since the kernel reports bytes that it cannot read. But a mapping ends
 * at a page boundary, and the rest of the last page reads as zeros. So the file's length is checked
 * after each such piece, and the end of an answer is always read: an answer with such zeros never
 * completes. */
#ifndef HTTP_BODY_PIECE_H
#define HTTP_BODY_PIECE_H

#include <sys/uio.h>

#include "http/body/place.h"

/* The kernel's maximum. */
#define PIECE_PARTS 1024

struct piece {
    uint64_t length;
    struct zt_source *file; /* the file for sendfile, or whose mapping is sent; NULL: neither */
    uint64_t offset;        /* for sendfile */
    uint64_t last;          /* last byte of the mapping that is sent */
    bool gathered;          /* some bytes were copied */
    unsigned count;         /* number of parts; 0: use sendfile */
    struct iovec parts[PIECE_PARTS];
};

/* The buffer for the gathered bytes of one piece. */
struct piece_buffer {
    uint8_t *bytes;
    size_t size;
    size_t used;
};

/* Returns true if all segments can be sent this way; for remote segments, once they are pinned.
 * Takes time in proportion to their number, and returns false if there are very many. */
bool pieces_can_send(const struct answer *answer);

/* Makes the piece that begins at `from`, which must not be the answer's end. It has at most `most`
 * bytes, all of which must be in the page cache. Returns false if bytes cannot be read because the
 * file has become too short. */
bool piece_make(struct piece *piece, const struct answer *answer, struct place from, uint64_t most,
                struct piece_buffer *buffer);

/* Sends the piece without waiting. Returns how many bytes the socket took; 0 if none now; -1 on a
 * permanent failure or if the file has become too short. more: another piece follows at once. */
ssize_t piece_send(const struct piece *piece, int descriptor, bool more);

#endif
