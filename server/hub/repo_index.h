/* Which repositories there are: found by walking the folder of models. */
#ifndef HUB_REPO_INDEX_H
#define HUB_REPO_INDEX_H

#include <stdbool.h>

#include "base/name_filter.h"
#include "base/server.h"
#include "hub/hub_names.h"
#include "store/store.h"

struct repo_summary {
    char name[HUB_REPO_SIZE];
    int64_t modified_ns;
    unsigned tags;  /* bit by bit, of hub_tag_at */
    bool has_model; /* or settings of one: in its own folder, not below it */
    bool is_snapshot;
};

/* Sorted by name, bytewise. */
struct repo_index {
    struct repo_summary *repos;
    size_t count;
    size_t capacity;
};

/* sees: which paths of files count: below the root, or of a snapshot's files, repository and path
 * in it. On a worker; may take long. */
enum zt_status repo_index_make(struct server *server, struct name_filter sees,
                               struct repo_index *out_index, struct zt_error *error);
void repo_index_free(struct repo_index *index);

/* The tags of files by their extensions, in order; NULL past the end. Several may be equal. */
const char *hub_tag_at(unsigned index);
/* The tags of a stored file, bit by bit: none if its name is not that of a model. has_views:
 * whether models of other formats can be safetensors too. By the name alone, since nothing is
 * opened for a list; so GGUF, which mostly is quantized and cannot, is not counted for that. */
unsigned hub_tags_of(const char *path, bool has_views);

#endif
