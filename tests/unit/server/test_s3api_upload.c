/* Multipart uploads over a folder: parts in any order, replaced, over restarts, and whole or not at
 * all. */
#include "upload_world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "s3/write/s3api_arrival.h"
#include "s3/write/s3api_completion.h"

#define UNIT S3API_PART_LEAST_BYTES
#define KEY  "folder/file.bin"

static uint8_t *made;

/* Bytes that differ from part to part, and within a part. */
static const uint8_t *bytes_of(unsigned seed)
{
    if (made == NULL)
        made = malloc(UNIT + 1);
    assert_non_null(made);
    for (size_t i = 0; i <= UNIT; i++)
        made[i] = (uint8_t)(seed * 31 + i + (i >> 11));
    return made;
}

static struct s3api_upload *begin(struct world *world)
{
    struct s3api_terms terms = {.algorithm = "CRC32", .metadata = strdup("x-amz-meta-a\nb c\n")};
    struct failure failure = {.is_set = false};
    struct s3api_upload *upload =
        s3api_upload_begin(&world->server, zt_text_from(KEY), "client", &terms, &failure);

    assert_non_null(upload);
    return upload;
}

static struct s3api_upload *find(struct world *world, const char *id)
{
    bool is_unreadable = false;

    return s3api_upload_find(&world->server, zt_text_from(id), zt_text_from(KEY), &is_unreadable);
}

/* Gives the upload back, and finds it in the server that is started again. */
static struct s3api_upload *after_restart(struct world *world, struct s3api_upload *upload)
{
    char id[UPLOAD_ID_SIZE];

    strcpy(id, upload->kept.entry.id);
    kept_upload_release(upload);
    uploads_restart(world);
    upload = find(world, id);
    assert_non_null(upload);
    return upload;
}

static struct s3api_arrival *begin_part(struct s3api_upload *upload, uint32_t number,
                                        uint64_t length)
{
    struct failure failure = {.is_set = false};
    struct s3api_arrival *arrival = s3api_arrival_begin(upload, number, length, &failure);

    assert_non_null(arrival);
    return arrival;
}

static bool write_part(struct s3api_arrival *arrival, unsigned seed, uint64_t length)
{
    struct failure failure = {.is_set = false};

    return s3api_arrival_write(arrival, bytes_of(seed), (size_t)length, &failure);
}

static bool finish_part(struct s3api_arrival *arrival, struct s3api_part *out_part)
{
    const struct s3api_part_checksum checksum = {"CRC32", "AAAAAA=="};
    struct failure failure = {.is_set = false};
    const bool is_finished = s3api_arrival_finish(arrival, &checksum, 1, out_part, &failure);

    s3api_arrival_end(arrival);
    return is_finished;
}

static struct s3api_part send(struct s3api_upload *upload, uint32_t number, unsigned seed,
                              uint64_t length)
{
    struct s3api_arrival *arrival = begin_part(upload, number, length);
    struct s3api_part part;

    assert_true(write_part(arrival, seed, length));
    assert_true(finish_part(arrival, &part));
    assert_int_equal(part.number, number);
    assert_int_equal(part.length, length);
    return part;
}

struct list {
    struct s3api_named_part parts[8];
    size_t count;
};

static void name(struct list *list, const struct s3api_part *part)
{
    struct s3api_named_part *named = &list->parts[list->count++];

    *named = (struct s3api_named_part){.number = part->number};
    s3api_part_etag(part, named->etag);
}

static struct s3api_completion complete_with(struct s3api_upload *upload, struct list *list,
                                             struct preconditions preconditions)
{
    const struct s3api_named_parts named = {list->parts, list->count, list->count};
    struct s3api_completion completion = {.upload = upload,
                                          .named = &named,
                                          .preconditions = preconditions,
                                          .stated_bytes = UINT64_MAX};
    bool is_done;

    is_done = s3api_completion_run(&completion);
    assert_int_equal(is_done, !completion.failure.is_set);
    s3api_completion_free(&completion);
    return completion;
}

static struct s3api_completion complete(struct s3api_upload *upload, struct list *list)
{
    return complete_with(upload, list, (struct preconditions){.if_match = NULL});
}

struct expected {
    unsigned seed;
    uint64_t length;
};

