/* Two servers that change the same history, in a place in memory. */
#include "history_world.h"
#include "shared_place.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/workers.h"
#include "store/versions/history_inside.h"

static atomic_int ahead_s;

/* Instead of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, out_time);

    out_time->tv_sec += atomic_load(&ahead_s);
    return result;
}

static void pass_a_second(void)
{
    atomic_fetch_add(&ahead_s, 1);
}

/* Each server has a world, without a folder. */
struct pair {
    struct bucket bucket;
    struct world one;
    struct world two;
};

static struct pair *pair_of(struct world *one)
{
    return (struct pair *)((char *)one - offsetof(struct pair, one));
}

static void open_world(struct world *world, struct bucket *bucket, bool is_writable)
{
    const struct history_options options = {
        .place = bucket_open(bucket, is_writable), .keep = world_keep, .context = world};

    world->keep.commits = 100;
    world->repo = (struct history_repo){.name = "org/model"};
    assert_ok(history_open(&options, &world->history, NULL));
}

static int set_up_pair(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    assert_non_null(pair);
    pthread_mutex_init(&pair->bucket.lock, NULL);
    pthread_cond_init(&pair->bucket.unlocked, NULL);
    open_world(&pair->one, &pair->bucket, true);
    open_world(&pair->two, &pair->bucket, true);
    *state = &pair->one;
    return 0;
}

static int tear_down_pair(void **state)
{
    struct pair *pair = pair_of(*state);

    history_close(pair->one.history);
    history_close(pair->two.history);
    for (size_t i = 0; i < BUCKET_MAX; i++)
        free(pair->bucket.items[i].bytes);
    pthread_cond_destroy(&pair->bucket.unlocked);
    pthread_mutex_destroy(&pair->bucket.lock);
    free(pair);
    return 0;
}

#define WITH_TWO_SERVERS(name)                                                                \
    static void name##_with(struct bucket *, struct world *, struct world *);                 \
    TEST_IN_WORLD(name, set_up_pair, tear_down_pair)                                          \
    {                                                                                         \
        struct pair *pair = pair_of(world);                                                   \
                                                                                              \
        name##_with(&pair->bucket, &pair->one, &pair->two);                                   \
    }                                                                                         \
    static void name##_with(__attribute__((unused)) struct bucket *bucket, struct world *one, \
                            __attribute__((unused)) struct world *two)

static enum zt_status try_record(struct world *world, const char *text)
{
    struct history_commit commit;

    return try_record_on(world, HISTORY_MAIN, text, &commit);
}

static void keep_content(struct world *world, const char *content)
{
    const struct file_identity identity = {.size_bytes = strlen(content)};
    uint8_t sha256[32];

    sha_of(content, sha256);
    assert_ok(history_lock(world->history, &world->repo, NULL));
    assert_ok(history_keep_file(world->history, content, &identity, sha256, NULL));
    history_unlock(world->history, &world->repo);
}

static struct bucket_item *object_of(struct bucket *bucket, const char *content)
{
    uint8_t sha256[32];
    char name[256];

    sha_of(content, sha256);
    bucket_object(sha256, name);
    return bucket_find(bucket, name);
}

static void grow_old(struct bucket *bucket)
{
    for (size_t i = 0; i < BUCKET_MAX; i++)
        bucket->items[i].is_young = false;
}

static bool collect(struct world *world, unsigned most)
{
    bool more;

    assert_ok(history_collect(world->history, most, &more, NULL));
    return more;
}

/* --- reading --- */

WITH_TWO_SERVERS(revision_of_another_server_is_found_at_once)
{
    unsigned reads;

    assert_string_equal(found(two, "main"), "");
    record(one, "a=1");
    assert_string_equal(found(two, "main"), id_of("a=1"));
    record(one, "a=2");
    assert_string_equal(found(two, id_of("a=2")), id_of("a=2"));
    assert_ok(set_ref(one, "v1", true, id_of("a=1"), ""));
    assert_string_equal(titles(two, "v1"), "a=1,");
    reads = bucket->reads;
    for (unsigned i = 0; i < 100; i++)
        assert_string_equal(found(two, "v2"), "");
    assert_true(bucket->reads < reads + 50);
}

