/* Detects files that are overwritten or truncated while answers are sent from them. Such an answer
 * may mix old and new bytes, so it must never complete.
 *
 * Code that reads files compares stamps taken before and after. The library, however, copies from a
 * mapping whenever the client has room for more, and a file truncated within a page reads as zeros
 * up to the end of that page, without an error. So at the start of each turn the loop checks that
 * the files of such answers are still long enough and unchanged. */
#ifndef HTTP_WIRE_FILE_CHANGES_H
#define HTTP_WIRE_FILE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "http/body/place.h"

/* Returns a stamp of a file's length and modification time, which do not change if the file is
 * renamed, replaced or removed. *out_bytes: the length; out_bytes may be NULL. A source that is not
 * a file always has the same stamp. */
uint64_t file_stamp(const struct zt_source *file, uint64_t *out_bytes);

/* Does the same for the file of a SEGMENT_SOURCE. For a pinned file only the length counts, not the
 * time: such a file is still being filled, but its pinned bytes do not change. */
uint64_t segment_stamp(const struct segment *segment, uint64_t *out_bytes);

/* Does the same for all files that an answer reads directly. */
uint64_t answer_stamp(const struct answer *answer);

#define MAPPED_FILES_MOST 32u

struct connections;

struct mapped_file {
    struct segment segment; /* one of its segments; the source is borrowed from the answers */
    uint64_t end;           /* end of the bytes that answers need */
    uint64_t stamp;         /* taken when the first of the answers began */
    unsigned answers;       /* never 0 */
};

/* The files that the library is sending from mappings on one loop. All members are initially 0; for
 * the loop's thread. */
struct mapped_files {
    struct mapped_file files[MAPPED_FILES_MOST];
    unsigned count;
    /* The file that was checked last in this turn; NULL: none. */
    const struct zt_source *seen;
    uint64_t seen_bytes;
    uint64_t seen_stamp;
};

/* Makes a request's answer, which is one segment of a file, SENDING_MAPPED, and registers its file
 * until mapped_files_leave. Returns false and does nothing if there are too many files, or if the
 * file is now too short or has been written to. */
bool mapped_files_enter(struct mapped_files *mapped, struct request *request);

/* Ends the watch for a request whose answer is SENDING_MAPPED. */
void mapped_files_leave(struct mapped_files *mapped, struct request *request);

/* Call it at the beginning of a turn. Ends connections whose files have been written to, or no
 * longer have the bytes that their answers need. */
void mapped_files_check(struct mapped_files *mapped, const struct connections *connections);

#endif
