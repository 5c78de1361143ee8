/* Opens files for the catalog: one by one from a local folder, several in parallel from a remote
 * store. */
#ifndef CATALOG_CATALOG_OPEN_H
#define CATALOG_CATALOG_OPEN_H

#include "catalog/catalog_content.h"

enum opening_outcome {
    OPENING_DONE,       /* opened is the generation, or NULL as from generation_open */
    OPENING_POSTPONED,  /* no descriptors were left: a later check will show the file */
    OPENING_UNAVAILABLE /* the store cannot provide the file at present: its known state is kept */
};

struct opening {
    const char *path;
    enum opening_outcome outcome;
    struct generation *opened;
};

/* The maximum number of files opened together. */
#define OPENINGS_MOST 1024
/* Returns the number for this store: one for a folder, for a remote store as many as keep its
 * threads busy. */
size_t openings_at_once(const struct catalog_content *content);

/* Opens at most openings_at_once files whose paths are set. The update lock must be held. */
void openings_run(struct catalog_content *content, struct opening *openings, size_t count);

/* Files of the store that could not be opened because it was unreachable, except files in the
 * index. */
void unopened_note(struct catalog_content *content, const char *path, bool is_unopened);
void unopened_clear(struct catalog_content *content);
bool unopened_has(struct catalog_content *content, struct zt_text name);

#endif
