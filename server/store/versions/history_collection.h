/* A collection of kept files, between its parts: which commits are forgotten because of their age
 * or of the bytes that they keep, and which files are then removed. */
#ifndef STORE_VERSIONS_HISTORY_COLLECTION_H
#define STORE_VERSIONS_HISTORY_COLLECTION_H

#include "store/versions/history_inside.h"
#include "store/versions/history_shas.h"

struct collection {
    char (*keys)[HISTORY_KEY_SIZE]; /* of all repositories */
    size_t key_count;
    size_t key_capacity;
    struct sha_set uses;  /* in how many lists of commits a file is */
    struct sha_set sizes; /* of the kept files among them */
    struct history_object *garbage;
    size_t garbage_count;
    size_t garbage_capacity;
    uint64_t garbage_bytes;
    size_t next;     /* the first that was not looked at */
    bool has_young;  /* there are more that no commit names, but they may be for one in progress */
    bool is_claimed; /* no other server collects */
    uint64_t repositories;
    uint64_t commits;
    uint64_t files;
    uint64_t bytes;
};

/* Lists the repositories. */
enum zt_status collection_list(struct history *history, struct collection *collection,
                               struct zt_error *error);
/* Finds which repository has a folder. Returns ZT_NOT_FOUND if it has no log. */
enum zt_status collection_repo(struct history *history, const char *key,
                               struct history_repo *out_repo, struct zt_error *error);
/* Reads all lists of files, and finds the kept files that none of them names. */
enum zt_status collection_look(struct history *history, struct collection *collection,
                               struct zt_error *error);
/* Forgets commits that are too old. */
enum zt_status collection_forget_old(struct history *history, struct collection *collection,
                                     const struct history_keep *keep, struct zt_error *error);
/* Forgets the oldest commits of all repositories until the files that the others keep are within
 * the limit; then looks again. */
enum zt_status collection_forget_bytes(struct history *history, struct collection *collection,
                                       const struct history_keep *keep, struct zt_error *error);

#endif
