/* Walking the store: every regular file below the root whose path can name a model. Without
 * recursion, through links that stay below the root, and never into a folder below itself, whatever
 * a hostile tree looks like. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "store/store_local.h"
#include "store/store_skipped.h"

/* Folders that one walk reaches through links: links that fan out at each level multiply. */
#define LINKED_FOLDERS_MAX 10000
/* Folders in all. */
#define FOLDERS_MAX 1000000

/* A folder that was found, and perhaps not read yet. */
struct folder {
    char *path;    /* "" for the root */
    size_t parent; /* index; the root's is its own */
    dev_t device;
    ino_t inode;
};

struct walk {
    struct local_store *store;
    bool (*visit)(void *context, const char *path, const struct file_identity *identity);
    void *context;
    struct folder *folders;
    size_t count;
    size_t capacity;
    size_t linked;
    size_t misfits; /* files with a model's extension and an unusable name */
    bool is_part;   /* of one new folder, not of everything */
    bool unsure;    /* a part met what concerns other parts, or what is left out */
    bool met_link;
    bool stopped;
    bool out_of_memory;
    int os_error; /* the process has no descriptors or memory, so that folders cannot be read */
};

static bool is_ancestor(const struct walk *walk, size_t at, const struct stat *info)
{
    assert(at < walk->count);
    for (;; at = walk->folders[at].parent) {
        if (walk->folders[at].inode == info->st_ino && walk->folders[at].device == info->st_dev)
            return true;
        if (at == walk->folders[at].parent)
            return false;
    }
}

static void log_crowded(struct walk *walk)
{
    if (!atomic_exchange(&walk->store->logged_crowded, true))
        log_write(
            LOG_LEVEL_WARN,
            "too many folders: models past the first %d folders (%d through links) are not listed",
            FOLDERS_MAX, LINKED_FOLDERS_MAX);
}

static void add_folder(struct walk *walk, const char *path, size_t parent)
{
    struct folder folder = {.path = strdup(path), .parent = parent};

    assert(parent <= walk->count);
    if (folder.path == NULL || zt_array_reserve(&walk->folders, &walk->capacity, walk->count + 1,
                                                sizeof(folder), FOLDERS_MAX) != ZT_OK) {
        free(folder.path);
        walk->out_of_memory = true;
        return;
    }
    walk->folders[walk->count++] = folder;
}

static void skip_for(struct walk *walk, const char *path, enum skip_reason reason, int os_error)
{
    if (walk->is_part)
        walk->unsure = true;
    else
        skipped_note(&walk->store->skipped, path, reason, os_error);
}

static void skip(struct walk *walk, const char *path, enum skip_reason reason)
{
    skip_for(walk, path, reason, 0);
}

/* Whether a folder or link cannot be read for want of descriptors or memory, which says nothing
 * about the files in it: the walk fails. */
static bool is_starved(struct walk *walk, int os_error)
{
    if (os_error != EMFILE && os_error != ENFILE && os_error != ENOMEM)
        return false;
    walk->os_error = os_error;
    return true;
}

static void see_folder(struct walk *walk, size_t parent, const char *path, bool linked)
{
    /* If the folder's path cannot begin a name, no path below it can. */
    if (!model_name_is_valid((struct zt_text){path, strlen(path)})) {
        skip(walk, path, SKIP_FOLDER_NAME);
        return;
    }
    if (walk->count >= FOLDERS_MAX || (linked && walk->linked >= LINKED_FOLDERS_MAX)) {
        log_crowded(walk);
        return;
    }
    walk->linked += linked;
    add_folder(walk, path, parent);
}

static void see_file(struct walk *walk, const char *path, const struct stat *info)
{
    struct file_identity identity = store_identity_from(info);
    size_t name_length;
    unsigned rank;

    if (model_path_split(path, &name_length, &rank)) {
        walk->stopped = !walk->visit(walk->context, path, &identity);
    } else if (model_path_is_misfit(path)) {
        walk->misfits++;
        skip(walk, path, SKIP_NAME);
    } else if (model_path_is_foreign(path)) {
        skip(walk, path, SKIP_EXTENSION);
    }
}

/* A device, FIFO or socket: it is never opened. Of interest only if it looks like a model. */
static void see_special(struct walk *walk, const char *path)
{
    size_t name_length;
    unsigned rank;

    if (model_path_split(path, &name_length, &rank))
        skip(walk, path, SKIP_SPECIAL);
}

/* Describes the target of a symbolic link. False if it is not below the root. */
static bool follow_link(struct walk *walk, const char *path, struct stat *out_info)
{
    int place = store_path_open(walk->store->root, path, O_PATH);
    bool found;

    walk->met_link = true;
    if (place < 0 && is_starved(walk, errno))
        return false;
    if (place < 0) {
        /* Of what is outside nothing but its existence is asked. */
        skip(walk, path,
             faccessat(walk->store->root, path, F_OK, 0) == 0 ? SKIP_OUTSIDE : SKIP_BROKEN);
        return false;
    }
    found = fstat(place, out_info) == 0;
    close(place);
    return found;
}

static void see_entry(struct walk *walk, size_t parent, int folder, const struct dirent *entry)
{
    char path[STORE_PATH_SIZE];
    const char *above = walk->folders[parent].path;
    struct stat info;
    bool linked = false;
    int length;

    if (entry->d_name[0] == '.')
        return;
    length =
        snprintf(path, sizeof(path), "%s%s%s", above, above[0] == '\0' ? "" : "/", entry->d_name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        skip(walk, path, SKIP_LONG);
        return;
    }
    if (fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISLNK(info.st_mode)) {
        linked = true;
        if (!follow_link(walk, path, &info))
            return;
    }
    if (S_ISDIR(info.st_mode))
        see_folder(walk, parent, path, linked);
    else if (S_ISREG(info.st_mode))
        see_file(walk, path, &info);
    else
        see_special(walk, path);
}

