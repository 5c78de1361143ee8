/* Kept uploads: what outlives a process, what another process cannot take, and publication from a
 * place. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/staging.h"
#include "store/store_local.h"

#define ID       "0123456789abcdef0123456789abcdef"
#define OTHER_ID "ffffffffffffffffffffffffffffffff"

struct world {
    char root[64];
    struct store *store;
};

static void command(const struct world *world, const char *commands)
{
    run_in(world->root, commands);
}

static struct store *open_store(const struct world *world)
{
    struct store *store = NULL;

    assert_ok(store_local_open(world->root, 0, &store, NULL));
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

static struct staged_file *begin(const struct world *world, const char *name, const char *text)
{
    struct staged_file *upload = NULL;

    assert_ok(staging_folder_create(world->store->staging, ID, name, strlen(text), &upload, NULL));
    assert_ok(staged_file_write_at(upload, 0, text, strlen(text), NULL));
    assert_ok(staged_file_sync(upload, NULL));
    return upload;
}

static void assert_holds(struct staged_file *upload, const char *expected)
{
    struct zt_source *source;
    char bytes[32] = "";

    assert_int_equal(staged_file_length(upload), strlen(expected));
    assert_ok(staged_file_read_back(upload, &source, NULL));
    assert_ok(zt_source_read_at(source, 0, bytes, strlen(expected), NULL));
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

    assert_ok(staging_folders_adopt(store->staging, collect, list, NULL));
    assert_string_equal(list, expected);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, tear_down)

PREPARED(kept_files_are_there_after_a_restart)
{
    struct staged_file *upload = NULL;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    staged_file_close(begin(world, "data", "content"));
    reopen(world);
    assert_kept(world->store, ID " ");
    assert_ok(staging_folder_open(world->store->staging, ID, "data", &upload, NULL));
    assert_holds(upload, "content");
    assert_ok(staged_file_write_at(upload, 7, "ed", 2, NULL));
    assert_holds(upload, "contented");
    staged_file_close(upload);
    command(world, "test -f .ztserve-uploads/" ID "/data");
}

/* Each place that is taken over has one descriptor, which holds its lock. */
PREPARED(taking_uploads_over_leaks_no_descriptor)
{
    struct staged_file *upload = NULL;
    unsigned before;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    staged_file_close(begin(world, "data", "content"));
    reopen(world);
    before = open_descriptors();
    assert_kept(world->store, ID " ");
    assert_int_equal(open_descriptors(), before + 1);
    assert_kept(world->store, ID " ");
    assert_ok(staging_folder_open(world->store->staging, ID, "data", &upload, NULL));
    staged_file_close(upload);
    assert_int_equal(staging_folder_open(world->store->staging, ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(open_descriptors(), before + 1);
    assert_ok(staging_folder_drop(world->store->staging, ID, NULL));
    assert_int_equal(open_descriptors(), before);
}

PREPARED(a_kept_file_is_published_out_of_its_place)
{
    const struct store_ops *ops = world->store->ops;
    struct staged_file *upload;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    upload = begin(world, "data", "first");
    assert_ok(ops->publish(world->store, upload, "a/m.zt", &store_expects_nothing, NULL));
    upload = begin(world, "data", "second");
    assert_int_equal(ops->publish(world->store, upload, "a/m.zt", &store_expects_nothing, NULL),
                     ZT_ARGUMENT);
    assert_holds(upload, "second");
    assert_ok(ops->publish(world->store, upload, "a/m.zt", &store_expects_anything, NULL));
    command(world, "test \"$(cat a/m.zt)\" = second -a -z \"$(ls -A .ztserve-uploads/" ID ")\"");
    assert_ok(staging_folder_drop(world->store->staging, ID, NULL));
    command(world, "test -z \"$(ls -A .ztserve-uploads)\"");
}

PREPARED(an_older_file_is_replaced_and_stays_readable_while_it_is_open)
{
    struct staged_file *older;
    struct staged_file *newer;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    older = begin(world, "data", "older");
    newer = begin(world, "data", "new");
    assert_holds(older, "older");
    assert_holds(newer, "new");
    staged_file_close(older);
    staged_file_close(newer);
    assert_ok(staging_folder_remove(world->store->staging, ID, "data", NULL));
    assert_int_equal(staging_folder_remove(world->store->staging, ID, "data", NULL), ZT_NOT_FOUND);
}

#define GIB ((uint64_t)1 << 30)

static uint64_t could_free(void *context, const struct disk_space *space)
{
    const struct disk_claim *held = context;

    return space == held->space ? held->ahead_bytes : 0;
}

static bool free_some(void *context, const struct disk_space *space, uint64_t bytes)
{
    (void)space;
    (void)bytes;
    disk_claim_end(context);
    return true;
}

PREPARED(caches_make_room_for_a_file)
{
    struct staging *staging = world->store->staging;
    struct disk_claim held;
    struct disk_saver saver = {.could_free = could_free, .free_some = free_some, .context = &held};
    struct staged_file *upload;
    uint64_t left;

    assert_true(disk_space_left(staging->root, &left));
    if (left < 4 * GIB)
        skip();
    staging_set_reserve(staging, left - 4 * GIB);
    assert_ok(staging_folder_make(staging, ID, NULL));
    disk_claim_init(&held, staging->root, 0);
    disk_claim_note(&held, 3 * GIB);
    disk_saver_add(&saver);
    assert_true(staging_could_take(staging, 2 * GIB));
    assert_false(staging_could_take(staging, 64 * GIB));
    assert_int_equal(staging_folder_create(staging, ID, "data", 64 * GIB, &upload, NULL), ZT_LIMIT);
    assert_int_equal(held.ahead_bytes, 3 * GIB);
    /* They do so before its bytes are written. */
    assert_ok(staging_folder_create(staging, ID, "data", 2 * GIB, &upload, NULL));
    assert_int_equal(held.ahead_bytes, 3 * GIB);
    disk_saver_remove(&saver);
    disk_claim_end(&held);
    staged_file_close(upload);
}

PREPARED(another_server_leaves_a_live_upload_alone)
{
    struct staged_file *upload;
    struct staged_file *theirs = NULL;
    struct store *other;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    upload = begin(world, "data", "content");
    other = open_store(world);
    assert_kept(other, "");
    assert_int_equal(staging_folder_open(other->staging, ID, "data", &theirs, NULL), ZT_ARGUMENT);
    assert_int_equal(staging_folder_drop(other->staging, ID, NULL), ZT_ARGUMENT);
    assert_holds(upload, "content");
    staged_file_close(upload);
    world->store->ops->close(world->store);
    world->store = other;
    /* The first server is gone: its upload can be taken over without a restart. */
    assert_ok(staging_folder_open(other->staging, ID, "data", &theirs, NULL));
    assert_holds(theirs, "content");
    staged_file_close(theirs);
}

PREPARED(a_killed_server_frees_its_uploads)
{
    struct staged_file *upload = NULL;
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct store *store = open_store(world);

        staging_folder_make(store->staging, ID, NULL);
        staging_folder_create(store->staging, ID, "data", 7, &upload, NULL);
        staged_file_write_at(upload, 0, "content", 7, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_kept(world->store, ID " ");
    assert_ok(staging_folder_open(world->store->staging, ID, "data", &upload, NULL));
    assert_holds(upload, "content");
    staged_file_close(upload);
}

PREPARED(strays_among_the_places_are_removed_at_start)
{
    command(world, "mkdir -p .ztserve-uploads/" ID " .ztserve-uploads/" OTHER_ID ".gone; "
                   "touch .ztserve-uploads/" OTHER_ID ".gone/data .ztserve-uploads/stray; "
                   "ln -s / .ztserve-uploads/link");
    assert_kept(world->store, ID " ");
    command(world, "test \"$(ls -A .ztserve-uploads)\" = " ID "; test -d /tmp");
}

PREPARED(invalid_ids_and_names_are_refused)
{
    static const char *const ids[] = {"",     "..",
                                      "0123", "0123456789ABCDEF0123456789ABCDEF",
                                      ID "0", "../../../../../../../../../../etc"};
    static const char *const names[] = {
        "",     ".", "..",    "a/b",
        "../m", "A", ".data", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct staged_file *upload = NULL;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(staging_folder_make(world->store->staging, ids[i], NULL), ZT_ARGUMENT);
        assert_int_equal(
            staging_folder_create(world->store->staging, ids[i], "data", 1, &upload, NULL),
            ZT_NOT_FOUND);
        assert_int_equal(staging_folder_drop(world->store->staging, ids[i], NULL), ZT_NOT_FOUND);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(
            staging_folder_create(world->store->staging, ID, names[i], 1, &upload, NULL),
            ZT_ARGUMENT);
        assert_int_equal(staging_folder_open(world->store->staging, ID, names[i], &upload, NULL),
                         ZT_NOT_FOUND);
    }
    assert_null(upload);
}

PREPARED(only_regular_files_of_a_place_are_opened)
{
    struct staged_file *upload = NULL;

    command(world, "mkdir -p .ztserve-uploads/" ID "/folder; mkfifo .ztserve-uploads/" ID "/pipe; "
                   "ln -s /etc/hostname .ztserve-uploads/" ID "/link");
    assert_int_not_equal(staging_folder_open(world->store->staging, ID, "folder", &upload, NULL),
                         ZT_OK);
    assert_int_equal(staging_folder_open(world->store->staging, ID, "pipe", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(staging_folder_open(world->store->staging, ID, "link", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(staging_folder_open(world->store->staging, ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(staging_folder_open(world->store->staging, OTHER_ID, "none", &upload, NULL),
                     ZT_NOT_FOUND);
    command(world, "rmdir .ztserve-uploads/" ID "/folder");
}

PREPARED(create_refuses_what_the_disk_does_not_hold)
{
    struct staged_file *upload = NULL;
    struct zt_error error;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    assert_int_equal(
        staging_folder_create(world->store->staging, ID, "data", UINT64_MAX - 1, &upload, &error),
        ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    assert_null(upload);
}

PREPARED(copies_go_to_their_places)
{
    struct staged_file *from;
    struct staged_file *to = NULL;

    assert_ok(staging_folder_make(world->store->staging, ID, NULL));
    from = begin(world, "part", "0123456789");
    to = begin(world, "data", "abcdef");
    assert_ok(staged_file_copy(from, 3, to, 2, 3, NULL));
    assert_holds(to, "ab345f");
    assert_int_equal(staged_file_copy(from, 8, to, 0, 3, NULL), ZT_IO);
    assert_int_equal(staged_file_copy(from, 8, to, UINT64_MAX - 1, 3, NULL), ZT_LIMIT);
    staged_file_close(from);
    staged_file_close(to);
}