WITH_TWO_SERVERS(branch_that_another_server_moved_is_found_after_a_second)
{
    unsigned reads;

    record(one, "a=0");
    assert_string_equal(titles(two, "main"), "a=0,");
    record(one, "a=1");
    assert_string_equal(titles(two, "main"), "a=0,");
    pass_a_second();
    assert_string_equal(titles(two, "main"), "a=1,a=0,");
    reads = bucket->reads;
    for (unsigned i = 0; i < 10; i++)
        assert_string_equal(found(two, "main"), id_of("a=1"));
    assert_int_equal(bucket->reads, reads);
    reads = bucket->whole_reads;
    pass_a_second();
    assert_string_equal(titles(two, "main"), "a=1,a=0,");
    assert_int_equal(bucket->whole_reads, reads);
}

WITH_TWO_SERVERS(what_is_known_is_read_while_the_bucket_is_away)
{
    record(one, "a=1");
    assert_string_equal(titles(two, "main"), "a=1,");
    bucket->fails = true;
    pass_a_second();
    assert_string_equal(titles(two, "main"), "a=1,");
    assert_int_equal(try_record(two, "a=2"), ZT_UNAVAILABLE);
    bucket->fails = false;
    assert_ok(try_record(two, "a=2"));
    assert_string_equal(titles(two, "main"), "a=2,a=1,");
}

WITH_TWO_SERVERS(server_that_only_reads_follows_another_one)
{
    struct world reader = {.path = ""};
    struct history_commit commit;

    open_world(&reader, bucket, false);
    assert_string_equal(titles(&reader, "main"), "-");
    record(one, "a=1");
    pass_a_second();
    assert_string_equal(titles(&reader, "main"), "a=1,");
    assert_int_equal(try_record_on(&reader, HISTORY_MAIN, "a=2", &commit), ZT_UNSUPPORTED);
    history_close(reader.history);
}

struct looking {
    struct world *world;
    enum zt_status status;
    unsigned reads; /* requests that it made */
};

static void *look_on_a_loop(void *context)
{
    struct looking *looking = context;
    struct bucket *bucket = ((struct bucket_place *)looking->world->history->place)->bucket;
    const unsigned before = bucket->reads;
    const struct history_tree *tree = NULL;
    struct history_found result;

    thread_forbid_waiting();
    looking->status = history_find(looking->world->history, &looking->world->repo,
                                   zt_text_from("main"), &result, NULL);
    if (looking->status == ZT_OK)
        looking->status = history_tree_get(looking->world->history, &looking->world->repo,
                                           result.commit, &tree, NULL);
    history_tree_release(tree);
    looking->reads = bucket->reads - before;
    return NULL;
}

static enum zt_status look_on_loop(struct world *world)
{
    struct looking looking = {world, ZT_OK, 0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, look_on_a_loop, &looking), 0);
    pthread_join(thread, NULL);
    assert_int_equal(looking.reads, 0);
    return looking.status;
}

WITH_TWO_SERVERS(event_loop_uses_what_is_known_and_never_waits)
{
    const struct history_tree *tree;

    record(one, "a=1");
    assert_int_equal(look_on_loop(two), ZT_UNAVAILABLE);
    assert_string_equal(titles(two, "main"), "a=1,");
    assert_int_equal(look_on_loop(two), ZT_UNAVAILABLE);
    assert_ok(history_tree_get(two->history, &two->repo, id_of("a=1"), &tree, NULL));
    history_tree_release(tree);
    assert_ok(look_on_loop(two));
    pass_a_second();
    assert_ok(look_on_loop(two));
}

WITH_TWO_SERVERS(commit_that_another_server_has_forgotten_is_not_found)
{
    const struct history_tree *tree;

    record(one, "a=1");
    assert_string_equal(titles(two, "main"), "a=1,");
    assert_ok(history_lock(one->history, &one->repo, NULL));
    assert_ok(history_purge(one->history, &one->repo, NULL));
    history_unlock(one->history, &one->repo);
    assert_int_equal(history_tree_get(two->history, &two->repo, id_of("a=1"), &tree, NULL),
                     ZT_NOT_FOUND);
}

/* --- changing --- */

WITH_TWO_SERVERS(servers_take_turns_and_lose_no_commit)
{
    record(one, "a=1");
    record(two, "a=2");
    record(two, "a=3");
    record(one, "a=4");
    assert_ok(set_ref(two, "v1", true, id_of("a=1"), ""));
    assert_int_equal(set_ref(one, "v1", true, id_of("a=2"), ""), ZT_ARGUMENT);
    assert_string_equal(titles(one, "main"), "a=4,a=3,a=2,a=1,");
    assert_string_equal(refs(one), "b:main t:v1 ");
    pass_a_second();
    assert_string_equal(titles(two, "main"), "a=4,a=3,a=2,a=1,");
}

