/* Lists of keys: what is read for which prefix, and which lists serve further requests. */
#include "tree_world.h"

#include "base/clock.h"
#include "s3/s3api_key_list.h"

/* The store, counting its walks. */
static struct counted {
    struct store_ops ops;
    const struct store_ops *usual;
    unsigned walks;
    unsigned visits;
    int64_t pause_ms;
} counted;

struct visiting {
    store_visit visit;
    void *context;
};

static bool count_visit(void *context, const char *path, const struct file_identity *identity)
{
    const struct visiting *visiting = context;

    counted.visits++;
    return visiting->visit(visiting->context, path, identity);
}

static enum zt_status count_walk(struct store *store, const char *folder, bool is_deep,
                                 store_visit visit, void *context, struct zt_error *error)
{
    const int64_t until_ms = clock_ms() + counted.pause_ms;
    struct visiting visiting = {visit, context};

    counted.walks++;
    while (clock_ms() < until_ms)
        continue;
    return counted.usual->walk(store, folder, is_deep, count_visit, &visiting, error);
}

static int set_up_lists(void **state)
{
    const int result = set_up(state);
    struct world *world = *state;

    memset(&counted, 0, sizeof(counted));
    counted.usual = world->server.store->ops;
    counted.ops = *counted.usual;
    counted.ops.walk = count_walk;
    world->server.store->ops = &counted.ops;
    world->server.s3_lists = s3api_key_lists_new();
    assert_non_null(world->server.s3_lists);
    return result;
}

static int tear_down_lists(void **state)
{
    struct world *world = *state;

    memo_free(world->server.s3_lists);
    return tear_down(state);
}

#define WITH_LISTS(name) TEST_IN_WORLD(name, set_up_lists, tear_down_lists)

/* Returns the keys, each with a blank. */
static const char *keys_of(struct world *world, const char *prefix, bool is_level,
                           bool is_continued)
{
    static char text[4096];
    struct s3api_key_lookup lookup;

    s3api_key_lookup_begin(&world->server, zt_text_from(prefix), is_level, is_continued, &lookup);
    assert_true(s3api_key_lookup_run(&world->server, &lookup));
    text[0] = '\0';
    for (size_t i = 0; i < lookup.list->count; i++) {
        const struct s3api_key *key = &lookup.list->keys[i];

        assert_int_equal(key->length, strlen(key->text));
        assert_int_equal(key->is_folder, key->text[key->length - 1] == '/');
        strcat(strcat(text, key->text), " ");
    }
    s3api_key_lookup_end(&lookup);
    return text;
}

WITH_LISTS(keys_are_read_by_prefix_in_order)
{
    static const struct {
        const char *prefix;
        bool is_level;
        const char *expected;
    } rows[] = {
        {"", true, "a.zt a/ ab-c ab/ abc/ b "},
        {"", false, "a.zt a/b/c a/b/d ab-c ab/x abc/y b "},
        {"a/", true, "a/b/ "},
        {"a/b/", false, "a/b/c a/b/d "},
        {"ab", false, "a.zt ab-c ab/x abc/y b "},
        {"ab-", false, "a.zt ab-c b "},
        {"a/b", false, "a/b/c a/b/d "},
        {"a/b/d", false, "a/b/c a/b/d "},
        {"zzz", false, "a.zt ab-c b "},
        {"none/", false, ""},
        {"none/x", true, ""},
        {"b/", false, ""},
        {"b/", true, ""},
        {"/", false, ""},
        {"//", true, ""},
        {"a//", false, ""},
        {"a//", true, ""},
        {"../", false, ""},
        {"../", true, ""},
        {".hidden/", true, ""},
        {".h", false, "a.zt ab-c b "},
    };

    command(world, "mkdir -p a/b/e ab abc .hidden a/.git ../outside; touch a/b/c a/b/d ab/x abc/y "
                   "ab-c a.zt b .hidden/x a/.git/x .h ../outside/o");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(keys_of(world, rows[i].prefix, rows[i].is_level, false),
                            rows[i].expected);
}

WITH_LISTS(prefixes_that_no_key_can_have_are_empty)
{
    struct s3api_key_lookup lookup;
    char prefix[2 * MODEL_PATH_SIZE];

    command(world, "mkdir -p a; touch a/x");
    memset(prefix, 'a', sizeof(prefix));
    prefix[1] = '/';
    for (int is_level = 0; is_level <= 1; is_level++) {
        s3api_key_lookup_begin(&world->server, (struct zt_text){prefix, sizeof(prefix)}, is_level,
                               false, &lookup);
        assert_true(s3api_key_lookup_run(&world->server, &lookup));
        s3api_key_lookup_end(&lookup);
        s3api_key_lookup_begin(&world->server, (struct zt_text){"a\0/", 3}, is_level, false,
                               &lookup);
        assert_true(s3api_key_lookup_run(&world->server, &lookup));
        assert_int_equal(lookup.list->count, 0);
        s3api_key_lookup_end(&lookup);
    }
    assert_string_equal(keys_of(world, "a/", true, false), "a/x ");
}

