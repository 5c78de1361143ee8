/* A history in a bucket: small files, claims of repositories, kept files and their removal. */
#include "s3_write_world.h"

#include "store/s3_versions/s3_place_state.h"

#define LOG   "repos/k/log"
#define TREES "repos/k/trees"

static struct zt_error error;
static char version[HISTORY_VERSION_SIZE];

static struct history_place *open_place(struct world *world)
{
    struct history_place *place;

    world->config.writable = true;
    assert_ok(s3_place_open(&world->store.base, true, &place, &error));
    return place;
}

/* After the probe. */
static struct history_place *probed_place(struct world *world)
{
    probe(world);
    return open_place(world);
}

static void *lock(struct history_place *place)
{
    void *lock = NULL;

    assert_ok(place->ops->lock(place, "k", clock_ms() + 1000, &lock, &error));
    return lock;
}

static enum zt_status write_text(struct history_place *place, const char *text,
                                 const char *expected)
{
    struct history_text written = {.bytes = (uint8_t *)(uintptr_t)text, .length = strlen(text)};
    const enum zt_status status = place->ops->write(place, LOG, &written, expected, &error);

    strcpy(version, written.version);
    return status;
}

static bool has_log(const char *text)
{
    const struct shelf_object *object = shelf_find(S3_VERSIONS_PREFIX LOG);

    return object != NULL && object->length == strlen(text) &&
           memcmp(object->bytes, text, object->length) == 0;
}

/* --- small files --- */

WITH_S3(file_is_read_again_only_if_it_changed)
{
    struct history_place *place = probed_place(world);
    struct history_text text;
    struct history_text again;
    void *held = lock(place);

    assert_int_equal(place->ops->read(place, LOG, NULL, HISTORY_FILE_BYTES, &text, &error),
                     ZT_NOT_FOUND);
    assert_ok(write_text(place, "first", ""));
    assert_ok(place->ops->read(place, LOG, NULL, HISTORY_FILE_BYTES, &text, &error));
    assert_int_equal(text.length, 5);
    assert_string_equal(text.version, version);
    for (int i = 0; i < 2; i++) {
        shelf.ignores_put_conditions = i == 1;
        assert_ok(place->ops->read(place, LOG, text.version, HISTORY_FILE_BYTES, &again, &error));
        assert_null(again.bytes);
        assert_string_equal(again.version, text.version);
    }
    free(text.bytes);
    shelf.ignores_put_conditions = false;
    assert_ok(write_text(place, "second", version));
    assert_ok(place->ops->read(place, LOG, text.version, HISTORY_FILE_BYTES, &again, &error));
    assert_memory_equal(again.bytes, "second", 6);
    free(again.bytes);
    assert_ok(place->ops->read(place, LOG, NULL, 3, &again, &error));
    assert_memory_equal(again.bytes, "sec", 3);
    assert_int_equal(again.length, 3);
    free(again.bytes);
    place->ops->unlock(place, held);
    place->ops->close(place);
}

/* With conditions that the service evaluates, and with those that only this server does. */
WITH_S3(write_over_another_version_changes_nothing)
{
    struct history_place *place;
    void *held;

    probe(world);
    place = open_place(world);
    for (int i = 0; i < 2; i++) {
        held = lock(place);
        world->writing.abilities.put = i == 0;
        shelf_remove(S3_VERSIONS_PREFIX LOG);
        assert_int_equal(write_text(place, "mine", "etag-0"), ZT_STALE);
        assert_null(shelf_find(S3_VERSIONS_PREFIX LOG));
        shelf_put(S3_VERSIONS_PREFIX LOG, "another's", 9);
        assert_int_equal(write_text(place, "mine", ""), ZT_STALE);
        assert_int_equal(write_text(place, "mine", "etag-0"), ZT_STALE);
        assert_true(has_log("another's"));
        assert_ok(write_text(place, "mine", NULL));
        assert_true(has_log("mine"));
        place->ops->unlock(place, held);
    }
    place->ops->close(place);
}

WITH_S3(write_whose_answer_was_lost_is_found)
{
    struct history_place *place = probed_place(world);
    void *held = lock(place);

    shelf.fails = S3_VERSIONS_PREFIX LOG;
    shelf.fail_times = 1;
    shelf.does_them = true;
    assert_ok(write_text(place, "mine", ""));
    assert_string_equal(version, shelf_find(S3_VERSIONS_PREFIX LOG)->etag);
    place->ops->unlock(place, held);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    place->ops->close(place);
}

