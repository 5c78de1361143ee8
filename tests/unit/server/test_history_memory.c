/* Each allocation of the history fails. */
#include "history_world.h"
#include "survives.h"

#include <openssl/err.h>

/* Made before memory runs out. */
static struct described first;
static struct described second;
static char first_id[HISTORY_COMMIT_SIZE];

static enum zt_status record_files(struct world *world, const struct described *described)
{
    struct history_commit commit;
    enum zt_status status;

    assert_ok(history_lock(world->history, &world->repo, NULL));
    status =
        history_record(world->history, &world->repo,
                       &(struct history_head){HISTORY_MAIN, described->files, described->count},
                       &(struct history_note){.title = ""}, &commit, NULL);
    history_unlock(world->history, &world->repo);
    return status;
}

static enum zt_status record_two(struct world *world)
{
    const enum zt_status status = record_files(world, &first);

    return status == ZT_OK ? record_files(world, &second) : status;
}

static enum zt_status read_all(struct world *world)
{
    const struct history_tree *tree;
    struct history_commit *commits;
    struct history_ref *list;
    size_t count;
    enum zt_status status = history_refs(world->history, &world->repo, &list, &count, NULL);

    if (status != ZT_OK)
        return status;
    free(list);
    status = history_list(world->history, &world->repo,
                          &(struct history_range){zt_text_from("main"), UINT64_MAX, 9}, &commits,
                          &count, NULL);
    if (status != ZT_OK)
        return status;
    assert_true(count > 1);
    status = history_tree_get(world->history, &world->repo, commits[1].id, &tree, NULL);
    free(commits);
    if (status == ZT_OK)
        history_tree_release(tree);
    return status;
}

static enum zt_status change_all(struct world *world)
{
    bool more = true;
    enum zt_status status = set_ref(world, "v1", true, first_id, NULL);

    if (status == ZT_OK)
        status = history_squash(world->history, &world->repo, "main",
                                &(struct history_note){.title = ""}, NULL);
    if (status == ZT_OK)
        status = history_collect(world->history, 9, &more, NULL);
    return status;
}

static enum zt_status use(void *context)
{
    struct world *world = context;
    enum zt_status status = world_try_open(world, true);

    if (status == ZT_OK)
        status = record_two(world);
    if (status == ZT_OK)
        status = read_all(world);
    if (status == ZT_OK)
        status = change_all(world);
    history_close(world->history);
    world->history = NULL;
    ERR_clear_error(); /* They take memory. */
    return status;
}

WITH_HISTORY(each_allocation_may_fail)
{
    world->keep = (struct history_keep){.commits = 3, .bytes = 1};
    history_close(world->history);
    world->history = NULL;
    describe("a=1 b=2", &first);
    describe("a=2 b=2", &second);
    strcpy(first_id, id_of("a=1 b=2"));
    assert_survives(use, world);
    world_open(world);
    assert_ok(record_two(world));
    assert_ok(read_all(world));
}
