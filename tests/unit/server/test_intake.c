/* Long bodies read past the library: a socket of the test's own, and a receiver that counts and can
 * be held up. */
#include "tests.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"
#include "http/wire/intake.h"

#define BODY_BYTES ((size_t)5 << 20)
/* Pieces of a ring, and their size (intake.c). */
#define RING_PIECES 8
#define RING_BYTES  ((size_t)RING_PIECES * 256 * 1024)
/* Long bodies of one loop at a time (intake.c). */
#define MOST   16
#define WAIT_S 20

static struct config config;
static struct server server = {.config = &config};
static struct mailbox mailbox;
static struct intake_set *set;
static struct deadlines parts;
static struct request *request;
static struct connection connection;
static int client;
static uint8_t *body;
static atomic_ullong received;
static atomic_bool held_up;
static unsigned pauses;
static bool too_slow;
static unsigned endings;
static bool ended_whole;
static bool ended_malformed;

/* --- the receiver, on a worker --- */

static void receive(struct request *of, const struct body_piece *piece)
{
    assert_ptr_equal(of, request);
    AWAIT(!atomic_load(&held_up));
    assert_false(piece->on_loop);
    assert_true(piece->length > 0 && piece->offset == atomic_load(&received));
    assert_memory_equal(piece->bytes, body + piece->offset, piece->length);
    atomic_fetch_add(&received, piece->length);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};
static const struct body_receiver keeping = {
    .receive = receive, .on_workers = true, .keeps_parts = true};

/* --- what the connection is told --- */

static bool on_received(void *context, struct connection *of)
{
    assert_ptr_equal(context, &connection);
    assert_ptr_equal(of, &connection);
    return !too_slow;
}

static void on_paused(void *context, struct connection *of)
{
    (void)context;
    (void)of;
    pauses++;
}

static void on_awaited(void *context, struct connection *of)
{
    (void)context;
    (void)of;
}

static void on_ended(void *context, struct connection *of, enum intake_ending ending)
{
    (void)context;
    (void)of;
    endings++;
    ended_whole = ending == INTAKE_WHOLE;
    ended_malformed = ending == INTAKE_MALFORMED;
}

/* --- a loop --- */

static int start(void **state)
{
    const struct intake_events events = {&connection, on_received, on_paused, on_awaited, on_ended};
    int pair[2];

    (void)state;
    config_defaults(&config);
    assert_true(mailbox_open(&mailbox));
    server.workers = workers_start(3);
    parts = (struct deadlines){0};
    set = intake_set_new(&mailbox, &parts, &events);
    assert_non_null(set);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    connection = (struct connection){.descriptor = pair[0]};
    client = pair[1];
    request = request_new(&server, &mailbox, "/");
    assert_non_null(request);
    request->connection = &connection;
    request->receiver = &receiver;
    atomic_store(&received, 0);
    atomic_store(&held_up, false);
    pauses = 0;
    endings = 0;
    too_slow = ended_whole = false;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    request_free(request);
    intake_set_free(set);
    workers_stop(server.workers);
    mailbox_close(&mailbox);
    close(connection.descriptor);
    if (client >= 0)
        close(client);
    return 0;
}

static void start_again(void)
{
    stop(NULL);
    start(NULL);
}

/* One round of a loop; waits at most so long. */
static void turn(int wait_ms)
{
    struct pollfd waited[2] = {{.fd = intake_descriptor(set), .events = POLLIN},
                               {.fd = mailbox.descriptor, .events = POLLIN}};

    poll(waited, 2, wait_ms);
    if (waited[0].revents != 0)
        intake_run(set);
    if (waited[1].revents != 0) {
        struct mail *mail;

        mailbox_silence(&mailbox);
        mail = mailbox_take(&mailbox);
        while (mail != NULL) {
            struct job *job = job_of(mail);

            mail = mail->next;
            job->done(job);
        }
    }
}

static void run_until_ended(unsigned count)
{
    for (unsigned i = 0; i < WAIT_S * 100 && endings < count; i++)
        turn(10);
    assert_int_equal(endings, count);
}

static void *send_body(void *length)
{
    size_t sent = 0;

    while (sent < *(const size_t *)length) {
        const ssize_t more =
            send(client, body + sent, *(const size_t *)length - sent, MSG_NOSIGNAL);

        if (more <= 0)
            break;
        sent += (size_t)more;
    }
    return NULL;
}

TEST(every_piece_reaches_the_receiver_in_order)
{
    size_t length = BODY_BYTES;
    pthread_t sender;

    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    run_until_ended(1);
    pthread_join(sender, NULL);
    assert_true(ended_whole);
    assert_true(atomic_load(&received) == BODY_BYTES);
    assert_true(request_state(request)->body_received == BODY_BYTES);
}

