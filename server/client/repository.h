/* The files of a repository on a server: a folder of this program's server, by its index, or a
 * repository of any server with the reading API of the Hugging Face Hub. */
#ifndef CLIENT_REPOSITORY_H
#define CLIENT_REPOSITORY_H

#include "client/repository_address.h"
#include "store/store.h"

struct repository_file {
    char *path;    /* relative to the repository; never leads out of it (store_path_is_served) */
    uint64_t size; /* UINT64_MAX: not stated */
    bool has_sha256;
    uint8_t sha256[32];
    char modified[32]; /* as stated; empty: not stated */
    bool is_unfinished;
};

struct repository {
    struct repository_address address;
    char *commit; /* of a Hub, whose files do not change; NULL: a folder of this program's server */
    size_t count;
    size_t capacity;
    size_t unfinished;             /* files that were left out because they are unfinished */
    struct repository_file *files; /* in the order of their transfer */
};

/* Lists a repository. Hidden and unfinished files are left out. Fails as json_answer_ask does: with
 * ZT_IO and ENOENT if the server has no such repository. ZT_INVALID if the server names a file that
 * cannot be in the repository's folder; ZT_LIMIT; ZT_NO_MEMORY. */
enum zt_status repository_find(struct client *client, const struct repository_address *address,
                               struct repository *out_repository, struct zt_error *error);
void repository_free(struct repository *repository);

/* Makes the place of a file of the repository. Fails as client_place_beside does; ZT_NO_MEMORY. */
enum zt_status repository_file_place(const struct repository *repository,
                                     const struct repository_file *file,
                                     struct client_place *out_place, struct zt_error *error);

/* Returns true if two listings of a repository are of the same version. */
bool repository_is_same(const struct repository *a, const struct repository *b);

/* The order in which the files of a repository are transferred, so that a model's name does not
 * exist before the model is complete: configuration and other small files, tensor files, and the
 * indexes that name them. */
enum repository_stage { STAGE_OTHERS, STAGE_TENSORS, STAGE_INDEXES, REPOSITORY_STAGES };

enum repository_stage repository_stage_of(const char *path);

/* While pull downloads NAME, it keeps NAME.part and NAME.part.json. Beside NAME, files of these
 * names are unfinished downloads, and pull would overwrite them. Returns false for other names;
 * otherwise writes NAME to out_name. The path is one that store_path_is_served accepts. */
bool repository_unfinished_name(const char *path, char out_name[MODEL_PATH_SIZE]);

#endif
