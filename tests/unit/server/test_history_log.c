/* Logs and lists of files that are cut, damaged or large. */
#include "history_world.h"

#include "disk/whole_file.h"
#include "store/versions/history_inside.h"

/* Tests survive no power failure, so files are not synced. */
int fsync(int descriptor)
{
    (void)descriptor;
    return 0;
}

int fdatasync(int descriptor)
{
    (void)descriptor;
    return 0;
}

/* The folder of the only repository. */
static int open_repo(const struct world *world)
{
    char path[512];
    FILE *pipe;
    int folder;

    snprintf(path, sizeof(path), "echo -n %s/.ztserve/versions/repos/*", world->path);
    pipe = popen(path, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(path, sizeof(path), pipe));
    pclose(pipe);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    return folder;
}

/* A log with an entry for each record, and its lengths after each. */
struct image {
    uint8_t *bytes;
    size_t length;
    size_t lengths[4];
};

static void make_image(struct world *world, int *out_folder, struct image *out_image)
{
    static const char *const texts[] = {"a=1", "a=2", "a=3", "a=4"};

    for (unsigned i = 0; i < 4; i++) {
        record(world, texts[i]);
        *out_folder = open_repo(world);
        out_image->bytes = whole_file_read(*out_folder, "log", 1 << 20, &out_image->lengths[i]);
        assert_non_null(out_image->bytes);
        if (i < 3) {
            free(out_image->bytes);
            close(*out_folder);
        }
    }
    out_image->length = out_image->lengths[3];
    history_close(world->history);
    world->history = NULL;
}

WITH_HISTORY(every_prefix_of_a_log_has_the_commits_that_are_whole)
{
    static const char *const expected[] = {"a=1,", "a=2,a=1,", "a=3,a=2,a=1,", "a=4,a=3,a=2,a=1,"};
    struct image image;
    int folder;

    make_image(world, &folder, &image);
    for (size_t length = image.length; length >= image.lengths[0]; length--) {
        unsigned whole = 0;

        while (whole < 3 && image.lengths[whole + 1] <= length)
            whole++;
        assert_true(whole_file_replace(folder, "log", image.bytes, length));
        world_open(world);
        assert_string_equal(titles(world, "main"), expected[whole]);
        /* Only the last record may be an append that was not completed. */
        if (length == image.lengths[2])
            run_in(world->path, "[ -z \"$(find .ztserve -name '*damaged*')\" ]");
        if (length % 7 == 0 && length < image.lengths[2]) {
            record(world, "a=9");
            world_reopen(world);
            assert_true(strncmp(titles(world, "main"), "a=9,", 4) == 0);
            assert_string_equal(titles(world, "main") + 4, expected[whole]);
        }
        history_close(world->history);
        world->history = NULL;
    }
    close(folder);
    free(image.bytes);
}

/* After a power failure, zeros may be in place of what was appended last. */
WITH_HISTORY(log_that_ends_in_zeros_is_not_damaged)
{
    struct image image;
    int folder;

    make_image(world, &folder, &image);
    for (size_t at = image.lengths[2]; at < image.length - 7; at += 5) {
        memset(image.bytes + at, 0, image.length - at);
        assert_true(whole_file_replace(folder, "log", image.bytes, image.length));
        world_open(world);
        assert_string_equal(titles(world, "main"), "a=3,a=2,a=1,");
        history_close(world->history);
        world->history = NULL;
    }
    run_in(world->path, "[ -z \"$(find .ztserve -name '*damaged*')\" ]");
    close(folder);
    free(image.bytes);
}