#define TURNS 20

struct writer {
    struct world *world;
    char name;
};

static void *write_commits(void *context)
{
    const struct writer *writer = context;
    char text[32];

    for (unsigned i = 0; i < TURNS; i++) {
        snprintf(text, sizeof(text), "a=%c%u", writer->name, i);
        assert_ok(try_record(writer->world, text));
    }
    return NULL;
}

WITH_TWO_SERVERS(concurrent_servers_lose_no_commit)
{
    struct writer writers[] = {{one, 'x'}, {one, 'y'}, {two, 'z'}};
    pthread_t threads[3];
    struct history_commit *commits;
    size_t count;

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_commits, &writers[i]), 0);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pass_a_second();
    assert_ok(history_list(two->history, &two->repo,
                           &(struct history_range){zt_text_from("main"), UINT64_MAX, 1000},
                           &commits, &count, NULL));
    assert_int_equal(count, 3 * TURNS);
    free(commits);
}

/* A server that was suspended may go on when its lock has expired. */
WITH_TWO_SERVERS(change_without_the_lock_fails_and_overwrites_nothing)
{
    struct described described;
    struct history_commit commit;

    record(one, "a=1");
    bucket->ignores_locks = true;
    describe("a=3", &described);
    assert_ok(history_lock(one->history, &one->repo, NULL));
    record(two, "a=2");
    assert_int_equal(history_record(one->history, &one->repo,
                                    &(struct history_head){HISTORY_MAIN, described.files, 1},
                                    &(struct history_note){NULL, "a=3", NULL}, &commit, NULL),
                     ZT_UNAVAILABLE);
    history_unlock(one->history, &one->repo);
    assert_string_equal(titles(one, "main"), "a=2,a=1,");
    record(one, "a=3");
    assert_string_equal(titles(one, "main"), "a=3,a=2,a=1,");
}

WITH_TWO_SERVERS(change_whose_outcome_is_unknown_is_made_once)
{
    struct history_commit commit;

    record(one, "a=1");
    record(one, "a=2");
    /* The list of files of an earlier commit is used again, so this is the log. */
    bucket->loses_answer = true;
    assert_int_equal(try_record(one, "a=1"), ZT_UNAVAILABLE);
    assert_ok(try_record_on(one, HISTORY_MAIN, "a=1", &commit));
    assert_string_equal(titles(one, "main"), "a=1,a=2,a=1,");
    assert_string_equal(commit.id, id_of("a=1"));
}

WITH_TWO_SERVERS(repository_that_another_server_changes_is_busy)
{
    struct history_repo other = {.name = "org/other"};
    struct zt_error error;

    two->history->wait_ms = 0;
    assert_ok(history_lock(one->history, &one->repo, NULL));
    assert_int_equal(history_lock(two->history, &two->repo, &error), ZT_UNAVAILABLE);
    assert_string_equal(error.message,
                        "another server is changing the repository org/model; try again");
    assert_ok(history_lock(two->history, &other, NULL));
    history_unlock(two->history, &other);
    history_unlock(one->history, &one->repo);
    assert_ok(history_lock(two->history, &two->repo, NULL));
    history_unlock(two->history, &two->repo);
}

/* --- waiting --- */

struct awaited {
    struct waiter waiter; /* first */
    sem_t woken;
};

static void wake(struct waiter *waiter)
{
    sem_post(&((struct awaited *)waiter)->woken);
}

WITH_TWO_SERVERS(waiter_learns_of_another_servers_commit)
{
    struct awaited awaited = {.waiter = {wake, NULL, NULL, 0}};

    sem_init(&awaited.woken, 0, 0);
    record(one, "a=1");
    assert_string_equal(titles(two, "main"), "a=1,");
    assert_true(history_wait(two->history, &two->repo, UINT64_MAX, &awaited.waiter));
    record(one, "a=2");
    assert_int_equal(sem_wait(&awaited.woken), 0);
    assert_string_equal(titles(two, "main"), "a=2,a=1,");
    assert_false(history_forget_waiter(two->history, &awaited.waiter));
    assert_true(history_wait(two->history, &two->repo, UINT64_MAX, &awaited.waiter));
    assert_true(history_forget_waiter(two->history, &awaited.waiter));
    sem_destroy(&awaited.woken);
}