/* A service without conditions could still carry it out, over what another server writes then. */
WITH_S3(claim_stays_after_a_write_that_may_come_late)
{
    struct history_place *place = probed_place(world);
    void *held = lock(place);

    world->writing.abilities.put = false;
    shelf.fails = S3_VERSIONS_PREFIX LOG;
    shelf.fail_times = 1;
    assert_int_equal(write_text(place, "mine", NULL), ZT_UNAVAILABLE);
    place->ops->unlock(place, held);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 1);
    place->ops->close(place);
}

/* The thread that renews claims leaves a lost one alone. */
static void set_lost(struct history_place *place, struct s3_claim *claim, bool is_lost)
{
    pthread_mutex_lock(&s3_place_of(place)->lock);
    claim->is_lost = is_lost;
    pthread_mutex_unlock(&s3_place_of(place)->lock);
}

WITH_S3(nothing_is_written_under_a_claim_that_was_lost)
{
    struct history_place *place = probed_place(world);
    struct s3_claim *held = lock(place);

    set_lost(place, held, true);
    assert_int_equal(write_text(place, "mine", NULL), ZT_UNAVAILABLE);
    world->writing.abilities.put = false;
    assert_int_equal(write_text(place, "mine", ""), ZT_UNAVAILABLE);
    assert_null(shelf_find(S3_VERSIONS_PREFIX LOG));
    place->ops->unlock(place, held);
    place->ops->close(place);
}

struct names {
    char text[200];
    unsigned most;
};

static bool note_name(void *context, const char *name)
{
    struct names *names = context;

    strcat(strcat(names->text, name), ";");
    return --names->most > 0;
}

WITH_S3(folders_have_the_names_directly_below)
{
    struct history_place *place = probed_place(world);
    struct names names = {.most = 9};

    shelf_put(S3_VERSIONS_PREFIX TREES "/a", "1", 1);
    shelf_put(S3_VERSIONS_PREFIX TREES "/b", "1", 1);
    shelf_put(S3_VERSIONS_PREFIX LOG, "1", 1);
    assert_ok(place->ops->list(place, "repos", note_name, &names, &error));
    assert_non_null(strstr(names.text, "k;"));
    assert_null(strstr(names.text, "log"));
    names.text[0] = '\0';
    assert_ok(place->ops->list(place, TREES, note_name, &names, &error));
    assert_string_equal(names.text, "a;b;");
    names.most = 1;
    assert_int_equal(place->ops->list(place, TREES, note_name, &names, &error), ZT_NO_MEMORY);
    assert_ok(place->ops->list(place, "repos/none/trees", note_name, &names, &error));
    place->ops->remove(place, TREES "/a");
    assert_null(shelf_find(S3_VERSIONS_PREFIX TREES "/a"));
    place->ops->close(place);
}

/* --- repositories --- */

WITH_S3(repository_is_changed_by_one_server)
{
    struct history_place *one = probed_place(world);
    struct history_place *other = open_place(world);
    void *held = lock(one);
    void *taken = NULL;

    assert_int_equal(other->ops->lock(other, "k", clock_ms(), &taken, &error), ZT_ARGUMENT);
    assert_ok(other->ops->lock(other, "k2", clock_ms(), &taken, &error));
    other->ops->unlock(other, taken);
    one->ops->unlock(one, held);
    assert_ok(other->ops->lock(other, "k", clock_ms(), &taken, &error));
    other->ops->unlock(other, taken);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    one->ops->close(one);
    other->ops->close(other);
}

WITH_S3(single_writer_claims_nothing)
{
    struct history_place *place;
    void *held;

    world->config.s3.single_writer = true;
    place = probed_place(world);
    assert_false(place->is_shared);
    held = lock(place);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    assert_ok(write_text(place, "mine", ""));
    assert_true(place->ops->begin_collecting(place));
    place->ops->end_collecting(place);
    place->ops->unlock(place, held);
    place->ops->close(place);
}

/* --- kept files --- */

struct kept_file {
    uint8_t sha256[32];
    struct file_identity identity;
    char key[S3_OBJECT_KEY_SIZE];
};

static struct kept_file put_file(struct world *world, const char *path, size_t length)
{
    struct shelf_object *object = shelf_put(path, content, length);
    struct kept_file file = {.identity = bucket_identity(object->etag, length, object->modified_s)};

    staged_file_close(received(world, length, file.sha256));
    s3_object_key(file.sha256, file.key);
    return file;
}

static enum zt_status keep(struct history_place *place, const char *path,
                           const struct kept_file *file, bool *out_is_new)
{
    return place->ops->keep(place, path, &file->identity, file->sha256, out_is_new, &error);
}

