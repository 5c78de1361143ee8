/* A commit to a repository: what it does to which file, gathered line by line, then checked as a
 * whole, and only then carried out. */
#ifndef HUB_WRITE_COMMIT_H
#define HUB_WRITE_COMMIT_H

#include "hub/repos.h"
#include "hub/write/staged_objects.h"
#include "upload/shared/file_publication.h"
#include "upload/shared/registry.h"
#include "zt/digest.h"

/* Operations of one commit, those that the removal of a folder stands for included. */
#define COMMIT_OPERATIONS_MAX 10000
/* Of a file in a kept place. */
#define COMMIT_FILE_NAME_SIZE 32
/* Of an object: whatever the one with this SHA-256 has. */
#define COMMIT_LENGTH_UNKNOWN UINT64_MAX

struct commit_operation {
    bool removes;
    bool is_folder;  /* what is removed: it stands for its files */
    bool goes_first; /* what is removed: another operation needs its place */
    unsigned line;
    char *path;      /* below the root */
    uint64_t offset; /* of the content in what arrived */
    uint64_t length;
    uint8_t sha256[32];
    /* The bytes came before the commit, or are in the repository: of those that have the same, the
     * last one takes the object itself, and the others copies. */
    bool is_lfs;
    struct staged_object *staged; /* taken; NULL: a file of the commit's own place */
    struct file_publication file;
};

struct commit {
    struct server *server;
    char repo[HUB_REPO_SIZE];
    char id[UPLOAD_ID_SIZE]; /* of its kept place */
    bool has_place;
    char parent[HUB_COMMIT_SIZE]; /* empty: any */
    unsigned parent_line;
    bool begins; /* the repository, if there is none: some line sends a file */
    /* Whose commit it is; it waits. */
    const struct request *request;
    struct name_filter covers;
    /* Everything that the lines contain, one after the other. */
    struct stored_upload *arrived;
    uint64_t arrived_bytes;
    struct commit_operation *operations;
    size_t count;
    size_t capacity;
    size_t content_count;
    struct failure failure;
    bool is_absent;                    /* it failed since there is no such repository */
    bool has_no_place;                 /* no file can be at some path, whatever is removed */
    unsigned failed_line;              /* 0: no line's fault */
    char failed_path[MODEL_PATH_SIZE]; /* its file, in the repository, if failure is about that */
    char commit[HUB_COMMIT_SIZE];      /* the repository's, when all is done */
};

/* Appends to what arrived. False: failure is set, here and below. */
bool commit_store(struct commit *commit, const uint8_t *bytes, size_t length);

/* path: in the repository. They refuse one that no file can have, and leave out .gitattributes and
 * .gitignore, whose bytes must be the last that were stored. */
bool commit_add_file(struct commit *commit, unsigned line, struct zt_text path, uint64_t length,
                     const uint8_t sha256[32]);
bool commit_add_object(struct commit *commit, unsigned line, struct zt_text path, uint64_t length,
                       const uint8_t sha256[32]);
bool commit_add_removal(struct commit *commit, unsigned line, struct zt_text path, bool is_folder);

/* Checks all and then carries it out, in a state that the parent names. On a worker; may take
 * long. */
bool commit_run(struct commit *commit);

/* --- between the files of a commit --- */

/* commit.c: makes the place for the commit's files, unless it is there. */
bool commit_open_place(struct commit *commit);
/* Of an operation's file in the place. */
void commit_file_name(const struct commit *commit, const struct commit_operation *operation,
                      char out_name[COMMIT_FILE_NAME_SIZE]);
bool commit_make_file(struct commit *commit, struct commit_operation *operation,
                      struct stored_upload **out_file);

/* commit_run.c: what the repository has when the commit to it that is being carried out at this
 * moment, if there is one, has ended; with a reference, or NULL as in repo_now_find. */
bool commit_find_later(struct commit *commit, struct hub_version **out_version);

/* commit_check.c: the path in the repository. */
const char *commit_inside(const struct commit *commit, const struct commit_operation *operation);
/* Makes the removal of a folder those of its files. version: what the repository has, or NULL; here
 * and below. */
bool commit_expand_folders(struct commit *commit, const struct hub_version *version);
/* Whether all operations can be carried out, and which removals have to come first. */
bool commit_check_paths(struct commit *commit, const struct hub_version *version);

/* commit_objects.c: finds the bytes of all objects that lines name, and takes or copies them. */
bool commit_find_objects(struct commit *commit, const struct hub_version *version);

/* Frees everything; on a worker if there is a place. */
void commit_clear(struct commit *commit);

bool commit_refuse(struct commit *commit, unsigned line, enum problem problem, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

#endif
