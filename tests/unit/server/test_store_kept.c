/* Kept uploads: what outlives a process, what another process cannot take, and publication from a
 * place. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store_local.h"

#define ID       "0123456789abcdef0123456789abcdef"
#define OTHER_ID "ffffffffffffffffffffffffffffffff"

struct world {
    char root[64];
    struct store *store;
};

static void command(const struct world *world, const char *format)
{
    char text[1024];

    snprintf(text, sizeof(text), "cd %s && { %s; }", world->root, format);
    assert_int_equal(system(text), 0);
}

static struct store *open_store(const struct world *world)
{
    struct store *store = NULL;

    assert_int_equal(store_local_open(world->root, 0, &store, NULL), ZT_OK);
    return store;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->root, "/tmp/zt-test-kept-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    world->store = open_store(world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    world->store->ops->close(world->store);
    command(world, "rm -rf ./* .ztserve*");
    rmdir(world->root);
    free(world);
    return 0;
}

static void reopen(struct world *world)
{
    world->store->ops->close(world->store);
    world->store = open_store(world);
}

static struct stored_upload *begin(const struct world *world, const char *name, const char *text)
{
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload = NULL;

    assert_int_equal(ops->kept_create(world->store, ID, name, strlen(text), &upload, NULL), ZT_OK);
    assert_int_equal(ops->write_at(upload, 0, text, strlen(text), NULL), ZT_OK);
    assert_int_equal(ops->sync(upload, NULL), ZT_OK);
    return upload;
}

static void assert_holds(const struct world *world, struct stored_upload *upload,
                         const char *expected)
{
    struct zt_source *source;
    char bytes[32] = "";

    assert_int_equal(world->store->ops->length(upload), strlen(expected));
    assert_int_equal(world->store->ops->read_back(upload, &source, NULL), ZT_OK);
    assert_int_equal(zt_source_read_at(source, 0, bytes, strlen(expected), NULL), ZT_OK);
    assert_string_equal(bytes, expected);
}

static bool collect(void *context, const char *id)
{
    strcat(strcat(context, id), " ");
    return true;
}

static void assert_kept(struct store *store, const char *expected)
{
    char list[256] = "";

    assert_int_equal(store->ops->kept_list(store, collect, list, NULL), ZT_OK);
    assert_string_equal(list, expected);
}

static void kept_files_are_there_after_a_restart(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = NULL;

    assert_int_equal(world->store->ops->keep(world->store, ID, NULL), ZT_OK);
    world->store->ops->abandon(begin(world, "data", "content"));
    reopen(world);
    assert_kept(world->store, ID " ");
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "data", &upload, NULL), ZT_OK);
    assert_holds(world, upload, "content");
    assert_int_equal(world->store->ops->write_at(upload, 7, "ed", 2, NULL), ZT_OK);
    assert_holds(world, upload, "contented");
    world->store->ops->abandon(upload);
    command(world, "test -f .ztserve-uploads/" ID "/data");
}

static unsigned open_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(stream);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count;
}

/* Each place that is taken over has one descriptor, which holds its lock. */
static void taking_uploads_over_leaks_no_descriptor(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = NULL;
    unsigned before;

    assert_int_equal(world->store->ops->keep(world->store, ID, NULL), ZT_OK);
    world->store->ops->abandon(begin(world, "data", "content"));
    reopen(world);
    before = open_descriptors();
    assert_kept(world->store, ID " ");
    assert_int_equal(open_descriptors(), before + 1);
    assert_kept(world->store, ID " ");
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "data", &upload, NULL), ZT_OK);
    world->store->ops->abandon(upload);
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(open_descriptors(), before + 1);
    assert_int_equal(world->store->ops->kept_drop(world->store, ID, NULL), ZT_OK);
    assert_int_equal(open_descriptors(), before);
}

static void a_kept_file_is_published_out_of_its_place(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload;

    assert_int_equal(ops->keep(world->store, ID, NULL), ZT_OK);
    upload = begin(world, "data", "first");
    assert_int_equal(ops->publish(upload, "a/m.zt", &store_expects_nothing, NULL), ZT_OK);
    upload = begin(world, "data", "second");
    assert_int_equal(ops->publish(upload, "a/m.zt", &store_expects_nothing, NULL), ZT_ARGUMENT);
    assert_holds(world, upload, "second");
    assert_int_equal(ops->publish(upload, "a/m.zt", &store_expects_anything, NULL), ZT_OK);
    command(world, "test \"$(cat a/m.zt)\" = second -a -z \"$(ls -A .ztserve-uploads/" ID ")\"");
    assert_int_equal(ops->kept_drop(world->store, ID, NULL), ZT_OK);
    command(world, "test -z \"$(ls -A .ztserve-uploads)\"");
}

static void an_older_file_is_replaced_and_stays_readable_while_it_is_open(void **state)
{
    struct world *world = *state;
    struct stored_upload *older;
    struct stored_upload *newer;

    assert_int_equal(world->store->ops->keep(world->store, ID, NULL), ZT_OK);
    older = begin(world, "data", "older");
    newer = begin(world, "data", "new");
    assert_holds(world, older, "older");
    assert_holds(world, newer, "new");
    world->store->ops->abandon(older);
    world->store->ops->abandon(newer);
    assert_int_equal(world->store->ops->kept_remove(world->store, ID, "data", NULL), ZT_OK);
    assert_int_equal(world->store->ops->kept_remove(world->store, ID, "data", NULL), ZT_NOT_FOUND);
}

