/* Finds the repositories by walking the folder of models. */
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
    unsigned tags;   /* a bit mask of hub_tag_at */
    bool has_model;  /* a model or its settings directly in its folder */
    bool has_config; /* for a name without an owner: has settings */
    bool is_snapshot;
};

/* Sorted by name, bytewise. */
struct repo_index {
    struct repo_summary *repos;
    size_t count;
    size_t capacity;
};

/* sees: the paths of files that count. They are relative to the root; for files of a snapshot, they
 * are the repository and the path in it. On a worker; may take long. */
enum zt_status repo_index_make(struct server *server, struct name_filter sees,
                               struct repo_index *out_index, struct zt_error *error);
void repo_index_free(struct repo_index *index);

/* Returns the tags of files by their extensions, in order; NULL past the end. Several may be
 * equal. */
const char *hub_tag_at(unsigned index);
/* Returns the tags of a stored file as a bit mask; none if its name is not a model's. has_views:
 * models of other formats can also be read as safetensors. Only the name is used, because a list
 * opens no files. GGUF does not get the tag safetensors, because most GGUF files are quantized and
 * have no view. */
unsigned hub_tags_of(const char *path, bool has_views);

#endif
