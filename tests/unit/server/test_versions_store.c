/* The store of versions: files of commits, wherever they are, and what is kept before a change. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/staging.h"
#include "store/versions/history_folder.h"
#include "store/versions/versions_store.h"
#include "zt/digest.h"
#include "zt/shards.h"

struct world {
    char root[64];
    struct store *inner;
    struct store *store;
    struct history *history;
    bool cannot_hash;
    bool forgets;                   /* no SHA-256 is known */
    void (*on_compare)(void *self); /* called when the SHA-256 of the current file is asked for */
};

static enum zt_status sha_of(struct store *store, const char *path, uint8_t out_sha256[32])
{
    struct file_identity identity;
    struct zt_source *source;
    struct zt_digest digest;
    enum zt_status status = store->ops->open(store, path, &source, &identity, NULL);

    if (status != ZT_OK)
        return status;
    assert_ok(zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, NULL));
    memcpy(out_sha256, digest.bytes, 32);
    zt_source_close(source);
    return ZT_OK;
}

static enum zt_status hash_file(void *context, const char *path,
                                const struct file_identity *identity, uint8_t out_sha256[32],
                                struct zt_error *error)
{
    struct world *world = context;

    (void)identity;
    if (world->cannot_hash)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the disk is broken");
    return sha_of(world->inner, path, out_sha256);
}

static bool find_hash(void *context, const char *path, const struct file_identity *identity,
                      uint8_t out_sha256[32])
{
    struct world *world = context;
    void (*on_compare)(void *self) = world->on_compare;

    (void)identity;
    world->on_compare = NULL;
    if (on_compare != NULL)
        on_compare(world);
    return !world->forgets && sha_of(world->inner, path, out_sha256) == ZT_OK;
}

