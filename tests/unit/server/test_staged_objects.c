/* Files that wait for a commit: found by repository and SHA-256, taken by one commit at a time,
 * over restarts, and not for ever. */
#include "upload_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

static const uint8_t bytes[] = "a file";
#define LENGTH (sizeof(bytes) - 1)
#define REPO   "owner/name"

/* Not its SHA-256: whoever stages vouches for that. */
static const uint8_t oid[32] = {1, 2, 3};
static const uint8_t other_oid[32] = {1, 2, 4};

static struct staged_object *begin_for(struct world *world, const char *client)
{
    const struct staged_origin origin = {REPO, client, client, LENGTH};
    struct failure failure = {.is_set = false};
    struct staged_object *object = staged_begin(&world->server, &origin, &failure);

    assert_true((object != NULL) != failure.is_set);
    return object;
}

static void stage_for(struct world *world, const char *client, const uint8_t sha256[32])
{
    struct staged_object *object = begin_for(world, client);
    struct failure failure = {.is_set = false};

    assert_non_null(object);
    assert_true(staged_write(object, 2, bytes + 2, LENGTH - 2, &failure));
    assert_true(staged_write(object, 0, bytes, 2, &failure));
    assert_true(staged_finish(object, sha256, &failure));
}

static void stage(struct world *world, const uint8_t sha256[32])
{
    stage_for(world, "a", sha256);
}

static const struct staged_asker asker_a = {.owner = "a"};
static const struct staged_asker asker_b = {.owner = "b"};
static const struct staged_asker asker_all = {.owner = "c", .sees_all = true};

static bool is_there_for(struct world *world, const struct staged_wanted *wanted)
{
    uint64_t length = 0;
    const bool is_there = staged_exists(&world->server, wanted, &length);

    assert_true(!is_there || length == LENGTH);
    return is_there;
}

static bool is_there(struct world *world, const char *repo, const uint8_t sha256[32])
{
    const struct staged_wanted wanted = {repo, sha256, &asker_a};

    return is_there_for(world, &wanted);
}

static enum staged_found try_take(struct world *world, const struct staged_asker *asker,
                                  const uint8_t sha256[32], struct staged_object **out_object)
{
    const struct staged_wanted wanted = {REPO, sha256, asker};

    return staged_take(&world->server, &wanted, out_object);
}

static struct staged_object *take(struct world *world)
{
    struct staged_object *object = NULL;

    assert_int_equal(try_take(world, &asker_a, oid, &object), STAGED_FOUND);
    assert_non_null(object);
    return object;
}

static unsigned count_places(struct world *world)
{
    char path[300];
    unsigned count = 0;
    const struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "%s/.ztserve-uploads", world->root);
    folder = opendir(path);
    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

WITH_UPLOADS(finished_object_is_found_by_repository_and_sha256_alone)
{
    struct staged_object *object = begin_for(world, "a");
    struct failure failure = {.is_set = false};

    assert_true(staged_write(object, 0, bytes, LENGTH, &failure));
    assert_false(is_there(world, REPO, oid));
    assert_true(staged_finish(object, oid, &failure));
    assert_true(is_there(world, REPO, oid));
    assert_false(is_there(world, "owner/names", oid));
    assert_false(is_there(world, REPO, other_oid));
}

WITH_UPLOADS(object_is_taken_once_and_again_when_put_back)
{
    struct staged_object *object;
    struct staged_object *again = NULL;

    stage(world, oid);
    object = take(world);
    assert_int_equal(try_take(world, &asker_a, oid, &again), STAGED_IN_USE);
    assert_int_equal(try_take(world, &asker_a, other_oid, &again), STAGED_NOT_FOUND);
    assert_null(again);
    staged_put_back(object);
    staged_put_back(take(world));
}

WITH_UPLOADS(object_that_was_taken_has_its_bytes)
{
    struct failure failure = {.is_set = false};
    struct staged_object *object;
    struct staged_file *file;
    struct zt_source *source;
    uint8_t read[LENGTH];

    stage(world, oid);
    object = take(world);
    assert_int_equal(staged_length(object), LENGTH);
    assert_true(staged_open(object, &file, &failure));
    assert_ok(staged_file_read_back(file, &source, NULL));
    assert_ok(zt_source_read_at(source, 0, read, LENGTH, NULL));
    assert_memory_equal(read, bytes, LENGTH);
    staged_file_close(file);
    staged_put_back(object);
}

WITH_UPLOADS(what_is_used_up_is_gone_and_so_are_its_doubles)
{
    stage(world, oid);
    stage(world, oid);
    stage(world, other_oid);
    staged_use_up(take(world));
    assert_false(is_there(world, REPO, oid));
    assert_true(is_there(world, REPO, other_oid));
    assert_int_equal(count_places(world), 1);
}

