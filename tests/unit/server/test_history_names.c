/* Names of repositories, revisions and paths of commits. */
#include "history_world.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static const char *repo_of(struct world *world, const char *path)
{
    static struct history_repo repo;
    static char text[MODEL_NAME_MAX + 3];

    history_repo_of_path(world->history, path, &repo);
    snprintf(text, sizeof(text), "%s%s", repo.is_root_model ? "m:" : "f:", repo.name);
    return text;
}

static const char *repo_of_model(struct world *world, const char *name)
{
    static struct history_repo repo;
    static char text[MODEL_NAME_MAX + 3];

    history_repo_of_model(world->history, zt_text_from(name), &repo);
    snprintf(text, sizeof(text), "%s%s", repo.is_root_model ? "m:" : "f:", repo.name);
    return text;
}

WITH_HISTORY(file_belongs_to_the_first_two_folders)
{
    assert_string_equal(repo_of(world, "org/model/a.zt"), "f:org/model");
    assert_string_equal(repo_of(world, "org/model/sub/a.zt"), "f:org/model");
    assert_string_equal(repo_of(world, "model/a.zt"), "f:model");
    assert_string_equal(repo_of_model(world, "org/model/a"), "f:org/model");
    assert_string_equal(repo_of_model(world, "model/a"), "f:model");
}

WITH_HISTORY(folder_with_a_configuration_is_one_repository)
{
    run_in(world->path, "mkdir -p one two/config.json three && echo {} > one/config.json &&"
                        "mkfifo three/config.json");
    assert_string_equal(repo_of(world, "one/sub/a.zt"), "f:one");
    assert_string_equal(repo_of_model(world, "one/sub/a"), "f:one");
    assert_string_equal(repo_of(world, "two/sub/a.zt"), "f:two/sub");
    assert_string_equal(repo_of(world, "three/sub/a.zt"), "f:three/sub");
}

WITH_HISTORY(files_of_one_model_in_the_root_belong_together)
{
    static const char *const paths[] = {
        "tiny.zt",
        "tiny.safetensors",
        "tiny-00001-of-00003.gguf",
        "tiny-00002-of-00003.safetensors",
        "tiny.safetensors.index.json",
        "tiny.bin.index.json",
    };

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_string_equal(repo_of(world, paths[i]), "m:tiny");
    assert_string_equal(repo_of_model(world, "tiny"), "m:tiny");
    assert_string_equal(repo_of_model(world, "tiny-00001-of-00003"), "m:tiny");
    assert_string_equal(repo_of(world, "tiny.fp16-00001-of-00002.safetensors"), "m:tiny.fp16");
    assert_string_equal(repo_of(world, "tiny.safetensors.index.fp16.json"), "m:tiny.fp16");
    assert_string_equal(repo_of(world, "README.md"), "m:README.md");
}

static const char *split(const char *path)
{
    static char text[256];
    struct history_path found;

    if (!history_path_split(zt_text_from(path), &found))
        return "-";
    assert_string_equal(found.commit, COMMIT);
    snprintf(text, sizeof(text), "%.*s %.*s", (int)found.repo.length, found.repo.bytes,
             (int)found.rest.length, found.rest.bytes);
    return text;
}

TEST(path_of_a_commit_is_split)
{
    assert_string_equal(split("org/model@" COMMIT "/a/b"), "org/model a/b");
    assert_string_equal(split("org/model@" COMMIT), "org/model ");
    assert_string_equal(split("tiny@" COMMIT "/tiny.zt"), "tiny tiny.zt");
    assert_string_equal(split("a@b@" COMMIT "/c@" COMMIT), "a@b c@" COMMIT);
    assert_string_equal(split("@" COMMIT "/a"), "-");
    assert_string_equal(split("m@" COMMIT "0/a"), "-");
    assert_string_equal(split("m@0123456789ABCDEF0123456789abcdef01234567/a"), "-");
    assert_string_equal(split("m@main/a"), "-");
    assert_string_equal(split(""), "-");
}

TEST(names_of_branches_are_those_of_git)
{
    static const char *const valid[] = {
        "main", "v1.0", "a/b", "x@y", "\xc3\xa9", "0123456789abcdef", "a.lock.b"};
    static const char *const invalid[] = {
        "",     "/a",  "a/",   "a//b",   ".a",  "a/.b",  "a.lock", "a.lock/b", "a..b",
        "a.",   "a b", "a~b",  "a^b",    "a:b", "a?b",   "a*b",    "a[b",      "a\\b",
        "a@{b", "@",   "HEAD", "refs/a", "-a",  "a\x7f", "a\n",    "\xff",     COMMIT};
    char longest[HISTORY_REF_SIZE + 1];

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        if (!history_ref_is_valid(zt_text_from(valid[i])))
            fail_msg("%s is refused", valid[i]);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        if (history_ref_is_valid(zt_text_from(invalid[i])))
            fail_msg("%s is accepted", invalid[i]);
    assert_false(history_ref_is_valid((struct zt_text){"a\0b", 3}));
    memset(longest, 'a', sizeof(longest));
    assert_true(history_ref_is_valid((struct zt_text){longest, HISTORY_REF_SIZE - 1}));
    assert_false(history_ref_is_valid((struct zt_text){longest, HISTORY_REF_SIZE}));
}

TEST(commit_identity_is_the_sha1_of_paths_and_sha256s)
{
    /* printf 'a\0%s\0' $(printf 1 | sha256sum | cut -c -64) | sha1sum */
    assert_string_equal(id_of("a=1"), "fb5e44f1eeaad1790ec7880eab93699ee70c95e0");
    assert_string_equal(id_of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

WITH_HISTORY(odd_bytes_in_names_and_texts_come_back)
{
    const struct history_file file = {.path = "b\xc3\xa9 \"'\\\xff\x01", .size_bytes = 1};
    const struct history_tree *tree;
    struct history_commit made;
    struct history_commit *commits;
    char title[1000];
    size_t count;

    strcpy(world->repo.name, "o\xff/\x01 '\"");
    memset(title, 'x', sizeof(title) - 1);
    title[sizeof(title) - 1] = '\0';
    memcpy(title + sizeof(made.title) - 2, "\xc3\xa9", 2); /* across the end */
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_record(
        world->history, &world->repo, &(struct history_head){HISTORY_MAIN, &file, 1},
        &(struct history_note){.title = title, .message = "a\n\"\xff"}, &made, NULL));
    history_unlock(world->history, &world->repo);
    world_reopen(world);
    assert_int_equal(history_tree_get(world->history, &world->repo, "main", &tree, NULL),
                     ZT_NOT_FOUND);
    assert_ok(history_tree_get(world->history, &world->repo, made.id, &tree, NULL));
    assert_string_equal(tree->files[0].path, file.path);
    history_tree_release(tree);
    assert_ok(history_list(world->history, &world->repo,
                           &(struct history_range){zt_text_from("main"), UINT64_MAX, 1}, &commits,
                           &count, NULL));
    assert_int_equal(strlen(commits[0].title), sizeof(made.title) - 2);
    assert_string_equal(commits[0].message, "a\n\"\xff");
    free(commits);
}

WITH_HISTORY(files_that_are_not_sorted_or_leave_the_folder_are_refused)
{
    static const char *const wrong[] = {"b=1 a=2", "a=1 a=2", "../a=1", "/a=1", "a//b=1", "=1"};
    struct history_commit made;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(try_record_on(world, HISTORY_MAIN, wrong[i], &made), ZT_ARGUMENT);
    assert_int_equal(try_record_on(world, "a..b", "a=1", &made), ZT_ARGUMENT);
    assert_string_equal(refs(world), "");
}
