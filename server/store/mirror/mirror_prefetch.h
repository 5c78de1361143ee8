/* Fetches all files of a repository, through the same sources as requests do. */
#ifndef STORE_MIRROR_MIRROR_PREFETCH_H
#define STORE_MIRROR_MIRROR_PREFETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/source.h"

struct mirror_prefetches;
struct workers;

#define MIRROR_PREFETCH_TEXT 512

enum mirror_prefetch_state {
    MIRROR_PREFETCH_LISTING,  /* the upstream is asked for the list of files */
    MIRROR_PREFETCH_FETCHING, /* files are being fetched and checked */
    MIRROR_PREFETCH_DONE,     /* all files are here; those with a digest are verified */
    MIRROR_PREFETCH_FAILED    /* error says why; files that were fetched are kept */
};

/* The progress of one repository. */
struct mirror_prefetch_report {
    enum mirror_prefetch_state state;
    char repository[MIRROR_PREFETCH_TEXT];
    char revision[MIRROR_PREFETCH_TEXT]; /* as asked for */
    char commit[65];                     /* empty until it is known */
    uint64_t file_count;
    uint64_t files_done;
    uint64_t size_bytes;
    uint64_t bytes_here;
    enum zt_status status;            /* of a failure */
    char error[MIRROR_PREFETCH_TEXT]; /* of a failure */
};

/* A repository whose files the mirror must list. */
struct mirror_prefetch_list {
    const char *repository;
    const char *revision;
    char commit[65]; /* filled in */
    /* Returns false to stop. */
    bool (*visit)(void *context, const char *path, uint64_t size_bytes);
    void *context;
};

/* What a prefetch needs of the mirror. */
struct mirror_prefetch_ops {
    /* Finds a revision and calls visit with the store path of each of its files. May wait. */
    enum zt_status (*list)(void *context, struct mirror_prefetch_list *list,
                           struct zt_error *error);
    /* Opens one of the visited paths as a source of mirror_file.h, or of a local file. May wait. */
    enum zt_status (*open)(void *context, const char *path, struct zt_source **out_source,
                           struct zt_error *error);
    void *context;
    /* Returns how many bytes may be kept. NULL: any number. */
    uint64_t (*room)(void *context);
    /* Returns the source of mirror_file.h that an opened one reads from; NULL: the file is
     * local. NULL as the function: open returns such sources itself, or local ones. */
    struct zt_source *(*mirrored)(struct zt_source *source);
};

/* waiters: for jobs that may wait for another machine. ZT_NO_MEMORY. */
enum zt_status mirror_prefetches_new(const struct mirror_prefetch_ops *ops, struct workers *waiters,
                                     struct mirror_prefetches **out_prefetches,
                                     struct zt_error *error);
/* At shutdown, before the workers end: prefetches fail soon. */
void mirror_prefetches_interrupt(struct mirror_prefetches *prefetches);
/* After the workers have ended. Takes NULL. */
void mirror_prefetches_free(struct mirror_prefetches *prefetches);

/* Begins to fetch a repository, or joins the prefetch of the same revision in progress.
 * Never waits. ZT_LIMIT: too many are in progress; ZT_ARGUMENT: a name that is too long;
 * ZT_NO_MEMORY. */
enum zt_status mirror_prefetch_begin(struct mirror_prefetches *prefetches, const char *repository,
                                     const char *revision, struct zt_error *error);
/* Reports on the latest prefetch of a revision. False: there was none since the start, or it has
 * been forgotten; the last 64 are remembered. Never waits. */
bool mirror_prefetch_report(struct mirror_prefetches *prefetches, const char *repository,
                            const char *revision, struct mirror_prefetch_report *out_report);

#endif
