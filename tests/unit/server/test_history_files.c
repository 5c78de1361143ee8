/* Files that a history keeps, restores and removes. */
#include "history_world.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

static time_t ahead_s;

/* Instead of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, out_time);

    if (clock == CLOCK_REALTIME)
        out_time->tv_sec += ahead_s;
    return result;
}

WITH_HISTORY(replaced_file_is_kept_and_restored)
{
    struct file_identity identity;
    uint8_t sha256[32];
    char bytes[8] = "";
    struct zt_source *source;

    record(world, "a=old");
    keep(world, "old");
    put(world, "org/model/a", "new");
    sha_of("old", sha256);
    assert_ok(history_open_kept(world->history, sha256, &source, &identity, NULL));
    assert_ok(zt_source_read_at(source, 0, bytes, 3, NULL));
    assert_string_equal(bytes, "old");
    assert_int_equal(identity.size_bytes, 3);
    zt_source_close(source);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(history_restore(world->history, sha256, "org/model/a", NULL));
        assert_int_equal(identity_in(world, "org/model/a").inode, identity.inode);
        run_in(world->path, "[ \"$(ls -A)\" = \"$(printf '.ztserve\\norg')\" ]");
    }
    assert_true(is_kept(world, "old"));
}

WITH_HISTORY(changed_file_is_not_kept)
{
    struct file_identity identity;

    put(world, "file", "one");
    identity = identity_in(world, "file");
    put(world, "file", "two");
    assert_int_equal(keep_as(world, "file", &identity, "one"), ZT_STALE);
    assert_false(is_kept(world, "one"));
    assert_int_equal(unlinkat(world->root, "file", 0), 0);
    assert_int_equal(keep_as(world, "file", &identity, "one"), ZT_STALE);
}

WITH_HISTORY(only_the_kept_file_is_removed)
{
    struct file_identity identity;

    put(world, "file", "one");
    identity = identity_in(world, "file");
    assert_ok(keep_as(world, "file", &identity, "one"));
    put(world, "file", "two");
    assert_int_equal(history_remove_path(world->history, "file", &identity, NULL), ZT_STALE);
    assert_int_equal(identity_in(world, "file").size_bytes, 3);
    identity = identity_in(world, "file");
    /* The link changes the time of change. */
    assert_ok(keep_as(world, "file", &identity, "two"));
    assert_ok(history_remove_path(world->history, "file", &identity, NULL));
    assert_int_equal(history_remove_path(world->history, "file", &identity, NULL), ZT_NOT_FOUND);
}

/* Another program may have written into the file that is kept. */
WITH_HISTORY(file_is_kept_in_place_of_one_of_another_time)
{
    struct file_identity identity;
    struct history_report report;
    struct file_identity kept;
    struct zt_source *source;
    uint8_t sha256[32];
    char bytes[8] = "";

    keep(world, "one");
    sha_of("one", sha256);
    run_in(world->path, "printf bad > $(find .ztserve/versions/objects -type f)");
    assert_ok(history_open_kept(world->history, sha256, &source, &kept, NULL));
    put(world, "file", "one");
    run_in(world->path, "touch -d 2001-01-01 file");
    identity = identity_in(world, "file");
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(keep_as(world, "file", &identity, "one"));
        identity = identity_in(world, "file");
        assert_ok(history_stat_kept(world->history, sha256, &kept, NULL));
        assert_int_equal(kept.inode, identity.inode);
    }
    assert_ok(zt_source_read_at(source, 0, bytes, 3, NULL));
    assert_string_equal(bytes, "bad");
    zt_source_close(source);
    run_in(world->path, "[ -z \"$(ls -A .ztserve/versions/removed)\" ]");
    history_report(world->history, &report);
    assert_int_equal(report.kept_files, 1);
}

WITH_HISTORY(file_of_the_time_of_the_kept_one_is_not_kept_again)
{
    struct file_identity identity;
    struct file_identity first;
    struct file_identity kept;
    uint8_t sha256[32];

    put(world, "file", "one");
    first = identity_in(world, "file");
    assert_ok(keep_as(world, "file", &first, "one"));
    run_in(world->path, "cp -p file copy && mv copy file");
    identity = identity_in(world, "file");
    assert_ok(keep_as(world, "file", &identity, "one"));
    sha_of("one", sha256);
    assert_ok(history_stat_kept(world->history, sha256, &kept, NULL));
    assert_int_equal(kept.inode, first.inode);
}

WITH_HISTORY(staged_file_is_kept_without_a_name)
{
    struct staged_file *file;
    uint8_t sha256[32];
    const unsigned descriptors = open_descriptors();

    for (unsigned i = 0; i < 2; i++) {
        assert_ok(staging_create(&world->staging, 3, &file, NULL));
        assert_ok(staged_file_write_at(file, 0, "one", 3, NULL));
        assert_ok(staged_file_sync(file, NULL));
        sha_of("one", sha256);
        assert_ok(history_lock(world->history, &world->repo, NULL));
        assert_ok(history_keep_staged(world->history, file, sha256, NULL));
        history_unlock(world->history, &world->repo);
        assert_true(is_kept(world, "one"));
        assert_int_equal(open_descriptors(), descriptors);
    }
    run_in(world->path, "[ \"$(ls -A)\" = \"$(printf '.ztserve\\norg')\" ]");
}

