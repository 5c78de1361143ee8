/* The order of syncs: this program replaces the calls that make bytes and names durable, records
 * them, and passes them on. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/staging.h"
#include "store/store_local.h"

#define ID "0123456789abcdef0123456789abcdef"

static char record[1024];
static bool recording;
static bool sync_fails;

static void note(const char *what)
{
    if (recording)
        strcat(strcat(record, what), " ");
}

/* A folder by its name, any other file as "file". */
static void note_sync(const char *call, int descriptor)
{
    char link[64];
    char path[512] = "";
    char text[600];
    struct stat facts;
    const char *slash;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    if (readlink(link, path, sizeof(path) - 1) < 0 || fstat(descriptor, &facts) != 0)
        path[0] = '\0';
    slash = strrchr(path, '/');
    snprintf(text, sizeof(text), "%s:%s", call,
             S_ISDIR(facts.st_mode) && slash != NULL ? slash + 1 : "file");
    note(text);
}

int fsync(int descriptor)
{
    note_sync("sync", descriptor);
    if (sync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    note_sync("datasync", descriptor);
    if (sync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

int linkat(int from, const char *old_path, int to, const char *new_path, int flags)
{
    note(new_path[0] == '.' ? "link-hidden" : "link");
    return (int)syscall(SYS_linkat, from, old_path, to, new_path, flags);
}

int renameat(int from, const char *old_path, int to, const char *new_path)
{
    note("rename");
    return (int)syscall(SYS_renameat2, from, old_path, to, new_path, 0);
}

int renameat2(int from, const char *old_path, int to, const char *new_path, unsigned flags)
{
    note("rename");
    return (int)syscall(SYS_renameat2, from, old_path, to, new_path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    note("mkdir");
    return (int)syscall(SYS_mkdirat, folder, path, mode);
}

int unlinkat(int folder, const char *path, int flags)
{
    note("unlink");
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

struct world {
    char root[64];
    struct store *store;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->root, "/tmp/zt-sync-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    strcpy(world->root + strlen(world->root), "/root");
    assert_int_equal(mkdir(world->root, 0700), 0);
    assert_ok(store_local_open(world->root, 0, &world->store, NULL));
    record[0] = '\0';
    recording = true;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char text[128];

    recording = false;
    world->store->ops->close(world->store);
    *strrchr(world->root, '/') = '\0';
    snprintf(text, sizeof(text), "rm -r %s", world->root);
    assert_int_equal(system(text), 0);
    free(world);
    return 0;
}

static struct staged_file *begin(const struct world *world)
{
    struct staged_file *upload = NULL;

    assert_ok(staging_create(world->store->staging, 7, &upload, NULL));
    assert_ok(staged_file_write_at(upload, 0, "content", 7, NULL));
    return upload;
}

/* What was called since the last time. */
static void assert_called(const char *expected)
{
    assert_string_equal(record, expected);
    record[0] = '\0';
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, tear_down)

PREPARED(bytes_are_synced_before_the_name_and_the_name_after_it)
{
    const struct store_ops *ops = world->store->ops;

    assert_ok(ops->publish(world->store, begin(world), "m.zt", &store_expects_nothing, NULL));
    assert_called("sync:file link ");
    assert_ok(ops->settle(world->store, "m.zt", NULL));
    assert_called("sync:root ");
}

PREPARED(a_replacement_is_synced_before_and_after_it_is_renamed)
{
    const struct store_ops *ops = world->store->ops;

    assert_ok(ops->publish(world->store, begin(world), "m.zt", &store_expects_anything, NULL));
    assert_called("sync:file link-hidden rename ");
}

PREPARED(new_folders_are_synced_from_the_root_down)
{
    const struct store_ops *ops = world->store->ops;

    assert_ok(ops->publish(world->store, begin(world), "a/b/m.zt", &store_expects_nothing, NULL));
    assert_called("sync:file mkdir sync:root mkdir sync:a link ");
    assert_ok(ops->settle(world->store, "a/b/m.zt", NULL));
    assert_called("sync:b ");
}

PREPARED(removing_syncs_the_folder)
{
    const struct store_ops *ops = world->store->ops;

    assert_ok(ops->publish(world->store, begin(world), "m.zt", &store_expects_nothing, NULL));
    record[0] = '\0';
    assert_ok(ops->remove(world->store, "m.zt", &store_expects_anything, NULL));
    assert_ok(ops->settle(world->store, "m.zt", NULL));
    assert_called("unlink sync:root ");
}

PREPARED(the_first_sync_of_a_kept_file_makes_its_names_durable)
{
    const struct store_ops *ops = world->store->ops;
    struct staged_file *upload = NULL;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    assert_ok(staging_folder_create(world->store->staging, ID, "data", 7, &upload, NULL));
    assert_ok(staged_file_write_at(upload, 0, "content", 7, NULL));
    record[0] = '\0';
    assert_ok(staged_file_sync(upload, NULL));
    assert_called("datasync:file sync:" ID " sync:" STAGING_FOLDERS " sync:root ");
    assert_ok(staged_file_sync(upload, NULL));
    assert_called("datasync:file ");
    assert_ok(ops->publish(world->store, upload, "m.zt", &store_expects_nothing, NULL));
    assert_called("sync:file rename ");
    assert_ok(staging_folder_drop(world->store->staging, ID, NULL));
    assert_called("rename unlink sync:" STAGING_FOLDERS " ");
}

/* The kernel reports a failure once, and then takes what it could not write for written. */
PREPARED(after_a_failed_sync_no_other_is_believed)
{
    const struct store_ops *ops = world->store->ops;
    struct staged_file *upload = begin(world);

    sync_fails = true;
    assert_int_equal(staged_file_sync(upload, NULL), ZT_IO);
    sync_fails = false;
    assert_int_equal(staged_file_sync(upload, NULL), ZT_IO);
    assert_int_equal(ops->publish(world->store, upload, "m.zt", &store_expects_nothing, NULL),
                     ZT_IO);
    assert_null(strstr(record, "link"));
    staged_file_close(upload);
}

PREPARED(what_was_done_in_a_folder_that_is_gone_is_settled_above_it)
{
    assert_ok(world->store->ops->settle(world->store, "a/b/m.zt", NULL));
    assert_called("sync:root ");
}

/* The next writer would take it for durable. */
PREPARED(a_folder_that_cannot_be_synced_does_not_stay)
{
    const struct store_ops *ops = world->store->ops;

    sync_fails = true;
    assert_int_equal(ops->make_folder(world->store, "a", NULL), ZT_IO);
    assert_called("mkdir sync:root unlink ");
    sync_fails = false;
    assert_ok(ops->make_folder(world->store, "a", NULL));
    assert_called("mkdir sync:root ");
}
