/* The walk keeps the folders that it found in one array, in the order in which it reads them. */
#include "store/folder_walk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* A folder that was found. It may not have been read yet. */
struct walked_folder {
    char *path;    /* "" for the root */
    size_t parent; /* index; the first folder is its own parent */
    dev_t device;
    ino_t inode;
};

static bool is_below_itself(const struct folder_walk *walk, size_t at, const struct stat *info)
{
    assert(at < walk->count);
    while (at != walk->folders[at].parent) {
        at = walk->folders[at].parent;
        if (walk->folders[at].inode == info->st_ino && walk->folders[at].device == info->st_dev)
            return true;
    }
    return false;
}

static void skip(struct folder_walk *walk, const char *path, enum skip_reason reason, int os_error)
{
    assert(reason < SKIP_REASONS);
    if (walk->policy->skip != NULL)
        walk->policy->skip(walk, path, reason, os_error);
}

/* Returns true if a folder or link cannot be read because the process lacks descriptors or memory.
 * The walk then fails, because the error says nothing about the files. */
static bool is_starved(struct folder_walk *walk, int os_error)
{
    if (os_error != EMFILE && os_error != ENFILE && os_error != ENOMEM)
        return false;
    walk->os_error = os_error;
    return true;
}

static bool is_over(const struct folder_walk *walk)
{
    return walk->is_stopped || walk->out_of_memory || walk->os_error != 0;
}

static void add_folder(struct folder_walk *walk, const char *path, size_t parent)
{
    struct walked_folder folder = {.path = strdup(path), .parent = parent};

    assert(parent <= walk->count && walk->count < WALK_FOLDERS_MAX);
    if (folder.path == NULL || zt_array_reserve(&walk->folders, &walk->capacity, walk->count + 1,
                                                sizeof(folder), WALK_FOLDERS_MAX) != ZT_OK) {
        free(folder.path);
        walk->out_of_memory = true;
        return;
    }
    walk->folders[walk->count++] = folder;
}

bool folder_walk_enter(struct folder_walk *walk, const struct walk_entry *entry)
{
    assert(walk->linked <= WALK_LINKED_FOLDERS_MAX);
    assert(entry->parent < walk->count && !walk->is_stopped);
    if (walk->count >= WALK_FOLDERS_MAX ||
        (entry->is_linked && walk->linked >= WALK_LINKED_FOLDERS_MAX))
        return false;
    walk->linked += entry->is_linked;
    add_folder(walk, entry->path, entry->parent);
    return true;
}

void folder_walk_visit(struct folder_walk *walk, const struct walk_entry *entry)
{
    const struct file_identity identity = store_identity_from(entry->info);

    assert(!walk->is_stopped);
    walk->is_stopped = !walk->visit(walk->context, entry->path, &identity);
}

/* Describes the target of a symbolic link. Returns false if it is outside the root or withheld. */
static bool follow_link(struct folder_walk *walk, const char *path, struct stat *out_info)
{
    const int target = store_path_open(walk->store->root, path, O_PATH);
    bool is_found;

    walk->met_link = true;
    if (target < 0 && is_starved(walk, errno))
        return false;
    if (target < 0) {
        /* For a target outside the root, only its existence is checked. */
        if (walk->policy->skip != NULL)
            skip(walk, path,
                 faccessat(walk->store->root, path, F_OK, 0) == 0 ? SKIP_OUTSIDE : SKIP_BROKEN, 0);
        return false;
    }
    is_found = fstat(target, out_info) == 0 &&
               !store_local_withholds_opened(walk->store, &walk->own, target, out_info);
    close(target);
    return is_found;
}

static void read_entry(struct folder_walk *walk, size_t parent, int folder, const char *name)
{
    char path[STORE_PATH_SIZE];
    const char *above;
    struct stat info;
    struct walk_entry entry = {.path = path, .info = &info, .parent = parent};
    int length;

    assert(parent < walk->count && folder >= 0);
    above = walk->folders[parent].path;
    if (name[0] == '.')
        return;
    length = snprintf(path, sizeof(path), "%s%s%s", above, above[0] == '\0' ? "" : "/", name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        skip(walk, path, SKIP_LONG, 0);
        return;
    }
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    entry.is_linked = S_ISLNK(info.st_mode);
    if ((entry.is_linked && !follow_link(walk, path, &info)) || own_files_have(&walk->own, &info) ||
        store_local_withholds(walk->store, path))
        return;
    if (S_ISDIR(info.st_mode))
        walk->policy->folder(walk, &entry);
    else if (S_ISREG(info.st_mode))
        walk->policy->file(walk, &entry);
    else if (walk->policy->special != NULL)
        walk->policy->special(walk, &entry);
}

/* Takes over the descriptor. */
static void read_folder(struct folder_walk *walk, size_t at, int descriptor)
{
    DIR *stream = fdopendir(descriptor);
    const struct dirent *entry;

    assert(at < walk->count);
    if (stream == NULL) {
        (void)is_starved(walk, errno);
        close(descriptor);
        return;
    }
    while (!is_over(walk) && (entry = readdir(stream)) != NULL)
        read_entry(walk, at, descriptor, entry->d_name);
    closedir(stream);
}

/* Returns 0, or the errno with which the folder could not be opened. */
static int walk_folder(struct folder_walk *walk, size_t at)
{
    const char *path;
    struct stat info;
    int descriptor;

    assert(at < walk->count);
    path = walk->folders[at].path;
    descriptor =
        store_path_open(walk->store->root, path[0] == '\0' ? "." : path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) {
        const int os_error = errno;

        if (!is_starved(walk, os_error) && os_error != ENOENT)
            skip(walk, path, SKIP_UNREADABLE, os_error);
        return os_error;
    }
    if (fstat(descriptor, &info) != 0 || is_below_itself(walk, at, &info)) {
        close(descriptor);
        return 0;
    }
    walk->folders[at].device = info.st_dev;
    walk->folders[at].inode = info.st_ino;
    if (walk->policy->opened != NULL)
        walk->policy->opened(walk, descriptor, path);
    read_folder(walk, at, descriptor);
    return 0;
}

enum zt_status folder_walk_run(struct folder_walk *walk, const char *path, const char *no_memory,
                               const char *cannot_read, struct zt_error *error)
{
    assert(walk->linked == 0 && !is_over(walk));
    assert(walk->count == 0 && walk->policy->folder != NULL && walk->policy->file != NULL);
    own_files_find(walk->store, &walk->own);
    add_folder(walk, path, 0);
    for (size_t at = 0; at < walk->count && !is_over(walk); at++) {
        const int os_error = walk_folder(walk, at);

        if (at == 0)
            walk->first_error = os_error;
    }
    for (size_t at = 0; at < walk->count; at++)
        free(walk->folders[at].path);
    free(walk->folders);
    if (walk->out_of_memory)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "%s", no_memory);
    return walk->os_error == 0 ? ZT_OK : store_fail_errno(error, walk->os_error, cannot_read);
}
