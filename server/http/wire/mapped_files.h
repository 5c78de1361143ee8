/* Files from whose mappings a loop is sending answers.
 *
 * A file that is truncated within a page reads as zeros up to the end of that page, without an
 * error. The library takes from a mapping whenever a client has made room for more, so before each
 * turn it is made sure that the files still reach as far as the answers under way, and are what
 * they were. All functions are for the loop's thread. */
#ifndef HTTP_WIRE_MAPPED_FILES_H
#define HTTP_WIRE_MAPPED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "http/exchange/representation.h"

#define MAPPED_FILES_MOST 32u

struct connections;

struct mapped_file {
    struct segment segment; /* one that is of it; the source is borrowed from the answers */
    uint64_t end;           /* of the bytes that answers need */
    uint64_t stamp;         /* from when the first of them was given */
    unsigned answers;       /* never 0 */
};

/* Of one loop. All members are 0 at first. */
struct mapped_files {
    struct mapped_file files[MAPPED_FILES_MOST];
    unsigned count;
    /* The file that was last looked at, in this turn; NULL: none. */
    const struct zt_source *seen;
    uint64_t seen_bytes;
    uint64_t seen_stamp;
};

/* Notes the files of a request's answer, until mapped_files_leave. False, and nothing noted, if
 * they are too many, or one has become too short or been written to. */
bool mapped_files_enter(struct mapped_files *mapped, struct request *request);

/* Does nothing if the request's answer was not noted. */
void mapped_files_leave(struct mapped_files *mapped, struct request *request);

/* At the beginning of a turn: ends the connections whose answers need bytes that their files no
 * longer have, or that have been written to since. */
void mapped_files_check(struct mapped_files *mapped, const struct connections *connections);

#endif