WITH_LISTS(a_level_reads_only_its_folder)
{
    command(world, "mkdir -p big/sub small; cd big/sub; touch $(seq 500); touch ../../small/x");
    assert_string_equal(keys_of(world, "", true, false), "big/ small/ ");
    assert_int_equal(counted.visits, 2);
    assert_string_equal(keys_of(world, "small/x", false, false), "small/x ");
    assert_int_equal(counted.visits, 3);
    assert_string_equal(keys_of(world, "sma", false, false), "small/x ");
    assert_int_equal(counted.visits, 6);
}

WITH_LISTS(further_pages_read_nothing)
{
    command(world, "mkdir a; touch a/x");
    for (int i = 0; i < 5; i++)
        assert_string_equal(keys_of(world, "", false, i > 0), "a/x ");
    /* All five take much less than a second; if the machine sleeps, a list may be read again. */
    assert_true(counted.walks < 5);
    (void)keys_of(world, "", true, false);
    (void)keys_of(world, "x", true, false);
    assert_true(counted.walks < 7);
}

WITH_LISTS(published_files_are_listed_at_once)
{
    assert_string_equal(keys_of(world, "", false, false), "");
    command(world, "touch x");
    atomic_fetch_add(&world->server.files_changed, 1);
    assert_string_equal(keys_of(world, "", false, false), "x ");
    command(world, "touch y");
    atomic_fetch_add(&world->server.files_changed, 1);
    assert_string_equal(keys_of(world, "", false, true), "x y ");
}

WITH_LISTS(slow_lists_serve_further_pages_while_files_are_published)
{
    counted.pause_ms = 200;
    command(world, "touch x");
    for (int i = 0; i < 9; i++) {
        atomic_fetch_add(&world->server.files_changed, 1);
        assert_string_equal(keys_of(world, "", false, i > 0), "x ");
    }
    assert_true(counted.walks < 9);
    command(world, "touch y");
    atomic_fetch_add(&world->server.files_changed, 1);
    assert_string_equal(keys_of(world, "", false, false), "x y ");
}

WITH_LISTS(requests_wait_for_a_list_that_is_being_made)
{
    struct s3api_key_lookup first;
    struct s3api_key_lookup second;
    struct s3api_key_list *list;
    struct waiter waiter = {.wake = NULL};

    s3api_key_lookup_begin(&world->server, zt_text_from("a"), false, false, &first);
    s3api_key_lookup_begin(&world->server, zt_text_from("a"), false, false, &second);
    list = memo_hold(world->server.s3_lists, zt_text_from("Da"));
    assert_int_equal(memo_ask(list, 1, NULL, NULL), MEMO_MAKE);
    assert_false(s3api_key_lookup_run(&world->server, &first));
    assert_true(first.is_busy);
    memo_fail(list, &(struct zt_error){.status = ZT_IO}, MEMO_NOT_KEPT, 0);
    assert_false(s3api_key_lookup_wait(&first, &waiter));
    assert_false(s3api_key_lookup_run(&world->server, &first));
    assert_false(first.is_busy);
    assert_int_equal(first.error.status, ZT_IO);
    memo_release(list);
    memo_release(list);
    assert_true(s3api_key_lookup_run(&world->server, &second));
    s3api_key_lookup_end(&second);
}

static enum zt_status fail_walk(struct store *store, const char *folder, bool is_deep,
                                store_visit visit, void *context, struct zt_error *error)
{
    (void)store;
    (void)folder;
    (void)is_deep;
    (void)visit;
    (void)context;
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "away");
}

WITH_LISTS(failures_are_not_kept)
{
    struct s3api_key_lookup lookup;

    command(world, "touch x");
    counted.ops.walk = fail_walk;
    s3api_key_lookup_begin(&world->server, zt_text_from(""), false, false, &lookup);
    assert_false(s3api_key_lookup_run(&world->server, &lookup));
    assert_true(!lookup.is_busy && lookup.list == NULL);
    assert_int_equal(lookup.error.status, ZT_UNAVAILABLE);
    counted.ops.walk = count_walk;
    assert_string_equal(keys_of(world, "", false, false), "x ");
}