static void another_server_leaves_a_live_upload_alone(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload;
    struct stored_upload *theirs = NULL;
    struct store *other;

    assert_int_equal(world->store->ops->keep(world->store, ID, NULL), ZT_OK);
    upload = begin(world, "data", "content");
    other = open_store(world);
    assert_kept(other, "");
    assert_int_equal(other->ops->kept_open(other, ID, "data", &theirs, NULL), ZT_ARGUMENT);
    assert_int_equal(other->ops->kept_drop(other, ID, NULL), ZT_ARGUMENT);
    assert_holds(world, upload, "content");
    world->store->ops->abandon(upload);
    world->store->ops->close(world->store);
    world->store = other;
    /* The first server is gone: its upload can be taken over without a restart. */
    assert_int_equal(other->ops->kept_open(other, ID, "data", &theirs, NULL), ZT_OK);
    assert_holds(world, theirs, "content");
    other->ops->abandon(theirs);
}

static void a_killed_server_frees_its_uploads(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = NULL;
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct store *store = open_store(world);

        store->ops->keep(store, ID, NULL);
        store->ops->kept_create(store, ID, "data", 7, &upload, NULL);
        store->ops->write_at(upload, 0, "content", 7, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_kept(world->store, ID " ");
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "data", &upload, NULL), ZT_OK);
    assert_holds(world, upload, "content");
    world->store->ops->abandon(upload);
}

static void strays_among_the_places_are_removed_at_start(void **state)
{
    struct world *world = *state;

    command(world, "mkdir -p .ztserve-uploads/" ID " .ztserve-uploads/" OTHER_ID ".gone; "
                   "touch .ztserve-uploads/" OTHER_ID ".gone/data .ztserve-uploads/stray; "
                   "ln -s / .ztserve-uploads/link");
    assert_kept(world->store, ID " ");
    command(world, "test \"$(ls -A .ztserve-uploads)\" = " ID "; test -d /tmp");
}

static void invalid_ids_and_names_are_refused(void **state)
{
    static const char *const ids[] = {"",     "..",
                                      "0123", "0123456789ABCDEF0123456789ABCDEF",
                                      ID "0", "../../../../../../../../../../etc"};
    static const char *const names[] = {
        "",     ".", "..",    "a/b",
        "../m", "A", ".data", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload = NULL;

    assert_int_equal(ops->keep(world->store, ID, NULL), ZT_OK);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(ops->keep(world->store, ids[i], NULL), ZT_ARGUMENT);
        assert_int_equal(ops->kept_create(world->store, ids[i], "data", 1, &upload, NULL),
                         ZT_NOT_FOUND);
        assert_int_equal(ops->kept_drop(world->store, ids[i], NULL), ZT_NOT_FOUND);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(ops->kept_create(world->store, ID, names[i], 1, &upload, NULL),
                         ZT_ARGUMENT);
        assert_int_equal(ops->kept_open(world->store, ID, names[i], &upload, NULL), ZT_NOT_FOUND);
    }
    assert_null(upload);
}

static void only_regular_files_of_a_place_are_opened(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = NULL;

    command(world, "mkdir -p .ztserve-uploads/" ID "/folder; mkfifo .ztserve-uploads/" ID "/pipe; "
                   "ln -s /etc/hostname .ztserve-uploads/" ID "/link");
    assert_int_not_equal(world->store->ops->kept_open(world->store, ID, "folder", &upload, NULL),
                         ZT_OK);
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "pipe", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "link", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(world->store->ops->kept_open(world->store, ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(world->store->ops->kept_open(world->store, OTHER_ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    command(world, "rmdir .ztserve-uploads/" ID "/folder");
}

static void create_refuses_what_the_disk_does_not_hold(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = NULL;
    struct zt_error error;

    assert_int_equal(world->store->ops->keep(world->store, ID, NULL), ZT_OK);
    assert_int_equal(
        world->store->ops->kept_create(world->store, ID, "data", UINT64_MAX - 1, &upload, &error),
        ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    assert_null(upload);
}

static void copies_go_to_their_places(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *from;
    struct stored_upload *to = NULL;

    assert_int_equal(ops->keep(world->store, ID, NULL), ZT_OK);
    from = begin(world, "part", "0123456789");
    to = begin(world, "data", "abcdef");
    assert_int_equal(ops->copy(from, 3, to, 2, 3, NULL), ZT_OK);
    assert_holds(world, to, "ab345f");
    assert_int_equal(ops->copy(from, 8, to, 0, 3, NULL), ZT_IO);
    assert_int_equal(ops->copy(from, 8, to, UINT64_MAX - 1, 3, NULL), ZT_LIMIT);
    ops->abandon(from);
    ops->abandon(to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kept_files_are_there_after_a_restart),
        TEST(taking_uploads_over_leaks_no_descriptor),
        TEST(a_kept_file_is_published_out_of_its_place),
        TEST(an_older_file_is_replaced_and_stays_readable_while_it_is_open),
        TEST(another_server_leaves_a_live_upload_alone),
        TEST(a_killed_server_frees_its_uploads),
        TEST(strays_among_the_places_are_removed_at_start),
        TEST(invalid_ids_and_names_are_refused),
        TEST(only_regular_files_of_a_place_are_opened),
        TEST(create_refuses_what_the_disk_does_not_hold),
        TEST(copies_go_to_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