static void assert_next_is_left(void)
{
    char next[8];

    assert_int_equal(recv(connection.descriptor, next, sizeof(next), MSG_DONTWAIT), 4);
    assert_memory_equal(next, "NEXT", 4);
}

TEST(bytes_after_the_body_are_left_alone)
{
    size_t length = 1000;

    send_body(&length);
    assert_int_equal(send(client, "NEXT", 4, MSG_NOSIGNAL), 4);
    assert_true(intake_begin(set, request, length));
    run_until_ended(1);
    assert_true(ended_whole);
    assert_true(atomic_load(&received) == length);
    assert_next_is_left();
}

static void *send_chunks(void *size)
{
    const size_t chunk = *(const size_t *)size;
    char line[32];

    for (size_t at = 0; at < BODY_BYTES; at += chunk) {
        const size_t length = BODY_BYTES - at < chunk ? BODY_BYTES - at : chunk;
        const int line_length = snprintf(line, sizeof(line), "%zx\r\n", length);

        assert_int_equal(send(client, line, (size_t)line_length, MSG_NOSIGNAL), line_length);
        assert_int_equal(send(client, body + at, length, MSG_NOSIGNAL), length);
        assert_int_equal(send(client, "\r\n", 2, MSG_NOSIGNAL), 2);
    }
    assert_int_equal(send(client, "0\r\n\r\nNEXT", 9, MSG_NOSIGNAL), 9);
    return NULL;
}

TEST(chunks_of_any_size_reach_the_receiver_in_order)
{
    static const size_t sizes[] = {1 << 20, 65536, 1000, 524288, 524287, 4096};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        pthread_t sender;

        print_message("chunks of %zu\n", size);
        chunks_begin(&request_state(request)->chunks);
        assert_true(intake_begin(set, request, INTAKE_CHUNKED));
        assert_int_equal(pthread_create(&sender, NULL, send_chunks, &size), 0);
        run_until_ended(1);
        pthread_join(sender, NULL);
        assert_true(ended_whole);
        assert_true(atomic_load(&received) == BODY_BYTES);
        assert_next_is_left();
        start_again();
    }
}

TEST(a_malformed_chunk_ends_its_body)
{
    chunks_begin(&request_state(request)->chunks);
    assert_int_equal(send(client, "5\r\nhelloNEXT", 12, MSG_NOSIGNAL), 12);
    assert_true(intake_begin(set, request, INTAKE_CHUNKED));
    run_until_ended(1);
    assert_true(ended_malformed && !ended_whole);
}

static void receive_all(size_t length)
{
    for (unsigned i = 0; i < WAIT_S * 100 && atomic_load(&received) < length; i++) {
        turn(10);
        intake_store_parts(set, (uint64_t)clock_coarse_ms());
    }
    assert_true(atomic_load(&received) == length);
}

/* Only if the receiver says so. */
TEST(parts_of_a_piece_are_received_soon)
{
    size_t length = 1000;

    request->receiver = &keeping;
    send_body(&length);
    assert_true(intake_begin(set, request, BODY_BYTES));
    receive_all(length);
    assert_int_equal(endings, 0);
    assert_int_equal(send(client, body + length, 10, MSG_NOSIGNAL), 10);
    close(client);
    client = -1;
    run_until_ended(1);
    assert_false(ended_whole);
    assert_true(atomic_load(&received) == length + 10);
}

