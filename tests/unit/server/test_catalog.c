/* The catalog: which file a name stands for, and following changes. */
#include "model_world.h"
#include "tests.h"

#include <errno.h>
#include <sys/resource.h>

#include "catalog/catalog_content.h"

/* Asserts whether there is a model of that name, after at most three seconds. */
static void assert_comes(struct world *world, const char *name, bool there)
{
    for (int i = 0; i < 300; i++) {
        struct generation *found = world_find(world, name);

        generation_release(found);
        if ((found != NULL) == there)
            return;
        pause_ms(10);
    }
    fail_msg("%s did not %s", name, there ? "come" : "go");
}

static struct rlimit limit_before;

static int set_up(void **state)
{
    return getrlimit(RLIMIT_NOFILE, &limit_before) == 0 ? world_set_up(state) : -1;
}

/* Some tests leave few descriptors. */
static int tear_down(void **state)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
    return world_tear_down(state);
}

AROUND_EACH_TEST(set_up, tear_down)

TEST_ON(struct world *world, find_waits_for_the_first_scan)
{
    struct generation *found;

    world_model(world, "m.zt", true);
    assert_false(catalog_is_loaded(world->server.catalog));
    found = world_find(world, "m");
    assert_non_null(found);
    generation_release(found);
    world_wait_loaded(world);
    assert_true(catalog_is_loaded(world->server.catalog));
    assert_null(world_find(world, "n"));
}

struct seen {
    char text[256];
    pthread_mutex_t lock;
};

static void note(struct seen *seen, const char *what, const char *path)
{
    pthread_mutex_lock(&seen->lock);
    strcat(strcat(strcat(strcat(seen->text, what), ":"), path), " ");
    pthread_mutex_unlock(&seen->lock);
}

static void note_opened(void *context, struct generation *generation)
{
    note(context, "opened", generation->path);
}

static void note_showing(void *context, struct generation *generation)
{
    note(context, "showing", generation->path);
}

static void note_shown(void *context, struct generation *generation)
{
    note(context, "shown", generation->path);
}

static void note_dropped(void *context, struct generation *generation)
{
    assert_true(atomic_load(&generation->retired));
    note(context, "dropped", generation->path);
}

static void note_loaded(void *context, const char *const *paths, size_t count)
{
    assert_int_equal(count, 1);
    note(context, "loaded", paths[0]);
}

TEST_ON(struct world *world, observers_learn_what_is_opened_shown_and_dropped)
{
    struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct catalog_observer observer = {.context = &seen,
                                              .opened = note_opened,
                                              .showing = note_showing,
                                              .shown = note_shown,
                                              .dropped = note_dropped,
                                              .loaded = note_loaded};
    struct catalog *catalog = catalog_new(&world->server, &observer);

    assert_non_null(catalog);
    world_model(world, "m.zt", true);
    catalog_refresh(catalog);
    AWAIT(catalog_is_loaded(catalog));
    assert_string_equal(seen.text, "opened:m.zt showing:m.zt shown:m.zt loaded:m.zt ");
    seen.text[0] = '\0';
    world_model(world, "n.zt", true);
    world_command(world, "mv n.zt m.zt");
    generation_release(catalog_update(catalog, "m.zt"));
    assert_string_equal(seen.text, "opened:m.zt showing:m.zt dropped:m.zt shown:m.zt ");
    seen.text[0] = '\0';
    world_command(world, "rm m.zt");
    assert_null(catalog_update(catalog, "m.zt"));
    assert_string_equal(seen.text, "dropped:m.zt ");
    catalog_free(catalog);
}

TEST_ON(struct world *world, names_stand_for_the_first_extension)
{
    struct generation *found;
    struct generation *other;
    struct flag flag;

    flag_init(&flag);
    world_command(world, "echo 1 > m.npy; echo 2 > m.safetensors");
    world_load(world);
    found = world_find(world, "m");
    assert_string_equal(found->path, "m.safetensors");
    generation_release(found);
    world_add(world, "m.zt", true);
    found = world_find(world, "m");
    assert_string_equal(found->path, "m.zt");
    assert_int_equal(
        catalog_find_path(world->server.catalog, text_of("m.npy"), &flag.waiter, &other),
        CATALOG_FOUND);
    assert_string_equal(other->path, "m.npy");
    generation_release(other);
    generation_release(found);
}

