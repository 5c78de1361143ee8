/* The catalog over a store that is elsewhere: a folder that is slow, away, or has lost a version,
 * as a test wants it. */
#include "model_world.h"
#include "tests.h"

static struct {
    struct store_ops ops;
    struct store_search_ops search;
    struct store_claim_ops claims;
    const struct store_ops *folder;
    atomic_bool is_unreachable; /* opens and lists fail */
    atomic_bool is_stale;       /* opens fail until the store was asked for the name */
    atomic_bool may_look_up;
    atomic_uint sought;
    atomic_uint opened;
    atomic_uint opening;
    atomic_uint most;
    unsigned slow_ms;
    unsigned least_beside; /* opens wait until so many were open at once */
} elsewhere;

static void count_openers(void)
{
    const unsigned now = atomic_fetch_add(&elsewhere.opening, 1) + 1;
    unsigned most = atomic_load(&elsewhere.most);

    while (now > most && !atomic_compare_exchange_weak(&elsewhere.most, &most, now))
        ;
    if (elsewhere.least_beside > 0)
        AWAIT(atomic_load(&elsewhere.most) >= elsewhere.least_beside);
    pause_ms(elsewhere.slow_ms);
    atomic_fetch_sub(&elsewhere.opening, 1);
}

static enum zt_status open_slowly(struct store *store, const char *path,
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error)
{
    atomic_fetch_add(&elsewhere.opened, 1);
    count_openers();
    if (atomic_load(&elsewhere.is_unreachable))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "away");
    if (atomic_load(&elsewhere.is_stale))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "stale");
    return elsewhere.folder->open(store, path, out_source, out_identity, error);
}

static enum zt_status list_unless_away(struct store *store, store_visit visit, void *context,
                                       struct zt_error *error)
{
    if (atomic_load(&elsewhere.is_unreachable) && elsewhere.slow_ms == 0)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "away");
    return elsewhere.folder->list(store, visit, context, error);
}

static bool may_look_up(struct store *store, struct zt_text name)
{
    (void)store;
    (void)name;
    return atomic_exchange(&elsewhere.may_look_up, false);
}

/* Finds NAME.zt. */
static enum zt_status seek(struct store *store, struct zt_text name, store_visit visit,
                           void *context, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct file_identity identity;
    char path[300];

    atomic_fetch_add(&elsewhere.sought, 1);
    atomic_store(&elsewhere.is_stale, false);
    snprintf(path, sizeof(path), "%.*s.zt", (int)name.length, name.bytes);
    if (elsewhere.folder->open(store, path, &source, &identity, error) == ZT_OK) {
        visit(context, path, &identity);
        zt_source_close(source);
    }
    return ZT_OK;
}

static void report(struct store *store, struct store_report *out_report)
{
    (void)store;
    *out_report = (struct store_report){.is_unreachable = atomic_load(&elsewhere.is_unreachable)};
}

static enum zt_status read_no_fact(struct store *store, const struct file_identity *identity,
                                   const char *kind, char **out_text, size_t *out_length,
                                   struct zt_error *error)
{
    (void)store;
    (void)identity;
    (void)kind;
    (void)out_text;
    (void)out_length;
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "none");
}

/* Makes the world's folder a store that is elsewhere. */
static int set_up(void **state)
{
    struct world *world;

    memset(&elsewhere, 0, sizeof(elsewhere));
    (void)world_set_up(state);
    world = *state;
    elsewhere.folder = world->server.store->ops;
    elsewhere.ops = *elsewhere.folder;
    elsewhere.ops.open = open_slowly;
    elsewhere.ops.list = list_unless_away;
    elsewhere.search.may_look_up = may_look_up;
    elsewhere.search.look_up = seek;
    elsewhere.search.report = report;
    elsewhere.claims.read_fact = read_no_fact;
    world->server.store->ops = &elsewhere.ops;
    world->server.store->search = &elsewhere.search;
    world->server.store->claims = &elsewhere.claims;
    return 0;
}

