/* What `verify` finds out about one file: every digest, every content rule, and what cannot be
 * judged. */
#ifndef COMMANDS_JUDGEMENT_H
#define COMMANDS_JUDGEMENT_H

#include <stdbool.h>

#include "commands/opened_file.h"

/* What nothing in the file refers to, which is no failure. */
struct judged_gaps {
    uint64_t unreferenced; /* how many ranges; the first of them below */
    uint64_t first_offset;
    uint64_t first_length;
    uint64_t
        dirty; /* how many runs of padding hold other bytes than zeros; the first such byte below */
    uint64_t first_dirty_at;
};

/* Failures are counted; the first of each kind is kept. */
struct judgement {
    const char *path;
    struct opened_file file;
    struct zt_source **shards; /* one for each of the model's; NULL where it is not to be had */
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
    uint32_t bad;
    struct zt_error first_unsupported;
    struct zt_error first_bad;
    struct judged_gaps gaps; /* of a file that is not bad */
};

/* Judges the model of judgement->file, which was opened from judgement->path. canonical: the
 * canonical form of zTensor 2 is required, too. */
void judgement_make(struct judgement *judgement, bool canonical);

#endif
