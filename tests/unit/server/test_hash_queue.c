/* Ranges hashed for requests and in the background: order, pieces, turns, and errors. */
#include "tests.h"

#include <unistd.h>

#include "base/workers.h"
#include "digests/hash_queue.h"

#define BYTES 100000
#define PIECE 40000

static uint8_t bytes[BYTES];

struct range {
    struct hash_task task; /* first */
    enum zt_status refusal;
    atomic_int turns;
    atomic_bool is_over;
    enum zt_status status;
    unsigned place; /* among those that ended */
    uint8_t digests[4][SHA256_BYTES];
};

struct world {
    struct server server;
    struct config config;
    atomic_uint over_count;
    atomic_bool is_stopped;
};

static struct world *current;

static enum zt_status prepare(struct hash_task *task, struct server *server)
{
    struct range *range = (struct range *)task;

    assert_ptr_equal(server, &current->server);
    atomic_fetch_add(&range->turns, 1);
    if (range->refusal != ZT_OK)
        return range->refusal;
    return task->source != NULL ? ZT_OK
                                : zt_source_from_memory(bytes, BYTES, &task->source, task->error);
}

static void over(struct hash_task *task, struct server *server, enum zt_status status)
{
    struct range *range = (struct range *)task;
    const size_t count = (size_t)hash_digest_count(task->length, task->piece_bytes);

    assert_ptr_equal(server, &current->server);
    if (status == ZT_OK)
        memcpy(range->digests, task->digests, count * SHA256_BYTES);
    range->status = status;
    range->place = atomic_fetch_add(&current->over_count, 1);
    zt_source_close(task->source);
    hash_task_clear(task);
    atomic_store(&range->is_over, true);
}

static const struct hash_task_ops ops = {prepare, over};

static struct range range_of(enum hash_urgency urgency, uint64_t length)
{
    return (struct range){.task = {.ops = &ops, .urgency = urgency, .length = length}};
}

static void wait_for(struct range *range)
{
    AWAIT(atomic_load(&range->is_over));
}

static void run(struct range *range)
{
    assert_true(hash_queue_add(current->server.hash_queue, &range->task));
    wait_for(range);
}

static void assert_digest(const struct range *range, size_t index, size_t first, size_t length)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_int_equal(zt_hasher_new(ZT_DIGEST_SHA256, &hasher), ZT_OK);
    zt_hasher_update(hasher, bytes + first, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    assert_memory_equal(digest.bytes, range->digests[index], SHA256_BYTES);
}

static int set_up(void **state)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i % 251);
    current = calloc(1, sizeof(*current));
    current->server.config = &current->config;
    current->server.workers = workers_start(4);
    current->server.hash_queue = hash_queue_new(&current->server, 2);
    assert_non_null(current->server.workers);
    assert_non_null(current->server.hash_queue);
    *state = current;
    return 0;
}

/* Ends what is queued. */
static void stop(void)
{
    if (atomic_load(&current->is_stopped))
        return;
    atomic_store(&current->is_stopped, true);
    atomic_store(&current->server.draining, true);
    workers_stop(current->server.workers);
    hash_queue_free(current->server.hash_queue);
}

static int tear_down(void **state)
{
    (void)state;
    stop();
    free(current);
    return 0;
}

AROUND_EACH_TEST(set_up, tear_down)

TEST(whole_and_pieces_have_a_digest)
{
    struct range range = range_of(HASH_ASKED, BYTES);

    range.task.piece_bytes = PIECE;
    run(&range);
    assert_int_equal(range.status, ZT_OK);
    assert_digest(&range, 0, 0, BYTES);
    assert_digest(&range, 1, 0, PIECE);
    assert_digest(&range, 2, PIECE, PIECE);
    assert_digest(&range, 3, (size_t)2 * PIECE, BYTES - (size_t)2 * PIECE);
}

