/* Lists the store: every regular file below the root whose path can name a model. A list watches
 * the folders that it reads, and reports the files that it leaves out. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "store/folder_walk.h"

struct list {
    struct folder_walk walk;
    size_t misnamed_files; /* files with a model's extension and an unusable name */
    bool is_part;          /* lists one new folder, not everything */
    bool is_unsure;        /* a partial list met something that affects other parts, or that is left
                            * out */
};

static void skip_for(struct folder_walk *walk, const char *path, enum skip_reason reason,
                     int os_error)
{
    struct list *list = (struct list *)walk;

    if (list->is_part)
        list->is_unsure = true;
    else
        skipped_note(&walk->store->skipped, path, reason, os_error);
}

static void skip(struct folder_walk *walk, const char *path, enum skip_reason reason)
{
    skip_for(walk, path, reason, 0);
}

static void list_folder(struct folder_walk *walk, const struct walk_entry *entry)
{
    /* If the folder's path cannot begin a name, no path below it can. */
    if (!model_name_is_valid(zt_text_from(entry->path))) {
        skip(walk, entry->path, SKIP_FOLDER_NAME);
        return;
    }
    if (!folder_walk_enter(walk, entry) && !atomic_exchange(&walk->store->logged_crowded, true))
        log_write(
            LOG_LEVEL_WARN,
            "too many folders: models past the first %d folders (%d through links) are not listed",
            WALK_FOLDERS_MAX, WALK_LINKED_FOLDERS_MAX);
}

static void list_file(struct folder_walk *walk, const struct walk_entry *entry)
{
    size_t name_length;
    unsigned rank;

    if (model_path_split(entry->path, &name_length, &rank)) {
        folder_walk_visit(walk, entry);
    } else if (model_path_has_bad_name(entry->path)) {
        ((struct list *)walk)->misnamed_files++;
        skip(walk, entry->path, SKIP_NAME);
    } else if (model_path_is_unsupported_format(entry->path)) {
        skip(walk, entry->path, SKIP_EXTENSION);
    }
}

/* A special file is never opened. It is reported only if it looks like a model. */
static void list_special(struct folder_walk *walk, const struct walk_entry *entry)
{
    size_t name_length;
    unsigned rank;

    if (model_path_split(entry->path, &name_length, &rank))
        skip(walk, entry->path, SKIP_SPECIAL);
}

/* Watches a folder before it is read, so that no change in between is missed. */
static void watch_folder(struct folder_walk *walk, int descriptor, const char *path)
{
    store_watch_add(walk->store->watch, descriptor, path);
}

static const struct walk_policy list_policy = {
    .folder = list_folder,
    .file = list_file,
    .special = list_special,
    .skip = skip_for,
    .opened = watch_folder,
};

static enum zt_status run(struct list *list, const char *folder, struct zt_error *error)
{
    assert(list->walk.policy == &list_policy);
    return folder_walk_run(&list->walk, folder, "no memory to list the store",
                           "cannot read the folders of models", error);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Returns true if the new root cannot be opened because the sandbox only allows the folder that the
 * server was started with. The server then keeps that folder. */
static bool is_out_of_reach(struct local_store *local, int os_error)
{
    struct stat opened;
    struct stat named;

    if (os_error != EACCES || stat(local->root_path, &named) != 0 || !S_ISDIR(named.st_mode) ||
        fstat(local->root, &opened) != 0 || is_same_file(&named, &opened))
        return false;
    if (!atomic_exchange(&local->logged_replaced, true))
        log_write(
            LOG_LEVEL_WARN,
            "the folder of models has been replaced by another one, which the sandbox does not "
            "allow the server to read: it serves the old one until it is restarted");
    return true;
}

/* If another folder has taken the root's name, opens it instead. Returns false with errno if no
 * folder has that name. */
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
        !is_same_file(&named, &opened)) {
        (void)dup3(root, local->root, O_CLOEXEC);
        store_own_again(local);
    }
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
                  "the folder of models is missing; the server checks for it every few seconds");
    *out_present = present;
    return ZT_OK;
}

enum zt_status store_local_list(struct store *store, store_visit visit, void *context,
                                struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    struct list list = {
        .walk = {.store = local, .policy = &list_policy, .visit = visit, .context = context}};
    bool is_present = false;
    enum zt_status status;

    store_watch_begin(local->watch);
    skipped_begin(&local->skipped);
    status = check_root(local, &is_present, error);
    if (status == ZT_OK && is_present)
        status = run(&list, "", error);
    store_watch_end(local->watch);
    skipped_end(&local->skipped, status == ZT_OK && !list.walk.is_stopped);
    atomic_store(&local->misnamed_files, list.misnamed_files);
    /* A walk that did not see everything may have missed links. */
    local->has_links = list.walk.met_link || status != ZT_OK || list.walk.is_stopped;
    return status;
}

enum zt_status store_local_list_new(struct local_store *local, const char *folder,
                                    store_visit visit, void *context, bool *out_unsure,
                                    struct zt_error *error)
{
    struct list list = {
        .walk = {.store = local, .policy = &list_policy, .visit = visit, .context = context},
        .is_part = true};
    enum zt_status status = ZT_OK;

    assert(folder[0] != '\0');
    /* A list of everything leaves this folder out, too. */
    if (model_name_is_valid(zt_text_from(folder)))
        status = run(&list, folder, error);
    else
        list.is_unsure = true;
    *out_unsure = list.is_unsure || list.walk.met_link;
    return status;
}
