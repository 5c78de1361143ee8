/* Each call to the file system fails once, or it and all later ones do, as after a kill. No file
 * that a kept commit names may get lost. */
#include "history_world.h"

#include <errno.h>
#include <sys/syscall.h>

static long countdown = -1; /* calls until one fails; negative: none fails */
static bool stays_broken;
static bool was_met;
static int link_refusal; /* errno of all links; 0: they succeed */

static bool is_due(void)
{
    if (countdown < 0 || (countdown > 0 && countdown-- > 0))
        return false;
    was_met = true;
    if (!stays_broken)
        countdown = -1;
    errno = EIO;
    return true;
}

/* Tests survive no power failure, so files are not synced. */
int fsync(int descriptor)
{
    (void)descriptor;
    return is_due() ? -1 : 0;
}

int fdatasync(int descriptor)
{
    (void)descriptor;
    return is_due() ? -1 : 0;
}

int linkat(int from, const char *old_path, int to, const char *new_path, int flags)
{
    if (link_refusal != 0) {
        errno = link_refusal;
        return -1;
    }
    return is_due() ? -1 : (int)syscall(SYS_linkat, from, old_path, to, new_path, flags);
}

int renameat(int from, const char *old_path, int to, const char *new_path)
{
    return is_due() ? -1 : (int)syscall(SYS_renameat2, from, old_path, to, new_path, 0);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return is_due() ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int unlinkat(int folder, const char *path, int flags)
{
    return is_due() ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset);

/* Half of the bytes are written before the failure. */
ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
    if (is_due()) {
        (void)syscall(SYS_pwrite64, descriptor, bytes, length / 2, offset);
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

int ftruncate64(int descriptor, off64_t length)
{
    return is_due() ? -1 : (int)syscall(SYS_ftruncate, descriptor, length);
}

static void break_call(long number, bool stays)
{
    countdown = number;
    stays_broken = stays;
    was_met = false;
}

static bool mend(void)
{
    countdown = -1;
    return was_met;
}

/* --- a server --- */

#define CONTENT_SIZE 64

/* Replaces the file "a" of the root as the server does: what the folder has is recorded, then kept,
 * then replaced, and the new state is recorded. */
static bool update(struct world *world, char *content, const char *digits)
{
    char next[CONTENT_SIZE];
    struct history_commit commit;
    struct file_identity identity;
    char text[CONTENT_SIZE + 2];

    snprintf(next, sizeof(next), "%.20s:%s", world->repo.name, digits);
    if (content[0] != '\0') {
        snprintf(text, sizeof(text), "a=%s", content);
        if (try_record_on(world, HISTORY_MAIN, text, &commit) != ZT_OK)
            return false;
        identity = identity_in(world, "a");
        if (keep_as(world, "a", &identity, content) != ZT_OK)
            return false;
    }
    put(world, "a", next);
    strcpy(content, next);
    snprintf(text, sizeof(text), "a=%s", content);
    return try_record_on(world, HISTORY_MAIN, text, &commit) == ZT_OK;
}

static void go_back(struct world *world, char *content)
{
    struct history_commit *commits;
    const struct history_tree *tree;
    struct history_commit commit;
    struct file_identity identity;
    size_t count;
    char text[CONTENT_SIZE + 2];

    if (history_list(world->history, &world->repo,
                     &(struct history_range){zt_text_from("main"), UINT64_MAX, 2}, &commits, &count,
                     NULL) != ZT_OK)
        return;
    identity = identity_in(world, "a");
    if (count == 2 &&
        history_tree_get(world->history, &world->repo, commits[1].id, &tree, NULL) == ZT_OK) {
        if (keep_as(world, "a", &identity, content) == ZT_OK) {
            (void)history_restore(world->history, tree->files[0].sha256, "a", NULL);
            identity = identity_in(world, "a");
            if (identity.size_bytes == strlen(commits[1].title) - 2)
                strcpy(content, commits[1].title + 2);
            snprintf(text, sizeof(text), "a=%s", content);
            (void)try_record_on(world, HISTORY_MAIN, text, &commit);
        }
        history_tree_release(tree);
    }
    free(commits);
}

/* A file of each length, so that lengths say which it is. */
static void run(struct world *world, char *content)
{
    bool more;

    (void)update(world, content, "1");
    (void)update(world, content, "22");
    (void)set_ref(world, "v1", true, found(world, "main"), NULL);
    (void)update(world, content, "333");
    (void)update(world, content, "4444");
    (void)history_collect(world->history, 10, &more, NULL);
    go_back(world, content);
    (void)history_squash(world->history, &world->repo, "main", &(struct history_note){.title = ""},
                         NULL);
    (void)update(world, content, "55555");
    (void)history_delete_ref(world->history, &world->repo, "v1", true, NULL);
    (void)history_collect(world->history, 10, &more, NULL);
}

static void check_commit(struct world *world, const char *id, const char *content)
{
    const struct history_tree *tree;
    struct file_identity identity;
    uint8_t present[32];

    assert_ok(history_tree_get(world->history, &world->repo, id, &tree, NULL));
    assert_int_equal(tree->count, 1);
    sha_of(content, present);
    if (memcmp(present, tree->files[0].sha256, sizeof(present)) != 0) {
        assert_ok(history_stat_kept(world->history, tree->files[0].sha256, &identity, NULL));
        assert_int_equal(identity.size_bytes, tree->files[0].size_bytes);
    }
    history_tree_release(tree);
}

static void check(struct world *world, const char *content)
{
    struct history_commit *commits;
    struct history_ref *list;
    size_t count;
    size_t ref_count;

    assert_ok(history_refs(world->history, &world->repo, &list, &ref_count, NULL));
    for (size_t i = 0; i < ref_count; i++) {
        assert_ok(history_list(world->history, &world->repo,
                               &(struct history_range){zt_text_from(list[i].name), UINT64_MAX, 100},
                               &commits, &count, NULL));
        assert_true(count > 0);
        for (size_t j = 0; j < count; j++)
            check_commit(world, commits[j].id, content);
        free(commits);
    }
    free(list);
    assert_int_equal(identity_in(world, "a").size_bytes, strlen(content));
}

/* In a new repository. */
static bool survives(struct world *world, long number, bool stays)
{
    char content[CONTENT_SIZE] = "";
    bool met;

    snprintf(world->repo.name, sizeof(world->repo.name), "repo%ld", number);
    world->keep.commits = 3;
    break_call(number, stays);
    run(world, content);
    met = mend();
    if (!stays)
        check(world, content);
    if (number % 16 == 0 || stays)
        world_reopen(world);
    check(world, content);
    assert_true(update(world, content, "666666"));
    collect_all(world);
    check(world, content);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_purge(world->history, &world->repo, NULL));
    history_unlock(world->history, &world->repo);
    collect_all(world);
    assert_int_equal(unlinkat(world->root, "a", 0), 0);
    return met;
}

static void assert_no_leftovers(struct world *world)
{
    world_reopen(world);
    collect_all(world);
    run_in(world->path, "[ -z \"$(find .ztserve/versions -name '*.new')\" ] &&"
                        " [ -z \"$(find .ztserve/versions/removed .ztserve/versions/objects"
                        " -type f)\" ]");
}

WITH_HISTORY(each_call_may_fail_once)
{
    long number = 0;

    while (survives(world, number, false))
        number++;
    assert_true(number > 50);
    assert_no_leftovers(world);
}

WITH_HISTORY(all_calls_from_any_on_may_fail)
{
    for (long number = 0; survives(world, number, true); number++)
        ;
    assert_no_leftovers(world);
}

WITH_HISTORY(history_opens_after_each_failure_of_opening)
{
    bool met = true;

    for (long number = 0; met; number = number < 9 || number > 254 ? number + 1 : 255) {
        history_close(world->history);
        world->history = NULL;
        run_in(world->path, "rm -r .ztserve");
        break_call(number, false);
        assert_true(world_try_open(world, true) == ZT_OK ? !was_met : was_met);
        met = mend();
        if (world->history == NULL)
            world_open(world);
        record(world, "a=1");
        assert_string_equal(titles(world, "main"), "a=1,");
    }
}

WITH_HISTORY(file_that_cannot_be_linked_is_not_lost)
{
    struct file_identity identity;

    put(world, "file", "one");
    identity = identity_in(world, "file");
    link_refusal = EIO;
    assert_int_equal(keep_as(world, "file", &identity, "one"), ZT_IO);
    link_refusal = 0;
    assert_false(is_kept(world, "one"));
}

WITH_HISTORY(file_that_may_not_be_linked_is_kept_by_its_removal)
{
    static const int refusals[] = {EPERM, EMLINK, EOPNOTSUPP};
    struct file_identity identity;
    struct file_identity other;
    enum zt_status status;
    uint8_t sha256[32];

    put(world, "file", "one");
    identity = identity_in(world, "file");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        link_refusal = refusals[i];
        status = keep_as(world, "file", &identity, "one");
        link_refusal = 0;
        assert_int_equal(status, ZT_UNSUPPORTED);
    }
    other = identity;
    other.modified_ns++;
    sha_of("one", sha256);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_int_equal(history_keep_removed(world->history, "file", &other, sha256, NULL), ZT_STALE);
    assert_ok(history_keep_removed(world->history, "file", &identity, sha256, NULL));
    history_unlock(world->history, &world->repo);
    assert_true(is_kept(world, "one"));
    assert_int_equal(faccessat(world->root, "file", F_OK, 0), -1);
    put(world, "file", "one");
    run_in(world->path, "touch -d 2001-01-01 file");
    other = identity_in(world, "file");
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_keep_removed(world->history, "file", &other, sha256, NULL));
    history_unlock(world->history, &world->repo);
    assert_ok(history_stat_kept(world->history, sha256, &identity, NULL));
    assert_int_equal(identity.inode, other.inode);
}