TEST_ON(struct world *world, files_that_did_not_change_keep_their_generation)
{
    struct generation *before;
    struct generation *after;

    world_model(world, "m.zt", true);
    world_load(world);
    before = world_find(world, "m");
    world_model(world, "n.zt", true);
    catalog_refresh(world->server.catalog);
    assert_comes(world, "n", true);
    after = world_find(world, "m");
    assert_ptr_equal(before, after);
    generation_release(after);
    after = catalog_update(world->server.catalog, "m.zt");
    assert_ptr_equal(before, after);
    generation_release(after);
    generation_release(before);
}

TEST_ON(struct world *world, files_changed_in_place_are_never_served_as_before)
{
    struct generation *before;
    struct generation *after;

    world_model(world, "m.zt", true);
    world_load(world);
    before = world_find(world, "m");
    world_command(world, "printf x >> m.zt");
    after = world_find(world, "m");
    assert_ptr_not_equal(before, after);
    assert_null(after->model);
    assert_true(atomic_load(&before->retired));
    assert_false(atomic_load(&after->retired));
    generation_release(after);
    generation_release(before);
}

TEST_ON(struct world *world, removed_models_stay_readable_while_they_are_held)
{
    struct generation *held;
    uint8_t byte;

    world_model(world, "m.zt", true);
    world_load(world);
    held = world_find(world, "m");
    assert_int_equal(world->server.store->ops->remove(world->server.store, "m.zt",
                                                      &store_expects_anything, NULL),
                     ZT_OK);
    assert_null(catalog_update(world->server.catalog, "m.zt"));
    assert_null(world_find(world, "m"));
    assert_int_equal(zt_source_read_at(held->source, 64, &byte, 1, NULL), ZT_OK);
    generation_release(held);
}

TEST_ON(struct world *world, unreadable_files_are_listed_with_their_error)
{
    struct generation *found;

    world_command(world, "echo nonsense > m.zt; touch e.zt");
    world_load(world);
    found = world_find(world, "m");
    assert_non_null(found);
    assert_null(found->model);
    generation_release(found);
    found = world_find(world, "e");
    assert_non_null(found);
    assert_null(found->model);
    generation_release(found);
}

TEST_ON(struct world *world, data_shards_are_found_by_path_only)
{
    struct generation *found;
    struct generation *list[2];
    struct flag flag;
    bool more;
    uint8_t shard[4096 + 40] = {0};

    flag_init(&flag);
    memcpy(shard, "ZTEN2000", 8);
    world_write(world, "s.zt", shard, sizeof(shard));
    world_load(world);
    assert_int_equal(
        catalog_find_path(world->server.catalog, text_of("s.zt"), &flag.waiter, &found),
        CATALOG_FOUND);
    /* Made by hand: recognising such files is tested in the core. */
    ((struct zt_error *)(uintptr_t)found->error)->status = ZT_DATA_SHARD;
    generation_release(found);
    assert_null(world_find(world, "s"));
    assert_int_equal(world_list(world, (struct world_bounds){"", ""}, 2, list, &more), 0);
}

TEST_ON(struct world *world, changes_are_noticed_without_a_request)
{
    struct store *store = world->server.store;
    int descriptor = store->ops->watch(store);

    assert_true(descriptor >= 0);
    world_load(world);
    world_command(world, "mkdir -p d/e");
    if (store->ops->changed(store))
        catalog_refresh(world->server.catalog);
    world_model(world, "d/e/m.zt", true);
    for (int i = 0; i < 300; i++) {
        struct generation *found = world_find(world, "d/e/m");

        generation_release(found);
        if (found != NULL)
            return;
        if (store->ops->changed(store))
            catalog_refresh(world->server.catalog);
        pause_ms(10);
    }
    fail_msg("the new model was not noticed");
}

