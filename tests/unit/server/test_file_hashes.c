/* SHA-256 of whole files: found, remembered by version, kept across restarts, forgotten. */
#include "tests.h"
#include "tree_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "digests/hash_table.h"

/* sha256sum of "one\n" and "two\n". */
#define SHA256_ONE "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
#define SHA256_TWO "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"

static void assert_is(const uint8_t sha256[SHA256_BYTES], const char *expected)
{
    char text[2 * SHA256_BYTES + 1];

    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", sha256[i]);
    assert_string_equal(text, expected);
}

static bool is_known(const struct world *world, const char *path)
{
    const struct file_identity identity = identity_of(world, path);
    uint8_t sha256[SHA256_BYTES];

    return file_hashes_find(world->server.hashes, path, &identity, sha256);
}

static void assert_known(const struct world *world, const char *path, const char *expected)
{
    const struct file_identity identity = identity_of(world, path);
    uint8_t sha256[SHA256_BYTES];

    assert_true(file_hashes_find(world->server.hashes, path, &identity, sha256));
    assert_is(sha256, expected);
}

static void want(const struct world *world, const char *path)
{
    const struct file_identity identity = identity_of(world, path);

    file_hashes_want(world->server.hashes, path, &identity);
}

static void wait_for(const struct world *world, const char *path)
{
    AWAIT(is_known(world, path));
}

static enum zt_status compute(const struct world *world, const char *path,
                              uint8_t out_sha256[SHA256_BYTES])
{
    const struct file_identity identity = identity_of(world, path);

    return file_hashes_compute(world->server.hashes, path, &identity, out_sha256, NULL);
}

static void assert_computed(const struct world *world, const char *path, const char *expected)
{
    uint8_t sha256[SHA256_BYTES];

    assert_int_equal(compute(world, path, sha256), ZT_OK);
    assert_is(sha256, expected);
}

AROUND_EACH_TEST(set_up, tear_down)

