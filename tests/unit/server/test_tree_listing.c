/* What a folder of the store has: walks of the store, and listings of files of every kind. */
#include "tree_world.h"

#include "tree/stored_file.h"

/* The paths of a listing, each followed by a blank; folders have a slash at their end. */
static void assert_has(struct world *world, const char *folder, bool is_deep, const char *expected)
{
    struct tree_listing *tree;
    char text[4096] = "";

    assert_ok(tree_list(&world->server, folder, is_deep, false, &tree, NULL));
    assert_string_equal(tree->folder, folder);
    for (size_t i = 0; i < tree->count; i++) {
        strcat(text, tree->entries[i].path);
        strcat(text, tree->entries[i].is_folder ? "/ " : " ");
    }
    assert_string_equal(text, expected);
    tree_listing_release(tree);
}

static void assert_fails(struct world *world, const char *folder, enum zt_status status)
{
    struct tree_listing *tree;
    struct zt_error error;

    assert_int_equal(tree_list(&world->server, folder, true, false, &tree, &error), status);
    assert_int_equal(error.status, status);
    assert_null(strstr(error.message, world->root));
}

static bool is_served(const char *path)
{
    return store_path_is_served(zt_text_from(path));
}

TEST(paths_that_are_served)
{
    char part[257];

    assert_true(is_served("config.json"));
    assert_true(is_served("org/model/READ ME+x@y,z.md"));
    assert_true(is_served("_x"));
    assert_true(is_served("-x/ y"));
    assert_true(is_served("a..b/c."));
    assert_true(is_served("größe/日本.txt"));
    assert_false(is_served(""));
    assert_false(is_served("."));
    assert_false(is_served(".."));
    assert_false(is_served("a/../b"));
    assert_false(is_served("a/.b"));
    assert_false(is_served(".a/b"));
    assert_false(is_served("/a"));
    assert_false(is_served("a/"));
    assert_false(is_served("a//b"));
    assert_false(is_served("a\nb"));
    assert_false(is_served("a\x7f"));
    assert_false(is_served("a\xc2\x85"));
    assert_false(is_served("a\xff"));
    memset(part, 'x', 256);
    part[256] = '\0';
    assert_false(is_served(part));
    part[255] = '\0';
    assert_true(is_served(part));
    assert_false(store_path_is_served((struct zt_text){"a\0b", 3}));
}

TEST(longest_path_that_is_served)
{
    char path[1026];

    memset(path, 'x', sizeof(path));
    for (size_t i = 200; i < 1024; i += 200)
        path[i] = '/';
    path[1024] = '\0';
    assert_true(is_served(path));
    path[1024] = 'x';
    path[1025] = '\0';
    assert_false(is_served(path));
}

WITH_TREE(files_of_every_kind_are_listed_in_order)
{
    assert_has(world, "", true, "");
    command(world,
            "mkdir -p b/c .hidden b/.git 'sp ace'; touch a.json m.zt b/x b/c/y.txt 'sp ace/z' "
            ".h .hidden/q b/.git/config \"$(printf 'ctrl\\001.txt')\"; mkfifo fifo; "
            "mkdir b-c; touch b-c/k b.txt");
    assert_has(world, "", false, "a.json b/ b-c/ b.txt m.zt sp ace/ ");
    assert_has(world, "", true,
               "a.json b/ b-c/ b-c/k b.txt b/c/ b/c/y.txt b/x m.zt sp ace/ sp ace/z ");
    assert_has(world, "b", false, "c/ x ");
    assert_has(world, "b", true, "c/ c/y.txt x ");
    assert_has(world, "sp ace", true, "z ");
}

WITH_TREE(what_is_no_folder_is_not_found)
{
    command(world,
            "mkdir -p .hidden a/.git; touch file; ln -s ../outside out; ln -s nowhere broken");
    assert_fails(world, "nowhere", ZT_NOT_FOUND);
    assert_fails(world, "file", ZT_NOT_FOUND);
    assert_fails(world, ".hidden", ZT_NOT_FOUND);
    assert_fails(world, "a/.git", ZT_NOT_FOUND);
    assert_fails(world, "..", ZT_NOT_FOUND);
    assert_fails(world, "a/..", ZT_NOT_FOUND);
    assert_fails(world, "/", ZT_NOT_FOUND);
    assert_fails(world, "a/", ZT_NOT_FOUND);
    assert_fails(world, "out", ZT_NOT_FOUND);
    assert_fails(world, "broken", ZT_NOT_FOUND);
}

WITH_TREE(links_are_followed_below_the_root_and_never_round)
{
    command(world, "mkdir -p real/sub; touch real/f real/sub/g ../outside/o; ln -s real two; "
                   "ln -s real/f one; ln -s ../outside three; ln -s ../outside/o four; "
                   "ln -s .. real/sub/up; ln -s . real/self; ln -s /etc five; ln -s six six; "
                   "ln -s $PWD/real seven");
    assert_has(world, "", false, "one real/ seven/ two/ ");
    assert_has(world, "real", true, "f self/ sub/ sub/g sub/up/ ");
    assert_has(world, "two", true, "f self/ sub/ sub/g sub/up/ ");
}