WITH_HISTORY(collection_removes_only_what_no_commit_names)
{
    struct history_report report;
    bool more;

    record(world, "a=1 b=2");
    keep(world, "1");
    keep(world, "2");
    keep(world, "3");
    collect_all(world);
    assert_true(is_kept(world, "1"));
    assert_true(is_kept(world, "2"));
    assert_false(is_kept(world, "3"));
    history_report(world->history, &report);
    assert_int_equal(report.repositories, 1);
    assert_int_equal(report.commits, 1);
    assert_int_equal(report.kept_files, 2);
    assert_int_equal(report.kept_bytes, 2);
    assert_int_equal(report.removed_files, 1);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_purge(world->history, &world->repo, NULL));
    history_unlock(world->history, &world->repo);
    assert_ok(history_collect(world->history, 1, &more, NULL));
    assert_true(more);
    assert_ok(history_collect(world->history, 1, &more, NULL));
    assert_false(more);
    assert_false(is_kept(world, "1") || is_kept(world, "2"));
    history_report(world->history, &report);
    assert_int_equal(report.kept_files, 0);
    assert_int_equal(report.kept_bytes, 0);
    assert_int_equal(report.removed_files, 3);
}

WITH_HISTORY(files_that_are_kept_for_a_commit_in_progress_stay)
{
    struct history_commit commit;
    struct described described;
    uint8_t sha256[32];
    struct file_identity identity;

    keep(world, "3");
    record(world, "a=1");
    collect_all(world);
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    record(world, "a=3");
    world->keep.commits = 1;
    assert_ok(history_delete_ref(world->history, &world->repo, "v1", true, NULL));
    put(world, "file", "2");
    identity = identity_in(world, "file");
    sha_of("2", sha256);
    describe("a=2", &described);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_keep_file(world->history, "file", &identity, sha256, NULL));
    collect_all(world);
    collect_all(world);
    assert_ok(history_record(world->history, &world->repo,
                             &(struct history_head){"dev", described.files, 1},
                             &(struct history_note){.title = ""}, &commit, NULL));
    history_unlock(world->history, &world->repo);
    collect_all(world);
    assert_true(is_kept(world, "2"));
}

WITH_HISTORY(file_that_is_named_again_is_not_removed)
{
    struct history_commit commit;
    bool more;

    keep(world, "1");
    keep(world, "2");
    assert_ok(history_collect(world->history, 0, &more, NULL));
    assert_true(more);
    assert_ok(try_record_on(world, "dev", "a=2", &commit));
    collect_all(world);
    assert_false(is_kept(world, "1"));
    assert_true(is_kept(world, "2"));
}

WITH_HISTORY(oldest_commits_go_when_too_many_bytes_are_kept)
{
    world->keep = (struct history_keep){.bytes = 20};
    record(world, "a=0123456789");
    keep(world, "0123456789");
    record(world, "a=1123456789");
    keep(world, "1123456789");
    world->repo = (struct history_repo){.name = "other"};
    record(world, "a=2123456789");
    keep(world, "2123456789");
    record(world, "a=3");
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=3,a=2123456789,");
    world->repo = (struct history_repo){.name = "org/model"};
    assert_string_equal(titles(world, "main"), "a=1123456789,");
    assert_false(is_kept(world, "0123456789"));
    assert_true(is_kept(world, "1123456789"));
    assert_true(is_kept(world, "2123456789"));
}

WITH_HISTORY(old_commits_are_forgotten_unless_they_have_a_tag)
{
    world->keep = (struct history_keep){.age_s = 3600};
    record(world, "a=1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), ""));
    record(world, "a=2");
    record(world, "a=3");
    ahead_s = 1800;
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=3,a=2,a=1,");
    ahead_s = 3700;
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=3,");
    assert_string_equal(found(world, "v1"), id_of("a=1"));
    assert_string_equal(found(world, id_of("a=2")), "");
    ahead_s = 0;
}

WITH_HISTORY(age_of_a_commit_counts_from_the_next_one)
{
    world->keep = (struct history_keep){.age_s = 3600};
    record(world, "a=1");
    ahead_s = 3700;
    record(world, "a=2");
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=2,a=1,");
    assert_false(history_is_due(world->history));
    ahead_s = 7400;
    assert_true(history_is_due(world->history));
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=2,");
    assert_false(history_is_due(world->history));
    ahead_s = 0;
}

/* A process was killed before it had written the first entry of a log. */
WITH_HISTORY(lists_of_files_without_a_log_are_removed)
{
    char command[512];

    snprintf(command, sizeof(command),
             "mkdir -p .ztserve/versions/repos/%064d/trees && cd .ztserve/versions/repos/%064d && "
             "touch trees/%040d trees/%040d.new log.new",
             0, 0, 0, 0);
    run_in(world->path, command);
    record(world, "a=1");
    world_reopen(world);
    collect_all(world);
    run_in(world->path, "[ -z \"$(find .ztserve/versions/repos/000* -type f)\" ]");
    assert_string_equal(titles(world, "main"), "a=1,");
}