TEST(range_of_one_piece_or_none_has_one_digest)
{
    struct range range = range_of(HASH_BACKGROUND, PIECE);
    struct range empty = range_of(HASH_ASKED, 0);

    range.task.piece_bytes = PIECE;
    assert_int_equal(hash_digest_count(PIECE, PIECE), 1);
    assert_int_equal(hash_digest_count(PIECE + 1, PIECE), 3);
    assert_int_equal(hash_digest_count(0, PIECE), 1);
    assert_int_equal(hash_digest_count(PIECE, 0), 1);
    assert_true(hash_queue_add(current->server.hash_queue, &range.task));
    assert_true(hash_queue_add(current->server.hash_queue, &empty.task));
    wait_for(&range);
    wait_for(&empty);
    assert_digest(&range, 0, 0, PIECE);
    assert_digest(&empty, 0, 0, 0);
}

TEST(background_tasks_wait_while_they_are_held)
{
    struct range background = range_of(HASH_BACKGROUND, 10);
    struct range asked = range_of(HASH_ASKED, BYTES);
    struct hash_queue *queue = current->server.hash_queue;

    hash_queue_hold(queue);
    hash_queue_hold(queue);
    assert_true(hash_queue_add(queue, &background.task));
    assert_true(hash_queue_add(queue, &asked.task));
    wait_for(&asked);
    hash_queue_release(queue);
    pause_ms(50);
    assert_false(atomic_load(&background.is_over));
    hash_queue_release(queue);
    wait_for(&background);
    assert_int_equal(background.status, ZT_OK);
    assert_true(asked.place < background.place);
}

TEST(task_that_cannot_be_prepared_is_over)
{
    struct range range = range_of(HASH_ASKED, BYTES);

    range.refusal = ZT_STALE;
    run(&range);
    assert_int_equal(range.status, ZT_STALE);
    assert_int_equal(range.turns, 1);
}

TEST(source_that_ends_early_is_an_error)
{
    struct range range = range_of(HASH_ASKED, BYTES + 1);

    run(&range);
    assert_int_not_equal(range.status, ZT_OK);
}

TEST(draining_server_ends_tasks_and_takes_no_more)
{
    struct range held = range_of(HASH_BACKGROUND, BYTES);
    struct range late = range_of(HASH_ASKED, BYTES);

    hash_queue_hold(current->server.hash_queue);
    assert_true(hash_queue_add(current->server.hash_queue, &held.task));
    atomic_store(&current->server.draining, true);
    assert_false(hash_queue_add(current->server.hash_queue, &late.task));
    stop();
    assert_true(atomic_load(&held.is_over));
    assert_int_equal(held.status, ZT_UNAVAILABLE);
    assert_false(atomic_load(&late.is_over));
}

/* --- the feed --- */

struct feed {
    struct range ranges[3];
    unsigned given;
};

static struct hash_task *next(void *context)
{
    struct feed *feed = context;

    return feed->given < 3 ? &feed->ranges[feed->given++].task : NULL;
}

TEST(feed_gives_tasks_when_no_others_are_left)
{
    struct feed feed = {.given = 0};
    struct range asked = range_of(HASH_ASKED, BYTES);
    struct hash_queue *queue = current->server.hash_queue;

    for (size_t i = 0; i < 3; i++)
        feed.ranges[i] = range_of(HASH_BACKGROUND, BYTES - i);
    hash_queue_hold(queue);
    hash_queue_set_feed(queue, next, &feed);
    hash_queue_wake(queue);
    assert_true(hash_queue_add(queue, &asked.task));
    wait_for(&asked);
    assert_int_equal(feed.given, 0);
    hash_queue_release(queue);
    for (size_t i = 0; i < 3; i++) {
        wait_for(&feed.ranges[i]);
        assert_int_equal(feed.ranges[i].status, ZT_OK);
        assert_digest(&feed.ranges[i], 0, 0, BYTES - i);
    }
}

TEST(one_thread_can_hash_without_the_queue)
{
    struct range range = range_of(HASH_ASKED, BYTES);

    assert_int_equal(hash_task_run(&range.task, &current->server), ZT_OK);
    over(&range.task, &current->server, ZT_OK);
    assert_digest(&range, 0, 0, BYTES);
    range = range_of(HASH_ASKED, BYTES);
    stop();
    assert_int_equal(hash_task_run(&range.task, &current->server), ZT_UNAVAILABLE);
    zt_source_close(range.task.source);
    hash_task_clear(&range.task);
}

#define TURNS_MAX 20