/* --- collections --- */

WITH_TWO_SERVERS(one_server_collects_and_the_other_tries_again)
{
    record(one, "a=1");
    keep_content(one, "1");
    keep_content(one, "2");
    keep_content(one, "3");
    history_close(one->history);
    open_world(one, bucket, true);
    grow_old(bucket);
    assert_true(collect(one, 1));
    assert_true(collect(two, 9));
    assert_true((object_of(bucket, "2") == NULL) != (object_of(bucket, "3") == NULL));
    assert_false(collect(one, 9));
    assert_false(collect(two, 9));
    assert_null(object_of(bucket, "2"));
    assert_null(object_of(bucket, "3"));
    assert_non_null(object_of(bucket, "1"));
    assert_null(bucket->collector);
}

WITH_TWO_SERVERS(young_files_stay_until_a_later_collection)
{
    struct history_report report;

    keep_content(one, "1");
    assert_false(collect(two, 9));
    assert_non_null(object_of(bucket, "1"));
    assert_int_equal(bucket->drops, 0);
    grow_old(bucket);
    bucket->refuses_drop = true;
    assert_false(collect(two, 9));
    history_report(two->history, &report);
    assert_int_equal(report.removed_files, 0);
    assert_int_equal(report.kept_files, 1);
    bucket->refuses_drop = false;
    assert_false(collect(two, 9));
    assert_null(object_of(bucket, "1"));
}

WITH_TWO_SERVERS(file_that_a_commit_of_a_branch_names_becomes_young)
{
    struct history_commit commit;

    record(one, "a=1");
    keep_content(one, "2");
    grow_old(bucket);
    assert_ok(try_record_on(two, "dev", "a=2", &commit));
    assert_true(object_of(bucket, "2")->is_young);
    grow_old(bucket);
    assert_false(collect(two, 9));
    assert_non_null(object_of(bucket, "2"));
}

WITH_TWO_SERVERS(history_that_is_closed_ends_its_collection)
{
    keep_content(two, "1");
    keep_content(two, "2");
    grow_old(bucket);
    assert_true(collect(one, 1));
    history_close(one->history);
    assert_null(bucket->collector);
    open_world(one, bucket, true);
}

static struct bucket_item *find_log(struct bucket *bucket)
{
    for (size_t i = 0; i < BUCKET_MAX; i++)
        if (strstr(bucket->items[i].name, "/log") != NULL)
            return &bucket->items[i];
    fail();
    return NULL;
}

WITH_TWO_SERVERS(damaged_log_of_a_bucket_is_copied)
{
    struct bucket_item *log;
    bool more;

    record(one, "a=1");
    record(one, "a=2");
    record(one, "a=3");
    log = find_log(bucket);
    log->bytes[log->length / 2] ^= 1;
    log->version = ++bucket->last_version;
    assert_true(history_has_damage(two->history, "x") == false);
    assert_string_not_equal(titles(two, "main"), "a=3,a=2,a=1,");
    assert_int_equal(history_collect(two->history, 9, &more, NULL), ZT_IO);
    assert_null(bucket->collector);
}

WITH_TWO_SERVERS(log_that_was_cut_in_a_bucket_is_damaged)
{
    struct bucket_item *log;
    bool more;

    record(one, "a=1");
    log = find_log(bucket);
    log->length -= 35; /* of the 42 of the last record */
    log->version = ++bucket->last_version;
    assert_string_equal(titles(two, "main"), "a=1,");
    assert_int_equal(history_collect(two->history, 9, &more, NULL), ZT_IO);
    assert_null(bucket->collector);
}

WITH_TWO_SERVERS(purge_removes_a_log_that_cannot_be_read_from_a_bucket)
{
    struct history_commit commit;
    struct bucket_item *log;
    struct zt_error error;

    record(one, "a=1");
    log = find_log(bucket);
    log->bytes[0] ^= 1;
    log->version = ++bucket->last_version;
    assert_int_equal(try_record_on(one, HISTORY_MAIN, "a=2", &commit), ZT_IO);
    assert_ok(history_remove_unreadable(one->history, &one->repo, &error));
    record(one, "a=3");
    assert_string_equal(titles(one, "main"), "a=3,");
    assert_string_equal(titles(two, "main"), "a=3,");
}
