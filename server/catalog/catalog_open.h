/* Opens files for the catalog: one after another from a folder, several at a time from a store that
 * is elsewhere. */
#ifndef CATALOG_CATALOG_OPEN_H
#define CATALOG_CATALOG_OPEN_H

#include "catalog/catalog_content.h"

enum opening_outcome {
    OPENING_DONE,       /* opened is its generation, or NULL as from generation_open */
    OPENING_POSTPONED,  /* there are no descriptors: another look will show it */
    OPENING_UNAVAILABLE /* nothing can be said of the file now: what is known of it stays */
};

struct opening {
    const char *path;
    enum opening_outcome outcome;
    struct generation *opened;
};

/* How many files are opened together at most. */
#define OPENINGS_MOST 1024
/* And of this store now: one of a folder; elsewhere as many as keep its openers busy. */
size_t openings_at_once(const struct catalog_content *content);

/* Opens at most openings_at_once files; paths are set. The update lock is held. */
void openings_run(struct catalog_content *content, struct opening *openings, size_t count);

/* Files of the store that could not be opened because it was away; not those that the index has. */
void unopened_note(struct catalog_content *content, const char *path, bool is_unopened);
void unopened_clear(struct catalog_content *content);
bool unopened_has(struct catalog_content *content, struct zt_text name);

#endif
