/* A history in a separate folder. A text describes the files of a commit: "a=1 b=2" is a file a
 * with the content 1, and a file b with the content 2. */
#ifndef HISTORY_WORLD_H
#define HISTORY_WORLD_H

#include "tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "store/store_local.h"
#include "store/versions/history.h"
#include "store/versions/history_folder.h"
#include "zt/digest.h"

#define FILES_MAX 8

struct world {
    char path[64];
    int root;
    struct history_keep keep;
    struct history *history;
    struct history_repo repo;
    struct staging staging;
};

static inline void world_keep(void *context, struct history_keep *out_keep)
{
    *out_keep = ((const struct world *)context)->keep;
}

static inline enum zt_status world_try_open(struct world *world, bool is_writable)
{
    struct history_options options = {.keep = world_keep, .context = world};
    struct zt_error error;
    const enum zt_status status =
        history_folder_open(world->root, is_writable, &options.place, &error);

    return status == ZT_OK ? history_open(&options, &world->history, &error) : status;
}

static inline void world_open(struct world *world)
{
    assert_ok(world_try_open(world, true));
}

static inline void world_reopen(struct world *world)
{
    history_close(world->history);
    world->history = NULL;
    world_open(world);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->path, "/tmp/zt-test-history-XXXXXX");
    assert_non_null(mkdtemp(world->path));
    world->root = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->root >= 0);
    world->keep.commits = 100;
    world->repo = (struct history_repo){.name = "org/model"};
    staging_init(&world->staging, world->root);
    run_in(world->path, "mkdir -p org/model");
    world_open(world);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;

    history_close(world->history);
    staging_end(&world->staging);
    close(world->root);
    run_in(world->path, "chmod -R u+rwx . && rm -r -- * .ztserve");
    rmdir(world->path);
    free(world);
    return 0;
}

static inline void sha_of(const char *content, uint8_t out_sha256[32])
{
    struct zt_digest digest;

    assert_ok(zt_digest_of(ZT_DIGEST_SHA256, content, strlen(content), &digest));
    memcpy(out_sha256, digest.bytes, 32);
}

struct described {
    struct history_file files[FILES_MAX];
    size_t count;
    char text[256];
};

static inline void describe(const char *text, struct described *out)
{
    char *rest = out->text;

    assert_true(strlen(text) < sizeof(out->text));
    strcpy(out->text, text);
    out->count = 0;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *content = strchr(word, '=');

        if (content == NULL)
            continue;
        *content++ = '\0';
        assert_true(out->count < FILES_MAX);
        out->files[out->count] =
            (struct history_file){.path = word, .size_bytes = strlen(content), .modified_ns = 7};
        sha_of(content, out->files[out->count++].sha256);
    }
}

/* The commit that the files have. */
static inline const char *id_of(const char *text)
{
    static char ids[8][HISTORY_COMMIT_SIZE];
    static unsigned next;
    struct described described;
    char *id = ids[next++ % 8];

    describe(text, &described);
    assert_ok(history_commit_id(described.files, described.count, id, NULL));
    return id;
}

static inline enum zt_status try_record_on(struct world *world, const char *branch,
                                           const char *text, struct history_commit *out_commit)
{
    struct described described;
    struct zt_error error;
    enum zt_status status;

    describe(text, &described);
    status = history_lock(world->history, &world->repo, &error);
    if (status != ZT_OK)
        return status;
    status = history_record(world->history, &world->repo,
                            &(struct history_head){branch, described.files, described.count},
                            &(struct history_note){.client = "ci", .title = text, .message = NULL},
                            out_commit, &error);
    history_unlock(world->history, &world->repo);
    return status;
}

/* Returns the number of the entry. */
static inline uint64_t record(struct world *world, const char *text)
{
    struct history_commit commit;

    assert_ok(try_record_on(world, HISTORY_MAIN, text, &commit));
    assert_string_equal(commit.id, id_of(text));
    return commit.number;
}

/* Returns the commit of a revision, or "". */
static inline const char *found(struct world *world, const char *revision)
{
    static struct history_found result;
    const enum zt_status status =
        history_find(world->history, &world->repo, zt_text_from(revision), &result, NULL);

    if (status == ZT_OK)
        return result.commit;
    assert_int_equal(status, ZT_NOT_FOUND);
    return "";
}

/* The titles of a revision's commits, each followed by a comma; "-" for an unknown revision. */
static inline const char *titles(struct world *world, const char *revision)
{
    static char text[4096];
    struct history_commit *commits;
    size_t count;
    const enum zt_status status = history_list(
        world->history, &world->repo,
        &(struct history_range){zt_text_from(revision), UINT64_MAX, 100}, &commits, &count, NULL);

    if (status == ZT_NOT_FOUND)
        return "-";
    assert_ok(status);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        strcat(strcat(text, commits[i].title), ",");
    free(commits);
    return text;
}

/* Branches and tags, as "b:main t:v1 ". */
static inline const char *refs(struct world *world)
{
    static char text[4096];
    struct history_ref *list;
    size_t count;

    assert_ok(history_refs(world->history, &world->repo, &list, &count, NULL));
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        strcat(strcat(strcat(text, list[i].is_tag ? "t:" : "b:"), list[i].name), " ");
    free(list);
    return text;
}

static inline enum zt_status set_ref(struct world *world, const char *name, bool is_tag,
                                     const char *commit, const char *expected)
{
    struct history_ref ref = {.is_tag = is_tag};

    strcpy(ref.name, name);
    strcpy(ref.commit, commit);
    return history_set_ref(world->history, &world->repo, &ref, expected, NULL);
}

/* Writes a file in the root, by a new inode. */
static inline void put(const struct world *world, const char *name, const char *content)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", world->path, name);
    unlink(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
}

static inline struct file_identity identity_in(const struct world *world, const char *name)
{
    struct stat info;

    assert_int_equal(fstatat(world->root, name, &info, 0), 0);
    return store_identity_from(&info);
}

static inline enum zt_status keep_as(struct world *world, const char *name,
                                     const struct file_identity *identity, const char *content)
{
    uint8_t sha256[32];
    enum zt_status status;

    sha_of(content, sha256);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    status = history_keep_file(world->history, name, identity, sha256, NULL);
    history_unlock(world->history, &world->repo);
    return status;
}

/* Puts a file into the root, keeps it and removes it there. */
static inline void keep(struct world *world, const char *content)
{
    struct file_identity identity;

    put(world, "file", content);
    identity = identity_in(world, "file");
    assert_ok(keep_as(world, "file", &identity, content));
    assert_int_equal(unlinkat(world->root, "file", 0), 0);
}

static inline bool is_kept(struct world *world, const char *content)
{
    struct file_identity identity;
    uint8_t sha256[32];
    enum zt_status status;

    sha_of(content, sha256);
    status = history_stat_kept(world->history, sha256, &identity, NULL);
    if (status == ZT_OK)
        assert_int_equal(identity.size_bytes, strlen(content));
    else
        assert_int_equal(status, ZT_NOT_FOUND);
    return status == ZT_OK;
}

static inline void collect_all(struct world *world)
{
    bool more = true;

    while (more)
        assert_ok(history_collect(world->history, 1000, &more, NULL));
}

#define WITH_HISTORY(name) TEST_IN_WORLD(name, set_up, tear_down)

#endif
