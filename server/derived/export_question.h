/* What a plan of an export is about: a version of a file, and what is asked of it. */
#ifndef DERIVED_EXPORT_QUESTION_H
#define DERIVED_EXPORT_QUESTION_H

#include "derived/export_plan.h"

/* Of the files, as the cache of decoded components has it: a generation would keep them open. */
struct export_version {
    char etag[GENERATION_ETAG_SIZE];
    uint64_t device;
    int64_t changed_ns;
};

struct export_question {
    struct export_version version;
    char *text; /* all of the query, the same for no two */
    size_t length;
    struct export_query query; /* its texts lie in the block of its globs */
};

/* Copies the query. False when memory is out; it is to be freed then too. */
bool export_question_init(struct export_question *question, const struct generation *generation,
                          const struct export_query *query);

/* Harmless for one that is all zero. */
void export_question_free(struct export_question *question);

bool export_question_is_same(const struct export_question *a, const struct export_question *b);

#endif
