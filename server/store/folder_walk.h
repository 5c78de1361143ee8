/* Walks folders of a local store and reports every entry, without recursion. It follows links that
 * stay below the root, but never into a folder that contains the link, so a hostile tree cannot
 * make it loop. Hidden names and the server's own files are left out. The caller decides which
 * entries it uses: store_list.c takes models, store_walk.c takes files of every kind. */
#ifndef STORE_FOLDER_WALK_H
#define STORE_FOLDER_WALK_H

#include "store/store_local.h"
#include "store/store_skipped.h"

/* Maximum number of folders that one walk reaches through links. Links that fan out at each level
 * multiply. */
#define WALK_LINKED_FOLDERS_MAX 10000
/* Maximum number of folders in total. */
#define WALK_FOLDERS_MAX 1000000

struct folder_walk;

/* A file or folder that was found; links have been followed. */
struct walk_entry {
    const char *path;
    const struct stat *info;
    size_t parent;
    bool is_linked;
};

struct walk_policy {
    /* Calls folder_walk_enter if the walk is to read the folder. */
    void (*folder)(struct folder_walk *walk, const struct walk_entry *entry);
    void (*file)(struct folder_walk *walk, const struct walk_entry *entry);
    /* The following may be NULL. special is called for a device, FIFO or socket. */
    void (*special)(struct folder_walk *walk, const struct walk_entry *entry);
    /* A path that is left out. os_error is set for SKIP_UNREADABLE. */
    void (*skip)(struct folder_walk *walk, const char *path, enum skip_reason reason, int os_error);
    /* A folder that is about to be read. */
    void (*opened)(struct folder_walk *walk, int descriptor, const char *path);
};

struct folder_walk {
    struct local_store *store;
    const struct walk_policy *policy;
    store_visit visit;
    void *context;
    bool is_stopped; /* by visit */
    bool met_link;
    bool out_of_memory;
    int os_error;    /* the process has no descriptors or memory, so that folders cannot be read */
    int first_error; /* why the first folder cannot be read; 0: it can */
    /* Private. */
    struct own_files own;
    struct walked_folder *folders;
    size_t count;
    size_t capacity;
    size_t linked;
};

/* Walks the folder at a path ("" is the root). Other folders are still walked if one cannot be
 * read. Fails with ZT_NO_MEMORY and the first message, or, if the process lacks descriptors or
 * memory, with ZT_IO and the second. */
enum zt_status folder_walk_run(struct folder_walk *walk, const char *path, const char *no_memory,
                               const char *cannot_read, struct zt_error *error);

/* Adds a folder to the walk. Returns false if there are too many. */
bool folder_walk_enter(struct folder_walk *walk, const struct walk_entry *entry);

void folder_walk_visit(struct folder_walk *walk, const struct walk_entry *entry);

#endif
