/* Versions of repositories: their commits, and who lists a repository while others ask for it. */
#include "tests.h"
#include "tree_world.h"

#include <pthread.h>

#include "hub/repos.h"
#include "zt/digest.h"

#define NO_COMMIT "0000000000000000000000000000000000000000"

static struct hub_repos *repos;

static enum hub_found find_in(const char *name, const char *revision, struct hub_lookup *out_lookup)
{
    *out_lookup =
        (struct hub_lookup){.name = zt_text_from(name), .revision = zt_text_from(revision)};
    hub_repos_find(repos, out_lookup);
    return out_lookup->found;
}

/* Of paths and SHA-256s in hex, each followed by NUL. */
static void assert_commit(const struct hub_version *version, const char *names, size_t length)
{
    struct zt_hasher *hasher;
    struct zt_digest digest;
    char text[HUB_COMMIT_SIZE];

    assert_int_equal(zt_hasher_new(ZT_DIGEST_SHA1, &hasher), ZT_OK);
    zt_hasher_update(hasher, names, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    for (size_t i = 0; i < digest.length_bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", digest.bytes[i]);
    assert_string_equal(version->commit, text);
}

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static int begin_repos(void **state)
{
    set_up(state);
    repos = hub_repos_new(&((struct world *)*state)->server);
    return 0;
}

static int end_repos(void **state)
{
    hub_repos_free(repos);
    return tear_down(state);
}

AROUND_EACH_TEST(begin_repos, end_repos)

TEST_ON(struct world *world, a_commit_names_paths_and_bytes)
{
    static const char names[] = "a/b\0" EMPTY "\0"
                                "a0\0" EMPTY;
    struct hub_lookup lookup;
    struct hub_lookup pinned;

    command(world, "mkdir -p o/m/a; touch o/m/a/b o/m/a0 o/m/.hidden");
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FOUND);
    assert_int_equal(lookup.version->count, 2);
    assert_false(lookup.version->is_provisional);
    assert_commit(lookup.version, names, sizeof(names));
    assert_int_equal(find_in("o/m", lookup.version->commit, &pinned), HUB_FOUND);
    assert_ptr_equal(pinned.version, lookup.version);
    hub_version_release(pinned.version);
    assert_int_equal(find_in("o/m", lookup.version->provisional, &pinned), HUB_FOUND);
    hub_version_release(pinned.version);
    hub_version_release(lookup.version);
}

static enum hub_found find_patiently(struct hub_lookup *out_lookup)
{
    *out_lookup = (struct hub_lookup){
        .name = zt_text_from("o/m"), .revision = zt_text_from("main"), .may_take_long = true};
    hub_repos_find(repos, out_lookup);
    return out_lookup->found;
}

TEST_ON(struct world *world, who_can_wait_gets_the_commit_that_stays)
{
    struct hub_lookup first;
    struct hub_lookup second;

    command(world, "mkdir -p o/m; truncate -s 2M o/m/large");
    assert_int_equal(find_in("o/m", "main", &first), HUB_FOUND);
    assert_true(first.version->is_provisional);
    assert_string_equal(first.version->commit, first.version->provisional);
    assert_int_equal(first.version->files[0].etag[0], 'v');
    assert_true(first.version->can_be_final);
    assert_int_equal(find_patiently(&second), HUB_FOUND);
    assert_false(second.version->is_provisional);
    assert_false(second.version->can_be_final);
    assert_string_equal(second.version->provisional, first.version->commit);
    hub_version_release(first.version);
    assert_int_equal(find_in("o/m", "main", &first), HUB_FOUND);
    assert_ptr_equal(first.version, second.version);
    hub_version_release(first.version);
    hub_version_release(second.version);
}

TEST_ON(struct world *world, nobody_waits_for_too_much)
{
    struct hub_lookup lookup;

    command(world, "mkdir -p o/m; truncate -s 2M o/m/a; truncate -s 64M o/m/b; echo >> o/m/b");
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FOUND);
    assert_true(lookup.version->is_provisional);
    assert_false(lookup.version->can_be_final);
    hub_version_release(lookup.version);
}

