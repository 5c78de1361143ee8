/* Remembers which paths a walk of the store leaves out, and logs each once, at level warn.
 *
 * A path is remembered as long as walks find it, so that walks every other second do not fill the
 * log. Memory and the lines per walk are limited; further paths are only counted. One walk runs at
 * once. */
#ifndef STORE_STORE_SKIPPED_H
#define STORE_STORE_SKIPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skip_reason {
    SKIP_NAME,        /* has a model's extension, but cannot be a model's name */
    SKIP_FOLDER_NAME, /* its path cannot be part of a model's name */
    SKIP_EXTENSION,   /* the extension of a weights format that the server does not read */
    SKIP_OUTSIDE,     /* a link that leads out of the root */
    SKIP_BROKEN,      /* a link to nothing */
    SKIP_SPECIAL,     /* a device, FIFO or socket */
    SKIP_UNREADABLE,  /* a folder that cannot be read */
    SKIP_LONG,        /* the path is too long to be opened */
    SKIP_REASONS
};

struct skipped {
    /* Hashes of paths and reasons: of earlier walks, sorted; and of this walk. */
    uint64_t *known;
    size_t known_count;
    uint64_t *found;
    size_t found_count;
    size_t found_capacity;
    size_t counts[SKIP_REASONS]; /* in this walk */
    size_t named;                /* lines in this walk */
    size_t unnamed;              /* new paths that got no line */
    /* Paths that could not be remembered: the sum of their hashes, and their number. */
    uint64_t sum;
    size_t beyond;
    uint64_t known_sum;
};

/* Zeroed memory is an empty set. */
void skipped_free(struct skipped *skipped);

void skipped_begin(struct skipped *skipped);
/* os_error is used with SKIP_UNREADABLE. */
void skipped_note(struct skipped *skipped, const char *path, enum skip_reason reason, int os_error);
/* whole: the walk has seen everything. Paths that it did not find are then forgotten, and the
 * metrics count the files that it left out. */
void skipped_end(struct skipped *skipped, bool whole);

#endif