static void find_limits(void *context, struct history_keep *out_keep)
{
    (void)context;
    *out_keep = (struct history_keep){.commits = 100};
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct versions_options options = {
        .sha256 = hash_file, .known_sha256 = find_hash, .context = world};
    struct history_options history = {.keep = find_limits};

    strcpy(world->root, "/tmp/zt-test-versions-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    assert_ok(store_local_open(world->root, 0, &world->inner, NULL));
    assert_ok(history_folder_open(store_local_root(world->inner), true, &history.place, NULL));
    assert_ok(history_open(&history, &options.history, NULL));
    world->history = options.history;
    assert_ok(versions_store_open(world->inner, &options, &world->store, NULL));
    assert_ptr_equal(store_history(world->store), world->history);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    world->store->ops->close(world->store);
    run_in(world->root, "rm -rf ./* .ztserve*");
    rmdir(world->root);
    free(world);
    return 0;
}

#define WITH_VERSIONS(name) TEST_IN_WORLD(name, set_up, tear_down)

static const struct history_repo repo = {.name = "org/model"};

static enum zt_status try_publish(struct world *world, const char *path, const char *content)
{
    struct staged_file *file;
    enum zt_status status;

    assert_ok(staging_create(world->store->staging, strlen(content), &file, NULL));
    assert_ok(staged_file_write_at(file, 0, content, strlen(content), NULL));
    assert_ok(history_lock(world->history, &repo, NULL));
    status = world->store->ops->publish(world->store, file, path, &store_expects_anything, NULL);
    history_unlock(world->history, &repo);
    if (status != ZT_OK)
        staged_file_close(file);
    return status;
}

static void publish(struct world *world, const char *path, const char *content)
{
    assert_ok(try_publish(world, path, content));
}

/* Records org/model with the files "a", "b", "sub/c" and "w.zt", as far as they exist. */
static const char *record(struct world *world)
{
    static const char *const paths[] = {"a", "b", "sub/c", "w.zt"};
    static struct history_commit commit;
    struct history_file files[4];
    size_t count = 0;

    for (size_t i = 0; i < 4; i++) {
        char path[64];
        struct file_identity identity;
        struct zt_source *source;

        snprintf(path, sizeof(path), "%s/%s", repo.name, paths[i]);
        if (world->inner->ops->open(world->inner, path, &source, &identity, NULL) != ZT_OK)
            continue;
        zt_source_close(source);
        files[count] = (struct history_file){.path = paths[i],
                                             .size_bytes = identity.size_bytes,
                                             .modified_ns = identity.modified_ns};
        assert_ok(sha_of(world->inner, path, files[count++].sha256));
    }
    assert_ok(history_lock(world->history, &repo, NULL));
    assert_ok(history_record(world->history, &repo,
                             &(struct history_head){HISTORY_MAIN, files, count},
                             &(struct history_note){.title = "t"}, &commit, NULL));
    history_unlock(world->history, &repo);
    return commit.id;
}

static const char *path_at(const char *commit, const char *path)
{
    static char text[4][256];
    static unsigned next;
    char *out = text[next++ % 4];

    snprintf(out, sizeof(text[0]), "%s@%s%s%s", repo.name, commit, path[0] != '\0' ? "/" : "",
             path);
    return out;
}

/* Returns the content of a file, or NULL. */
static const char *content_of(struct world *world, const char *path)
{
    static char text[64];
    struct file_identity identity;
    struct zt_source *source;

    if (world->store->ops->open(world->store, path, &source, &identity, NULL) != ZT_OK)
        return NULL;
    memset(text, 0, sizeof(text));
    assert_int_equal(zt_source_size(source), identity.size_bytes);
    assert_true(identity.size_bytes < sizeof(text));
    assert_ok(zt_source_read_at(source, 0, text, identity.size_bytes, NULL));
    assert_true(zt_source_descriptor(source) >= 0);
    zt_source_close(source);
    return text;
}

WITH_VERSIONS(replaced_file_is_opened_at_its_commit)
{
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    assert_string_equal(content_of(world, path_at(first, "a")), "first");
    publish(world, "org/model/a", "second");
    assert_string_equal(content_of(world, path_at(first, "a")), "first");
    assert_string_equal(content_of(world, "org/model/a"), "second");
    assert_null(content_of(world, path_at(first, "b")));
}

WITH_VERSIONS(removed_file_is_opened_at_its_commit)
{
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    assert_ok(history_lock(world->history, &repo, NULL));
    assert_ok(
        world->store->ops->remove(world->store, "org/model/a", &store_expects_anything, NULL));
    assert_int_equal(
        world->store->ops->remove(world->store, "org/model/a", &store_expects_anything, NULL),
        ZT_NOT_FOUND);
    history_unlock(world->history, &repo);
    assert_string_equal(content_of(world, path_at(first, "a")), "first");
}

static void replace_a(void *self)
{
    publish(self, "org/model/a", "second");
}

WITH_VERSIONS(file_that_moves_while_it_is_opened_is_found)
{
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    world->on_compare = replace_a;
    assert_string_equal(content_of(world, path_at(first, "a")), "first");
    assert_null(world->on_compare);
}

WITH_VERSIONS(unknown_digest_is_computed)
{
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    world->forgets = true;
    assert_string_equal(content_of(world, path_at(first, "a")), "first");
    run_in(world->root, "printf other > new && mv new org/model/a");
    assert_null(content_of(world, path_at(first, "a")));
}

WITH_VERSIONS(identity_is_the_same_wherever_the_file_is)
{
    struct file_identity before;
    struct file_identity after;
    struct zt_source *open;
    struct zt_source *again;
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    assert_ok(world->store->ops->open(world->store, path_at(first, "a"), &open, &before, NULL));
    publish(world, "org/model/a", "second");
    assert_ok(world->store->ops->open(world->store, path_at(first, "a"), &again, &after, NULL));
    assert_true(store_identity_equal(&before, &after));
    zt_source_close(again);
    assert_true(world->store->ops->identity_of(world->store, open, &after));
    assert_true(store_identity_equal(&before, &after));
    run_in(world->root, "for f in $(find .ztserve -type f -size -6c); do printf FIRST > $f; done");
    assert_true(world->store->ops->identity_of(world->store, open, &after));
    assert_false(store_identity_equal(&before, &after));
    zt_source_close(open);
}

WITH_VERSIONS(file_that_cannot_be_kept_is_not_changed)
{
    publish(world, "org/model/a", "first");
    world->cannot_hash = true;
    assert_int_equal(try_publish(world, "org/model/a", "second"), ZT_IO);
    assert_int_equal(
        world->store->ops->remove(world->store, "org/model/a", &store_expects_anything, NULL),
        ZT_IO);
    assert_string_equal(content_of(world, "org/model/a"), "first");
}

WITH_VERSIONS(commits_are_not_written)
{
    char why[STORE_WHY_SIZE];
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    assert_int_equal(try_publish(world, path_at(first, "a"), "x"), ZT_ARGUMENT);
    assert_int_equal(
        world->store->ops->remove(world->store, path_at(first, "a"), &store_expects_anything, NULL),
        ZT_ARGUMENT);
    assert_int_equal(world->store->ops->make_folder(world->store, path_at(first, "d"), NULL),
                     ZT_ARGUMENT);
    assert_true(world->store->revisions->refuses(world->store, path_at(first, "a"), why));
    assert_false(world->store->revisions->refuses(world->store, "org/model/a", why));
}

static bool append(void *context, const char *path, const struct file_identity *identity)
{
    char *list = context;
    const char *rest = strchr(path, '@');

    rest = rest != NULL ? rest + HISTORY_COMMIT_SIZE : path;
    strcat(strcat(list, rest), identity == NULL ? "/ " : " ");
    return true;
}

static const char *walked(struct world *world, const char *folder, bool is_deep)
{
    static char list[512];
    enum zt_status status;

    list[0] = '\0';
    status = world->store->ops->walk(world->store, folder, is_deep, append, list, NULL);
    return status == ZT_OK ? list : NULL;
}

WITH_VERSIONS(folders_of_commits_are_walked)
{
    const char *first;

    publish(world, "org/model/a", "a");
    publish(world, "org/model/sub/c", "c");
    first = record(world);
    publish(world, "org/model/b", "b");
    assert_string_equal(walked(world, path_at(first, ""), true), "/a /sub/ /sub/c ");
    assert_string_equal(walked(world, path_at(first, ""), false), "/a /sub/ ");
    assert_string_equal(walked(world, path_at(first, "sub"), true), "/sub/c ");
    assert_null(walked(world, path_at(first, "a"), true));
    assert_null(walked(world, path_at(first, "su"), true));
    assert_string_equal(walked(world, "org", false), "org/model/ ");
}

WITH_VERSIONS(revisions_name_the_folders_of_commits)
{
    struct history_ref tag = {.name = "v1", .is_tag = true};
    struct store_revision revision;
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    strcpy(tag.commit, first);
    assert_ok(history_set_ref(world->history, &repo, &tag, NULL, NULL));
    assert_ok(world->store->revisions->find(world->store, repo.name, zt_text_from("v1"), &revision,
                                            NULL));
    assert_string_equal(revision.commit, first);
    assert_string_equal(revision.folder, path_at(first, ""));
    assert_ok(world->store->revisions->find(world->store, repo.name, zt_text_from(first), &revision,
                                            NULL));
    for (const char *const *name = (const char *const[]){"main", "HEAD", "unknown", NULL};
         *name != NULL; name++)
        assert_int_equal(world->store->revisions->find(world->store, repo.name, zt_text_from(*name),
                                                       &revision, NULL),
                         ZT_NOT_FOUND);
}

WITH_VERSIONS(digests_of_commits_are_stated)
{
    struct file_identity identity;
    struct store_stated stated;
    struct zt_source *source;
    uint8_t sha256[32];
    const char *first;

    publish(world, "org/model/a", "first");
    first = record(world);
    assert_ok(world->store->ops->open(world->store, path_at(first, "a"), &source, &identity, NULL));
    zt_source_close(source);
    assert_true(store_state(world->store, path_at(first, "a"), &identity, &stated));
    assert_ok(sha_of(world->inner, "org/model/a", sha256));
    assert_true(stated.is_verified && stated.has_sha256);
    assert_memory_equal(stated.sha256, sha256, 32);
    assert_false(store_state(world->store, "org/model/a", &identity, &stated));
    identity.modified_ns++;
    assert_false(store_state(world->store, path_at(first, "a"), &identity, &stated));
}

WITH_VERSIONS(files_never_wait_for_another_machine)
{
    assert_false(store_may_wait(world->store));
    assert_false(store_mirrors(world->store));
    assert_true(store_searches(world->store));
    assert_true(store_has_locally(world->store, zt_text_from("org/model/a")));
    assert_ptr_equal(store_innermost(world->store), world->inner);
}

static bool count_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)identity;
    assert_non_null(strstr(path, "/w.zt"));
    ++*(unsigned *)context;
    return true;
}

static unsigned look_up(struct world *world, const char *name)
{
    unsigned count = 0;

    assert_ok(
        world->store->search->look_up(world->store, zt_text_from(name), count_file, &count, NULL));
    return count;
}

static bool may_look_up(struct world *world, const char *name)
{
    return world->store->search->may_look_up(world->store, zt_text_from(name));
}

/* A request that comes while another one's search has not begun must not miss the model. */
WITH_VERSIONS(models_are_looked_for_until_that_is_in_vain)
{
    const char *name;

    publish(world, "org/model/w.zt", "first");
    name = path_at(record(world), "w");
    assert_true(may_look_up(world, name));
    assert_true(may_look_up(world, name));
    assert_int_equal(look_up(world, name), 1);
    assert_true(may_look_up(world, name));
    run_in(world->root, "rm org/model/w.zt");
    assert_int_equal(look_up(world, name), 0);
    assert_false(may_look_up(world, name));
}
