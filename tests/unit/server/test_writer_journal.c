/* The streaming writer's journal: what was acknowledged is found again, and nothing else is. */
#include "upload_world.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/staging.h"

#define ID "0123456789abcdef0123456789abcdef"

static struct zt_error error;

static const uint8_t digest[32] = {1, 2, 3};

/* A session on disk, in the table, with a component of 5 bytes at offset 64; the caller's. */
static struct writer_session *begin(struct world *world)
{
    struct writer_session *session = writer_begin(world, ID, ZT_TARGET_ZT1);
    struct staged_file *data;

    assert_ok(staging_folder_open(world->server.store->staging, ID, WRITER_DATA, &data, &error));
    assert_ok(staged_file_write_at(data, 64, "hello", 5, &error));
    staged_file_close(data);
    return session;
}

static void put(struct writer_session *session, const char *object, uint64_t length)
{
    const struct zt_shape shape = {.stated = true, .rank = 1, .extents = {length}};
    struct writer_exchange exchange = {.object = zt_text_from(object),
                                       .component =
                                           writer_component_new(zt_text_from("data"), &shape)};
    struct failure failure = {.is_set = false};

    assert_non_null(exchange.component);
    exchange.component->dtype = ZT_U8;
    exchange.component->offset = 64;
    exchange.component->length = length;
    exchange.component->decoded_length = length;
    assert_true(writer_session_put(session, 0, &exchange, &failure));
    free(exchange.replaced);
}

static bool declare(struct writer_session *session, const char *text, struct failure *failure)
{
    struct zt_declaration *declaration = calloc(1, sizeof(*declaration));
    bool is_new;

    assert_ok(zt_declare_object(session->target, zt_text_from(text), declaration, &failure->error));
    return writer_session_declare(session, 0, zt_text_from("w"), declaration, &is_new, failure);
}

WITH_UPLOADS(acknowledged_components_and_declarations_are_found_again)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};
    const struct writer_object *object;

    put(session, "w", 5);
    assert_true(declare(session, "{\"shape\": [5], \"attributes\": {\"a\": 1}}", &failure));
    session = writer_after_restart(world, session, ID);
    assert_string_equal(session->kept.entry.model, "m");
    assert_int_equal(session->state, WRITER_OPEN);
    assert_int_equal(atomic_load(&session->kept.entry.received), 5);
    object = writer_contents_find(&session->contents, zt_text_from("w"));
    assert_non_null(object);
    assert_int_equal(object->declared->shape.extents[0], 5);
    assert_int_equal(object->component_count, 1);
    kept_upload_release(session);
}

/* Longer than what is read of a journal at a time. */
WITH_UPLOADS(long_record_is_found_again)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};
    size_t length = (size_t)3 << 20;
    char *text = malloc(length + 64);
    uint64_t end;

    assert_non_null(text);
    sprintf(text, "{\"shape\": [1], \"attributes\": {\"a\": \"%0*d\"}}", (int)length, 0);
    assert_true(declare(session, "{\"shape\": [2]}", &failure));
    assert_true(declare(session, text, &failure));
    assert_true(declare(session, text, &failure));
    free(text);
    put(session, "last", 5);
    end = session->journal_end;
    session = writer_after_restart(world, session, ID);
    assert_int_equal(session->journal_end, end);
    assert_non_null(writer_contents_find(&session->contents, zt_text_from("last")));
    kept_upload_release(session);
}

WITH_UPLOADS(full_journal_refuses_changes)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};

    session->journal_end = ((uint64_t)1 << 30) - 1;
    assert_true(declare(session, "{\"shape\": [5]}", &failure));
    assert_false(declare(session, "{\"shape\": [5]}", &failure));
    assert_true(failure.is_set);
    assert_int_equal(failure.problem, PROBLEM_TOO_LARGE);
    assert_true(writer_journal_announce(session, WRITER_DATA, digest, &error));
    kept_upload_release(session);
}

WITH_UPLOADS(full_contents_refuse_changes)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};

    session->contents.held_bytes = ((size_t)512 << 20) - 1;
    assert_true(declare(session, "{\"shape\": [5]}", &failure));
    session->contents.held_bytes = (size_t)512 << 20;
    assert_false(declare(session, "{\"shape\": [5]}", &failure));
    assert_int_equal(failure.problem, PROBLEM_TOO_LARGE);
    kept_upload_release(session);
}

