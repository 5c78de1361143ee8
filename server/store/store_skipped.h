/* What a walk of the store leaves out: said in the log once for each path, at level warn.
 *
 * A path is remembered as long as walks find it, so that walks every other second do not fill the
 * log. Memory and the lines of one walk are bounded: what goes beyond is counted. One walk at a
 * time. */
#ifndef STORE_STORE_SKIPPED_H
#define STORE_STORE_SKIPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skip_reason {
    SKIP_NAME,        /* has a model's extension, but cannot be a model's name */
    SKIP_FOLDER_NAME, /* no path in it can name a model */
    SKIP_EXTENSION,   /* weights in a format that is not read, by its extension */
    SKIP_OUTSIDE,     /* a link that leads out of the root */
    SKIP_BROKEN,      /* a link to nothing */
    SKIP_SPECIAL,     /* a device, FIFO or socket */
    SKIP_UNREADABLE,  /* a folder that cannot be read */
    SKIP_LONG,        /* the path is too long to be opened */
    SKIP_REASONS
};

struct skipped {
    /* Hashes of paths and reasons: what earlier walks found, sorted; and what this one does. */
    uint64_t *known;
    size_t known_count;
    uint64_t *found;
    size_t found_count;
    size_t found_capacity;
    size_t counts[SKIP_REASONS]; /* of this walk */
    size_t named;                /* lines of this walk */
    size_t unnamed;              /* new, without a line */
    /* What could not be remembered: a sum over hashes, and how many. */
    uint64_t sum;
    size_t beyond;
    uint64_t known_sum;
};

/* Zeroed memory is an empty one. */
void skipped_free(struct skipped *skipped);

void skipped_begin(struct skipped *skipped);
/* os_error: of SKIP_UNREADABLE. */
void skipped_note(struct skipped *skipped, const char *path, enum skip_reason reason, int os_error);
/* whole: the walk has seen everything; what it has not found is forgotten, and the metrics show how
 * much it left out. */
void skipped_end(struct skipped *skipped, bool whole);

#endif