/* Takes longer than a whole turn, every time. */
static enum zt_status prepare_for_long(struct hash_task *task, struct server *server)
{
    pause_ms(25);
    return atomic_load(&((struct range *)task)->turns) == TURNS_MAX ? ZT_LIMIT
                                                                    : prepare(task, server);
}

TEST(task_that_is_slow_to_prepare_advances)
{
    static const struct hash_task_ops slow_ops = {prepare_for_long, over};
    struct range range = range_of(HASH_ASKED, BYTES);

    range.task.ops = &slow_ops;
    run(&range);
    assert_int_equal(range.status, ZT_OK);
    assert_digest(&range, 0, 0, BYTES);
}

/* --- tasks that requests wait for --- */

#define AWAITED 100
#define TURN    ((uint64_t)4 << 20)

static struct range awaited[AWAITED];
static atomic_uint running;
static atomic_uint most;

static enum zt_status prepare_slowly(struct hash_task *task, struct server *server)
{
    const unsigned now = atomic_fetch_add(&running, 1) + 1;

    if (now > atomic_load(&most))
        atomic_store(&most, now);
    usleep(200);
    atomic_fetch_sub(&running, 1);
    return prepare(task, server);
}

static void await_all(unsigned at_once)
{
    static const struct hash_task_ops slow_ops = {prepare_slowly, over};
    struct hash_queue *queue = hash_queue_new(&current->server, at_once);

    atomic_store(&most, 0);
    atomic_store(&current->over_count, 0);
    for (unsigned i = 0; i < AWAITED; i++) {
        awaited[i] = range_of(HASH_AWAITED, 1000);
        awaited[i].task.ops = &slow_ops;
        assert_true(hash_queue_await(queue, &awaited[i].task));
    }
    for (unsigned i = 0; i < AWAITED; i++) {
        wait_for(&awaited[i]);
        assert_digest(&awaited[i], 0, 0, 1000);
    }
    workers_stop(current->server.workers);
    current->server.workers = workers_start(4);
    hash_queue_free(queue);
}

TEST(few_awaited_tasks_run_at_once_in_their_order)
{
    await_all(2);
    assert_in_range(atomic_load(&most), 1, 2);
    await_all(1);
    assert_int_equal(atomic_load(&most), 1);
    for (unsigned i = 0; i < AWAITED; i++)
        assert_int_equal(awaited[i].place, i);
    await_all(0);
    assert_int_equal(atomic_load(&most), 1);
}

static void pause_over(struct hash_task *task, struct server *server, enum zt_status status)
{
    struct range *range = (struct range *)task;

    assert_ptr_equal(server, &current->server);
    range->status = status;
    atomic_store(&range->is_over, true);
}

TEST(awaited_task_is_given_back_after_each_turn)
{
    static const struct hash_task_ops paused_ops = {prepare, pause_over};
    struct range range = range_of(HASH_AWAITED, TURN + 1);
    uint8_t *text = calloc(1, TURN + 1);

    range.task.ops = &paused_ops;
    assert_int_equal(zt_source_from_memory(text, TURN + 1, &range.task.source, NULL), ZT_OK);
    assert_true(hash_queue_await(current->server.hash_queue, &range.task));
    wait_for(&range);
    assert_int_equal(range.status, ZT_OK);
    assert_false(hash_task_is_done(&range.task));
    assert_int_equal(range.task.done_bytes, TURN);
    atomic_store(&range.is_over, false);
    assert_true(hash_queue_await(current->server.hash_queue, &range.task));
    wait_for(&range);
    assert_int_equal(range.status, ZT_OK);
    assert_true(hash_task_is_done(&range.task));
    zt_source_close(range.task.source);
    hash_task_clear(&range.task);
    free(text);
}

TEST(stopped_queue_takes_no_awaited_tasks)
{
    struct range range = range_of(HASH_AWAITED, BYTES);

    /* Requests that are in progress while the server drains still get their digests. */
    atomic_store(&current->server.draining, true);
    assert_true(hash_queue_await(current->server.hash_queue, &range.task));
    wait_for(&range);
    assert_int_equal(range.status, ZT_OK);
    range = range_of(HASH_AWAITED, BYTES);
    hash_queue_stop(current->server.hash_queue);
    assert_false(hash_queue_await(current->server.hash_queue, &range.task));
    stop();
}