static void assert_file_is(const struct world *world, const struct expected *parts, size_t count)
{
    uint8_t *found = malloc(UNIT + 1);
    char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/" KEY, world->root);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_non_null(found);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fread(found, 1, (size_t)parts[i].length, file), parts[i].length);
        assert_memory_equal(found, bytes_of(parts[i].seed), (size_t)parts[i].length);
    }
    assert_int_equal(fread(found, 1, 1, file), 0);
    fclose(file);
    free(found);
}

static bool file_exists(const struct world *world)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/" KEY, world->root);
    return access(path, F_OK) == 0;
}

/* Returns how many files are in the upload's folder. */
static unsigned count_files(const struct world *world, const struct s3api_upload *upload)
{
    char path[300];
    unsigned count = 0;
    const struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "%s/.ztserve-uploads/%s", world->root, upload->kept.entry.id);
    folder = opendir(path);
    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void end_upload(struct world *world, struct s3api_upload *upload)
{
    world_command(world, "rm -rf folder");
    kept_upload_release(upload);
}

struct order {
    const char *name;
    uint32_t numbers[4]; /* in the order of sending; all but part 4 are UNIT bytes long */
};

static const struct order orders[] = {
    {"in order", {1, 2, 3, 4}},
    {"boto3's", {3, 1, 2, 4}},
    {"the short last part first", {4, 2, 1, 3}},
};

WITH_UPLOADS(parts_in_any_order_and_over_a_restart_become_the_file)
{
    const struct expected expected[] = {{1, UNIT}, {2, UNIT}, {3, UNIT}, {4, 7}};

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct s3api_upload *upload = begin(world);
        struct s3api_part parts[5];
        struct list list = {.count = 0};

        print_message("%s\n", orders[i].name);
        for (size_t j = 0; j < 4; j++) {
            const uint32_t number = orders[i].numbers[j];

            parts[number] = send(upload, number, number, number == 4 ? 7 : UNIT);
            if (j == 1)
                upload = after_restart(world, upload);
        }
        assert_int_equal(s3api_parts_plan(&upload->parts, upload->parts.parts, 4),
                         S3API_JOIN_IN_PLACE);
        for (size_t j = 1; j <= 4; j++)
            name(&list, &parts[j]);
        assert_false(file_exists(world));
        assert_false(complete(upload, &list).failure.is_set);
        assert_file_is(world, expected, 4);
        assert_int_equal(s3api_upload_state(upload), S3API_UPLOAD_PUBLISHED);
        end_upload(world, upload);
    }
}

WITH_UPLOADS(unequal_parts_and_some_of_the_parts_are_joined_by_copying)
{
    struct s3api_upload *upload = begin(world);
    struct list list = {.count = 0};
    struct s3api_part part = send(upload, 1, 1, UNIT);

    name(&list, &part);
    part = send(upload, 3, 3, UNIT + 1);
    name(&list, &part);
    (void)send(upload, 4, 4, UNIT);
    part = send(upload, 9, 9, 0);
    name(&list, &part);
    assert_false(complete(upload, &list).failure.is_set);
    assert_file_is(world, (const struct expected[]){{1, UNIT}, {3, UNIT + 1}}, 2);
    /* Only the description and the records remain, for the outcome. */
    assert_int_equal(count_files(world, upload), 2);
    end_upload(world, upload);
}

WITH_UPLOADS(part_that_was_sent_again_counts_once_it_is_acknowledged)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_part first = send(upload, 1, 1, UNIT);
    struct s3api_arrival *again = begin_part(upload, 1, UNIT);
    struct list list = {.count = 0};
    struct s3api_part second;

    assert_true(write_part(again, 2, UNIT));
    assert_int_equal(s3api_parts_find(&upload->parts, 1)->xxh3, first.xxh3);
    assert_true(finish_part(again, &second));
    name(&list, &first);
    assert_int_equal(complete(upload, &list).refusal, S3API_REFUSAL_PART);
    upload = after_restart(world, upload);
    list.count = 0;
    name(&list, &second);
    assert_false(complete(upload, &list).failure.is_set);
    assert_file_is(world, (const struct expected[]){{2, UNIT}}, 1);
    end_upload(world, upload);
}

