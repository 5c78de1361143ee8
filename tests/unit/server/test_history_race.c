/* Writers of several repositories, readers of their oldest commits and a collector at the same
 * time: a reader finds the files of a commit that it has resolved, unless the commit is forgotten.
 * The model of this is in test_history_model.c. */
#include "history_world.h"

#include <pthread.h>
#include <stdatomic.h>

#define WRITERS 3
#define READERS 2
#define CHANGES 120
#define SHARED  4 /* contents of the second file, the same in all repositories */
#define LOOKS   3 /* as in the store of versions */

struct race {
    struct world *world;
    atomic_uint writing;
    atomic_uint wrong;
    atomic_uint reads;
};

struct writer {
    struct race *race;
    unsigned number;
    char contents[2][32]; /* of the files a and b */
};

static void repo_of(unsigned number, struct history_repo *out_repo)
{
    *out_repo = (struct history_repo){.is_root_model = false};
    snprintf(out_repo->name, sizeof(out_repo->name), "org/r%u", number);
}

static enum zt_status write_file(const struct race *race, const char *path, const char *content)
{
    char hidden[64];
    int file;
    size_t length = strlen(content);

    snprintf(hidden, sizeof(hidden), "%s.new", path);
    file = openat(race->world->root, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || write(file, content, length) != (ssize_t)length || close(file) != 0 ||
        renameat(race->world->root, hidden, race->world->root, path) != 0)
        return ZT_IO;
    return ZT_OK;
}

/* Keeps the file that is replaced, as the store does. */
static enum zt_status replace(struct writer *writer, unsigned which, const char *content)
{
    const struct race *race = writer->race;
    char path[32];
    uint8_t sha256[32];
    struct file_identity identity;
    struct stat info;
    enum zt_status status = ZT_OK;

    snprintf(path, sizeof(path), "org/r%u/%c", writer->number, "ab"[which]);
    if (fstatat(race->world->root, path, &info, 0) == 0) {
        identity = store_identity_from(&info);
        sha_of(writer->contents[which], sha256);
        status = history_keep_file(race->world->history, path, &identity, sha256, NULL);
    }
    strcpy(writer->contents[which], content);
    return status == ZT_OK ? write_file(race, path, content) : status;
}

static enum zt_status change(struct writer *writer, unsigned turn)
{
    struct history *history = writer->race->world->history;
    struct history_commit commit;
    struct history_repo repo;
    struct described described;
    char a[32];
    char b[32];
    char text[80];
    enum zt_status status;

    repo_of(writer->number, &repo);
    snprintf(a, sizeof(a), "%u.%u", writer->number, turn);
    snprintf(b, sizeof(b), "shared%u", (turn * 7 + writer->number) % SHARED);
    snprintf(text, sizeof(text), "a=%s b=%s", a, b);
    describe(text, &described);
    assert_ok(history_lock(history, &repo, NULL));
    status = replace(writer, 0, a);
    if (status == ZT_OK)
        status = replace(writer, 1, b);
    if (status == ZT_OK)
        status = history_record(
            history, &repo, &(struct history_head){HISTORY_MAIN, described.files, described.count},
            &(struct history_note){.title = text}, &commit, NULL);
    history_unlock(history, &repo);
    return status;
}

static void *run_writer(void *context)
{
    struct writer *writer = context;

    for (unsigned turn = 0; turn < CHANGES; turn++)
        if (change(writer, turn) != ZT_OK)
            atomic_fetch_add(&writer->race->wrong, 1);
    atomic_fetch_sub(&writer->race->writing, 1);
    return NULL;
}

static void *run_collector(void *context)
{
    struct race *race = context;
    bool more;

    while (atomic_load(&race->writing) > 0)
        if (history_collect(race->world->history, 3, &more, NULL) != ZT_OK)
            atomic_fetch_add(&race->wrong, 1);
    return NULL;
}

static bool is_file(int descriptor, const struct history_file *file)
{
    char bytes[64];
    ssize_t length = read(descriptor, bytes, sizeof(bytes));
    struct zt_digest digest;

    return length >= 0 && zt_digest_of(ZT_DIGEST_SHA256, bytes, (size_t)length, &digest) == ZT_OK &&
           memcmp(digest.bytes, file->sha256, sizeof(file->sha256)) == 0;
}

static bool find_file(const struct race *race, const struct history_repo *repo,
                      const struct history_file *file)
{
    char path[MODEL_NAME_MAX + 16];
    struct file_identity identity;
    struct zt_source *source;
    int descriptor;
    bool is_right;

    snprintf(path, sizeof(path), "%s/%s", repo->name, file->path);
    for (unsigned i = 0; i < LOOKS; i++) {
        if (history_open_kept(race->world->history, file->sha256, &source, &identity, NULL) ==
            ZT_OK) {
            is_right = is_file(zt_source_descriptor(source), file);
            zt_source_close(source);
            return is_right;
        }
        descriptor = openat(race->world->root, path, O_RDONLY | O_CLOEXEC);
        is_right = descriptor >= 0 && is_file(descriptor, file);
        if (descriptor >= 0)
            close(descriptor);
        if (is_right)
            return true;
    }
    return false;
}

static bool is_known(const struct race *race, const struct history_repo *repo, const char *commit)
{
    struct history_found found;

    return history_find(race->world->history, repo, zt_text_from(commit), &found, NULL) == ZT_OK;
}

static void read_commit(struct race *race, const struct history_repo *repo, const char *commit)
{
    const struct history_tree *tree;

    if (history_tree_get(race->world->history, repo, commit, &tree, NULL) != ZT_OK) {
        atomic_fetch_add(&race->wrong, is_known(race, repo, commit));
        return;
    }
    for (size_t i = 0; i < tree->count; i++)
        if (find_file(race, repo, &tree->files[i]))
            atomic_fetch_add(&race->reads, 1);
        else
            atomic_fetch_add(&race->wrong, is_known(race, repo, commit));
    history_tree_release(tree);
}

static void *run_reader(void *context)
{
    struct race *race = context;

    for (unsigned turn = 0; atomic_load(&race->writing) > 0; turn++) {
        struct history_repo repo;
        struct history_commit *commits;
        size_t count;

        repo_of(turn % WRITERS, &repo);
        if (history_list(race->world->history, &repo,
                         &(struct history_range){zt_text_from(HISTORY_MAIN), UINT64_MAX, 10},
                         &commits, &count, NULL) != ZT_OK)
            continue;
        if (count > 0)
            read_commit(race, &repo, commits[count - 1].id);
        free(commits);
    }
    return NULL;
}

WITH_HISTORY(readers_find_files_beside_writers_and_a_collector)
{
    struct race race = {.world = world, .writing = WRITERS};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS + READERS + 1];
    struct history_report report;

    world->keep.commits = 2;
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.race = &race, .number = i};
        run_in(world->path, "mkdir -p org/r0 org/r1 org/r2");
        assert_int_equal(pthread_create(&threads[i], NULL, run_writer, &writers[i]), 0);
    }
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[WRITERS + i], NULL, run_reader, &race), 0);
    assert_int_equal(pthread_create(&threads[WRITERS + READERS], NULL, run_collector, &race), 0);
    for (unsigned i = 0; i < WRITERS + READERS + 1; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&race.wrong), 0);
    assert_true(atomic_load(&race.reads) > 0);
    collect_all(world);
    collect_all(world);
    history_report(world->history, &report);
    /* Of each repository's earlier commit: the file a, and one of the shared files. */
    assert_true(report.kept_files >= WRITERS && report.kept_files <= WRITERS + SHARED);
    assert_true(report.removed_files > 0);
}