static bool is_kept(const struct kept_file *file)
{
    const struct shelf_object *object = shelf_find(file->key);

    return object != NULL && object->length == file->identity.size_bytes &&
           memcmp(object->bytes, content, object->length) == 0;
}

WITH_S3(file_is_kept_by_a_copy_that_the_service_makes)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    bool is_new;

    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_true(is_new && is_kept(&file));
    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_false(is_new);
    assert_int_equal(shelf.copies, 1);
    assert_int_equal(shelf.gets, 0);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    place->ops->close(place);
}

WITH_S3(file_that_was_kept_long_ago_is_kept_again)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    struct file_identity found;
    bool is_new;

    assert_ok(keep(place, "m.zt", &file, &is_new));
    shelf.now_s += S3_FRESH_S + 1;
    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_false(is_new);
    assert_int_equal(shelf_find(file.key)->modified_s, shelf.now_s);
    shelf.now_s += S3_FRESH_S + 1;
    assert_ok(place->ops->find(place, file.sha256, false, &found, &error));
    assert_int_equal(shelf.copies, 2);
    assert_ok(place->ops->find(place, file.sha256, true, &found, &error));
    assert_int_equal(shelf.copies, 3);
    assert_int_equal(shelf_find(file.key)->modified_s, shelf.now_s);
    place->ops->close(place);
}

static void replace_source(struct remote_exchange *exchange)
{
    if (shelf_field(exchange, "x-amz-copy-source") != NULL)
        shelf_put("m.zt", "another's", 9);
}

WITH_S3(file_that_another_program_replaced_is_not_kept)
{
    struct history_place *place = probed_place(world);
    bool is_new;

    for (int i = 0; i < 2; i++) {
        struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);

        shelf.ignores_copy_conditions = i == 1;
        shelf.before = replace_source;
        assert_int_equal(keep(place, "m.zt", &file, &is_new), ZT_STALE);
        shelf.before = NULL;
        assert_null(shelf_find(file.key));
        assert_int_equal(keep(place, "m.zt", &file, &is_new), ZT_STALE);
        shelf_remove("m.zt");
        assert_int_equal(keep(place, "m.zt", &file, &is_new), ZT_STALE);
    }
    place->ops->close(place);
}

WITH_S3(claims_stay_after_a_copy_that_may_come_late)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    void *held = lock(place);
    bool is_new;

    shelf.fails = file.key;
    shelf.fail_times = 1;
    assert_int_equal(keep(place, "m.zt", &file, &is_new), ZT_UNAVAILABLE);
    place->ops->unlock(place, held);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 2);
    place->ops->close(place);
}

WITH_S3(large_file_is_copied_in_parts)
{
    struct history_place *place;
    struct kept_file file;
    bool is_new;

    probe(world);
    /* One request copies 320 times as much, a part 64 times. */
    world->config.s3.part_bytes = 400;
    place = open_place(world);
    file = put_file(world, "m.zt", LARGE_BYTES);
    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_true(is_new && is_kept(&file));
    assert_int_equal(shelf.copies, (LARGE_BYTES - 1) / (64 * 400) + 1);
    shelf_remove("m.zt");
    assert_ok(place->ops->restore(place, file.sha256, "m.zt", &error));
    assert_true(is_published(LARGE_BYTES));
    place->ops->close(place);
}

WITH_S3(staged_file_is_kept)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = {.identity = {.size_bytes = SMALL_BYTES}};
    struct staged_file *upload = received(world, SMALL_BYTES, file.sha256);
    bool is_new;

    s3_object_key(file.sha256, file.key);
    assert_ok(place->ops->keep_staged(place, upload, file.sha256, &is_new, &error));
    assert_true(is_new && is_kept(&file));
    upload = received(world, SMALL_BYTES, file.sha256);
    assert_ok(place->ops->keep_staged(place, upload, file.sha256, &is_new, &error));
    assert_false(is_new);
    place->ops->close(place);
}

WITH_S3(object_that_another_program_wrote_is_not_served)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    struct zt_source *source;
    struct file_identity found;
    bool is_new;

    assert_int_equal(place->ops->open(place, file.sha256, &source, &found, &error), ZT_NOT_FOUND);
    shelf_put(file.key, "another's", 9);
    assert_int_equal(place->ops->open(place, file.sha256, &source, &found, &error), ZT_IO);
    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_ok(place->ops->open(place, file.sha256, &source, &found, &error));
    assert_int_equal(zt_source_size(source), SMALL_BYTES);
    zt_source_close(source);
    place->ops->close(place);
}