WITH_UPLOADS(part_that_was_not_finished_leaves_the_acknowledged_one)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_part part = send(upload, 1, 1, UNIT);
    struct s3api_arrival *other = begin_part(upload, 2, UNIT);
    struct s3api_arrival *again = begin_part(upload, 1, UNIT);
    struct list list = {.count = 0};

    assert_true(write_part(other, 5, 100));
    assert_true(write_part(again, 5, 100));
    s3api_arrival_end(other);
    s3api_arrival_end(again);
    name(&list, &part);
    assert_false(complete(upload, &list).failure.is_set);
    assert_file_is(world, (const struct expected[]){{1, UNIT}}, 1);
    end_upload(world, upload);
}

WITH_UPLOADS(completing_and_aborting_stop_parts_that_are_arriving)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_part part = send(upload, 1, 1, UNIT);
    struct s3api_arrival *stale = begin_part(upload, 2, UNIT);
    struct s3api_arrival *full = begin_part(upload, 3, 10);
    struct failure failure = {.is_set = false};
    struct list list = {.count = 0};

    assert_true(write_part(stale, 5, 100));
    assert_true(write_part(full, 5, 10));
    name(&list, &part);
    assert_false(complete(upload, &list).failure.is_set);
    assert_false(write_part(stale, 5, 100));
    assert_false(finish_part(full, &part));
    s3api_arrival_end(stale);
    assert_file_is(world, (const struct expected[]){{1, UNIT}}, 1);
    end_upload(world, upload);

    upload = begin(world);
    stale = begin_part(upload, 1, UNIT);
    assert_true(write_part(stale, 5, 100));
    assert_true(s3api_upload_abort(upload, &failure));
    assert_false(write_part(stale, 5, 100));
    s3api_arrival_end(stale);
    assert_int_equal(count_files(world, upload), 0);
    assert_null(find(world, upload->kept.entry.id));
    end_upload(world, upload);
}

WITH_UPLOADS(outcome_is_repeated_also_after_a_restart)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_part part = send(upload, 2, 1, 10);
    struct list list = {.count = 0};
    struct s3api_completion first;
    struct s3api_completion again;

    name(&list, &part);
    first = complete(upload, &list);
    assert_false(first.failure.is_set || first.is_repeated);
    again = complete(upload, &list);
    assert_true(again.is_repeated && !again.failure.is_set);
    assert_string_equal(again.published.etag, first.published.etag);
    upload = after_restart(world, upload);
    again = complete(upload, &list);
    assert_true(again.is_repeated && !again.failure.is_set);
    assert_memory_equal(again.published.sha256, first.published.sha256, 32);
    end_upload(world, upload);
}

WITH_UPLOADS(refused_completion_keeps_every_part)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_part parts[3] = {send(upload, 1, 1, UNIT - 1), send(upload, 2, 2, UNIT),
                                  send(upload, 3, 3, 3)};
    struct list list = {.count = 0};

    for (size_t i = 0; i < 3; i++)
        name(&list, &parts[i]);
    assert_int_equal(complete(upload, &list).refusal, S3API_REFUSAL_SMALL);
    parts[0] = send(upload, 1, 1, UNIT);
    list.count = 0;
    for (size_t i = 0; i < 3; i++)
        name(&list, &parts[i]);
    assert_int_equal(
        complete_with(upload, &list, (struct preconditions){.if_match = "\"x\""}).failure.problem,
        PROBLEM_PRECONDITION_FAILED);
    upload = after_restart(world, upload);
    assert_int_equal(s3api_upload_state(upload), S3API_UPLOAD_OPEN);
    assert_string_equal(upload->terms.metadata, "x-amz-meta-a\nb c\n");
    assert_string_equal(upload->terms.algorithm, "CRC32");
    assert_false(complete(upload, &list).failure.is_set);
    assert_file_is(world, (const struct expected[]){{1, UNIT}, {2, UNIT}, {3, 3}}, 3);
    end_upload(world, upload);
}

WITH_UPLOADS(uploads_expire_with_silent_parts)
{
    struct s3api_upload *upload = begin(world);
    struct s3api_arrival *silent = begin_part(upload, 1, UNIT);

    kept_uploads_expire(world->server.kept);
    assert_int_equal(s3api_upload_state(upload), S3API_UPLOAD_OPEN);
    atomic_fetch_sub(&upload->kept.entry.touched_ms, (int64_t)1000 * 1000 * 1000);
    kept_uploads_expire(world->server.kept);
    assert_int_equal(s3api_upload_state(upload), S3API_UPLOAD_GONE);
    assert_int_equal(count_files(world, upload), 0);
    s3api_arrival_end(silent);
    end_upload(world, upload);
}