WITH_UPLOADS(record_that_is_too_long_changes_nothing)
{
    struct writer_session *session = begin(world);
    const size_t length = JOURNAL_RECORD_MAX_BYTES;
    const uint64_t end = session->journal_end;
    const struct zt_declaration declaration = {.attributes = {calloc(1, length), length}};

    assert_non_null(declaration.attributes.bytes);
    assert_false(writer_journal_declare(session, zt_text_from("w"), &declaration, &error));
    free((char *)(uintptr_t)declaration.attributes.bytes);
    assert_int_equal(session->journal_end, end);
    put(session, "last", 5);
    session = writer_after_restart(world, session, ID);
    assert_non_null(writer_contents_find(&session->contents, zt_text_from("last")));
    kept_upload_release(session);
}

static void write_compact(struct world *world, bool exists)
{
    struct staged_file *file;

    if (exists) {
        assert_ok(staging_folder_create(world->server.store->staging, ID, WRITER_COMPACT, 0, &file,
                                        &error));
        staged_file_close(file);
    }
}

/* The state after a restart, if a file of this digest was announced. */
static enum writer_state announce_and_restart(struct world *world, bool exists, bool withdraws,
                                              const uint8_t announced[32])
{
    struct writer_session *session = begin(world);
    enum writer_state found;

    put(session, "w", 5);
    write_compact(world, exists);
    assert_true(writer_journal_announce(session, WRITER_COMPACT, announced, &error));
    if (withdraws)
        assert_true(writer_journal_withdraw(session, &error));
    session = writer_after_restart(world, session, ID);
    found = session->state;
    assert_int_equal(atomic_load(&session->kept.entry.received), 5);
    assert_false(session->is_publication_announced);
    kept_upload_release(session);
    return found;
}

/* Writes the model that the session is about, and gives its digest. */
static void write_model(struct world *world, uint8_t out_sha256[32])
{
    uint8_t model[4096];
    const size_t length = world_model_bytes(world, true, model, sizeof(model));
    struct zt_hasher *hasher;
    struct zt_digest found;

    world_model(world, "m.zt", true);
    assert_ok(zt_hasher_new(ZT_DIGEST_SHA256, &hasher));
    zt_hasher_update(hasher, model, length);
    zt_hasher_finish(hasher, &found);
    zt_hasher_free(hasher);
    memcpy(out_sha256, found.bytes, 32);
}

/* A file beside the data that is also the model: the server ended before it removed the other name.
 * Another client may have written the same model. Release 0.1 left an announcement after a commit
 * that failed. */