TEST_ON(struct world *world, nobody_waits_twice_in_vain)
{
    struct hub_lookup lookup;

    command(world, "mkdir -p o/m; truncate -s 2M o/m/large");
    /* So nothing can be hashed. */
    atomic_store(&world->server.draining, true);
    assert_int_equal(find_patiently(&lookup), HUB_FOUND);
    assert_true(lookup.version->is_provisional);
    hub_version_release(lookup.version);
    hub_repos_changed(repos);
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FOUND);
    assert_true(lookup.version->is_provisional);
    assert_false(lookup.version->can_be_final);
    hub_version_release(lookup.version);
}

TEST_ON(struct world *world, what_is_not_there)
{
    struct hub_lookup lookup;

    command(world, "mkdir -p o/m; touch o/m/a");
    assert_int_equal(find_in("o/none", "main", &lookup), HUB_NO_REPO);
    assert_null(lookup.version);
    assert_int_equal(find_in("../root", "main", &lookup), HUB_NO_REPO);
    assert_int_equal(find_in("o", "main", &lookup), HUB_NO_REPO);
    assert_int_equal(find_in("o/m", "dev", &lookup), HUB_NO_REVISION);
    assert_non_null(lookup.version);
    hub_version_release(lookup.version);
    assert_int_equal(find_in("o/m", NO_COMMIT, &lookup), HUB_NO_REVISION);
    assert_non_null(lookup.version);
    hub_version_release(lookup.version);
}

/* --- a list that takes long --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_walk;
static unsigned walks;
static unsigned wakes;
static const struct store_ops *real_ops;

static void set(bool *flag, bool value)
{
    pthread_mutex_lock(&lock);
    *flag = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static enum zt_status slow_walk(struct store *store, const char *folder, bool is_deep,
                                store_visit visit, void *context, struct zt_error *error)
{
    pthread_mutex_lock(&lock);
    walks++;
    pthread_cond_broadcast(&changed);
    while (!may_walk)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return real_ops->walk(store, folder, is_deep, visit, context, error);
}

static void wait_for_walk(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (walks < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wake(struct waiter *waiter)
{
    (void)waiter;
    wakes++;
}

static void *list(void *unused)
{
    struct hub_lookup lookup;

    (void)unused;
    assert_int_equal(find_in("o/m", "main", &lookup), HUB_FOUND);
    hub_version_release(lookup.version);
    return NULL;
}

TEST_ON(struct world *world, others_go_on_while_one_lists)
{
    struct waiter waiter = {.wake = wake};
    /* For good: a worker may hash with it until the world ends. */
    static struct store_ops ops;
    struct hub_lookup first;
    struct hub_lookup pinned;
    struct hub_lookup waiting;
    pthread_t thread;

    /* Before the first list, because workers hash the listed files with these functions. */
    real_ops = world->server.store->ops;
    ops = *real_ops;
    world->server.store->ops = &ops;
    command(world, "mkdir -p o/m; touch o/m/a");
    assert_int_equal(find_in("o/m", "main", &first), HUB_FOUND);
    command(world, "touch o/m/b");
    hub_repos_changed(repos);
    ops.walk = slow_walk;
    assert_int_equal(pthread_create(&thread, NULL, list, NULL), 0);
    wait_for_walk(1);

    /* What is remembered needs no list. */
    assert_int_equal(find_in("o/m", first.version->commit, &pinned), HUB_FOUND);
    assert_ptr_equal(pinned.version, first.version);
    hub_version_release(pinned.version);
    assert_int_equal(find_in("o/m", "main", &waiting), HUB_BUSY);
    assert_null(waiting.version);
    assert_true(hub_repos_wait(repos, &waiting, &waiter));

    set(&may_walk, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(wakes, 1);
    /* That list began before the question. */
    hub_repos_changed(repos);
    hub_repos_find(repos, &waiting);
    assert_int_equal(waiting.found, HUB_FOUND);
    assert_int_equal(waiting.version->count, 2);
    assert_int_equal(walks, 2);
    hub_version_release(waiting.version);
    /* One that began after it would do, whatever has changed since. */
    hub_repos_changed(repos);
    hub_repos_find(repos, &waiting);
    assert_int_equal(walks, 2);
    assert_false(hub_repos_wait(repos, &waiting, &waiter));
    hub_version_release(waiting.version);
    hub_version_release(first.version);
}
