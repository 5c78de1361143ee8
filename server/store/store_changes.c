/* Looks only at the paths that inotify has reported, so that one changed file among a hundred
 * thousand costs one stat.
 *
 * An event identifies the affected models only in a tree without symbolic and hard links, where a
 * file has one path. Everything else (a link, a folder that was removed or moved, a file that is
 * left out and counted) needs a list of everything. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "store/store_local.h"

struct look {
    struct local_store *store;
    store_visit visit;
    void *context;
    bool whole;
};

/* Reads the status of a name below the root without following links. Returns false with errno. */
static bool stat_path(int root, const char *path, struct stat *out_info)
{
    const char *base;
    int folder = store_path_open_parent(root, path, false, &base);
    int os_error;
    bool found;

    assert(root >= 0);
    if (folder < 0)
        return false;
    found = fstatat(folder, base, out_info, AT_SYMLINK_NOFOLLOW) == 0;
    os_error = errno;
    close(folder);
    errno = os_error;
    return found;
}

static void list_file(struct look *look, const char *path)
{
    size_t name_length;
    unsigned rank;
    const bool is_model = model_path_split(path, &name_length, &rank);
    struct stat info;

    assert(!look->whole);
    if (store_local_withholds_place(look->store, path))
        return;
    if (!is_model && (model_path_has_bad_name(path) || model_path_is_unsupported_format(path))) {
        look->whole = true;
    } else if (!stat_path(look->store->root, path, &info)) {
        look->whole = errno != ENOENT;
        if (errno == ENOENT && is_model)
            look->whole = !look->visit(look->context, path, NULL);
    } else if (!S_ISREG(info.st_mode)) {
        look->whole = is_model || S_ISLNK(info.st_mode) || S_ISDIR(info.st_mode);
    } else if (is_model) {
        const struct file_identity identity = store_identity_from(&info);

        look->whole = !look->visit(look->context, path, &identity) || info.st_nlink > 1;
    }
}

static enum zt_status list_event(struct look *look, const struct watch_event *event,
                                 struct zt_error *error)
{
    const char *folder = store_watch_folder(look->store->watch, event);
    char path[STORE_PATH_SIZE];
    int length;

    assert(!look->whole);
    if (folder == NULL || event->name[0] == '\0') {
        look->whole = true;
        return ZT_OK;
    }
    length =
        snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] == '\0' ? "" : "/", event->name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        look->whole = true;
    } else if ((event->mask & IN_ISDIR) == 0) {
        list_file(look, path);
    } else if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        return store_local_list_new(look->store, path, look->visit, look->context, &look->whole,
                                    error);
    } else {
        look->whole = true;
    }
    return ZT_OK;
}

enum zt_status store_local_list_changes(struct store *store, store_visit visit, void *context,
                                        bool *out_whole, struct zt_error *error)
{
    struct local_store *local = (struct local_store *)store;
    struct look look = {.store = local, .visit = visit, .context = context};
    struct watch_event *events;
    size_t count;
    enum zt_status status = ZT_OK;

    look.whole =
        !store_watch_take(local->watch, &events, &count) || (count > 0 && local->has_links);
    for (size_t i = 0; i < count && !look.whole && status == ZT_OK; i++)
        status = list_event(&look, &events[i], error);
    store_watch_events_free(events, count);
    *out_whole = look.whole;
    return status;
}
