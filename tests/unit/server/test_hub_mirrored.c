/* Mirrored repositories: their revisions are those of the upstream, and so are their commits and
 * the names of their files. */
#include "tests.h"
#include "tree_world.h"

#include "hub/repos.h"

#define FIRST  "1111111111111111111111111111111111111111"
#define SECOND "2222222222222222222222222222222222222222"
#define GIT    "0505050505050505050505050505050505050505"
#define SHA256 "0707070707070707070707070707070707070707070707070707070707070707"

static struct hub_repos *repos;
static unsigned asked;        /* revisions of the upstream */
static const char *current;   /* commit of o/m */
static const char *next;      /* becomes the current one during the next walk; or NULL */
static enum zt_status answer; /* of the upstream */
static bool is_verified;
static struct store_ops ops;
static const struct store_ops *real_ops;

/* The current commit is in o/m, others in their folders, as in a mirror. */
static enum zt_status find_revision(struct store *store, const char *repository,
                                    struct zt_text revision, struct store_revision *out_revision,
                                    struct zt_error *error)
{
    const char *commit = zt_text_is(revision, "main")                                 ? current
                         : zt_text_is(revision, "dev") || zt_text_is(revision, FIRST) ? FIRST
                         : zt_text_is(revision, SECOND)                               ? SECOND
                                                                                      : NULL;

    (void)store;
    asked += !zt_text_is(revision, "main");
    if (strcmp(repository, "o/m") != 0)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "not mirrored");
    if (answer != ZT_OK)
        return zt_fail(error, answer, NULL, ZT_NO_OFFSET, "away");
    if (commit == NULL)
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "no such revision");
    *out_revision = (struct store_revision){.is_current = strcmp(commit, current) == 0};
    strcpy(out_revision->commit, commit);
    if (out_revision->is_current)
        strcpy(out_revision->folder, "o/m");
    else
        snprintf(out_revision->folder, sizeof(out_revision->folder), "old/%s", commit);
    return ZT_OK;
}

static bool state_file(struct store *store, const char *path, const struct file_identity *identity,
                       struct store_stated *out_stated)
{
    (void)store;
    assert_non_null(identity);
    *out_stated = (struct store_stated){.has_sha256 = strstr(path, "weights") != NULL};
    out_stated->is_verified = is_verified;
    out_stated->has_git_sha1 = !out_stated->has_sha256;
    memset(out_stated->sha256, 7, sizeof(out_stated->sha256));
    memset(out_stated->git_sha1, 5, sizeof(out_stated->git_sha1));
    return strncmp(path, "o/local", 7) != 0;
}

/* The repository moves while it is listed. */
static enum zt_status walk_and_move(struct store *store, const char *folder, bool is_deep,
                                    store_visit visit, void *context, struct zt_error *error)
{
    if (next != NULL)
        current = next;
    next = NULL;
    return real_ops->walk(store, folder, is_deep, visit, context, error);
}

static const struct store_revision_ops revisions = {.find = find_revision, .state = state_file};

static int begin_mirror(void **state)
{
    struct world *world;

    set_up(state);
    world = *state;
    command(world, "mkdir -p o/m old/" FIRST " old/" SECOND " o/local; touch o/local/a; "
                   "echo 1 > o/m/weights.safetensors; echo 2 > o/m/config.json; "
                   "echo 3 > old/" FIRST "/old.json; echo 4 > old/" SECOND "/config.json");
    real_ops = world->server.store->ops;
    ops = *real_ops;
    ops.walk = walk_and_move;
    world->server.store->ops = &ops;
    world->server.store->revisions = &revisions;
    current = SECOND;
    next = NULL;
    answer = ZT_OK;
    repos = hub_repos_new(&world->server);
    return 0;
}

static int end_mirror(void **state)
{
    hub_repos_free(repos);
    return tear_down(state);
}

static enum hub_found find_in(const char *name, const char *revision, struct hub_lookup *out_lookup)
{
    *out_lookup =
        (struct hub_lookup){.name = zt_text_from(name), .revision = zt_text_from(revision)};
    hub_repos_find(repos, out_lookup);
    return out_lookup->found;
}