WITH_HISTORY(damage_within_a_log_costs_no_file_and_no_list_of_files)
{
    struct image image;
    int folder;
    bool more;

    for (unsigned i = 1; i < 4; i++)
        keep(world, (const char *[]){"1", "2", "3"}[i - 1]);
    make_image(world, &folder, &image);
    /* First a length, which then leads beyond the end. */
    for (size_t at = image.lengths[0] + 2; at < image.lengths[2]; at += 11) {
        image.bytes[at] ^= 0x20;
        run_in(world->path, "rm -f .ztserve/versions/repos/*/log.damaged-*");
        assert_true(whole_file_replace(folder, "log", image.bytes, image.length));
        assert_true(whole_file_replace(folder, "before", image.bytes, image.length));
        image.bytes[at] ^= 0x20;
        world_open(world);
        assert_string_equal(titles(world, "main"), at < image.lengths[1] ? "a=1," : "a=2,a=1,");
        record(world, "a=9");
        assert_int_equal(history_collect(world->history, 9, &more, NULL), ZT_IO);
        history_close(world->history);
        world->history = NULL;
        world_open(world);
        assert_int_equal(history_collect(world->history, 9, &more, NULL), ZT_IO);
        assert_true(is_kept(world, "1") && is_kept(world, "2") && is_kept(world, "3"));
        run_in(world->path, "cd .ztserve/versions/repos/* && cmp before log.damaged-* &&"
                            " [ $(ls trees | wc -l) = 5 ]");
        history_close(world->history);
        world->history = NULL;
    }
    /* The operator accepts the loss. */
    run_in(world->path, "rm .ztserve/versions/repos/*/log.damaged-*");
    world->keep.commits = 1;
    world_open(world);
    record(world, "a=8");
    collect_all(world);
    assert_false(is_kept(world, "3"));
    close(folder);
    free(image.bytes);
}

WITH_HISTORY(purge_removes_copies_of_damaged_logs)
{
    struct image image;
    int folder;

    make_image(world, &folder, &image);
    image.bytes[image.lengths[1] + 20] ^= 1;
    assert_true(whole_file_replace(folder, "log", image.bytes, image.length));
    world_open(world);
    assert_string_equal(titles(world, "main"), "a=2,a=1,");
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_purge(world->history, &world->repo, NULL));
    history_unlock(world->history, &world->repo);
    collect_all(world);
    run_in(world->path, "cd .ztserve/versions/repos/* && [ $(ls trees | wc -l) = 0 ] &&"
                        " [ \"$(ls -d log*)\" = log ]");
    close(folder);
    free(image.bytes);
}

/* Changes a byte in the last occurrence of a text. */
static void damage_text(struct world *world, int folder, const char *text)
{
    size_t length;
    uint8_t *bytes = whole_file_read(folder, "log", 1 << 20, &length);
    size_t at = length - strlen(text);

    assert_non_null(bytes);
    while (memcmp(bytes + at, text, strlen(text)) != 0)
        at--;
    history_close(world->history);
    world->history = NULL;
    bytes[at] ^= 1;
    assert_true(whole_file_replace(folder, "log", bytes, length));
    free(bytes);
    world_open(world);
}

