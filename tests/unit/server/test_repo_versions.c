/* Which versions of a repository are remembered, and which are forgotten first. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/repo_versions.h"

/* A version that somebody else holds as well, so that it can be looked at when it is forgotten. */
static struct hub_version *version_of(const char *provisional, const char *commit, size_t count)
{
    struct hub_version *version = calloc(1, sizeof(*version));

    assert_non_null(version);
    atomic_init(&version->references, 2);
    snprintf(version->provisional, sizeof(version->provisional), "%s", provisional);
    snprintf(version->commit, sizeof(version->commit), "%s", commit);
    version->count = count;
    return version;
}

static bool is_kept(const struct hub_version *version)
{
    return atomic_load(&version->references) == 2;
}

static struct hub_version *put(struct repo_versions *versions, int number, size_t count,
                               bool is_now)
{
    char name[HUB_COMMIT_SIZE];
    struct hub_version *version;

    snprintf(name, sizeof(name), "p%d", number);
    version = version_of(name, name, count);
    repo_versions_put(versions, version, is_now);
    return version;
}

static void begin(struct repo_versions *versions)
{
    memset(versions, 0, sizeof(*versions));
}

static struct hub_version *find(struct repo_versions *versions, const char *commit)
{
    return repo_versions_find(versions, zt_text_from(commit));
}

TEST(what_is_asked_for_stays)
{
    struct repo_versions versions;
    struct hub_version *put_versions[3 * REPO_VERSIONS_MAX];

    begin(&versions);
    for (int i = 0; i < 3 * REPO_VERSIONS_MAX; i++) {
        put_versions[i] = put(&versions, i, 3, true);
        assert_ptr_equal(find(&versions, "p0"), put_versions[0]);
        assert_ptr_equal(versions.now, put_versions[i]);
    }
    assert_int_equal(versions.count, REPO_VERSIONS_MAX);
    assert_int_equal(repo_versions_size(&versions), 4 * REPO_VERSIONS_MAX);
    assert_true(is_kept(put_versions[0]));
    assert_false(is_kept(put_versions[1]));
    assert_null(find(&versions, "p1"));
    assert_false(is_kept(put_versions[2 * REPO_VERSIONS_MAX]));
    assert_true(is_kept(put_versions[2 * REPO_VERSIONS_MAX + 1]));
    repo_versions_free(&versions);
    for (int i = 0; i < 3 * REPO_VERSIONS_MAX; i++) {
        assert_false(is_kept(put_versions[i]));
        hub_version_release(put_versions[i]);
    }
}

TEST(very_many_files)
{
    struct repo_versions versions;
    struct hub_version *small;
    struct hub_version *large;
    struct hub_version *larger;

    begin(&versions);
    small = put(&versions, 0, 10, true);
    large = put(&versions, 1, REPO_FILES_MAX - 12, true);
    assert_int_equal(versions.count, 2);
    larger = put(&versions, 2, 3 * REPO_FILES_MAX, true);
    assert_int_equal(versions.count, 1);
    assert_false(is_kept(small));
    assert_false(is_kept(large));
    assert_ptr_equal(find(&versions, "p2"), larger);
    hub_version_release(small);
    small = put(&versions, 3, 1, false);
    assert_ptr_equal(versions.now, larger);
    assert_true(is_kept(larger));
    assert_ptr_equal(find(&versions, "p3"), small);
    repo_versions_free(&versions);
    hub_version_release(small);
    hub_version_release(large);
    hub_version_release(larger);
}

TEST(the_same_files_with_more_hashes)
{
    struct repo_versions versions;
    struct hub_version *first = version_of("p", "p", 1);
    struct hub_version *hashed = version_of("p", "c", 1);

    begin(&versions);
    repo_versions_put(&versions, first, true);
    repo_versions_put(&versions, hashed, true);
    assert_int_equal(versions.count, 1);
    assert_false(is_kept(first));
    assert_ptr_equal(find(&versions, "p"), hashed);
    assert_ptr_equal(find(&versions, "c"), hashed);
    repo_versions_free(&versions);
    hub_version_release(first);
    hub_version_release(hashed);
}

/* The same bytes in other files: what is found is what is there. */
TEST(the_youngest_of_one_commit)
{
    struct repo_versions versions;
    struct hub_version *old = version_of("p", "c", 1);
    struct hub_version *young = version_of("q", "c", 1);

    begin(&versions);
    repo_versions_put(&versions, old, true);
    repo_versions_put(&versions, young, true);
    assert_int_equal(versions.count, 2);
    assert_ptr_equal(find(&versions, "c"), young);
    assert_ptr_equal(find(&versions, "p"), old);
    repo_versions_free(&versions);
    hub_version_release(old);
    hub_version_release(young);
}

TEST(stated_commits_of_the_same_files)
{
    struct repo_versions versions;
    struct hub_version *one = version_of("p", "c", 1);
    struct hub_version *other = version_of("p", "d", 1);
    struct hub_version *grown = version_of("q", "c", 2);

    begin(&versions);
    one->is_stated = other->is_stated = grown->is_stated = true;
    repo_versions_put(&versions, one, true);
    repo_versions_put(&versions, other, false);
    assert_int_equal(versions.count, 2);
    assert_ptr_equal(versions.now, one);
    repo_versions_put(&versions, grown, false);
    assert_int_equal(versions.count, 2);
    assert_ptr_equal(versions.now, grown);
    assert_ptr_equal(find(&versions, "c"), grown);
    assert_ptr_equal(find(&versions, "d"), other);
    assert_false(is_kept(one));
    repo_versions_free(&versions);
    hub_version_release(one);
    hub_version_release(other);
    hub_version_release(grown);
}

TEST(kept_versions_are_found_by_their_folder_until_they_are_dropped)
{
    struct repo_versions versions;
    struct hub_version *viewed = version_of("p1", "c1", 2);
    struct hub_version *plain = version_of("p2", "c2", 1);
    struct hub_version *again = version_of("p3", "c1", 2);
    const struct zt_text any = {"", 0};

    begin(&versions);
    viewed->is_kept = plain->is_kept = again->is_kept = plain->is_stated = true;
    viewed->folder = strdup("o/m@c");
    plain->folder = strdup("o/m@c");
    again->folder = strdup("o/m@c");
    repo_versions_put(&versions, viewed, false);
    repo_versions_put(&versions, plain, false);
    assert_ptr_equal(repo_versions_find_kept(&versions, "o/m@c", any), viewed);
    assert_ptr_equal(repo_versions_find_kept(&versions, "o/m@c", zt_text_from("c2")), plain);
    assert_null(repo_versions_find_kept(&versions, "o/m@d", any));
    repo_versions_put(&versions, again, false);
    assert_false(is_kept(viewed));
    assert_int_equal(versions.count, 2);
    repo_versions_drop(&versions, again);
    assert_false(is_kept(again));
    assert_null(repo_versions_find_kept(&versions, "o/m@c", any));
    repo_versions_free(&versions);
    hub_version_release(viewed);
    hub_version_release(plain);
    hub_version_release(again);
}