static void assert_found(const char *revision, const char *commit, const char *first_path)
{
    struct hub_lookup lookup;

    assert_int_equal(find_in("o/m", revision, &lookup), HUB_FOUND);
    assert_string_equal(lookup.version->commit, commit);
    assert_string_equal(lookup.version->files[0].path, first_path);
    assert_false(lookup.version->is_provisional);
    hub_version_release(lookup.version);
}

AROUND_EACH_TEST(begin_mirror, end_mirror)

TEST_ON(struct world *world, files_have_the_names_that_the_upstream_states)
{
    const struct hub_file *files;
    struct hub_lookup lookup;

    (void)world;
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FOUND);
    assert_string_equal(lookup.version->commit, SECOND);
    assert_int_equal(lookup.version->count, 2);
    files = lookup.version->files;
    assert_string_equal(files[0].etag, GIT);
    assert_true(files[0].is_git && !files[0].has_sha256);
    assert_string_equal(files[1].etag, SHA256);
    assert_true(files[1].has_sha256 && files[1].is_stated);
    hub_version_release(lookup.version);
}

TEST_ON(struct world *world, every_revision_of_the_upstream_is_found)
{
    struct hub_lookup lookup;

    (void)world;
    assert_found("main", SECOND, "config.json");
    assert_found("HEAD", SECOND, "config.json");
    assert_found("dev", FIRST, "old.json");
    assert_found(FIRST, FIRST, "old.json");
    assert_found(SECOND, SECOND, "config.json");
    assert_int_equal(find_in("o/m", "gone", &lookup), HUB_NO_REVISION);
    hub_version_release(lookup.version);
    asked = 0;
    assert_int_equal(find_in("o/m", "../../x", &lookup), HUB_NO_REVISION);
    hub_version_release(lookup.version);
    assert_int_equal(asked, 0);
    /* Others are not affected. */
    assert_int_equal(find_in("o/local", "main", &lookup), HUB_FOUND);
    assert_false(lookup.version->is_mirrored);
    hub_version_release(lookup.version);
    assert_int_equal(find_in("o/local", "dev", &lookup), HUB_NO_REVISION);
    hub_version_release(lookup.version);
}

TEST_ON(struct world *world, a_move_during_a_list_mixes_no_commits)
{
    (void)world;
    current = FIRST;
    next = SECOND;
    assert_found("main", SECOND, "config.json");
    assert_found(FIRST, FIRST, "old.json");
}

TEST_ON(struct world *world, pinned_commits_are_served_while_the_upstream_is_away)
{
    struct hub_lookup lookup;

    (void)world;
    assert_found(FIRST, FIRST, "old.json");
    answer = ZT_UNAVAILABLE;
    hub_repos_changed(repos);
    lookup = (struct hub_lookup){
        .name = zt_text_from("o/m"), .revision = zt_text_from(FIRST), .is_again = true};
    hub_repos_find(repos, &lookup);
    assert_int_equal(lookup.found, HUB_FOUND);
    hub_version_release(lookup.version);
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FAILED);
    assert_int_equal(lookup.error.status, ZT_UNAVAILABLE);
}

static const struct file_identity *listed_identity(const struct tree_listing *listing,
                                                   const char *path)
{
    size_t i = 0;

    while (i < listing->count && strcmp(listing->entries[i].path, path) != 0)
        i++;
    assert_true(i < listing->count);
    return &listing->entries[i].identity;
}

TEST_ON(struct world *world, only_the_digest_of_a_verified_file_is_known)
{
    struct file_hashes *hashes = world->server.hashes;
    struct tree_listing *listing = NULL;
    uint8_t sha256[SHA256_BYTES];
    struct zt_error error;

    is_verified = false;
    assert_ok(tree_list(&world->server, "o", true, true, &listing, &error));
    AWAIT(file_hashes_find(hashes, "o/local/a", listed_identity(listing, "local/a"), sha256));
    assert_false(file_hashes_find(hashes, "o/m/weights.safetensors",
                                  listed_identity(listing, "m/weights.safetensors"), sha256));
    is_verified = true;
    assert_true(file_hashes_find(hashes, "o/m/weights.safetensors",
                                 listed_identity(listing, "m/weights.safetensors"), sha256));
    assert_int_equal(sha256[0], 7);
    assert_false(file_hashes_find(hashes, "o/m/config.json",
                                  listed_identity(listing, "m/config.json"), sha256));
    tree_listing_release(listing);
}