WITH_HISTORY(damage_in_a_rewritten_log_costs_only_the_branches_and_tags_behind_it)
{
    int folder;

    world->history->file_bytes = 64 << 10; /* too short to append */
    record(world, "a=1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), NULL));
    record(world, "a=2");
    assert_ok(set_ref(world, "v2", true, id_of("a=2"), NULL));
    record(world, "a=3");
    assert_ok(set_ref(world, "v3", true, id_of("a=3"), NULL));
    folder = open_repo(world);
    damage_text(world, folder, "main"); /* the branch, behind the last entry */
    assert_string_equal(titles(world, "main"), "a=3,a=2,a=1,");
    damage_text(world, folder, "a=3");
    assert_string_equal(refs(world), "b:main t:v1 t:v2 ");
    assert_string_equal(titles(world, "main"), "a=2,a=1,");
    record(world, "a=9");
    world_reopen(world);
    assert_string_equal(titles(world, "main"), "a=9,a=2,a=1,");
    close(folder);
}

WITH_HISTORY(log_that_was_cut_costs_no_file_and_no_list_of_files)
{
    struct image image;
    int folder;
    bool more;

    keep(world, "3");
    make_image(world, &folder, &image);
    for (size_t length = image.lengths[1] + 1; length < image.lengths[2]; length += 3) {
        run_in(world->path, "rm -f .ztserve/versions/repos/*/log.damaged-*");
        assert_true(whole_file_replace(folder, "log", image.bytes, length));
        world_open(world);
        assert_string_equal(titles(world, "main"), "a=2,a=1,");
        assert_int_equal(history_collect(world->history, 9, &more, NULL), ZT_IO);
        assert_true(is_kept(world, "3"));
        run_in(world->path, "cd .ztserve/versions/repos/* && [ $(ls trees | wc -l) = 4 ]");
        history_close(world->history);
        world->history = NULL;
    }
    close(folder);
    free(image.bytes);
}

WITH_HISTORY(rewritten_log_that_was_cut_is_damaged)
{
    uint8_t *bytes;
    size_t length;
    int folder;

    world->history->file_bytes = 64 << 10; /* too short to append */
    record(world, "a=1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), NULL));
    folder = open_repo(world);
    bytes = whole_file_read(folder, "log", 1 << 20, &length);
    assert_non_null(bytes);
    assert_true(whole_file_replace(folder, "log", bytes, length - 3));
    world_reopen(world);
    assert_string_equal(refs(world), "b:main ");
    run_in(world->path, "[ -e .ztserve/versions/repos/*/log.damaged-* ]");
    free(bytes);
    close(folder);
}

WITH_HISTORY(log_at_its_limit_shrinks)
{
    const struct history_note note = {.title = "t", .message = NULL};
    char message[2000] = "";
    struct history_note long_note = note;
    struct history_commit commit;
    struct described described;
    char text[32];
    enum zt_status status = ZT_OK;

    memset(message, 'm', sizeof(message) - 1);
    long_note.message = message;
    world->history->file_bytes = 256 << 10;
    world->keep.commits = 1000;
    for (unsigned i = 0; status == ZT_OK && i < 1000; i++) {
        snprintf(text, sizeof(text), "a=%u", i);
        describe(text, &described);
        assert_ok(history_lock(world->history, &world->repo, NULL));
        status = history_record(world->history, &world->repo,
                                &(struct history_head){HISTORY_MAIN, described.files, 1},
                                &long_note, &commit, NULL);
        history_unlock(world->history, &world->repo);
    }
    assert_int_equal(status, ZT_LIMIT);
    world->keep.commits = 3;
    record(world, "a=x");
    assert_true(strncmp(titles(world, "main"), "a=x,t,t,", 8) == 0);
    world_reopen(world);
    assert_string_equal(titles(world, "main"), "a=x,t,t,");
}

static enum zt_status find_main(struct world *world)
{
    struct history_found result;

    return history_find(world->history, &world->repo, zt_text_from("main"), &result, NULL);
}

WITH_HISTORY(wrong_bytes_of_a_log_are_noticed)
{
    struct history_commit commit;
    struct image image;
    int folder;

    make_image(world, &folder, &image);
    for (size_t at = 0; at < image.length; at += 3) {
        enum zt_status status;
        bool more;

        image.bytes[at] ^= 0x20;
        assert_true(whole_file_replace(folder, "log", image.bytes, image.length));
        image.bytes[at] ^= 0x20;
        world_open(world);
        status = find_main(world);
        assert_true(status == ZT_OK || status == ZT_IO || status == ZT_NOT_FOUND);
        assert_true(strstr("-a=4,a=3,a=2,a=1,", status == ZT_IO ? "" : titles(world, "main")) !=
                    NULL);
        assert_true(status == ZT_IO || strncmp(titles(world, "main"), "a=4,", 4) != 0);
        /* A log that cannot be read must not cost files. */
        if (status == ZT_IO) {
            assert_int_equal(history_collect(world->history, 9, &more, NULL), ZT_IO);
            assert_int_equal(try_record_on(world, HISTORY_MAIN, "a=5", &commit), ZT_IO);
        }
        history_close(world->history);
        world->history = NULL;
    }
    close(folder);
    free(image.bytes);
}

WITH_HISTORY(damaged_list_of_files_is_reported)
{
    const struct history_tree *tree;
    char name[64];
    uint8_t *bytes;
    size_t length;
    int folder;

    record(world, "a=1 b=2");
    folder = open_repo(world);
    snprintf(name, sizeof(name), "trees/%s", id_of("a=1 b=2"));
    bytes = whole_file_read(folder, name, 1 << 20, &length);
    assert_non_null(bytes);
    for (size_t at = 0; at <= length; at++) {
        if (at < length)
            bytes[at] ^= 1;
        assert_true(whole_file_replace(folder, name, bytes, at < length ? length : length - 1));
        if (at < length)
            bytes[at] ^= 1;
        assert_int_equal(
            history_tree_get(world->history, &world->repo, id_of("a=1 b=2"), &tree, NULL), ZT_IO);
    }
    unlinkat(folder, name, 0);
    assert_int_equal(history_tree_get(world->history, &world->repo, id_of("a=1 b=2"), &tree, NULL),
                     ZT_IO);
    /* The same files again make the list again. */
    record(world, "a=2");
    record(world, "a=1 b=2");
    assert_ok(history_tree_get(world->history, &world->repo, id_of("a=1 b=2"), &tree, NULL));
    history_tree_release(tree);
    free(bytes);
    close(folder);
}

/* Tries a collection, which must fail because of the file whose path ends like this. */
static void expect_refusal(struct world *world, const char *whose, const char *end)
{
    struct zt_error error;
    bool more;

    assert_int_equal(history_collect(world->history, 9, &more, &error), ZT_IO);
    assert_non_null(strstr(error.message, whose));
    assert_non_null(strstr(error.message, ".ztserve/versions/repos/"));
    assert_string_equal(error.message + strlen(error.message) - strlen(end), end);
}

WITH_HISTORY(files_stay_while_a_list_of_files_is_damaged_or_missing)
{
    static const char *const damages[] = {"echo x >>$F", "rm $F", ": >$F", "cp $A $F"};
    char command[512];

    record(world, "a=1");
    keep(world, "1");
    record(world, "a=2");
    keep(world, "2");
    keep(world, "9");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), NULL));
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        snprintf(command, sizeof(command),
                 "cd .ztserve/versions/repos/*/trees && F=%s A=%s && "
                 "cp $F ../saved && %s",
                 id_of("a=1"), id_of("a=2"), damages[i]);
        run_in(world->path, command);
        expect_refusal(world, "org/model", id_of("a=1"));
        world_reopen(world);
        expect_refusal(world, "org/model", id_of("a=1"));
        assert_true(is_kept(world, "1") && is_kept(world, "2") && is_kept(world, "9"));
        snprintf(command, sizeof(command), "cd .ztserve/versions/repos/* && mv saved trees/%s",
                 id_of("a=1"));
        run_in(world->path, command);
    }
    /* The operator has put the list back. */
    collect_all(world);
    assert_true(is_kept(world, "1") && is_kept(world, "2") && !is_kept(world, "9"));
}

