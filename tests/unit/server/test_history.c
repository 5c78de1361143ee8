/* Commits, branches and tags of a history, and what is forgotten. */
#include "history_world.h"

#include "store/versions/history_inside.h"

#include "base/workers.h"

WITH_HISTORY(record_makes_a_commit_that_is_found)
{
    record(world, "a=1 b=2");
    assert_string_equal(found(world, "main"), id_of("a=1 b=2"));
    assert_string_equal(found(world, "HEAD"), id_of("a=1 b=2"));
    assert_string_equal(found(world, "refs/heads/main"), id_of("a=1 b=2"));
    assert_string_equal(found(world, id_of("a=1 b=2")), id_of("a=1 b=2"));
    assert_string_equal(found(world, "refs/tags/main"), "");
    assert_string_equal(found(world, "nothing"), "");
    world_reopen(world);
    assert_string_equal(found(world, "main"), id_of("a=1 b=2"));
}

WITH_HISTORY(commit_has_the_tree_that_was_recorded)
{
    const struct history_tree *tree;
    const struct history_file *file;

    record(world, "a=1 b/c=22");
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(
            history_tree_get(world->history, &world->repo, found(world, "main"), &tree, NULL));
        assert_int_equal(tree->count, 2);
        assert_int_equal(tree->size_bytes, 3);
        file = history_tree_find(tree, zt_text_from("b/c"));
        assert_non_null(file);
        assert_string_equal(file->path, "b/c");
        assert_int_equal(file->size_bytes, 2);
        assert_int_equal(file->modified_ns, 7);
        assert_null(history_tree_find(tree, zt_text_from("b")));
        history_tree_release(tree);
        world_reopen(world);
    }
    assert_int_equal(history_tree_get(world->history, &world->repo, id_of("c=1"), &tree, NULL),
                     ZT_NOT_FOUND);
}

WITH_HISTORY(recording_the_same_files_changes_nothing)
{
    const uint64_t number = record(world, "a=1");

    assert_int_equal(record(world, "a=1"), number);
    assert_string_equal(titles(world, "main"), "a=1,");
}

WITH_HISTORY(state_that_comes_back_is_another_entry_of_the_same_commit)
{
    record(world, "a=1");
    record(world, "a=2");
    record(world, "a=1");
    assert_string_equal(titles(world, "main"), "a=1,a=2,a=1,");
    world_reopen(world);
    assert_string_equal(titles(world, "main"), "a=1,a=2,a=1,");
    assert_string_equal(titles(world, id_of("a=2")), "a=2,a=1,");
    assert_string_equal(found(world, "main"), id_of("a=1"));
}

WITH_HISTORY(list_continues_below_a_number)
{
    struct history_commit *commits;
    uint64_t second;
    size_t count;

    record(world, "a=1");
    second = record(world, "a=2");
    record(world, "a=3");
    assert_ok(history_list(world->history, &world->repo,
                           &(struct history_range){zt_text_from("main"), UINT64_MAX, 2}, &commits,
                           &count, NULL));
    assert_int_equal(count, 2);
    assert_int_equal(commits[1].number, second);
    assert_string_equal(commits[0].parent, id_of("a=2"));
    assert_string_equal(commits[0].client, "ci");
    assert_string_equal(commits[0].branch, "main");
    free(commits);
    assert_ok(history_list(world->history, &world->repo,
                           &(struct history_range){zt_text_from("main"), second, 2}, &commits,
                           &count, NULL));
    assert_int_equal(count, 1);
    assert_string_equal(commits[0].title, "a=1");
    assert_string_equal(commits[0].parent, "");
    free(commits);
}

WITH_HISTORY(oldest_commits_beyond_the_limit_are_forgotten)
{
    const struct history_tree *tree;

    world->keep.commits = 2;
    record(world, "a=1");
    record(world, "a=2");
    record(world, "a=3");
    assert_string_equal(titles(world, "main"), "a=3,a=2,");
    assert_string_equal(found(world, id_of("a=1")), "");
    assert_int_equal(history_tree_get(world->history, &world->repo, id_of("a=1"), &tree, NULL),
                     ZT_NOT_FOUND);
    world_reopen(world);
    assert_string_equal(titles(world, "main"), "a=3,a=2,");
}

