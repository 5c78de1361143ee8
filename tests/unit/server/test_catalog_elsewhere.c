/* The catalog over a store that is elsewhere: a folder that is slow, away, or has lost a version,
 * as a test wants it. */
#include "model_world.h"

static struct {
    struct store_ops ops;
    const struct store_ops *folder;
    atomic_bool is_away;  /* opens and lists fail */
    atomic_bool is_stale; /* opens fail until the store was asked for the name */
    atomic_bool may_seek;
    atomic_uint sought;
    atomic_uint opened;
    atomic_uint opening;
    atomic_uint most;
    unsigned slow_ms;
} elsewhere;

static void count_openers(void)
{
    const unsigned now = atomic_fetch_add(&elsewhere.opening, 1) + 1;
    unsigned most = atomic_load(&elsewhere.most);

    while (now > most && !atomic_compare_exchange_weak(&elsewhere.most, &most, now))
        ;
    pause_ms((long)elsewhere.slow_ms);
    atomic_fetch_sub(&elsewhere.opening, 1);
}

static enum zt_status open_slowly(struct store *store, const char *path,
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error)
{
    atomic_fetch_add(&elsewhere.opened, 1);
    count_openers();
    if (atomic_load(&elsewhere.is_away))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "away");
    if (atomic_load(&elsewhere.is_stale))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "stale");
    return elsewhere.folder->open(store, path, out_source, out_identity, error);
}

static enum zt_status list_unless_away(struct store *store,
                                       bool (*visit)(void *context, const char *path,
                                                     const struct file_identity *identity),
                                       void *context, struct zt_error *error)
{
    if (atomic_load(&elsewhere.is_away) && elsewhere.slow_ms == 0)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "away");
    return elsewhere.folder->list(store, visit, context, error);
}

static enum zt_status claim_nothing(struct store *store, struct zt_text name, int64_t by_ms,
                                    struct store_claim **out_claim, struct zt_error *error)
{
    (void)store;
    (void)name;
    (void)by_ms;
    (void)out_claim;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "not in tests");
}

static bool may_seek(struct store *store, struct zt_text name)
{
    (void)store;
    (void)name;
    return atomic_exchange(&elsewhere.may_seek, false);
}

/* Finds NAME.zt. */
static enum zt_status seek(struct store *store, struct zt_text name,
                           bool (*visit)(void *context, const char *path,
                                         const struct file_identity *identity),
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
    *out_report = (struct store_report){.is_away = atomic_load(&elsewhere.is_away)};
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

static enum zt_status write_no_fact(struct store *store, const struct file_identity *identity,
                                    const char *kind, const char *text, size_t length,
                                    struct zt_error *error)
{
    (void)store;
    (void)identity;
    (void)kind;
    (void)text;
    (void)length;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "not in tests");
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
    elsewhere.ops.claim = claim_nothing;
    elsewhere.ops.may_seek = may_seek;
    elsewhere.ops.seek = seek;
    elsewhere.ops.report = report;
    elsewhere.ops.read_fact = read_no_fact;
    elsewhere.ops.write_fact = write_no_fact;
    world->server.store->ops = &elsewhere.ops;
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

static void files_are_opened_several_at_a_time(void **state)
{
    struct world *world = *state;
    char name[16];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "m%d.zt", i);
        world_model(world, name, true);
    }
    elsewhere.slow_ms = 20;
    world_wait_loaded(world);
    assert_true(atomic_load(&elsewhere.most) > 8);
    assert_true(atomic_load(&elsewhere.most) <= 17);
    assert_int_equal(ask(world, "m0"), CATALOG_FOUND);
    assert_int_equal(ask(world, "m39"), CATALOG_FOUND);
}

static void a_store_that_is_away_takes_nothing_back(void **state)
{
    struct world *world = *state;
    struct generation *known;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    known = world_find(world, "m");
    assert_non_null(known);
    atomic_store(&elsewhere.is_away, true);
    world_command(world, "rm m.zt");
    catalog_refresh(world->server.catalog);
    pause_ms(100);
    assert_false(atomic_load(&known->retired));
    atomic_store(&elsewhere.is_away, false);
    catalog_refresh(world->server.catalog);
    while (!atomic_load(&known->retired))
        pause_ms(5);
    generation_release(known);
}

static void a_changed_file_of_a_store_that_is_away_is_unavailable(void **state)
{
    struct world *world = *state;
    unsigned opened;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    atomic_store(&elsewhere.is_away, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    world_overwrite(world, "m.zt", 64);
    pause_ms(60);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    /* It is not opened for each request. */
    opened = atomic_load(&elsewhere.opened);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(atomic_load(&elsewhere.opened), opened);
    atomic_store(&elsewhere.is_away, false);
    pause_ms(1100);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
}

static void a_file_that_was_never_opened_is_unavailable_until_it_is(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    /* The list is known, from before. */
    elsewhere.slow_ms = 1;
    atomic_store(&elsewhere.is_away, true);
    world_wait_loaded(world);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "other"), CATALOG_UNAVAILABLE);
    atomic_store(&elsewhere.is_away, false);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "other"), CATALOG_NOT_FOUND);
    atomic_store(&elsewhere.may_seek, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
}

static void without_a_list_nothing_is_missing(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    atomic_store(&elsewhere.is_away, true);
    assert_int_equal(ask(world, "m"), CATALOG_UNAVAILABLE);
    assert_int_equal(ask(world, "n"), CATALOG_UNAVAILABLE);
    assert_false(catalog_is_loaded(world->server.catalog));
    atomic_store(&elsewhere.is_away, false);
    world_wait_loaded(world);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(ask(world, "n"), CATALOG_NOT_FOUND);
}

static void an_unknown_name_is_sought_before_it_is_missing(void **state)
{
    struct world *world = *state;

    world_wait_loaded(world);
    world_model(world, "m.zt", true);
    assert_int_equal(ask(world, "m"), CATALOG_NOT_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 0);
    atomic_store(&elsewhere.may_seek, true);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 1);
    atomic_store(&elsewhere.may_seek, true);
    assert_int_equal(ask(world, "n"), CATALOG_NOT_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 2);
}

static void a_lost_version_is_looked_for_again_at_once(void **state)
{
    struct world *world = *state;

    world_model(world, "m.zt", true);
    world_wait_loaded(world);
    world_overwrite(world, "m.zt", 64);
    atomic_store(&elsewhere.is_stale, true);
    pause_ms(60);
    assert_int_equal(ask(world, "m"), CATALOG_FOUND);
    assert_int_equal(atomic_load(&elsewhere.sought), 1);
}

#define ELSEWHERE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ELSEWHERE_TEST(files_are_opened_several_at_a_time),
        ELSEWHERE_TEST(a_store_that_is_away_takes_nothing_back),
        ELSEWHERE_TEST(a_changed_file_of_a_store_that_is_away_is_unavailable),
        ELSEWHERE_TEST(a_file_that_was_never_opened_is_unavailable_until_it_is),
        ELSEWHERE_TEST(without_a_list_nothing_is_missing),
        ELSEWHERE_TEST(an_unknown_name_is_sought_before_it_is_missing),
        ELSEWHERE_TEST(a_lost_version_is_looked_for_again_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