WITH_HISTORY(forgetting_a_commit_without_its_list_lets_collections_go_on)
{
    char command[256];

    record(world, "a=1");
    keep(world, "1");
    assert_ok(set_ref(world, "v1", true, id_of("a=1"), NULL));
    record(world, "a=2");
    snprintf(command, sizeof(command), "rm .ztserve/versions/repos/*/trees/%s", id_of("a=1"));
    run_in(world->path, command);
    expect_refusal(world, "org/model", id_of("a=1"));
    world->keep.commits = 1;
    assert_ok(history_delete_ref(world->history, &world->repo, "v1", true, NULL));
    collect_all(world);
    assert_false(is_kept(world, "1"));
}

WITH_HISTORY(purge_removes_a_log_that_cannot_be_read)
{
    struct history_found result;
    struct zt_error error;

    record(world, "a=1");
    keep(world, "1");
    assert_ok(history_remove_unreadable(world->history, &world->repo, &error));
    assert_string_equal(titles(world, "main"), "a=1,");
    history_close(world->history);
    world->history = NULL;
    run_in(world->path, "echo no log >$(echo .ztserve/versions/repos/*/log)");
    world_open(world);
    assert_int_equal(
        history_find(world->history, &world->repo, zt_text_from("main"), &result, &error), ZT_IO);
    assert_string_equal(error.rule, HISTORY_DAMAGED);
    assert_non_null(strstr(error.message, "org/model"));
    assert_non_null(strstr(error.message, ".ztserve/versions/repos/"));
    expect_refusal(world, "a repository", "/log");
    assert_ok(history_remove_unreadable(world->history, &world->repo, &error));
    assert_string_equal(titles(world, "main"), "-");
    collect_all(world);
    assert_false(is_kept(world, "1"));
    record(world, "a=2");
    world_reopen(world);
    assert_string_equal(titles(world, "main"), "a=2,");
}

