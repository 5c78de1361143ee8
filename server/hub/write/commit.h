/* A commit to a repository: its changes are collected line by line, then checked as a whole, and
 * only then carried out. */
#ifndef HUB_WRITE_COMMIT_H
#define HUB_WRITE_COMMIT_H

#include "hub/repos.h"
#include "hub/write/staged_objects.h"
#include "store/versions/history.h"
#include "upload/shared/publication.h"
#include "upload/shared/registry.h"
#include "zt/digest.h"

/* Maximum number of operations per commit, including one for each file of a removed folder. */
#define COMMIT_OPERATIONS_MAX 10000
/* Sizes of a commit's title and message, with NUL: longer ones are cut. */
#define COMMIT_TITLE_SIZE   256
#define COMMIT_MESSAGE_SIZE 2048
/* For an object: any length that the object with this SHA-256 has. */
#define COMMIT_LENGTH_UNKNOWN UINT64_MAX

struct commit_operation {
    bool removes;
    bool is_folder;  /* for a removal: means all files of the folder */
    bool goes_first; /* for a removal: another operation needs the path to be free */
    unsigned line;
    char *path;  /* below the root */
    size_t file; /* the number of its file in the commit's folder */
    uint64_t length;
    uint8_t sha256[32];
    /* The bytes were sent before the commit, or are already in the repository. If several
     * operations have the same bytes, the last one takes the object itself, and the others get
     * copies. */
    bool is_lfs;
    /* For a branch: the path, in the repository, of a file that has the bytes. It is kept instead
     * of a copy. NULL: there is none. */
    char *shared;
    struct staged_object *staged; /* taken; NULL: a file in the commit's own folder */
    struct publication publication;
};

struct commit {
    struct server *server;
    char repo[HUB_REPO_SIZE];
    char branch[HISTORY_REF_SIZE]; /* empty: main */
    char id[UPLOAD_ID_SIZE];       /* of its folder */
    bool has_place;
    char parent[HUB_COMMIT_SIZE]; /* empty: any */
    unsigned parent_line;
    char title[COMMIT_TITLE_SIZE]; /* the header's summary; empty: none */
    char message[COMMIT_MESSAGE_SIZE];
    bool begins; /* creates the repository if it does not exist: some line sends a file */
    /* The committing request, which waits. */
    const struct request *request;
    struct name_filter covers;
    size_t file_count; /* files in the commit's folder that operations have */
    /* The content of the arriving line; NULL until it begins. */
    struct staged_file *arriving;
    uint64_t arriving_bytes;
    struct commit_operation *operations;
    size_t count;
    size_t capacity;
    struct failure failure;
    bool is_absent;                     /* failed because the repository does not exist */
    bool lacks_branch;                  /* failed because the branch does not exist */
    bool has_no_place;                  /* failed because no file can have one of the paths, even
                                        * after removals */
    unsigned failed_line;               /* 0: the failure is not about a line */
    char failed_path[MODEL_PATH_SIZE];  /* the line's file, in the repository, if the failure is
                                        * about it */
    char commit[HUB_COMMIT_SIZE];       /* the repository's commit, once everything is done */
    char recorded[HISTORY_COMMIT_SIZE]; /* of the history; empty: versions are off */
    size_t done;                        /* number of operations carried out */
    struct remains remains;             /* unfinished work of these */
};

/* Appends to the content of the arriving line, which becomes the file of the next operation. This
 * function and the following ones return false with failure set. */
bool commit_store(struct commit *commit, const uint8_t *bytes, size_t length);

/* path is relative to the repository. These refuse a path that no file can have, and ignore
 * .gitattributes and .gitignore. A file's content must have been stored last. */
bool commit_add_file(struct commit *commit, unsigned line, struct zt_text path,
                     const uint8_t sha256[32]);
bool commit_add_object(struct commit *commit, unsigned line, struct zt_text path, uint64_t length,
                       const uint8_t sha256[32]);
bool commit_add_removal(struct commit *commit, unsigned line, struct zt_text path, bool is_folder);

/* Checks everything and then carries it out, if the parent names the current version of the
 * repository or the branch. On a worker; may take long. */
bool commit_run(struct commit *commit);

/* --- between the files of a commit --- */

/* commit.c: makes the folder for the commit's files, unless it exists. */
bool commit_open_place(struct commit *commit);
/* Makes the next file in that folder, which belongs to an operation after commit_give_file. */
bool commit_make_file(struct commit *commit, uint64_t length, struct staged_file **out_file);
void commit_give_file(struct commit *commit, struct commit_operation *operation);
/* Opens the file of an operation again. */
bool commit_open_file(struct commit *commit, const struct commit_operation *operation,
                      struct staged_file **out_file);

/* commit_run.c: waits for the commit to this repository that is being carried out, if any, and
 * finds the resulting version; with a reference, or NULL as in repo_current_find. For a branch, it
 * is the version of main, whose files it may share. */
bool commit_find_later(struct commit *commit, struct hub_version **out_version);
/* Checks the files of all operations (publication_check). */
bool commit_check_files(struct commit *commit);
/* Opens the bytes of an operation as its publication's. */
bool commit_open_bytes(struct commit *commit, struct commit_operation *operation);
void commit_close_bytes(struct commit_operation *operation);

/* commit_branch.c: commit_run for a branch. */
bool commit_run_on_branch(struct commit *commit);
/* Finds the version of the branch; with a reference, or NULL. */
bool commit_find_branch(struct commit *commit, struct hub_version **out_version);

/* commit_check.c: returns the path in the repository. */
const char *commit_inside(const struct commit *commit, const struct commit_operation *operation);
/* Replaces the removal of a folder by the removal of its files. Here and below, version is the
 * repository's current one, or NULL. */
bool commit_expand_folders(struct commit *commit, const struct hub_version *version);
/* Checks that all operations can be carried out, and finds which removals must come first. */
bool commit_check_paths(struct commit *commit, const struct hub_version *version);

/* commit_objects.c: finds the bytes of all objects in the lines, and takes or copies them. */
bool commit_find_objects(struct commit *commit, const struct hub_version *version);

/* Frees everything. On a worker if the commit has a folder. */
void commit_clear(struct commit *commit);

bool commit_refuse(struct commit *commit, unsigned line, enum problem problem, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

#endif