WITH_TREE(a_cache_of_the_hub_is_listed_through_its_links)
{
    command(world, "mkdir -p models--o--n/blobs models--o--n/snapshots/c0/onnx; cd models--o--n; "
                   "echo one > blobs/b1; ln -s ../../blobs/b1 snapshots/c0/config.json; "
                   "ln -s ../../../blobs/b1 snapshots/c0/onnx/x");
    assert_has(world, "models--o--n/snapshots/c0", true, "config.json onnx/ onnx/x ");
    assert_int_equal(identity_of(world, "models--o--n/snapshots/c0/onnx/x").size_bytes, 4);
}

WITH_TREE(a_listing_has_sizes_and_finds_entries)
{
    const struct tree_entry *entry;
    struct tree_listing *tree;
    struct file_identity identity;

    command(world, "mkdir -p d/e; printf 12345 > d/f; printf 123 > d/e/g; touch d/ef");
    assert_ok(tree_list(&world->server, "d", true, false, &tree, NULL));
    assert_int_equal(tree->size_bytes, 8);
    assert_int_equal(tree->count, 4);
    assert_string_equal(tree->entries[0].path, "e");
    assert_true(tree->entries[0].is_folder);
    entry = &tree->entries[1];
    assert_string_equal(entry->path, "e/g");
    identity = identity_of(world, "d/e/g");
    assert_true(store_identity_equal(&entry->identity, &identity));
    assert_false(entry->is_folder || entry->has_sha256);
    tree_listing_release(tree);
    tree_listing_release(NULL);
}

WITH_TREE(unreadable_folders_do_not_hide_others)
{
    if (geteuid() == 0)
        skip();
    command(world, "mkdir shut open; touch shut/x open/y; chmod 0 shut");
    assert_has(world, "", true, "open/ open/y shut/ ");
    assert_fails(world, "shut", ZT_IO);
}

static bool stop_at_once(void *context, const char *path, const struct file_identity *identity)
{
    (void)path;
    (void)identity;
    ++*(int *)context;
    return false;
}

WITH_TREE(a_walk_ends_when_its_visitor_has_enough)
{
    struct store *store = world->server.store;
    int visits = 0;

    command(world, "mkdir d; touch d/a d/b c");
    assert_ok(store->ops->walk(store, "", true, stop_at_once, &visits, NULL));
    assert_int_equal(visits, 1);
}

WITH_TREE(a_stored_file_is_opened_by_any_path_that_is_served)
{
    struct stored_file *file;
    struct zt_error error;
    static const char *const absent[] = {"none",         ".h",       "d",          "d/.h",
                                         "../outside/o", "d/../a b", "out",        "fifo",
                                         "a b/x",        "",         "/etc/passwd"};

    command(world,
            "mkdir d; echo hello > 'a b'; touch .h d/.h ../outside/o; ln -s ../outside/o out; "
            "mkfifo fifo");
    assert_ok(stored_file_open(&world->server, zt_text_from("a b"), &file, &error));
    assert_int_equal(zt_source_size(file->source), 6);
    assert_string_equal(file->path, "a b");
    assert_true(stored_file_is_unwritten(file));
    command(world, "mv 'a b' moved");
    assert_true(stored_file_is_unwritten(file));
    command(world, "echo again >> moved");
    assert_false(stored_file_is_unwritten(file));
    stored_file_close(file);
    stored_file_close(NULL);
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        assert_int_equal(stored_file_open(&world->server, zt_text_from(absent[i]), &file, &error),
                         ZT_NOT_FOUND);
}

WITH_TREE(tags_differ_by_path_and_version)
{
    struct file_identity identity;
    char first[STORED_FILE_ETAG_SIZE];
    char second[STORED_FILE_ETAG_SIZE];

    command(world, "echo one > a");
    identity = identity_of(world, "a");
    stored_file_etag("a", &identity, first);
    stored_file_etag("b", &identity, second);
    assert_string_not_equal(first, second);
    stored_file_etag("a", &identity, second);
    assert_string_equal(first, second);
    assert_int_equal(strlen(first), 34);
    identity.device++;
    stored_file_etag("a", &identity, second);
    assert_string_equal(first, second);
    identity.changed_ns++;
    stored_file_etag("a", &identity, second);
    assert_string_not_equal(first, second);
}

/* As a bucket's list while a file is replaced. */
static enum zt_status walk_twice(struct store *store, const char *folder, bool is_deep,
                                 store_visit visit, void *context, struct zt_error *error)
{
    const struct file_identity older = {.size_bytes = 5, .modified_ns = 1};
    const struct file_identity newer = {.size_bytes = 7, .modified_ns = 2};

    (void)store;
    (void)folder;
    (void)is_deep;
    (void)error;
    assert_true(visit(context, "a", &older) && visit(context, "a", &newer));
    return ZT_OK;
}

WITH_TREE(latest_of_two_entries_of_a_file_is_listed)
{
    struct store *store = world->server.store;
    const struct store_ops *usual = store->ops;
    struct store_ops ops = *usual;
    struct tree_listing *tree;

    ops.walk = walk_twice;
    store->ops = &ops;
    assert_int_equal(tree_list(&world->server, "", true, false, &tree, NULL), ZT_OK);
    store->ops = usual;
    assert_int_equal(tree->count, 1);
    assert_int_equal(tree->entries[0].identity.size_bytes, 7);
    assert_int_equal(tree->size_bytes, 7);
    tree_listing_release(tree);
}