TEST_ON(struct world *world, more_models_than_descriptors_are_all_served)
{
    struct rlimit few;
    char name[16];

    few = (struct rlimit){120, limit_before.rlim_max};
    world_model(world, "m.zt", true);
    world_command(world, "for i in $(seq 1 400); do ln m.zt m$i.zt; done");
    world_stop(world);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    world_start(world);
    world_load(world);
    for (int i = 800; i > 0; i--) {
        struct generation *found;

        snprintf(name, sizeof(name), "m%d", i % 400 + 1);
        found = world_find(world, name);
        assert_non_null(found);
        assert_non_null(found->model);
        assert_int_equal(zt_source_size(found->source), found->identity.size_bytes);
        generation_release(found);
    }
    /* Those that were parked and then removed are gone all the same. */
    world_command(world, "rm m7.zt");
    generation_release(catalog_update(world->server.catalog, "m7.zt"));
    assert_null(world_find(world, "m7"));
}

/* A world of count models, m0.zt and on, in which the process may have so few descriptors. */
static void few_descriptors(struct world *world, rlim_t descriptors, unsigned count)
{
    struct rlimit few = {descriptors, 0};
    char name[16];

    few.rlim_max = limit_before.rlim_max;
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "m%u.zt", i);
        world_model(world, name, true);
    }
    world_stop(world);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    world_start(world);
    world_load(world);
}

static struct generation *find_number(struct world *world, unsigned number)
{
    char name[16];
    struct generation *found;

    snprintf(name, sizeof(name), "m%u", number);
    found = world_find(world, name);
    assert_non_null(found);
    assert_false(atomic_load(&found->parked));
    return found;
}

TEST_ON(struct world *world, what_is_asked_for_often_stays_open)
{
    size_t most;
    struct generation *hot;

    few_descriptors(world, 120, 200);
    hot = find_number(world, 0);
    generation_release(hot);
    for (unsigned i = 0; i < 400; i++) {
        generation_release(find_number(world, 1 + i % 199));
        assert_true(catalog_open_files(world->server.catalog, &most) <= most + 1);
        /* Its reference is released: looked at, but not held. */
        assert_false(atomic_load(&hot->parked));
        generation_release(find_number(world, 0));
    }
    assert_true(most < 60);
}

static bool see_none(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    fail_msg("a file is listed");
    return false;
}

