/* Names of repositories and revisions, as the Hub's clients check and write them. */
#include "tests.h"

#include "hub/hub_names.h"

static bool is_valid(const char *name)
{
    return hub_repo_is_valid(zt_text_from(name));
}

TEST(names_of_repositories)
{
    static const char *const valid[] = {"a",    "a/b",   "A-1_x.y/b.c-d", "_a_/_",
                                        "a.b",  "a-.b",  "0/1.5B",        "git/gitx",
                                        "a_-b", "a/api", "files1/a",      "v2/a"};
    static const char *const invalid[] = {"",        "/",
                                          "a/",      "/a",
                                          "a/b/c",   "-a",
                                          "a-",      ".a",
                                          "a.",      "a--b",
                                          "a..b",    "a/..",
                                          "../a",    "a.git",
                                          "x/a.git", "a.git/b",
                                          "a b",     "a/b+c",
                                          "a%2Fb",   "a\\b",
                                          "a\nb",    "gr\xc3\xb6\xc3\x9f/b",
                                          "a/-b",    "a/b-",
                                          "a/.b",    "a:b",
                                          "@a/b",    "api",
                                          "files/a", "datasets/a",
                                          "spaces",  "kernels/a",
                                          "v1",      "v1/a"};

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        if (!is_valid(valid[i]))
            fail_msg("%s is refused", valid[i]);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        if (is_valid(invalid[i]))
            fail_msg("%s is taken", invalid[i]);
    assert_false(hub_repo_is_valid((struct zt_text){"a\0b", 3}));
    assert_false(hub_repo_is_valid((struct zt_text){NULL, 0}));
}

TEST(lengths_of_names)
{
    char name[2 * 97 + 2];

    memset(name, 'a', sizeof(name));
    name[96] = '/';
    name[96 + 1 + 96] = '\0';
    assert_true(is_valid(name));
    assert_int_equal(strlen(name), HUB_REPO_SIZE - 1);
    name[96 + 1 + 96] = 'a';
    name[96 + 1 + 97] = '\0';
    assert_false(is_valid(name));
    name[96] = 'a';
    name[97] = '\0';
    assert_false(is_valid(name));
}

TEST(meanings_of_revisions)
{
    static const char commit[] = "0123456789abcdef0123456789abcdef01234567";
    static const char *const unknown[] = {"",
                                          "Main",
                                          "head",
                                          "mainx",
                                          "refs/heads/dev",
                                          "refs/heads/main/",
                                          "refs/main",
                                          "v1.0",
                                          "0123456789abcdef0123456789abcdef0123456",
                                          "0123456789abcdef0123456789abcdef012345678",
                                          "0123456789ABCDEF0123456789abcdef01234567",
                                          "g123456789abcdef0123456789abcdef01234567"};

    assert_int_equal(hub_revision_of(zt_text_from("main")), HUB_REVISION_NOW);
    assert_int_equal(hub_revision_of(zt_text_from("HEAD")), HUB_REVISION_NOW);
    assert_int_equal(hub_revision_of(zt_text_from("refs/heads/main")), HUB_REVISION_NOW);
    assert_int_equal(hub_revision_of(zt_text_from(commit)), HUB_REVISION_COMMIT);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_int_equal(hub_revision_of(zt_text_from(unknown[i])), HUB_REVISION_UNKNOWN);
}

static void assert_split(const char *raw, const char *revision, const char *path)
{
    struct zt_text out_revision;
    struct zt_text out_path;

    hub_revision_split(zt_text_from(raw), &out_revision, &out_path);
    if (!zt_text_is(out_revision, revision) || !zt_text_is(out_path, path))
        fail_msg("%s: revision %.*s, path %.*s", raw, (int)out_revision.length, out_revision.bytes,
                 (int)out_path.length, out_path.bytes);
}

TEST(revisions_before_paths)
{
    assert_split("main", "main", "");
    assert_split("main/", "main", "");
    assert_split("main/a", "main", "a");
    assert_split("main/a/b c", "main", "a/b c");
    assert_split("main//a", "main", "/a");
    assert_split("refs%2Fheads%2Fmain/a/b", "refs%2Fheads%2Fmain", "a/b");
    assert_split("refs/heads/main/a/b", "refs/heads/main", "a/b");
    assert_split("refs/heads/main", "refs/heads/main", "");
    assert_split("refs/pr/1/a", "refs/pr/1", "a");
    assert_split("refs/heads", "refs/heads", "");
    assert_split("refs/", "refs/", "");
    assert_split("refs", "refs", "");
    assert_split("refsx/a", "refsx", "a");
    assert_split("", "", "");
}

TEST(names_of_branches_are_those_of_git)
{
    static const char *const valid[] = {"main", "refs/pr/1", "v1.0", "a/b-c",
                                        "x@y",  "\xC3\xBC",  "a.b"};
    static const char *const invalid[] = {
        "",     "..",  "../x",   "a/../b", "a..b", "/a",   "a/",  "a//b", ".a",   "a.",
        "a/.b", "a b", "a.lock", "a?b",    "a:b",  "a\\b", "a\n", "@",    "a@{1", "http://x"};

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        assert_true(hub_revision_is_valid(zt_text_from(valid[i])));
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        assert_false(hub_revision_is_valid(zt_text_from(invalid[i])));
}
