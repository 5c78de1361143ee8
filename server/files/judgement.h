/* The result of `verify` for a file: verified digests, violated rules, and what could not be
 * judged. */
#ifndef FILES_JUDGEMENT_H
#define FILES_JUDGEMENT_H

#include <stdbool.h>

#include "files/opened_file.h"
#include "zt/verify.h"

/* Unreferenced bytes of the file. They do not make the file bad. */
struct judged_gaps {
    uint64_t unreferenced; /* number of ranges; the first one below */
    uint64_t first_offset;
    uint64_t first_length;
    const struct zt_shard *first_part; /* that it is in; NULL: the model's own file */
    uint64_t dirty; /* number of paddings with a nonzero byte; the first one below */
    uint64_t first_dirty_at;
    const struct zt_shard *first_dirty_part;
    const struct zt_shard *part; /* that is being looked at */
};

/* The maximum number of components whose digests are checked in one go. */
#define JUDGED_TOGETHER 8u

/* Counts failures, and keeps the first of each kind. */
struct judgement {
    const char *path;
    struct opened_file file;
    const struct zt_progress *progress; /* of the bytes of judgement_work; NULL: none */
    /* A missing shard or data file only counts as unsupported; otherwise the model is bad. */
    bool allows_missing;
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
    uint32_t bad;
    struct zt_error first_unsupported;
    struct zt_error first_bad;
    struct judged_gaps gaps; /* only if the file is not bad */
    /* The digests of the next components. */
    struct zt_component_to_check checked[JUDGED_TOGETHER];
    uint32_t checked_count;
    uint32_t checked_used;
    /* Bytes of all tensors, if the index states another number; otherwise 0. */
    uint64_t differing_size_bytes;
};

/* The bytes that judging the model will report as progress: those with a digest, and what encoded
 * ones decode to. */
uint64_t judgement_work(const struct zt_model *model);

/* Judges the model of judgement->file, which was opened from judgement->path. canonical: also
 * require the canonical form of zTensor 2. */
void judgement_make(struct judgement *judgement, bool canonical);

#endif
