/* The reading side of the store of a bucket: what is known of its files, and sources that never mix
 * two versions. */
#include "fake_remote.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/workers.h"
#include "store/s3/s3_listing.h"

struct world {
    struct s3_store store;
    struct config config;
    char folder[64];
};

static uint8_t first_bytes[3 << 20];
static uint8_t other_bytes[3 << 20];

static void open_world(struct world *world)
{
    struct s3_store *store = &world->store;
    const struct cache_options options = {.folder = world->folder, .workers = store->workers};
    struct zt_error error;

    store->listing = s3_listing_new();
    assert_non_null(store->listing);
    assert_ok(cache_open(&options, &store->cache, &error));
}

static void close_world(struct world *world)
{
    cache_close(world->store.cache);
    s3_listing_free(world->store.listing);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    for (size_t i = 0; i < sizeof(first_bytes); i++) {
        first_bytes[i] = (uint8_t)(i * 7 + i / 4096);
        other_bytes[i] = (uint8_t)(i * 5 + 1);
    }
    strcpy(world->folder, "/tmp/zt-test-s3-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    config_defaults(&world->config);
    fake_bucket(&world->store.bucket, "");
    world->store.config = &world->config;
    world->store.folder = world->folder;
    world->store.workers = workers_start(2);
    open_world(world);
    fake.objects[0] = (struct fake_object){"m.zt", "v1", first_bytes, sizeof(first_bytes)};
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char command[128];

    close_world(world);
    workers_stop(world->store.workers);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

struct visited {
    char paths[512];
    size_t count;
    struct file_identity last;
};

static bool visit(void *context, const char *path, const struct file_identity *identity)
{
    struct visited *visited = context;

    visited->count++;
    visited->last = *identity;
    strcat(strcat(visited->paths, path), ";");
    return true;
}

static struct visited list_ok(struct world *world)
{
    struct visited visited = {.count = 0};
    struct zt_error error;

    atomic_store(&world->store.bucket.was_reached, true);
    assert_ok(s3_list(&world->store.base, visit, &visited, &error));
    return visited;
}

static struct zt_source *open_ok(struct world *world, const char *path,
                                 struct file_identity *out_identity)
{
    struct zt_source *source = NULL;
    struct zt_error error;

    assert_ok(s3_open_file(&world->store.base, path, &source, out_identity, &error));
    return source;
}

static bool is_current(struct world *world, struct zt_source *source,
                       const struct file_identity *identity)
{
    struct file_identity now;

    assert_true(s3_identity_of(&world->store.base, source, &now));
    return store_identity_equal(&now, identity);
}

static enum zt_status read_byte(struct zt_source *source, uint64_t offset, uint8_t *out)
{
    struct zt_error error;

    return zt_source_read_at(source, offset, out, 1, &error);
}

/* The file m.zt as the tests open it, and what they read of it. */
static struct zt_source *source;
static struct file_identity identity;
static uint8_t byte;
static struct zt_error error;

static void open_m(struct world *world)
{
    (void)list_ok(world);
    source = open_ok(world, "m.zt", &identity);
}

#define PREPARED(name) TEST_IN_WORLD(name, set_up, tear_down)

/* --- lists --- */

PREPARED(only_what_can_be_a_model_is_listed_each_once)
{
    struct visited visited;

    fake.objects[1] = (struct fake_object){".ztserve/claims/x.zt", "e", first_bytes, 1};
    fake.objects[2] = (struct fake_object){"../up.zt", "e", first_bytes, 1};
    fake.objects[3] = (struct fake_object){"a//b.zt", "e", first_bytes, 1};
    fake.objects[4] = (struct fake_object){"A.ZT", "e", first_bytes, 1};
    fake.objects[5] = (struct fake_object){"readme.md", "e", first_bytes, 1};
    fake.objects[6] = (struct fake_object){"m.zt", "v2", first_bytes, 9};
    fake.objects[7] = (struct fake_object){"d/a.npz", "e", first_bytes, 1};
    visited = list_ok(world);
    assert_string_equal(visited.paths, "A.ZT;d/a.npz;m.zt;");
    /* Of the two versions of "m.zt", the one that a HEAD finds. */
    assert_int_equal(visited.last.size_bytes, fake.objects[0].length);
    assert_int_equal(s3_misnamed_files(&world->store.base), 1);
}

PREPARED(identities_are_of_etag_size_and_seconds)
{
    const struct file_identity one = bucket_identity("a", 1, 1);
    const struct file_identity others[] = {bucket_identity("b", 1, 1), bucket_identity("a", 2, 1),
                                           bucket_identity("a", 1, 2)};
    const struct file_identity same = bucket_identity("a", 1, 1);

    assert_true(store_identity_equal(&one, &same));
    for (size_t i = 0; i < 3; i++)
        assert_false(store_identity_equal(&one, &others[i]));
}

PREPARED(a_list_of_a_name_does_not_take_back_what_was_learned_since)
{
    const struct object_version published = {.etag = "v2", .size_bytes = 7, .modified_s = 5};
    const struct listed_object listed = {"m.zt", "v1", sizeof(first_bytes), 4};
    struct object_version known;
    uint64_t notes;

    list_ok(world);
    notes = s3_listing_notes(world->store.listing);
    s3_note_version(&world->store, "m.zt", &published);
    s3_listing_note_listed(world->store.listing, &listed, notes);
    assert_true(s3_known_version(&world->store, "m.zt", &known));
    assert_string_equal(known.etag, "v2");
    /* One that is begun later does. */
    fake.objects[0].etag = "v3";
    assert_ok(s3_look_up(&world->store.base, zt_text_from("m"), visit, &(struct visited){0},
                         &(struct zt_error){0}));
    assert_true(s3_known_version(&world->store, "m.zt", &known));
    assert_string_equal(known.etag, "v3");
}

PREPARED(a_version_whose_bytes_have_changed_is_none)
{
    struct file_identity again;
    struct zt_source *fresh;
    char command[256];

    open_m(world);
    assert_ok(read_byte(source, 0, &byte));
    zt_source_close(source);
    close_world(world);
    /* What is kept of it cannot be used, but what it was is known. */
    snprintf(command, sizeof(command),
             "printf X | dd of=$(echo %s/*.blocks) bs=1 seek=100 conv=notrunc status=none",
             world->folder);
    assert_int_equal(system(command), 0);
    open_world(world);
    list_ok(world);
    fake.objects[0].bytes = other_bytes;
    source = open_ok(world, "m.zt", &identity);
    assert_int_equal(read_byte(source, 1, &byte), ZT_STALE);
    assert_false(is_current(world, source, &identity));
    /* Opened again it is had as it is now. */
    fresh = open_ok(world, "m.zt", &again);
    assert_true(store_identity_equal(&identity, &again));
    assert_ok(read_byte(fresh, 1, &byte));
    assert_int_equal(byte, other_bytes[1]);
    assert_true(is_current(world, fresh, &identity));
    zt_source_close(fresh);
    zt_source_close(source);
}

PREPARED(a_list_that_fails_changes_nothing)
{
    struct visited visited = list_ok(world);

    fake.failure = REMOTE_FAILURE_TIMEOUT;
    assert_int_equal(s3_list(&world->store.base, visit, &visited, &error), ZT_UNAVAILABLE);
    source = open_ok(world, "m.zt", &identity);
    assert_true(is_current(world, source, &identity));
    zt_source_close(source);
}

PREPARED(what_was_written_during_a_list_is_kept)
{
    struct s3_entries entries = {NULL, 0, 0};
    const struct object_version written = {.etag = "w", .size_bytes = 5, .modified_s = 50};
    struct object_version known;
    const uint64_t notes = s3_listing_notes(world->store.listing);

    assert_true(s3_entries_add(&entries, "m.zt", "old", 1, 1));
    assert_true(s3_entries_add(&entries, "gone.zt", "old", 1, 1));
    s3_entries_sort(&entries);
    s3_note_version(&world->store, "m.zt", &written);
    s3_note_version(&world->store, "gone.zt", NULL);
    s3_note_version(&world->store, "new.zt", &written);
    s3_listing_replace(world->store.listing, &entries, notes, 0);
    assert_true(s3_known_version(&world->store, "m.zt", &known));
    assert_string_equal(known.etag, "w");
    assert_false(s3_known_version(&world->store, "gone.zt", &known));
    assert_true(s3_known_version(&world->store, "new.zt", &known));
    /* The next list knows better. */
    s3_listing_replace(world->store.listing, &entries, s3_listing_notes(world->store.listing), 0);
    assert_false(s3_known_version(&world->store, "m.zt", &known));
}

PREPARED(a_start_while_the_store_is_away_knows_the_last_list)
{
    struct visited visited = list_ok(world);
    struct store_report report;

    close_world(world);
    open_world(world);
    s3_saved_read(&world->store);
    fake.failure = REMOTE_FAILURE_CONNECT;
    atomic_store(&world->store.bucket.was_reached, false);
    memset(&visited, 0, sizeof(visited));
    assert_ok(s3_list(&world->store.base, visit, &visited, &error));
    assert_string_equal(visited.paths, "m.zt;");
    s3_report(&world->store.base, &report);
    assert_true(report.has_list);
    assert_false(report.was_reached);
    /* Only until it was listed: a list that fails is no list. */
    fake.failure = REMOTE_FAILURE_NONE;
    (void)list_ok(world);
    fake.failure = REMOTE_FAILURE_CONNECT;
    assert_int_equal(s3_list(&world->store.base, visit, &visited, &error), ZT_UNAVAILABLE);
}

PREPARED(a_damaged_or_foreign_saved_list_is_none)
{
    char path[128];
    struct stat about;
    int file;

    (void)list_ok(world);
    snprintf(path, sizeof(path), "%s/bucket-list", world->folder);
    file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &about), 0);
    for (off_t at = 0; at < about.st_size; at++) {
        char bits;

        assert_int_equal(pread(file, &bits, 1, at), 1);
        bits ^= 1;
        assert_int_equal(pwrite(file, &bits, 1, at), 1);
        close_world(world);
        open_world(world);
        s3_saved_read(&world->store);
        assert_false(s3_listing_has_list(world->store.listing));
        bits ^= 1;
        assert_int_equal(pwrite(file, &bits, 1, at), 1);
    }
    strcpy(world->store.bucket.prefix, "other/");
    s3_saved_read(&world->store);
    assert_false(s3_listing_has_list(world->store.listing));
    strcpy(world->store.bucket.prefix, "");
    s3_saved_read(&world->store);
    assert_true(s3_listing_has_list(world->store.listing));
    close(file);
}