TEST_ON(struct world *world, a_process_without_descriptors_keeps_what_it_knows)
{
    struct generation *found;
    struct generation *list[40];
    bool more;
    int taken[128];
    int count = 0;

    few_descriptors(world, 120, 40);
    while (count < 128 && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    assert_int_equal(errno, EMFILE);
    /* Files that nobody reads make room. */
    generation_release(find_number(world, 1));
    world_command(world, "touch m1.zt");
    found = catalog_update(world->server.catalog, "m1.zt");
    assert_non_null(found);
    assert_non_null(found->model);
    generation_release(found);
    while (count < 128 && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    /* A scan cannot read the folder, and does not take it for empty. */
    assert_int_not_equal(world->server.store->ops->list(world->server.store, see_none, NULL, NULL),
                         ZT_OK);
    catalog_refresh(world->server.catalog);
    pause_ms(100);
    assert_int_equal(world_list(world, (struct world_bounds){"", ""}, 40, list, &more), 40);
    for (int i = 0; i < 40; i++) {
        assert_non_null(list[i]->model);
        generation_release(list[i]);
    }
    while (count > 0)
        close(taken[--count]);
}

TEST_ON(struct world *world, those_who_wait_hold_no_files_open)
{
    struct generation *held[100];
    size_t most;

    few_descriptors(world, 120, 100);
    for (unsigned i = 0; i < 100; i++) {
        held[i] = find_number(world, i);
        parking_hold_idle(held[i]);
        generation_release(held[i]);
    }
    assert_true(catalog_open_files(world->server.catalog, &most) <= most + 1);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(catalog_hold_open(world->server.catalog, held[i]));
        assert_non_null(held[i]->source);
        generation_release(held[i]);
        parking_release_idle(held[i]);
    }
    assert_true(catalog_open_files(world->server.catalog, &most) <= most + 1);
}

/* Of the same length and with the same time, whether it replaces the file or is written into it. */
TEST_ON(struct world *world, a_parked_file_that_changed_is_not_taken_for_the_old_one)
{
    few_descriptors(world, 120, 100);
    for (unsigned i = 0; i < 2; i++) {
        struct generation *known = find_number(world, i);
        struct generation *found;
        char etag[GENERATION_ETAG_SIZE];
        uint8_t first[1];
        char command[200];

        strcpy(etag, known->etag);
        parking_hold_idle(known);
        generation_release(known);
        for (unsigned other = 10; other < 100; other++)
            generation_release(find_number(world, other));
        for (unsigned other = 10; other < 100; other++)
            generation_release(find_number(world, other));
        assert_true(atomic_load(&known->parked));
        snprintf(command, sizeof(command),
                 "cp -p m%u.zt old; %s; printf x | dd of=m%u.zt bs=1 seek=64 conv=notrunc "
                 "status=none; touch -r old m%u.zt; rm old",
                 i, i == 0 ? "true" : "cp -p m1.zt new; mv new m1.zt", i, i);
        world_command(world, command);
        /* Neither for those who have it already and want to read it. */
        assert_false(catalog_hold_open(world->server.catalog, known));
        found = find_number(world, i);
        assert_string_not_equal(found->etag, etag);
        assert_int_equal(zt_source_read_at(found->source, 64, first, 1, NULL), ZT_OK);
        assert_int_equal(first[0], 'x');
        assert_true(atomic_load(&known->retired));
        generation_release(found);
        parking_release_idle(known);
    }
}

struct asker {
    struct world *world;
    atomic_bool *stop;
};

static void *ask_on(void *argument)
{
    struct asker *asker = argument;
    struct generation *list[4];
    bool more;

    while (!atomic_load(asker->stop)) {
        struct generation *found = world_find(asker->world, "m");
        size_t count = world_list(asker->world, (struct world_bounds){"", ""}, 4, list, &more);

        for (size_t i = 0; i < count; i++)
            generation_release(list[i]);
        generation_release(found);
    }
    return NULL;
}

TEST_ON(struct world *world, readers_scans_and_updates_may_come_together)
{
    atomic_bool stop = false;
    struct asker asker = {world, &stop};
    pthread_t threads[2];

    world_model(world, "m.zt", true);
    world_load(world);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &asker), 0);
    for (int i = 0; i < 100; i++) {
        world_model(world, i % 2 ? "new.zt" : "n.zt", i % 3 != 0);
        catalog_refresh(world->server.catalog);
        generation_release(catalog_update(world->server.catalog, "n.zt"));
        world_command(world, "mv -f new.zt m.zt 2>/dev/null; true");
        pause_ms(2);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

#define OF_COMMIT "o/m@1111111111111111111111111111111111111111/w.zt"

static enum zt_status list_nothing(struct store *store, store_visit visit, void *context,
                                   struct zt_error *error)
{
    (void)store;
    (void)visit;
    (void)context;
    (void)error;
    return ZT_OK;
}

static bool has_model_of_commit(struct catalog_content *content)
{
    struct generation *found =
        catalog_content_find(content, catalog_index_find_path, text_of(OF_COMMIT));

    generation_release(found);
    return found != NULL;
}

/* The request for which it was opened comes after the scan. */
TEST_ON(struct world *world, a_model_of_a_commit_outlives_the_first_scan)
{
    static const struct store_revision_ops revisions;
    struct store *store = world->server.store;
    const struct store_ops *real = store->ops;
    struct store_ops ops = *real;
    struct catalog_content content = {0};
    struct catalog_file file = {0};

    world_command(world, "mkdir -p $(dirname " OF_COMMIT ")");
    world_model(world, OF_COMMIT, true);
    ops.list = list_nothing;
    store->ops = &ops;
    store->revisions = &revisions;
    catalog_content_init(&content, &world->server, NULL);
    file.path = strdup(OF_COMMIT);
    assert_int_equal(catalog_content_update(&content, &file, 1), 1);
    catalog_content_scan(&content);
    assert_true(has_model_of_commit(&content));
    catalog_content_scan(&content);
    assert_false(has_model_of_commit(&content));
    catalog_content_clear(&content);
    free(file.path);
    store->ops = real;
    store->revisions = NULL;
}