WITH_UPLOADS(announced_file_was_published_if_it_is_the_model_and_was_not_withdrawn)
{
    static const struct {
        bool exists;
        bool is_withdrawn;
        bool is_the_model;
        enum writer_state state;
    } rows[] = {
        {true, false, false, WRITER_OPEN},      {false, false, false, WRITER_OPEN},
        {false, false, true, WRITER_COMMITTED}, {true, false, true, WRITER_COMMITTED},
        {false, true, true, WRITER_OPEN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum writer_state state;
        uint8_t sha256[32];

        if (rows[i].is_the_model)
            write_model(world, sha256);
        state = announce_and_restart(world, rows[i].exists, rows[i].is_withdrawn,
                                     rows[i].is_the_model ? sha256 : digest);
        if (state != rows[i].state)
            fail_msg("row %zu: state %d", i, (int)state);
        uploads_stop(world);
        world_command(world, "rm -rf .ztserve-uploads m.zt");
        uploads_start(world);
    }
}

WITH_UPLOADS(missing_data_was_published)
{
    struct writer_session *session = begin(world);

    put(session, "w", 5);
    assert_true(writer_journal_announce(session, WRITER_DATA, digest, &error));
    kept_upload_release(session);
    assert_ok(staging_folder_remove(world->server.store->staging, ID, WRITER_DATA, &error));
    uploads_restart(world);
    session = writer_find(world, ID);
    assert_non_null(session);
    assert_int_equal(session->state, WRITER_COMMITTED);
    assert_memory_equal(session->published.sha256, digest, sizeof(digest));
    kept_upload_release(session);
}

WITH_UPLOADS(outcome_at_an_impossible_time_is_not_believed)
{
    struct writer_session *session = begin(world);

    put(session, "w", 5);
    session->state = WRITER_COMMITTED;
    session->committed = INT64_MAX / 1000;
    assert_true(writer_journal_outcome(session, &error));
    session = writer_after_restart(world, session, ID);
    assert_int_equal(session->state, WRITER_OPEN);
    assert_int_equal(atomic_load(&session->kept.entry.received), 5);
    kept_upload_release(session);
}

/* --- the sync before an acknowledgement --- */

static unsigned syncs;
static bool sync_fails;

/* Replaces the call by which the journal's bytes become durable. */
int fdatasync(int descriptor)
{
    syncs++;
    if (sync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

WITH_UPLOADS(nothing_is_acknowledged_without_a_synced_journal)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};
    uint64_t end;

    syncs = 0;
    sync_fails = false;
    put(session, "w", 5);
    assert_int_equal(syncs, 1);
    assert_true(declare(session, "{\"shape\": [5]}", &failure));
    assert_int_equal(syncs, 2);
    end = session->journal_end;
    sync_fails = true;
    assert_false(declare(session, "{\"shape\": [5]}", &failure));
    assert_int_equal(failure.problem, PROBLEM_INTERNAL);
    assert_int_equal(session->journal_end, end);
    sync_fails = false;
    kept_upload_release(session);
}

WITH_UPLOADS(journal_cut_anywhere_gives_a_prefix_of_what_was_acknowledged)
{
    struct writer_session *session = begin(world);
    uint64_t ends[4];
    char command[128];

    for (unsigned i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), '\0'};

        ends[i] = session->journal_end;
        put(session, name, 5);
    }
    ends[3] = session->journal_end;
    kept_upload_release(session);
    for (unsigned i = 3; i > 0; i--) {
        sprintf(command, "truncate -s %u .ztserve-uploads/" ID "/" WRITER_JOURNAL,
                (unsigned)ends[i] - 1);
        uploads_stop(world);
        world_stop(world);
        world_command(world, command);
        world_start(world);
        uploads_start(world);
        kept_uploads_restore(world->server.kept);
        session = writer_find(world, ID);
        assert_non_null(session);
        assert_int_equal(session->contents.object_count, i - 1);
        assert_int_equal(session->journal_end, ends[i - 1]);
        kept_upload_release(session);
    }
}

WITH_UPLOADS(flipped_bit_ends_the_journal)
{
    struct writer_session *session = begin(world);
    uint64_t end = session->journal_end;

    put(session, "a", 5);
    for (unsigned i = 0; i < 40; i++) {
        uint8_t byte = 0xFF;

        assert_ok(staged_file_write_at(session->journal, end + i, &byte, 1, &error));
    }
    session = writer_after_restart(world, session, ID);
    assert_int_equal(session->contents.object_count, 0);
    assert_int_equal(session->journal_end, end);
    kept_upload_release(session);
}

WITH_UPLOADS(record_of_another_checksum_is_not_believed)
{
    struct writer_session *session = begin(world);
    /* The name's only letter: behind the head, the kind and the name's length. */
    const uint64_t letter = session->journal_end + JOURNAL_HEAD_BYTES + 1 + JOURNAL_UINT_BYTES;

    put(session, "a", 5);
    assert_ok(staged_file_write_at(session->journal, letter, "b", 1, &error));
    session = writer_after_restart(world, session, ID);
    assert_int_equal(session->contents.object_count, 0);
    kept_upload_release(session);
}

WITH_UPLOADS(rounds_end_what_was_begun_in_them)
{
    struct writer_session *session = begin(world);
    struct failure failure = {.is_set = false};
    enum writer_state before;
    uint64_t round;

    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    assert_true(writer_write_begin(session, round));
    writer_write_end(session);
    assert_true(writer_round_end(session, WRITER_COMMITTING, &before));
    assert_false(writer_round_end(session, WRITER_COMMITTING, &before));
    assert_int_equal(before, WRITER_COMMITTING);
    assert_false(writer_round_end(session, WRITER_DROPPED, &before));
    assert_false(writer_write_begin(session, round));
    assert_false(declare(session, "{\"shape\": [5]}", &failure));
    assert_int_equal(failure.problem, PROBLEM_CONFLICT);
    writer_round_reopen(session);
    assert_int_equal(writer_session_state(session, &round), WRITER_OPEN);
    assert_true(writer_write_begin(session, round));
    writer_write_end(session);
    assert_true(writer_round_end(session, WRITER_DROPPED, &before));
    assert_int_equal(before, WRITER_OPEN);
    kept_upload_release(session);
}
