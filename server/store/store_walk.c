/* Walks part of the store for files of every kind. Unlike a list (store_list.c), it does not watch
 * what it reads or report what it leaves out, so several walks can run concurrently. */
#include <errno.h>

#include "store/folder_walk.h"

struct file_walk {
    struct folder_walk walk;
    bool is_deep;
};

static void walk_folder(struct folder_walk *walk, const struct walk_entry *entry)
{
    if (!store_path_is_served(zt_text_from(entry->path)))
        return;
    walk->is_stopped = !walk->visit(walk->context, entry->path, NULL);
    if (!walk->is_stopped && ((const struct file_walk *)walk)->is_deep)
        (void)folder_walk_enter(walk, entry);
}

static void walk_file(struct folder_walk *walk, const struct walk_entry *entry)
{
    if (store_path_is_served(zt_text_from(entry->path)))
        folder_walk_visit(walk, entry);
}

static const struct walk_policy file_policy = {.folder = walk_folder, .file = walk_file};

enum zt_status store_local_walk(struct store *store, const char *folder, bool is_deep,
                                store_visit visit, void *context, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    struct file_walk all = {
        .walk = {.store = local, .policy = &file_policy, .visit = visit, .context = context},
        .is_deep = is_deep};
    enum zt_status status;

    if (folder[0] != '\0' &&
        (!store_path_is_served(zt_text_from(folder)) || store_local_withholds_place(local, folder)))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    status = folder_walk_run(&all.walk, folder, "no memory to walk a folder",
                             "cannot read the folders", error);
    if (status != ZT_OK || all.walk.first_error == 0)
        return status;
    if (all.walk.first_error == ENOENT)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    return store_fail_errno(error, all.walk.first_error, "cannot read the folder");
}
