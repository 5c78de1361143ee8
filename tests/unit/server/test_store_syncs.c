/* The order of syncs: this program replaces the calls that make bytes and names durable, records
 * them, and passes them on. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    assert_int_equal(store_local_open(world->root, 0, &world->store, NULL), ZT_OK);
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

static struct stored_upload *begin(const struct world *world)
{
    struct stored_upload *upload = NULL;

    assert_int_equal(world->store->ops->create(world->store, 7, &upload, NULL), ZT_OK);
    assert_int_equal(world->store->ops->write_at(upload, 0, "content", 7, NULL), ZT_OK);
    return upload;
}

/* What was called since the last time. */
static void assert_called(const char *expected)
{
    assert_string_equal(record, expected);
    record[0] = '\0';
}

static void bytes_are_synced_before_the_name_and_the_name_after_it(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;

    assert_int_equal(ops->publish(begin(world), "m.zt", &store_expects_nothing, NULL), ZT_OK);
    assert_called("sync:file link sync:root ");
}

static void a_replacement_is_synced_before_and_after_it_is_renamed(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;

    assert_int_equal(ops->publish(begin(world), "m.zt", &store_expects_anything, NULL), ZT_OK);
    assert_called("sync:file link-hidden rename sync:root ");
}

static void new_folders_are_synced_from_the_root_down(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;

    assert_int_equal(ops->publish(begin(world), "a/b/m.zt", &store_expects_nothing, NULL), ZT_OK);
    assert_called("sync:file mkdir sync:root mkdir sync:a link sync:b ");
}

static void removing_syncs_the_folder(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;

    assert_int_equal(ops->publish(begin(world), "m.zt", &store_expects_nothing, NULL), ZT_OK);
    record[0] = '\0';
    assert_int_equal(ops->remove(world->store, "m.zt", &store_expects_anything, NULL), ZT_OK);
    assert_called("unlink sync:root ");
}

static void the_first_sync_of_a_kept_file_makes_its_names_durable(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload = NULL;

    assert_int_equal(ops->keep(world->store, ID, NULL), ZT_OK);
    assert_int_equal(ops->kept_create(world->store, ID, "data", 7, &upload, NULL), ZT_OK);
    assert_int_equal(ops->write_at(upload, 0, "content", 7, NULL), ZT_OK);
    record[0] = '\0';
    assert_int_equal(ops->sync(upload, NULL), ZT_OK);
    assert_called("datasync:file sync:" ID " sync:" STORE_KEPT_FOLDER " sync:root ");
    assert_int_equal(ops->sync(upload, NULL), ZT_OK);
    assert_called("datasync:file ");
    assert_int_equal(ops->publish(upload, "m.zt", &store_expects_nothing, NULL), ZT_OK);
    assert_called("sync:file rename sync:root ");
    assert_int_equal(ops->kept_drop(world->store, ID, NULL), ZT_OK);
    assert_called("rename unlink sync:" STORE_KEPT_FOLDER " ");
}

/* The kernel reports a failure once, and then takes what it could not write for written. */
static void after_a_failed_sync_no_other_is_believed(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload = begin(world);

    sync_fails = true;
    assert_int_equal(ops->sync(upload, NULL), ZT_IO);
    sync_fails = false;
    assert_int_equal(ops->sync(upload, NULL), ZT_IO);
    assert_int_equal(ops->publish(upload, "m.zt", &store_expects_nothing, NULL), ZT_IO);
    assert_null(strstr(record, "link"));
    ops->abandon(upload);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_synced_before_the_name_and_the_name_after_it),
        TEST(a_replacement_is_synced_before_and_after_it_is_renamed),
        TEST(new_folders_are_synced_from_the_root_down),
        TEST(removing_syncs_the_folder),
        TEST(after_a_failed_sync_no_other_is_believed),
        TEST(the_first_sync_of_a_kept_file_makes_its_names_durable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