WITH_HISTORY(commit_with_a_tag_is_kept)
{
    world->keep.commits = 1;
    record(world, "a=1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    record(world, "a=2");
    record(world, "a=3");
    assert_string_equal(found(world, "v1"), id_of("a=1"));
    assert_string_equal(found(world, id_of("a=2")), "");
    assert_string_equal(titles(world, "main"), "a=3,");
    assert_ok(history_delete_ref(world->history, &world->repo, "v1", true, NULL));
    assert_string_equal(found(world, id_of("a=1")), "");
}

WITH_HISTORY(tag_keeps_the_entry_when_its_commit_recurs)
{
    world->keep.commits = 1;
    record(world, "a=1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    record(world, "a=2");
    record(world, "a=1");
    record(world, "a=3");
    assert_string_equal(titles(world, "v1"), "a=1,");
    world_reopen(world);
    assert_string_equal(found(world, "v1"), id_of("a=1"));
    assert_string_equal(titles(world, "main"), "a=3,");
}

WITH_HISTORY(branches_and_tags_are_made_moved_and_deleted)
{
    record(world, "a=1");
    record(world, "a=2");
    assert_ok(set_ref(world, "dev", false, id_of("a=1"), ""));
    assert_int_equal(set_ref(world, "dev", false, id_of("a=1"), ""), ZT_ARGUMENT);
    assert_int_equal(set_ref(world, "dev", false, id_of("a=2"), id_of("a=2")), ZT_ARGUMENT);
    assert_ok(set_ref(world, "dev", false, id_of("a=2"), id_of("a=1")));
    assert_ok(set_ref(world, "dev", true, id_of("a=1"), NULL));
    assert_int_equal(set_ref(world, "other", false, id_of("a=3"), ""), ZT_NOT_FOUND);
    assert_int_equal(set_ref(world, "main", false, id_of("a=1"), NULL), ZT_ARGUMENT);
    assert_int_equal(set_ref(world, "a..b", false, id_of("a=1"), NULL), ZT_ARGUMENT);
    assert_string_equal(refs(world), "b:dev t:dev b:main ");
    assert_string_equal(found(world, "dev"), id_of("a=2"));
    assert_string_equal(found(world, "refs/tags/dev"), id_of("a=1"));
    world_reopen(world);
    assert_string_equal(refs(world), "b:dev t:dev b:main ");
    assert_ok(history_delete_ref(world->history, &world->repo, "dev", false, NULL));
    assert_int_equal(history_delete_ref(world->history, &world->repo, "dev", false, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(history_delete_ref(world->history, &world->repo, "main", false, NULL),
                     ZT_ARGUMENT);
    assert_string_equal(found(world, "dev"), id_of("a=1"));
}

WITH_HISTORY(commit_to_a_branch_needs_its_files)
{
    struct history_commit commit;

    record(world, "a=1");
    assert_ok(set_ref(world, "dev", false, id_of("a=1"), ""));
    assert_int_equal(try_record_on(world, "dev", "a=1 b=9", &commit), ZT_NOT_FOUND);
    keep(world, "9");
    assert_ok(try_record_on(world, "dev", "a=1 b=9", &commit));
    assert_string_equal(commit.parent, id_of("a=1"));
    assert_string_equal(titles(world, "dev"), "a=1 b=9,a=1,");
    assert_string_equal(titles(world, "main"), "a=1,");
}

WITH_HISTORY(squash_leaves_one_commit_with_the_same_files)
{
    struct history_commit commit;
    const struct history_note note = {.title = "all"};

    record(world, "a=1");
    record(world, "a=2");
    keep(world, "3");
    keep(world, "4");
    assert_ok(set_ref(world, "dev", false, id_of("a=2"), ""));
    assert_ok(try_record_on(world, "dev", "a=3", &commit));
    assert_ok(try_record_on(world, "dev", "a=4", &commit));
    assert_ok(history_squash(world->history, &world->repo, "dev", &note, NULL));
    assert_string_equal(titles(world, "dev"), "all,");
    assert_string_equal(found(world, "dev"), id_of("a=4"));
    assert_string_equal(found(world, id_of("a=3")), "");
    assert_string_equal(titles(world, "main"), "a=2,a=1,");
    assert_int_equal(history_squash(world->history, &world->repo, "none", &note, NULL),
                     ZT_NOT_FOUND);
    world_reopen(world);
    assert_string_equal(titles(world, "dev"), "all,");
}

WITH_HISTORY(purge_forgets_everything_but_not_the_numbers)
{
    const uint64_t number = record(world, "a=1");

    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_purge(world->history, &world->repo, NULL));
    history_unlock(world->history, &world->repo);
    assert_string_equal(refs(world), "");
    assert_string_equal(found(world, id_of("a=1")), "");
    world_reopen(world);
    assert_string_equal(refs(world), "");
    assert_true(record(world, "a=1") > number);
}

WITH_HISTORY(repositories_of_one_name_are_apart)
{
    struct history_repo other = {.is_root_model = true, .name = "org/model"};

    record(world, "a=1");
    world->repo = other;
    assert_string_equal(found(world, "main"), "");
    record(world, "a=2");
    world->repo.is_root_model = false;
    assert_string_equal(titles(world, "main"), "a=1,");
}

struct counting {
    struct waiter waiter;
    unsigned woken;
};

static void count(struct waiter *waiter)
{
    ((struct counting *)waiter)->woken++;
}

WITH_HISTORY(waiter_is_woken_by_commits_and_by_tags)
{
    struct counting counting = {.waiter = {.wake = count}};
    uint64_t last;

    record(world, "a=1");
    assert_false(history_wait(world->history, &world->repo, 0, &counting.waiter));
    assert_ok(history_last_change(world->history, &world->repo, &last, NULL));
    assert_true(history_wait(world->history, &world->repo, last, &counting.waiter));
    record(world, "a=2");
    assert_int_equal(counting.woken, 1);
    assert_ok(history_last_change(world->history, &world->repo, &last, NULL));
    assert_true(history_wait(world->history, &world->repo, last, &counting.waiter));
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    assert_int_equal(counting.woken, 2);
    assert_ok(history_last_change(world->history, &world->repo, &last, NULL));
    assert_true(history_wait(world->history, &world->repo, last, &counting.waiter));
    assert_true(history_forget_waiter(world->history, &counting.waiter));
    assert_false(history_forget_waiter(world->history, &counting.waiter));
    record(world, "a=3");
    assert_int_equal(counting.woken, 2);
}

WITH_HISTORY(change_waits_for_another_one_but_not_for_ever)
{
    struct history_commit commit;
    struct history_repo other = {.name = "org/other"};
    struct zt_error error;

    world->history->wait_ms = 0;
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_int_equal(history_lock(world->history, &world->repo, &error), ZT_UNAVAILABLE);
    assert_string_equal(error.message,
                        "another request is changing the repository org/model; try again");
    assert_int_equal(set_ref(world, "v1", true, id_of("a=1"), NULL), ZT_UNAVAILABLE);
    assert_ok(history_lock(world->history, &other, NULL));
    history_unlock(world->history, &other);
    history_unlock(world->history, &world->repo);
    assert_ok(try_record_on(world, HISTORY_MAIN, "a=1", &commit));
}