WITH_HISTORY(list_of_another_commit_is_reported)
{
    const struct history_tree *tree;
    char command[256];

    record(world, "a=1");
    record(world, "a=2");
    snprintf(command, sizeof(command), "cd .ztserve/versions/repos/*/trees && cp %s %s",
             id_of("a=1"), id_of("a=2"));
    run_in(world->path, command);
    assert_int_equal(history_tree_get(world->history, &world->repo, id_of("a=2"), &tree, NULL),
                     ZT_IO);
}

WITH_HISTORY(log_of_another_repository_is_reported)
{
    struct history_repo first = world->repo;

    record(world, "a=1");
    strcpy(world->repo.name, "org/other");
    record(world, "a=2");
    history_close(world->history);
    world->history = NULL;
    run_in(world->path,
           "cd .ztserve/versions/repos && set -- * && cp $1/log x && cp $2/log $1/log &&"
           " cp x $2/log && rm x");
    world_open(world);
    assert_int_equal(find_main(world), ZT_IO);
    world->repo = first;
    assert_int_equal(find_main(world), ZT_IO);
}

WITH_HISTORY(leftovers_of_a_killed_process_are_removed)
{
    record(world, "a=1");
    run_in(world->path,
           "cd .ztserve/versions && echo x > repos/$(ls repos)/log.new &&"
           " echo x > repos/$(ls repos)/trees/"
           "0123456789012345678901234567890123456789"
           " && echo x > repos/$(ls repos)/trees/x.new && echo x > removed/x &&"
           " mkdir repos/1123456789012345678901234567890123456789012345678901234567890123"
           " && mkdir repos/x && echo x > objects/ab/x");
    world_reopen(world);
    collect_all(world);
    assert_string_equal(titles(world, "main"), "a=1,");
    run_in(world->path,
           "cd .ztserve/versions && [ -z \"$(ls removed)\" ] &&"
           " [ -z \"$(find . -name '*.new')\" ] && [ $(ls repos/*/trees | wc -l) = 1 ]");
}

WITH_HISTORY(many_commits_leave_a_short_log)
{
    struct stat info;
    int folder;
    char text[32];

    world->keep.commits = 10;
    record(world, "a=0");
    assert_ok(set_ref(world, "first", true, id_of("a=0"), ""));
    for (unsigned i = 1; i <= 800; i++) {
        snprintf(text, sizeof(text), "a=%u", i);
        record(world, text);
    }
    folder = open_repo(world);
    assert_int_equal(fstatat(folder, "log", &info, 0), 0);
    assert_true(info.st_size < 80 << 10);
    close(folder);
    assert_true(strncmp(titles(world, "main"), "a=800,a=799,", 12) == 0);
    world_reopen(world);
    assert_true(strncmp(titles(world, "main"), "a=800,a=799,", 12) == 0);
    assert_string_equal(titles(world, "first"), "a=0,");
    run_in(world->path, "[ $(ls .ztserve/versions/repos/*/trees | wc -l) = 11 ]");
}

WITH_HISTORY(server_that_only_reads_writes_nothing)
{
    struct history_commit commit;
    struct file_identity identity = {.size_bytes = 0};
    bool more;

    record(world, "a=1");
    history_close(world->history);
    world->history = NULL;
    assert_ok(world_try_open(world, false));
    assert_string_equal(titles(world, "main"), "a=1,");
    assert_int_equal(try_record_on(world, HISTORY_MAIN, "a=2", &commit), ZT_UNSUPPORTED);
    assert_int_equal(set_ref(world, "v1", true, id_of("a=1"), NULL), ZT_UNSUPPORTED);
    assert_int_equal(keep_as(world, "x", &identity, "x"), ZT_UNSUPPORTED);
    assert_int_equal(history_collect(world->history, 1, &more, NULL), ZT_UNSUPPORTED);
    history_close(world->history);
    world->history = NULL;
    run_in(world->path, "rm -r .ztserve && mkdir x");
    assert_ok(world_try_open(world, false));
    assert_string_equal(titles(world, "main"), "-");
    assert_false(is_kept(world, "1"));
    run_in(world->path, "[ ! -e .ztserve ] && mkdir .ztserve");
}