static enum catalog_answer ask(struct world *world, const char *name)
{
    struct generation *found = NULL;
    enum catalog_answer answer;
    struct flag flag;

    flag_init(&flag);
    while ((answer = catalog_find(world->server.catalog, text_of(name), &flag.waiter, &found)) ==
           CATALOG_PENDING)
        flag_wait(&flag);
    if (answer == CATALOG_FOUND)
        generation_release(found);
    return answer;
}

AROUND_EACH_TEST(set_up, world_tear_down)

TEST_ON(struct world *world, files_are_opened_several_at_a_time)
{
    char name[16];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "m%d.zt", i);
        world_model(world, name, true);
    }
    elsewhere.least_beside = 9;
    world_wait_loaded(world);
    assert_true(atomic_load(&elsewhere.most) <= 17);
    assert_int_equal(ask(world, "m0"), CATALOG_FOUND);
    assert_int_equal(ask(world, "m39"), CATALOG_FOUND);
}

TEST_ON(struct world *world, a_store_that_is_away_takes_nothing_back)
{
    struct generation *known;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    known = world_find(world, "m");
    assert_non_null(known);
    atomic_store(&elsewhere.is_unreachable, true);
    world_command(world, "rm m.zt");
    catalog_refresh(world->server.catalog);
    pause_ms(100);
    assert_false(atomic_load(&known->retired));
    atomic_store(&elsewhere.is_unreachable, false);
    catalog_refresh(world->server.catalog);
    AWAIT(atomic_load(&known->retired));
    generation_release(known);
}

TEST_ON(struct world *world, a_changed_file_of_a_store_that_is_away_is_unavailable)
{
    unsigned opened;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    atomic_store(&elsewhere.is_unreachable, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    world_overwrite(world, "m.zt", 64);
    pause_ms(60);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    /* It is not opened for each request. */
    opened = atomic_load(&elsewhere.opened);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(atomic_load(&elsewhere.opened), opened);
    atomic_store(&elsewhere.is_unreachable, false);
    AWAIT(ask(world, "m") == CATALOG_FOUND);
}

TEST_ON(struct world *world, a_file_that_was_never_opened_is_unavailable_until_it_is)
{
    world_model(world, "m.zt", true);
    /* The list is known, from before. */
    elsewhere.slow_ms = 1;
    atomic_store(&elsewhere.is_unreachable, true);
    world_wait_loaded(world);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "other"), CATALOG_UNAVAILABLE);
    atomic_store(&elsewhere.is_unreachable, false);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "other"), CATALOG_NOT_FOUND);
    atomic_store(&elsewhere.may_look_up, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
}

TEST_ON(struct world *world, without_a_list_nothing_is_missing)
{
    world_model(world, "m.zt", true);
    atomic_store(&elsewhere.is_unreachable, true);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "n"), CATALOG_UNAVAILABLE);
    assert_false(catalog_is_loaded(world->server.catalog));
    atomic_store(&elsewhere.is_unreachable, false);
    world_wait_loaded(world);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(ask(world, "n"), CATALOG_NOT_FOUND);
}

TEST_ON(struct world *world, an_unknown_name_is_sought_before_it_is_missing)
{
    world_wait_loaded(world);
    world_model(world, "m.zt", true);
    assert_int_equal(ask(world, "m"), CATALOG_NOT_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 0);
    atomic_store(&elsewhere.may_look_up, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 1);
    atomic_store(&elsewhere.may_look_up, true);
    assert_int_equal(ask(world, "n"), CATALOG_NOT_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 2);
}

TEST_ON(struct world *world, a_lost_version_is_looked_for_again_at_once)
{
    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    world_overwrite(world, "m.zt", 64);
    atomic_store(&elsewhere.is_stale, true);
    pause_ms(60);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 1);
}
