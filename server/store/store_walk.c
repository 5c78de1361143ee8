/* Walking part of the store for files of every kind. Unlike a list (store_list.c) it neither
 * watches what it reads nor reports what it leaves out, so that several walks can run at a time. It
 * goes through links that stay below the root, and never into a folder below itself. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_local.h"

/* As in a list of models. */
#define LINKED_FOLDERS_MAX 10000
#define FOLDERS_MAX        1000000

/* A folder that was found, and perhaps not read yet. */
struct folder {
    char *path;    /* "" for the root */
    size_t parent; /* index; the first one's is its own */
    dev_t device;
    ino_t inode;
};

struct walk {
    const struct local_store *store;
    bool (*visit)(void *context, const char *path, const struct file_identity *identity);
    void *context;
    bool is_deep;
    struct folder *folders;
    size_t count;
    size_t capacity;
    size_t linked;
    bool stopped;
    bool out_of_memory;
    int os_error; /* the process has no descriptors or memory */
};

static bool is_starved(struct walk *walk, int os_error)
{
    if (os_error != EMFILE && os_error != ENFILE && os_error != ENOMEM)
        return false;
    walk->os_error = os_error;
    return true;
}

static bool is_below_itself(const struct walk *walk, size_t at, const struct stat *info)
{
    while (at != walk->folders[at].parent) {
        at = walk->folders[at].parent;
        if (walk->folders[at].inode == info->st_ino && walk->folders[at].device == info->st_dev)
            return true;
    }
    return false;
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

static void see_folder(struct walk *walk, size_t parent, const char *path, bool is_linked)
{
    walk->stopped = !walk->visit(walk->context, path, NULL);
    if (walk->stopped || !walk->is_deep || walk->count >= FOLDERS_MAX ||
        (is_linked && walk->linked >= LINKED_FOLDERS_MAX))
        return;
    walk->linked += is_linked;
    add_folder(walk, path, parent);
}

/* Describes the target of a symbolic link. False if it is not below the root. */
static bool follow_link(struct walk *walk, const char *path, struct stat *out_info)
{
    const int place = store_path_open(walk->store->root, path, O_PATH);
    bool found;

    if (place < 0) {
        (void)is_starved(walk, errno);
        return false;
    }
    found = fstat(place, out_info) == 0;
    close(place);
    return found;
}

static void see_entry(struct walk *walk, size_t parent, int folder, const char *name)
{
    char path[STORE_PATH_SIZE];
    const char *above = walk->folders[parent].path;
    struct file_identity identity;
    struct stat info;
    bool is_linked;
    int length;

    if (name[0] == '.')
        return;
    length = snprintf(path, sizeof(path), "%s%s%s", above, above[0] == '\0' ? "" : "/", name);
    if (length < 0 || (size_t)length >= sizeof(path) ||
        !store_path_is_served((struct zt_text){path, (size_t)length}) ||
        store_local_withholds(walk->store, path) ||
        fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    is_linked = S_ISLNK(info.st_mode);
    if (is_linked && !follow_link(walk, path, &info))
        return;
    if (S_ISDIR(info.st_mode)) {
        see_folder(walk, parent, path, is_linked);
    } else if (S_ISREG(info.st_mode)) {
        identity = store_identity_from(&info);
        walk->stopped = !walk->visit(walk->context, path, &identity);
    }
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
    while (!is_over(walk) && (entry = readdir(stream)) != NULL)
        see_entry(walk, at, descriptor, entry->d_name);
    closedir(stream);
}

/* 0, or why a folder cannot be read. */
static int walk_folder(struct walk *walk, size_t at)
{
    const char *path = walk->folders[at].path;
    const int descriptor =
        store_path_open(walk->store->root, path[0] == '\0' ? "." : path, O_RDONLY | O_DIRECTORY);
    struct stat info;

    if (descriptor < 0) {
        const int os_error = errno;

        (void)is_starved(walk, os_error);
        return os_error;
    }
    if (fstat(descriptor, &info) != 0 || is_below_itself(walk, at, &info)) {
        close(descriptor);
        return 0;
    }
    walk->folders[at].device = info.st_dev;
    walk->folders[at].inode = info.st_ino;
    read_folder(walk, at, descriptor);
    return 0;
}

static enum zt_status outcome_of(const struct walk *walk, int first_error, struct zt_error *error)
{
    if (walk->out_of_memory)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to walk a folder");
    if (walk->os_error != 0)
        return store_fail_errno(error, walk->os_error, "cannot read the folders");
    if (first_error == ENOENT)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    if (first_error != 0)
        return store_fail_errno(error, first_error, "cannot read the folder");
    return ZT_OK;
}

enum zt_status store_local_walk(struct store *store, const char *folder, bool is_deep,
                                bool (*visit)(void *context, const char *path,
                                              const struct file_identity *identity),
                                void *context, struct zt_error *error)
{
    struct walk walk = {.store = (const struct local_store *)store,
                        .visit = visit,
                        .context = context,
                        .is_deep = is_deep};
    int first_error = 0;

    if (folder[0] != '\0' &&
        (!store_path_is_served(zt_text_from(folder)) || store_local_withholds(walk.store, folder)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    add_folder(&walk, folder, 0);
    for (size_t at = 0; at < walk.count && !is_over(&walk); at++) {
        /* One that cannot be read must not hide the others. */
        const int os_error = walk_folder(&walk, at);

        first_error = at == 0 ? os_error : first_error;
    }
    for (size_t at = 0; at < walk.count; at++)
        free(walk.folders[at].path);
    free(walk.folders);
    return outcome_of(&walk, first_error, error);
}