WITH_UPLOADS(object_does_not_exist_for_other_clients)
{
    const struct staged_wanted of_b = {REPO, oid, &asker_b};
    const struct staged_wanted of_all = {REPO, oid, &asker_all};
    struct staged_object *object = NULL;

    stage(world, oid);
    assert_false(is_there_for(world, &of_b));
    assert_int_equal(try_take(world, &asker_b, oid, &object), STAGED_NOT_FOUND);
    object = take(world);
    assert_int_equal(try_take(world, &asker_b, oid, &object), STAGED_NOT_FOUND);
    staged_put_back(object);
    assert_true(is_there_for(world, &of_all));
    uploads_restart(world);
    assert_false(is_there_for(world, &of_b));
    assert_true(is_there_for(world, &of_all));
    assert_true(is_there(world, REPO, oid));
}

WITH_UPLOADS(clients_stage_and_use_up_the_same_bytes_side_by_side)
{
    const struct staged_wanted of_b = {REPO, oid, &asker_b};
    struct staged_object *object = NULL;

    stage_for(world, "b", oid);
    stage(world, oid);
    staged_use_up(take(world));
    assert_false(is_there(world, REPO, oid));
    assert_true(is_there_for(world, &of_b));
    assert_int_equal(try_take(world, &asker_b, oid, &object), STAGED_FOUND);
    staged_use_up(object);
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(loan_leaves_the_object_to_its_owner)
{
    struct failure failure = {.is_set = false};
    struct staged_object *lent = NULL;
    struct staged_file *file;

    stage(world, oid);
    assert_int_equal(try_take(world, &asker_all, oid, &lent), STAGED_LENT);
    staged_put_back(take(world));
    assert_true(staged_open(lent, &file, &failure));
    staged_use_up(take(world));
    staged_file_close(file);
    staged_return(lent);
    assert_int_equal(try_take(world, &asker_all, oid, &lent), STAGED_NOT_FOUND);
}

WITH_UPLOADS(object_of_the_first_version_is_found_by_those_who_see_all)
{
    const struct staged_wanted of_all = {REPO, oid, &asker_all};

    stage(world, oid);
    world_command(world,
                  "sed -i -e 's/staged 2/staged 1/' -e '/^owner/d' .ztserve-uploads/*/staged");
    uploads_restart(world);
    assert_false(is_there(world, REPO, oid));
    assert_true(is_there_for(world, &of_all));
}

WITH_UPLOADS(abandoned_file_leaves_nothing)
{
    staged_abandon(begin_for(world, "a"));
    staged_abandon(NULL);
    uploads_restart(world);
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(object_outlives_the_process)
{
    stage(world, oid);
    uploads_restart(world);
    assert_true(is_there(world, REPO, oid));
    staged_use_up(take(world));
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(file_that_was_not_finished_does_not)
{
    struct failure failure = {.is_set = false};
    struct staged_object *object = begin_for(world, "a");

    assert_true(staged_write(object, 0, bytes, LENGTH, &failure));
    kept_upload_release(object);
    uploads_restart(world);
    assert_false(is_there(world, REPO, oid));
    assert_int_equal(count_places(world), 0);
}

/* Each leaves something that is no object, or not a whole one. */
WITH_UPLOADS(damaged_object_is_removed_at_start)
{
    static const char *const damages[] = {
        "rm .ztserve-uploads/*/data",
        "rm .ztserve-uploads/*/staged",
        "truncate -s +1 .ztserve-uploads/*/data",
        "sed -i '$d' .ztserve-uploads/*/staged",
        "sed -i 's/sha256:0/sha256:g/' .ztserve-uploads/*/staged",
        "sed -i 's/length /length -/' .ztserve-uploads/*/staged",
        "sed -i 's/staged 2/staged 3/' .ztserve-uploads/*/staged",
        "sed -i 's/repo owner/repo ../' .ztserve-uploads/*/staged",
        "sed -i 's/owner 61/owner 6/' .ztserve-uploads/*/staged",
        "sed -i 's/owner 61/owner 00/' .ztserve-uploads/*/staged",
        "sed -i '/^owner/d' .ztserve-uploads/*/staged",
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        stage(world, oid);
        world_command(world, damages[i]);
        uploads_restart(world);
        assert_false(is_there(world, REPO, oid));
        assert_int_equal(count_places(world), 0);
    }
}

WITH_UPLOADS(object_expires_unless_it_was_asked_for_or_taken)
{
    struct staged_object *object;

    world->config.upload.expire_s = 0;
    stage(world, oid);
    object = take(world);
    kept_uploads_expire(world->server.kept);
    staged_put_back(object);
    world->config.upload.expire_s = 60;
    kept_uploads_expire(world->server.kept);
    assert_true(is_there(world, REPO, oid));
    world->config.upload.expire_s = 0;
    kept_uploads_expire(world->server.kept);
    assert_false(is_there(world, REPO, oid));
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(a_client_has_only_so_many_objects)
{
    world->config.hub.staged_per_client = 2;
    world->config.upload.sessions_per_client = 1;
    stage(world, oid);
    stage(world, other_oid);
    assert_null(begin_for(world, "a"));
    assert_int_equal(count_places(world), 2);
    staged_abandon(begin_for(world, "b"));
    staged_use_up(take(world));
    stage(world, oid);
}

WITH_UPLOADS(file_is_no_larger_than_the_limit)
{
    struct failure failure = {.is_set = false};
    struct staged_object *object = begin_for(world, "a");

    world->config.upload.max_bytes = LENGTH - 1;
    assert_null(begin_for(world, "a"));
    assert_true(staged_write(object, 0, bytes, LENGTH - 1, &failure));
    assert_false(staged_write(object, LENGTH - 1, bytes, 1, &failure));
    assert_int_equal(failure.problem, PROBLEM_TOO_LARGE);
    staged_abandon(object);
}

/* --- in parts --- */

#define PART 4 /* "a fi" and "le" */

static struct staged_object *join_for(struct world *world, const char *client,
                                      const uint8_t sha256[32])
{
    const struct staged_origin origin = {REPO, "a", client, LENGTH};
    const struct staged_whole whole = {sha256, PART};
    struct failure failure = {.is_set = false};
    struct staged_object *object = staged_join(&world->server, &origin, &whole, &failure);

    assert_true((object != NULL) != failure.is_set);
    return object;
}

static struct staged_object *join(struct world *world, const uint8_t sha256[32])
{
    return join_for(world, "a", sha256);
}

/* What it fails with: PROBLEM_COUNT if it does not. */
static enum problem try_close(struct world *world, struct staged_object **out_object)
{
    const struct staged_origin origin = {REPO, "a", "a", LENGTH};
    const struct staged_whole whole = {oid, PART};
    struct failure failure = {.is_set = false};

    *out_object = staged_close(&world->server, &origin, &whole, &failure);
    assert_true((*out_object != NULL) != failure.is_set);
    return failure.is_set ? failure.problem : PROBLEM_COUNT;
}

static void send_part(struct world *world, uint64_t part)
{
    struct staged_object *object = join(world, oid);
    struct failure failure = {.is_set = false};

    assert_non_null(object);
    assert_true(staged_write(object, part * PART, bytes + part * PART,
                             part == 0 ? PART : LENGTH - PART, &failure));
    staged_mark_part(object, part, true);
    staged_leave(object);
}

WITH_UPLOADS(object_of_all_its_parts_is_finished)
{
    struct failure failure = {.is_set = false};
    struct staged_object *object;

    assert_int_equal(try_close(world, &object), PROBLEM_UPLOAD_NOT_FOUND);
    send_part(world, 1);
    assert_int_equal(try_close(world, &object), PROBLEM_CONFLICT);
    send_part(world, 0);
    assert_int_equal(count_places(world), 1);
    assert_false(is_there(world, REPO, oid));
    assert_int_equal(try_close(world, &object), PROBLEM_COUNT);
    assert_null(join(world, oid));
    assert_true(staged_finish(object, oid, &failure));
    assert_true(is_there(world, REPO, oid));
    staged_use_up(take(world));
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(object_is_not_closed_while_a_part_arrives)
{
    struct staged_object *object;
    struct staged_object *sender;

    send_part(world, 0);
    send_part(world, 1);
    sender = join(world, oid);
    assert_int_equal(try_close(world, &object), PROBLEM_CONFLICT);
    staged_mark_part(sender, 1, false);
    staged_leave(sender);
    assert_int_equal(try_close(world, &object), PROBLEM_CONFLICT);
    send_part(world, 1);
    assert_int_equal(try_close(world, &object), PROBLEM_COUNT);
    staged_abandon(object);
}

WITH_UPLOADS(parts_of_other_objects_are_apart)
{
    struct staged_object *object;

    send_part(world, 0);
    object = join(world, other_oid);
    staged_mark_part(object, 1, true);
    staged_leave(object);
    assert_int_equal(try_close(world, &object), PROBLEM_CONFLICT);
    assert_int_equal(count_places(world), 2);
}

WITH_UPLOADS(parts_of_other_clients_are_apart)
{
    struct staged_object *object;

    send_part(world, 0);
    object = join_for(world, "b", oid);
    staged_mark_part(object, 1, true);
    staged_leave(object);
    assert_int_equal(try_close(world, &object), PROBLEM_CONFLICT);
    assert_int_equal(count_places(world), 2);
}

WITH_UPLOADS(parts_expire_unless_one_arrives)
{
    struct staged_object *sender;

    world->config.upload.expire_s = 0;
    sender = join(world, oid);
    kept_uploads_expire(world->server.kept);
    assert_int_equal(count_places(world), 1);
    staged_leave(sender);
    kept_uploads_expire(world->server.kept);
    assert_int_equal(count_places(world), 0);
}

WITH_UPLOADS(parts_end_with_the_process)
{
    struct staged_object *object;

    send_part(world, 0);
    send_part(world, 1);
    uploads_restart(world);
    assert_int_equal(try_close(world, &object), PROBLEM_UPLOAD_NOT_FOUND);
    assert_int_equal(count_places(world), 0);
}