/* --- sources --- */

PREPARED(opening_asks_nothing_and_reading_asks_for_one_version)
{
    unsigned asked;

    (void)list_ok(world);
    asked = fake.asked;
    source = open_ok(world, "m.zt", &identity);
    assert_int_equal(fake.asked, asked);
    assert_int_equal(identity.size_bytes, sizeof(first_bytes));
    assert_ok(read_byte(source, 2000000, &byte));
    assert_int_equal(byte, first_bytes[2000000]);
    assert_int_equal(fake.gets, 1);
    assert_string_equal(fake.last_fields, "if-match: v1;");
    assert_ok(read_byte(source, 2000001, &byte));
    assert_int_equal(fake.gets, 1);
    zt_source_close(source);
}

PREPARED(nothing_is_opened_that_is_not_known)
{
    assert_int_equal(s3_open_file(&world->store.base, "m.zt", &source, &identity, &error),
                     ZT_UNAVAILABLE);
    (void)list_ok(world);
    assert_int_equal(s3_open_file(&world->store.base, "n.zt", &source, &identity, &error),
                     ZT_NOT_FOUND);
}

/* The file is replaced, as other does; then a block is wanted. */
static void assert_stale(struct world *world)
{
    struct visited visited = {.count = 0};

    open_m(world);
    assert_ok(read_byte(source, 0, &byte));
    assert_true(is_current(world, source, &identity));
    fake.objects[0].etag = "v2";
    fake.objects[0].bytes = other_bytes;
    assert_int_equal(read_byte(source, 2000000, &byte), ZT_STALE);
    assert_false(is_current(world, source, &identity));
    zt_source_close(source);
    assert_int_equal(s3_open_file(&world->store.base, "m.zt", &source, &identity, &error),
                     ZT_STALE);
    assert_ok(s3_look_up(&world->store.base, zt_text_from("m"), visit, &visited, &error));
    assert_string_equal(visited.paths, "m.zt;");
    source = open_ok(world, "m.zt", &identity);
    assert_ok(read_byte(source, 2000000, &byte));
    assert_int_equal(byte, other_bytes[2000000]);
    zt_source_close(source);
}

