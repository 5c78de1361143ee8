/* The result of `verify` for a file: verified digests, violated rules, and what could not be
 * judged. */
#ifndef COMMANDS_JUDGEMENT_H
#define COMMANDS_JUDGEMENT_H

#include <stdbool.h>

#include "commands/opened_file.h"

/* Bytes that nothing in the file refers to. They do not make the file bad. */
struct judged_gaps {
    uint64_t unreferenced; /* number of ranges; the first one below */
    uint64_t first_offset;
    uint64_t first_length;
    uint64_t dirty; /* number of paddings with a nonzero byte; the first one below */
    uint64_t first_dirty_at;
};

/* Counts failures, and keeps the first of each kind. */
struct judgement {
    const char *path;
    struct opened_file file;
    struct zt_source **shards; /* of the model; NULL for a missing one */
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
    uint32_t bad;
    struct zt_error first_unsupported;
    struct zt_error first_bad;
    struct judged_gaps gaps; /* only if the file is not bad */
};

/* Judges the model of judgement->file, which was opened from judgement->path. canonical: also
 * require the canonical form of zTensor 2. */
void judgement_make(struct judgement *judgement, bool canonical);

#endif