/* As many parts as a slow client makes of it, however short it is. */
TEST(a_body_that_comes_in_parts_stays_in_its_memory)
{
    static const size_t lengths[] = {1000, 300000, 1040000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t slice = lengths[i] / 7 + 1;

        request->receiver = &keeping;
        assert_true(intake_begin(set, request, lengths[i]));
        for (size_t sent = 0; sent < lengths[i];) {
            const size_t end = sent + slice < lengths[i] ? sent + slice : lengths[i];

            while (sent < end) {
                const ssize_t now =
                    send(client, body + sent, end - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                sent += now > 0 ? (size_t)now : 0;
                turn(0);
            }
            receive_all(sent);
        }
        run_until_ended(1);
        assert_true(ended_whole);
        start_again();
    }
}

TEST(nothing_is_read_while_workers_cannot_keep_up)
{
    size_t length = BODY_BYTES;
    pthread_t sender;

    atomic_store(&held_up, true);
    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    for (unsigned i = 0; i < 2000 && pauses == 0; i++)
        turn(10);
    assert_true(pauses > 0);
    assert_true(request_state(request)->body_received == RING_BYTES);
    for (unsigned i = 0; i < 20; i++)
        turn(5);
    assert_true(request_state(request)->body_received == RING_BYTES);
    atomic_store(&held_up, false);
    run_until_ended(1);
    pthread_join(sender, NULL);
    assert_true(ended_whole);
    assert_true(atomic_load(&received) == BODY_BYTES);
}

/* --- kept pieces --- */

static struct body_piece kept[RING_PIECES];
static atomic_uint kept_count;

static void receive_and_keep(struct request *of, const struct body_piece *piece)
{
    receive(of, piece);
    if (atomic_load(&kept_count) == RING_PIECES)
        return;
    piece_keeper_keep(piece->keeper);
    kept[atomic_load(&kept_count)] = *piece;
    atomic_fetch_add(&kept_count, 1);
}

static void return_kept(unsigned from, unsigned end)
{
    for (unsigned i = from; i < end; i++) {
        assert_memory_equal(kept[i].bytes, body + kept[i].offset, kept[i].length);
        piece_keeper_return(kept[i].keeper);
    }
}

static const struct body_receiver keeper = {.receive = receive_and_keep, .on_workers = true};

/* Also if later pieces are returned before earlier ones. */
TEST(kept_pieces_stay_in_memory_until_they_are_returned)
{
    size_t length = BODY_BYTES;
    pthread_t sender;

    request->receiver = &keeper;
    atomic_store(&kept_count, 0);
    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    receive_all(RING_BYTES);
    return_kept(1, RING_PIECES);
    for (unsigned i = 0; i < 20; i++)
        turn(5);
    assert_true(request_state(request)->body_received == RING_BYTES);
    return_kept(0, 1);
    run_until_ended(1);
    pthread_join(sender, NULL);
    assert_true(ended_whole);
    assert_true(atomic_load(&received) == BODY_BYTES);
}

TEST(a_body_ends_after_its_kept_pieces_are_returned)
{
    size_t length = RING_BYTES;
    pthread_t sender;

    request->receiver = &keeper;
    atomic_store(&kept_count, 0);
    assert_true(intake_begin(set, request, length));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    receive_all(length);
    pthread_join(sender, NULL);
    for (unsigned i = 0; i < 20; i++)
        turn(5);
    assert_int_equal(endings, 0);
    return_kept(0, RING_PIECES);
    run_until_ended(1);
    assert_true(ended_whole);
}

TEST(a_client_that_leaves_ends_its_body)
{
    size_t length = BODY_BYTES / 2;
    pthread_t sender;

    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    for (unsigned i = 0; i < 2000 && request_state(request)->body_received < length; i++)
        turn(10);
    pthread_join(sender, NULL);
    close(client);
    client = -1;
    run_until_ended(1);
    assert_false(ended_whole);
}

TEST(a_client_that_takes_too_long_ends_its_body)
{
    size_t length = 1000;

    too_slow = true;
    send_body(&length);
    assert_true(intake_begin(set, request, BODY_BYTES));
    run_until_ended(1);
    assert_false(ended_whole);
    assert_true(atomic_load(&received) == 0);
}

/* The workers are at a piece when the client leaves. */
TEST(a_body_ends_after_its_workers)
{
    size_t length = RING_BYTES;
    pthread_t sender;

    atomic_store(&held_up, true);
    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    for (unsigned i = 0; i < 2000 && request_state(request)->body_received < length / 2; i++)
        turn(10);
    /* The rest may still be on its way. */
    shutdown(client, SHUT_RDWR);
    pthread_join(sender, NULL);
    for (unsigned i = 0; i < 20; i++)
        turn(5);
    assert_int_equal(endings, 0);
    atomic_store(&held_up, false);
    run_until_ended(1);
    assert_false(ended_whole);
}

TEST(only_so_many_bodies_are_taken)
{
    struct connection more[MOST] = {0};
    struct request *requests[MOST];
    int pairs[MOST][2];

    assert_true(intake_begin(set, request, BODY_BYTES));
    for (unsigned i = 0; i < MOST; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        more[i].descriptor = pairs[i][0];
        requests[i] = request_new(&server, &mailbox, "/");
        requests[i]->connection = &more[i];
        requests[i]->receiver = &receiver;
        assert_int_equal(intake_begin(set, requests[i], BODY_BYTES), i < MOST - 1);
    }
    for (unsigned i = 0; i < MOST; i++)
        close(pairs[i][1]);
    close(client);
    client = -1;
    run_until_ended(MOST);
    for (unsigned i = 0; i < MOST; i++) {
        request_free(requests[i]);
        close(pairs[i][0]);
    }
}

static int make_body(void **state)
{
    (void)state;
    body = malloc(BODY_BYTES);
    assert_non_null(body);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body[i] = (uint8_t)(i * 2654435761u >> 13);
    return 0;
}

static int free_body(void **state)
{
    (void)state;
    free(body);
    return 0;
}
AROUND_ALL_TESTS(make_body, free_body)

AROUND_EACH_TEST(start, stop)