TEST_ON(struct world *world, wanted_files_are_found_in_the_background)
{
    command(world, "echo one > a; echo two > b; : > empty; head -c 5000000 /dev/zero > big");
    assert_false(is_known(world, "a"));
    want(world, "big");
    want(world, "a");
    want(world, "a");
    want(world, "empty");
    wait_for(world, "a");
    wait_for(world, "empty");
    wait_for(world, "big");
    assert_known(world, "a", SHA256_ONE);
    assert_known(world, "empty",
                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_known(world, "big", "b39781589c4403fb82174c9647a010464cff38bad976547d339899b00053a545");
    assert_false(is_known(world, "b"));
}

TEST_ON(struct world *world, a_listing_can_have_them_found)
{
    struct tree_listing *tree;

    command(world, "mkdir d; echo one > d/a; echo two > d/b");
    assert_int_equal(tree_list(&world->server, "d", true, true, &tree, NULL), ZT_OK);
    tree_listing_release(tree);
    wait_for(world, "d/a");
    wait_for(world, "d/b");
    assert_int_equal(tree_list(&world->server, "d", true, true, &tree, NULL), ZT_OK);
    assert_true(tree->entries[0].has_sha256 && tree->entries[1].has_sha256);
    assert_is(tree->entries[0].sha256, SHA256_ONE);
    assert_is(tree->entries[1].sha256, SHA256_TWO);
    tree_listing_release(tree);
}

TEST_ON(struct world *world, a_version_is_known_by_path_and_identity)
{
    struct file_identity identity;
    uint8_t sha256[SHA256_BYTES];

    command(world, "echo one > a");
    identity = identity_of(world, "a");
    assert_computed(world, "a", SHA256_ONE);
    assert_true(file_hashes_find(world->server.hashes, "a", &identity, sha256));
    assert_false(file_hashes_find(world->server.hashes, "b", &identity, sha256));
    identity.changed_ns++;
    assert_false(file_hashes_find(world->server.hashes, "a", &identity, sha256));
    assert_int_equal(file_hashes_compute(world->server.hashes, "a", &identity, sha256, NULL),
                     ZT_STALE);
    assert_int_equal(file_hashes_compute(world->server.hashes, "nowhere", &identity, sha256, NULL),
                     ZT_NOT_FOUND);
}

/* Same length, same modification time: only the time of the status change tells. */
TEST_ON(struct world *world, a_file_that_is_changed_in_place_is_another_version)
{
    command(world, "echo one > a; touch -r a ../state/stamp");
    assert_computed(world, "a", SHA256_ONE);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    command(world, "printf two | dd of=a conv=notrunc status=none; touch -r ../state/stamp a; "
                   "rm ../state/stamp");
    assert_false(is_known(world, "a"));
    restart(world);
    assert_false(is_known(world, "a"));
    assert_computed(world, "a", SHA256_TWO);
}

TEST_ON(struct world *world, what_is_found_outlives_the_process)
{
    struct file_identity identity;
    uint8_t sha256[SHA256_BYTES];

    command(world, "echo one > a; echo two > b");
    want(world, "a");
    wait_for(world, "a");
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    /* What is added later stands behind it. */
    identity = identity_of(world, "b");
    memset(sha256, 7, sizeof(sha256));
    file_hashes_keep(world->server.hashes, "b", &identity, sha256);
    restart(world);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    assert_known(world, "b", "0707070707070707070707070707070707070707070707070707070707070707");
}

/* The path of the only file of digests in the state folder. */
static void find_saved(const struct world *world, char out_path[512])
{
    char folder[128];
    const struct dirent *entry;
    DIR *stream;

    snprintf(folder, sizeof(folder), "%s/../state/hashes", world->root);
    stream = opendir(folder);
    assert_non_null(stream);
    out_path[0] = '\0';
    while ((entry = readdir(stream)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(out_path, 512, "%s/%s", folder, entry->d_name);
    closedir(stream);
    assert_true(out_path[0] != '\0');
}

TEST_ON(struct world *world, a_damaged_record_ends_what_is_read)
{
    char path[512];
    struct stat info;
    int file;

    command(world, "echo one > a; echo two > b");
    assert_computed(world, "a", SHA256_ONE);
    restart(world);
    assert_computed(world, "b", SHA256_TWO);
    end(world);
    find_saved(world, path);
    file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(pwrite(file, "?", 1, info.st_size - 20), 1);
    close(file);
    begin(world);
    assert_known(world, "a", SHA256_ONE);
    assert_false(is_known(world, "b"));
    assert_computed(world, "b", SHA256_TWO);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    assert_known(world, "b", SHA256_TWO);
}

TEST_ON(struct world *world, a_torn_or_foreign_file_is_replaced)
{
    char path[512];

    command(world, "echo one > a");
    assert_computed(world, "a", SHA256_ONE);
    end(world);
    find_saved(world, path);
    assert_int_equal(truncate(path, 30), 0);
    begin(world);
    assert_false(is_known(world, "a"));
    assert_computed(world, "a", SHA256_ONE);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
}

TEST_ON(struct world *world, without_a_state_folder_they_last_as_long_as_the_process)
{
    end(world);
    strcpy(world->config.state.dir, "/dev/null/nowhere");
    begin(world);
    command(world, "echo one > a");
    assert_computed(world, "a", SHA256_ONE);
    assert_known(world, "a", SHA256_ONE);
    restart(world);
    assert_false(is_known(world, "a"));
}

TEST_ON(struct world *world, files_that_cannot_be_read_may_be_wanted_again)
{
    struct file_identity identity;
    uint8_t sha256[SHA256_BYTES];

    command(world, "echo one > a");
    identity = identity_of(world, "a");
    command(world, "mv a b");
    file_hashes_want(world->server.hashes, "a", &identity);
    assert_int_equal(file_hashes_compute(world->server.hashes, "a", &identity, sha256, NULL),
                     ZT_NOT_FOUND);
    command(world, "mv b a");
    /* The rename made another version of it. */
    want(world, "a");
    wait_for(world, "a");
}

/* --- what is made of files --- */

static struct {
    atomic_int holds;
    atomic_int opened;
    bool is_changed; /* while it is read */
} made_state;

static void hold_made(void *thing)
{
    (void)thing;
    made_state.holds++;
}

static void release_made(void *thing)
{
    (void)thing;
    made_state.holds--;
}

static enum zt_status open_made(const struct hash_made *made, struct server *server,
                                struct zt_source **out_source, struct zt_error *error)
{
    (void)server;
    made_state.opened++;
    return zt_source_from_memory(made->thing, made->part, out_source, error);
}

static bool is_still_made(struct zt_source *source)
{
    (void)source;
    return !made_state.is_changed;
}

static void want_made(const struct world *world, const char *path,
                      const struct file_identity *identity, uint32_t length)
{
    static const struct hash_made_ops ops = {hold_made, release_made, open_made, is_still_made};
    static char text[] = "one\n";

    file_hashes_want_made(world->server.hashes, path, identity,
                          &(struct hash_made){&ops, text, length});
}

static void wait_until_released(int opened)
{
    AWAIT(made_state.opened == opened && made_state.holds == 0);
}

TEST_ON(struct world *world, what_is_made_is_hashed_as_a_file_is)
{
    const struct file_identity identity = {.size_bytes = 4, .inode = 7};
    uint8_t sha256[SHA256_BYTES];

    made_state.opened = 0;
    want_made(world, "a/view", &identity, 4);
    wait_until_released(1);
    assert_true(file_hashes_find(world->server.hashes, "a/view", &identity, sha256));
    assert_is(sha256, SHA256_ONE);
    restart(world);
    assert_true(file_hashes_find(world->server.hashes, "a/view", &identity, sha256));
}

TEST_ON(struct world *world, what_is_made_is_not_kept_if_it_is_another)
{
    const struct file_identity identity = {.size_bytes = 4, .inode = 7};
    uint8_t sha256[SHA256_BYTES];

    made_state.opened = 0;
    want_made(world, "shorter", &identity, 3);
    wait_until_released(1);
    assert_false(file_hashes_find(world->server.hashes, "shorter", &identity, sha256));
    made_state.is_changed = true;
    want_made(world, "changed", &identity, 4);
    wait_until_released(2);
    assert_false(file_hashes_find(world->server.hashes, "changed", &identity, sha256));
    made_state.is_changed = false;
    want_made(world, "changed", &identity, 4);
    wait_until_released(3);
    assert_true(file_hashes_find(world->server.hashes, "changed", &identity, sha256));
}

TEST_ON(struct world *world, a_server_that_stops_finds_no_more)
{
    uint8_t sha256[SHA256_BYTES];

    command(world, "head -c 9000000 /dev/zero > big");
    atomic_store(&world->server.draining, true);
    want(world, "big");
    assert_int_equal(compute(world, "big", sha256), ZT_UNAVAILABLE);
    assert_false(is_known(world, "big"));
}

/* --- answers --- */

TEST_ON(struct world *world, answers_are_known_by_target_and_tag_until_the_restart)
{
    struct file_hashes *hashes = world->server.hashes;
    uint8_t sha256[SHA256_BYTES] = {7};
    uint8_t found[SHA256_BYTES];

    assert_false(answer_hashes_find(hashes, "/a", "\"tag\"", found));
    answer_hashes_keep(hashes, "/a", "\"tag\"", sha256);
    assert_true(answer_hashes_find(hashes, "/a", "\"tag\"", found));
    assert_memory_equal(found, sha256, sizeof(sha256));
    assert_false(answer_hashes_find(hashes, "/a", "\"tag2\"", found));
    assert_false(answer_hashes_find(hashes, "/b", "\"tag\"", found));
    assert_false(answer_hashes_find(hashes, "/", "\"tag\"", found));
    restart(world);
    assert_false(answer_hashes_find(world->server.hashes, "/a", "\"tag\"", found));
    /* A file that is written from the start does not have them either. */
    command(world, "echo one > a");
    answer_hashes_keep(world->server.hashes, "/a", "\"tag\"", sha256);
    assert_int_equal(compute(world, "a", found), ZT_OK);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    assert_false(answer_hashes_find(world->server.hashes, "/a", "\"tag\"", found));
}

TEST_ON(struct world *world, forgotten_digest_does_not_return_with_the_next_process)
{
    struct file_identity identity;

    command(world, "echo one > a; echo two > b");
    identity = identity_of(world, "a");
    want(world, "a");
    want(world, "b");
    wait_for(world, "a");
    wait_for(world, "b");
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    file_hashes_forget(world->server.hashes, "a", &identity);
    assert_false(is_known(world, "a"));
    restart(world);
    assert_false(is_known(world, "a"));
    assert_known(world, "b", SHA256_TWO);
}

TEST_ON(struct world *world, forgotten_digest_is_removed_after_a_failure_to_save)
{
    struct file_identity identity;
    char saved[512];
    char command_line[1100];

    command(world, "echo one > a");
    identity = identity_of(world, "a");
    assert_computed(world, "a", SHA256_ONE);
    restart(world);
    assert_known(world, "a", SHA256_ONE);
    /* A folder that has the name of the replacement. */
    find_saved(world, saved);
    snprintf(command_line, sizeof(command_line), "mkdir '%s.new'", saved);
    command(world, command_line);
    file_hashes_forget(world->server.hashes, "a", &identity);
    /* Runs the queued saving. */
    workers_stop(world->server.workers);
    world->server.workers = workers_start(1);
    assert_non_null(world->server.workers);
    snprintf(command_line, sizeof(command_line), "rmdir '%s.new'", saved);
    command(world, command_line);
    restart(world);
    assert_false(is_known(world, "a"));
}

static struct hash_key key_of(uint64_t number)
{
    return (struct hash_key){{number * 3, number}};
}

TEST(the_table_forgets_what_was_not_asked_for_longest)
{
    struct hash_table table = {.buckets = NULL};
    const struct hash_key first = key_of(0);
    const struct hash_key second = key_of(1);
    const struct hash_key last = key_of(HASHES_MAX);

    assert_null(hash_table_find(&table, &first));
    for (uint64_t i = 0; i < HASHES_MAX; i++) {
        const struct hash_key key = key_of(i);

        assert_non_null(hash_table_put(&table, &key));
    }
    assert_int_equal(table.recency.count, HASHES_MAX);
    assert_non_null(hash_table_find(&table, &first));
    assert_non_null(hash_table_put(&table, &last));
    assert_int_equal(table.recency.count, HASHES_MAX);
    assert_non_null(hash_table_find(&table, &first));
    assert_null(hash_table_find(&table, &second));
    assert_non_null(hash_table_find(&table, &last));
    hash_table_remove(&table, hash_table_find(&table, &last));
    assert_null(hash_table_find(&table, &last));
    hash_table_free(&table);
    assert_null(hash_table_find(&table, &first));
}