PREPARED(a_replaced_file_is_stale_and_its_successor_is_found)
{
    assert_stale(world);
}

PREPARED(another_versions_bytes_are_not_taken_for_this_ones)
{
    fake.ignores_conditions = true;
    assert_stale(world);
}

PREPARED(a_removed_file_is_stale_and_then_gone)
{
    struct visited visited = {.count = 0};

    open_m(world);
    fake.objects[0].key = "other.zt";
    assert_int_equal(read_byte(source, 0, &byte), ZT_STALE);
    zt_source_close(source);
    assert_ok(s3_look_up(&world->store.base, zt_text_from("m"), visit, &visited, &error));
    assert_int_equal(visited.count, 0);
    assert_int_equal(s3_open_file(&world->store.base, "m.zt", &source, &identity, &error),
                     ZT_NOT_FOUND);
}

PREPARED(answers_of_the_wrong_shape_are_no_bytes)
{
    open_m(world);
    fake.ignores_ranges = true;
    assert_int_equal(read_byte(source, 0, &byte), ZT_UNAVAILABLE);
    assert_true(is_current(world, source, &identity));
    fake.ignores_ranges = false;
    fake.objects[0].length--;
    assert_int_equal(read_byte(source, 0, &byte), ZT_UNAVAILABLE);
    fake.objects[0].length++;
    assert_ok(read_byte(source, 0, &byte));
    zt_source_close(source);
}

