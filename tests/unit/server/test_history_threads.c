/* Threads that record, read and collect at the same time. */
#include "history_world.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define WRITERS 2
#define UPDATES 60

struct writer {
    struct world *world;
    struct history_repo repo;
    unsigned number;
};

static atomic_uint writing;

static void sha_of_update(const struct writer *writer, unsigned update, char out_text[32],
                          uint8_t out_sha256[32])
{
    snprintf(out_text, 32, "%u:%u", writer->number, update);
    sha_of(out_text, out_sha256);
}

/* Keeps and replaces a file, and names it in a commit. */
static void *write_commits(void *argument)
{
    const struct writer *writer = argument;
    struct world *world = writer->world;
    char name[32];
    char text[32];

    snprintf(name, sizeof(name), "file%u", writer->number);
    for (unsigned i = 0; i < UPDATES; i++) {
        struct history_file file = {.path = "a"};
        struct history_ref ref = {.name = "tag", .is_tag = true};
        struct history_commit commit;
        struct file_identity identity;
        uint8_t before[32];

        assert_ok(history_lock(world->history, &writer->repo, NULL));
        if (i > 0) {
            sha_of_update(writer, i - 1, text, before);
            identity = identity_in(world, name);
            assert_ok(history_keep_file(world->history, name, &identity, before, NULL));
        }
        sha_of_update(writer, i, text, file.sha256);
        put(world, name, text);
        file.size_bytes = strlen(text);
        assert_ok(history_record(world->history, &writer->repo,
                                 &(struct history_head){HISTORY_MAIN, &file, 1},
                                 &(struct history_note){.title = text}, &commit, NULL));
        history_unlock(world->history, &writer->repo);
        if (i % 8 == 5) {
            strcpy(ref.commit, commit.parent);
            assert_ok(history_set_ref(world->history, &writer->repo, &ref, NULL, NULL));
        }
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

/* Each commit except the last has a file that is kept, as long as it is not forgotten. */
static void read_commit(const struct writer *writer, const char *id)
{
    struct history *history = writer->world->history;
    const struct history_tree *tree;
    struct file_identity identity;
    struct history_found result;
    enum zt_status status = history_tree_get(history, &writer->repo, id, &tree, NULL);

    if (status == ZT_OK) {
        status = history_stat_kept(history, tree->files[0].sha256, &identity, NULL);
        history_tree_release(tree);
    }
    assert_true(status == ZT_OK || status == ZT_NOT_FOUND);
    if (status == ZT_NOT_FOUND)
        assert_int_equal(history_find(history, &writer->repo, zt_text_from(id), &result, NULL),
                         ZT_NOT_FOUND);
}

static void *read_commits(void *argument)
{
    const struct writer *writer = argument;

    while (atomic_load(&writing) > 0) {
        struct history_commit *commits;
        size_t count;
        const enum zt_status status = history_list(
            writer->world->history, &writer->repo,
            &(struct history_range){zt_text_from("main"), UINT64_MAX, 9}, &commits, &count, NULL);

        assert_true(status == ZT_OK || status == ZT_NOT_FOUND);
        if (status != ZT_OK)
            continue;
        for (size_t i = 1; i < count; i++)
            read_commit(writer, commits[i].id);
        free(commits);
    }
    return NULL;
}

static void *collect_files(void *argument)
{
    struct world *world = argument;
    bool more;

    while (atomic_load(&writing) > 0)
        assert_ok(history_collect(world->history, 3, &more, NULL));
    return NULL;
}

WITH_HISTORY(no_commit_loses_a_file_while_others_are_collected)
{
    struct writer writers[WRITERS];
    struct history_report report;
    pthread_t threads[2 * WRITERS + 1];

    world->keep.commits = 3;
    atomic_store(&writing, WRITERS);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.world = world, .number = i};
        snprintf(writers[i].repo.name, sizeof(writers[i].repo.name), "repo%u", i);
        assert_int_equal(pthread_create(&threads[i], NULL, write_commits, &writers[i]), 0);
        assert_int_equal(pthread_create(&threads[WRITERS + i], NULL, read_commits, &writers[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[2 * WRITERS], NULL, collect_files, world), 0);
    for (unsigned i = 0; i < 2 * WRITERS + 1; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    collect_all(world);
    collect_all(world);
    history_report(world->history, &report);
    /* Of each repository two commits before the last one, and one with the tag. */
    assert_int_equal(report.commits, 4 * WRITERS);
    assert_int_equal(report.kept_files, 3 * WRITERS);
    assert_true(report.removed_files == WRITERS * (UPDATES - 4));
}

struct changer_thread {
    struct world *world;
    unsigned *value;
    atomic_int *inside;
};

static void *change_alone(void *argument)
{
    const struct changer_thread *changer = argument;

    for (unsigned i = 0; i < 1000; i++) {
        assert_ok(history_lock(changer->world->history, &changer->world->repo, NULL));
        assert_int_equal(atomic_fetch_add(changer->inside, 1), 0);
        sched_yield();
        atomic_fetch_sub(changer->inside, 1);
        ++*changer->value;
        history_unlock(changer->world->history, &changer->world->repo);
    }
    return NULL;
}

WITH_HISTORY(one_thread_changes_a_repository)
{
    unsigned value = 0;
    atomic_int inside = 0;
    struct changer_thread changer = {world, &value, &inside};
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_alone, &changer), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(value, 4000);
}