static bool is_over(const struct walk *walk)
{
    return walk->stopped || walk->out_of_memory || walk->os_error != 0;
}

/* Takes over the descriptor. */
static void read_folder(struct walk *walk, size_t at, int descriptor)
{
    DIR *stream = fdopendir(descriptor);
    const struct dirent *entry;

    if (stream == NULL) {
        (void)is_starved(walk, errno);
        close(descriptor);
        return;
    }
    assert(at < walk->count);
    while (!is_over(walk) && (entry = readdir(stream)) != NULL)
        see_entry(walk, at, descriptor, entry);
    closedir(stream);
}

/* Unreadable folders are skipped: one of them must not hide the others. */
static void walk_folder(struct walk *walk, size_t at)
{
    const char *path = walk->folders[at].path;
    int descriptor =
        store_path_open(walk->store->root, path[0] == '\0' ? "." : path, O_RDONLY | O_DIRECTORY);
    struct stat info;

    if (descriptor < 0) {
        if (!is_starved(walk, errno) && errno != ENOENT)
            skip_for(walk, path, SKIP_UNREADABLE, errno);
        return;
    }
    if (fstat(descriptor, &info) != 0 ||
        (at != 0 && is_ancestor(walk, walk->folders[at].parent, &info))) {
        close(descriptor);
        return;
    }
    walk->folders[at].device = info.st_dev;
    walk->folders[at].inode = info.st_ino;
    /* Watched before it is read, so that no change in between is missed. */
    store_watch_add(&walk->store->watch, descriptor, path);
    read_folder(walk, at, descriptor);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* A sandbox holds the folder that the server was started with: another one in its place cannot be
 * opened. The server then keeps the folder that it has. */
static bool is_out_of_reach(struct local_store *local, int os_error)
{
    struct stat opened;
    struct stat named;

    if (os_error != EACCES || stat(local->root_path, &named) != 0 || !S_ISDIR(named.st_mode) ||
        fstat(local->root, &opened) != 0 || is_same_file(&named, &opened))
        return false;
    if (!atomic_exchange(&local->logged_replaced, true))
        log_write(LOG_LEVEL_WARN,
                  "another folder has taken the place of the folder of models, and the server may "
                  "not read it (key sandbox): it serves the old one until it is restarted");
    return true;
}

/* If another folder has the root's name now, opens it in place of the old one. False with errno if
 * no folder has that name. */
static bool follow_root(struct local_store *local)
{
    struct stat opened;
    struct stat named;
    int root = open(local->root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int os_error = errno;

    if (root < 0 && is_out_of_reach(local, os_error))
        return true;
    errno = os_error;
    if (root < 0)
        return false;
    if (fstat(root, &named) == 0 && fstat(local->root, &opened) == 0 &&
        !is_same_file(&named, &opened))
        (void)dup3(root, local->root, O_CLOEXEC);
    close(root);
    return true;
}

/* A missing root has no models. Any other error (a file server that does not answer) says nothing
 * about the files in the root, and fails the scan. */
static enum zt_status check_root(struct local_store *local, bool *out_present,
                                 struct zt_error *error)
{
    bool present = follow_root(local);
    int os_error = errno;

    if (!present && os_error != ENOENT && os_error != ENOTDIR)
        return store_fail_errno(error, os_error, "cannot read the folder of models");
    if (present)
        atomic_store(&local->logged_missing, false);
    else if (!atomic_exchange(&local->logged_missing, true))
        log_write(LOG_LEVEL_WARN,
                  "the folder of models is missing; the server looks for it every few seconds");
    *out_present = present;
    return ZT_OK;
}

/* Reads the folders that were found, and those that they lead to, and frees them. */
static enum zt_status walk_all(struct walk *walk, struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    for (size_t at = 0; at < walk->count && !is_over(walk); at++)
        walk_folder(walk, at);
    for (size_t at = 0; at < walk->count; at++)
        free(walk->folders[at].path);
    free(walk->folders);
    if (walk->out_of_memory)
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to list the store");
    else if (walk->os_error != 0)
        status = store_fail_errno(error, walk->os_error, "cannot read the folders of models");
    return status;
}

enum zt_status store_local_list(struct store *store,
                                bool (*visit)(void *context, const char *path,
                                              const struct file_identity *identity),
                                void *context, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    struct walk walk = {.store = local, .visit = visit, .context = context};
    bool present = false;
    enum zt_status status;

    store_watch_begin(&local->watch);
    skipped_begin(&local->skipped);
    status = check_root(local, &present, error);
    if (status == ZT_OK && present)
        add_folder(&walk, "", 0);
    if (status == ZT_OK)
        status = walk_all(&walk, error);
    store_watch_end(&local->watch);
    skipped_end(&local->skipped, status == ZT_OK && !walk.stopped);
    atomic_store(&local->misfits, walk.misfits);
    /* After a walk that did not see everything, there may be some. */
    local->has_links = walk.met_link || status != ZT_OK || walk.stopped;
    return status;
}

enum zt_status store_local_list_new(struct local_store *local, const char *folder,
                                    bool (*visit)(void *context, const char *path,
                                                  const struct file_identity *identity),
                                    void *context, bool *out_unsure, struct zt_error *error)
{
    struct walk walk = {.store = local, .visit = visit, .context = context, .is_part = true};
    enum zt_status status;

    see_folder(&walk, 0, folder, false);
    status = walk_all(&walk, error);
    *out_unsure = walk.unsure || walk.met_link;
    return status;
}