PREPARED(what_is_refused_or_away_is_unavailable_and_stays_known)
{
    open_m(world);
    fake.status = 403;
    fake.body = "";
    assert_int_equal(read_byte(source, 0, &byte), ZT_UNAVAILABLE);
    fake.status = 404;
    fake.body = "<Error><Code>NoSuchBucket</Code></Error>";
    assert_int_equal(read_byte(source, 0, &byte), ZT_UNAVAILABLE);
    fake.status = 0;
    fake.failure = REMOTE_FAILURE_CONNECT;
    assert_int_equal(read_byte(source, 0, &byte), ZT_UNAVAILABLE);
    assert_true(is_current(world, source, &identity));
    zt_source_close(source);
}

/* --- names --- */

PREPARED(a_name_is_sought_every_other_second_and_ten_names_a_second)
{
    unsigned allowed = 0;

    (void)list_ok(world);
    assert_true(s3_may_look_up(&world->store.base, zt_text_from("n")));
    assert_false(s3_may_look_up(&world->store.base, zt_text_from("n")));
    assert_false(s3_may_look_up(&world->store.base, zt_text_from("../n")));
    for (char name[2] = "a"; name[0] <= 'z'; name[0]++)
        allowed += s3_may_look_up(&world->store.base, zt_text_from(name));
    assert_int_equal(allowed, 9);
}

PREPARED(seeking_finds_files_of_just_that_model)
{
    struct visited visited = {.count = 0};

    (void)list_ok(world);
    fake.objects[1] = (struct fake_object){"n.zt", "e", first_bytes, 1};
    fake.objects[2] = (struct fake_object){"n.gguf", "e", first_bytes, 1};
    fake.objects[3] = (struct fake_object){"n.b.zt", "e", first_bytes, 1};
    fake.objects[4] = (struct fake_object){"n.b/c.zt", "e", first_bytes, 1};
    assert_ok(s3_look_up(&world->store.base, zt_text_from("n"), visit, &visited, &error));
    assert_string_equal(visited.paths, "n.gguf;n.zt;");
    assert_string_equal(fake.last_query, "list-type=2&max-keys=1000&prefix=n.");
}

PREPARED(polls_are_due_by_a_timer)
{
    bool whole = true;

    assert_true(s3_watch(&world->store.base) >= 0);
    (void)list_ok(world);
    assert_ok(s3_list_changes(&world->store.base, visit, NULL, &whole, &error));
    assert_false(whole);
    assert_false(s3_changed(&world->store.base));
    assert_true(world->store.listing->next_poll_ns > 0);
}

static int quiet(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    return 0;
}

AROUND_ALL_TESTS(quiet, NULL)

PREPARED(walked_folder_shows_models_that_were_written_since_the_last_list)
{
    struct object_version known;
    struct visited visited = {0};

    list_ok(world);
    fake.objects[0].etag = "v3";
    assert_ok(s3_walk(&world->store.base, "", true, visit, &visited, &error));
    assert_true(s3_known_version(&world->store, "m.zt", &known));
    assert_string_equal(known.etag, "v3");
}
