/* Sorted lists of the keys below a prefix, read from the store, kept for the requests for further
 * pages, and shared by requests that come at the same time. */
#ifndef S3_S3API_KEY_LIST_H
#define S3_S3API_KEY_LIST_H

#include "base/memo.h"
#include "base/memory.h"
#include "base/server.h"
#include "store/store.h"

struct s3api_key {
    const char *text; /* the path of a file; of a folder, with a slash at its end */
    size_t length;
    bool is_folder;
    struct file_identity identity; /* of a file */
};

/* Immutable once made. */
struct s3api_key_list {
    size_t count;
    struct s3api_key *keys; /* bytewise by text, each once */
    /* private */
    size_t capacity;
    struct zt_arena texts;
    int64_t begun_ms; /* when the list was begun */
    int64_t cost_ms;  /* how long it took */
    unsigned changes; /* server->files_changed when it was begun */
};

/* Returns the memo for struct server. NULL if out of memory. */
struct memo *s3api_key_lists_new(void);

/* What a request needs. */
struct s3api_key_lookup {
    /* Set by s3api_key_lookup_begin. */
    struct zt_text prefix;
    bool is_level;
    bool is_continued;
    int64_t begun_ms;
    unsigned changes;

    struct s3api_key_list *list; /* a reference, or NULL */
    bool is_busy;                /* another request is making the list */
    struct zt_error error;       /* if list is NULL */
};

/* Begins a lookup of the keys that begin with a prefix. is_level: without those in subfolders of
 * the prefix's folder, which are listed as folders. All files of that folder may be in the
 * list, also those that do not begin with the prefix.
 * is_continued: the request continues an earlier one, for which an older list may be used. The
 * prefix is borrowed. Call it when the request arrives. */
void s3api_key_lookup_begin(struct server *server, struct zt_text prefix, bool is_level,
                            bool is_continued, struct s3api_key_lookup *out_lookup);

/* Finds or makes the list, with every file that this server had published when the request arrived.
 * Without files below the prefix it is empty. Returns false on failure: ZT_LIMIT if there are too
 * many keys, ZT_IO, ZT_UNAVAILABLE or ZT_NO_MEMORY; or, with is_busy, if the request must wait with
 * s3api_key_lookup_wait and then call this again. On a worker; may take long. */
bool s3api_key_lookup_run(struct server *server, struct s3api_key_lookup *lookup);

/* Returns true if the waiter will be woken. From any thread. */
bool s3api_key_lookup_wait(struct s3api_key_lookup *lookup, struct waiter *waiter);

/* Releases the list. */
void s3api_key_lookup_end(struct s3api_key_lookup *lookup);

#endif