/* --- collections --- */

static unsigned listed;
static bool is_listed_young;

static bool note_object(void *context, const struct history_object *object)
{
    const struct kept_file *file = context;

    assert_memory_equal(object->sha256, file->sha256, 32);
    listed++;
    is_listed_young = object->is_young;
    return true;
}

WITH_S3(collection_removes_only_files_that_were_kept_long_ago)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    bool is_new;

    assert_ok(keep(place, "m.zt", &file, &is_new));
    assert_false(place->ops->drop(place, file.sha256));
    assert_true(place->ops->begin_collecting(place));
    assert_ok(place->ops->list_objects(place, file.sha256[0], note_object, &file, &error));
    assert_true(listed == 1 && is_listed_young);
    assert_false(place->ops->drop(place, file.sha256));
    shelf.now_s += S3_YOUNG_S + 2;
    assert_true(is_kept(&file));
    assert_true(place->ops->drop(place, file.sha256));
    assert_null(shelf_find(file.key));
    place->ops->end_collecting(place);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    place->ops->close(place);
}

/* A commit may name the file since the collection has read the logs. */
WITH_S3(file_that_was_kept_during_a_long_collection_is_not_removed)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    bool is_new;

    assert_true(place->ops->begin_collecting(place));
    assert_ok(keep(place, "m.zt", &file, &is_new));
    shelf.now_s += 2 * (int64_t)S3_YOUNG_S;
    s3_place_of(place)->collecting_since_ms -= 2000 * (int64_t)S3_YOUNG_S;
    listed = 0;
    assert_ok(place->ops->list_objects(place, file.sha256[0], note_object, &file, &error));
    assert_true(listed == 1 && is_listed_young);
    assert_false(place->ops->drop(place, file.sha256));
    assert_true(is_kept(&file));
    place->ops->end_collecting(place);
    place->ops->close(place);
}

WITH_S3(one_server_collects)
{
    struct history_place *one = probed_place(world);
    struct history_place *other = open_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    bool is_new;

    assert_ok(keep(one, "m.zt", &file, &is_new));
    shelf.now_s += S3_YOUNG_S + 1;
    assert_true(one->ops->begin_collecting(one));
    assert_false(other->ops->begin_collecting(other));
    assert_false(other->ops->drop(other, file.sha256));
    set_lost(one, s3_place_of(one)->collecting, true);
    assert_false(one->ops->drop(one, file.sha256));
    assert_true(is_kept(&file));
    set_lost(one, s3_place_of(one)->collecting, false);
    one->ops->end_collecting(one);
    one->ops->close(one);
    other->ops->close(other);
}

WITH_S3(file_that_is_about_to_be_named_is_not_removed)
{
    struct history_place *one = probed_place(world);
    struct history_place *other = open_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    struct file_identity found;
    bool is_new;

    assert_ok(keep(one, "m.zt", &file, &is_new));
    shelf.now_s += S3_YOUNG_S + 1;
    assert_true(one->ops->begin_collecting(one));
    assert_ok(other->ops->find(other, file.sha256, true, &found, &error));
    assert_false(one->ops->drop(one, file.sha256));
    assert_true(is_kept(&file));
    one->ops->end_collecting(one);
    one->ops->close(one);
    other->ops->close(other);
}

/* --- going back --- */

WITH_S3(kept_file_gets_its_path_back)
{
    struct history_place *place = probed_place(world);
    struct kept_file file = put_file(world, "m.zt", SMALL_BYTES);
    struct file_identity now;
    struct object_version known;
    bool is_new;

    assert_int_equal(place->ops->restore(place, file.sha256, "m.zt", &error), ZT_NOT_FOUND);
    assert_ok(keep(place, "m.zt", &file, &is_new));
    shelf_put("m.zt", "another", 7);
    assert_ok(place->ops->restore(place, file.sha256, "m.zt", &error));
    assert_true(is_published(SMALL_BYTES));
    assert_true(s3_known_version(&world->store, "m.zt", &known));
    assert_string_equal(known.etag, shelf_find("m.zt")->etag);
    assert_int_equal(place->ops->remove_path(place, "m.zt", &file.identity, &error), ZT_STALE);
    now = expect_shelf().identity;
    assert_ok(place->ops->remove_path(place, "m.zt", &now, &error));
    assert_null(shelf_find("m.zt"));
    assert_int_equal(place->ops->remove_path(place, "m.zt", &now, &error), ZT_NOT_FOUND);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    place->ops->close(place);
}
