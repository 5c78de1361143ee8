/* Revisions that a history keeps: each is listed once, and is found as long as it is kept. */
#include "tests.h"
#include "tree_world.h"

#include "hub/repo_versions.h"
#include "hub/repos.h"
#include "store/versions/history.h"

#define NAMED  "o/m@1111111111111111111111111111111111111111"
#define COMMIT "1111111111111111111111111111111111111111"

static struct hub_repos *repos;
static bool is_forgotten;
static unsigned walks; /* of the kept commit */
static struct store_ops ops;
static const struct store_ops *real_ops;

static enum zt_status find_revision(struct store *store, const char *repository,
                                    struct zt_text revision, struct store_revision *out_revision,
                                    struct zt_error *error)
{
    (void)store;
    *out_revision = (struct store_revision){.is_kept = true, .commit = COMMIT, .folder = NAMED};
    if (strcmp(repository, "o/m") == 0 && zt_text_is(revision, "main")) {
        out_revision->is_current = true;
        strcpy(out_revision->folder, "o/m");
        return ZT_OK;
    }
    if (strcmp(repository, "o/m") == 0 && !is_forgotten &&
        (zt_text_is(revision, "dev") || zt_text_is(revision, COMMIT)))
        return ZT_OK;
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "not kept");
}

static bool state_file(struct store *store, const char *path, const struct file_identity *identity,
                       struct store_stated *out_stated)
{
    (void)store;
    (void)identity;
    *out_stated = (struct store_stated){.has_sha256 = true, .is_verified = true};
    memset(out_stated->sha256, 7, sizeof(out_stated->sha256));
    return strncmp(path, NAMED, strlen(NAMED)) == 0;
}

static enum zt_status walk(struct store *store, const char *folder, bool is_deep, store_visit visit,
                           void *context, struct zt_error *error)
{
    const bool is_kept_folder = strcmp(folder, NAMED) == 0;

    walks += is_kept_folder && is_deep;
    if (is_kept_folder && is_forgotten)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "not kept");
    return real_ops->walk(store, folder, is_deep, visit, context, error);
}

static const struct store_revision_ops revisions = {.find = find_revision, .state = state_file};

static int begin_kept(void **state)
{
    struct world *world;

    set_up(state);
    world = *state;
    command(world, "mkdir -p o/m/sub " NAMED "; printf 1 > o/m/a.txt; printf 2 > o/m/sub/b.txt; "
                   "printf 3 > " NAMED "/old.txt");
    real_ops = world->server.store->ops;
    ops = *real_ops;
    ops.walk = walk;
    world->server.store->ops = &ops;
    world->server.store->revisions = &revisions;
    is_forgotten = false;
    walks = 0;
    repos = hub_repos_new(&world->server);
    return 0;
}

static int end_kept(void **state)
{
    hub_repos_free(repos);
    return tear_down(state);
}

AROUND_EACH_TEST(begin_kept, end_kept)

static struct hub_version *found(const char *revision)
{
    struct hub_lookup lookup = {.name = zt_text_from("o/m"), .revision = zt_text_from(revision)};

    hub_repos_find(repos, &lookup);
    assert_int_equal(lookup.found, HUB_FOUND);
    return lookup.version;
}

static bool is_unknown(const char *revision)
{
    struct hub_lookup lookup = {.name = zt_text_from("o/m"), .revision = zt_text_from(revision)};

    hub_repos_find(repos, &lookup);
    hub_version_release(lookup.version);
    return lookup.found == HUB_NO_REVISION;
}

TEST_ON(struct world *world, main_is_the_folder_and_has_the_commit_of_the_history)
{
    struct hub_version *version = found("main");
    struct history_file files[2] = {{.path = "a.txt"}, {.path = "sub/b.txt"}};
    char id[HISTORY_COMMIT_SIZE];
    struct zt_error error;

    (void)world;
    assert_string_equal(version->folder, "o/m");
    assert_int_equal(version->count, 2);
    assert_false(version->is_kept);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(version->files[i].path, files[i].path);
        memcpy(files[i].sha256, version->files[i].sha256, sizeof(files[i].sha256));
    }
    assert_ok(history_commit_id(files, 2, id, &error));
    assert_string_equal(version->commit, id);
    assert_string_equal(version->stored, id);
    hub_version_release(version);
}

TEST_ON(struct world *world, a_kept_revision_is_listed_once)
{
    struct hub_version *first = found("dev");
    struct hub_version *second = found("dev");

    (void)world;
    assert_ptr_equal(first, second);
    assert_int_equal(walks, 1);
    assert_true(first->is_kept);
    assert_string_equal(first->files[0].path, "old.txt");
    assert_true(first->files[0].has_sha256 && !first->files[0].is_stated);
    hub_version_release(first);
    hub_version_release(second);
}

/* The fake's name is not the hash of its files, so the commit alone is a version of its own. */
TEST_ON(struct world *world, a_commit_keeps_its_name)
{
    struct hub_version *version = found(COMMIT);

    (void)world;
    assert_string_equal(version->commit, COMMIT);
    assert_true(version->is_kept && version->is_stated);
    hub_version_release(version);
}

TEST_ON(struct world *world, a_forgotten_commit_is_not_found)
{
    (void)world;
    hub_version_release(found(COMMIT));
    is_forgotten = true;
    hub_repos_changed(repos);
    assert_true(is_unknown("dev"));
    /* For a moment, the folder need not be looked at. */
    AWAIT(is_unknown(COMMIT));
}
