/* Long bodies read past the library: a socket of the test's own, and tasks that count and can be
 * held up. */
#include "support.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"
#include "http/wire/intake.h"

#define BODY_BYTES ((size_t)5 << 20)
/* Pieces of a ring, and their size (intake.c). */
#define RING_BYTES ((size_t)4 * 512 * 1024)
/* Long bodies of one loop at a time (intake.c). */
#define MOST   16
#define WAIT_S 20

static struct config config;
static struct server server = {.config = &config};
static struct mailbox mailbox;
static struct intake_set *set;
static struct request *request;
static struct connection connection;
static int client;
static uint8_t *body;
static atomic_ullong stored;
static atomic_ullong digested;
static atomic_bool held_up;
static unsigned pauses;
static bool too_slow;
static unsigned endings;
static bool ended_whole;
static bool ended_malformed;

/* --- the operation's tasks, on workers --- */

static void check_piece(const struct body_piece *piece, atomic_ullong *count)
{
    while (atomic_load(&held_up))
        usleep(1000);
    assert_true(piece->length > 0 && piece->offset == atomic_load(count));
    assert_memory_equal(piece->bytes, body + piece->offset, piece->length);
    atomic_fetch_add(count, piece->length);
}

static void store(struct request *of, const struct body_piece *piece)
{
    assert_ptr_equal(of, request);
    check_piece(piece, &stored);
}

static void digest(struct request *of, const struct body_piece *piece)
{
    assert_ptr_equal(of, request);
    check_piece(piece, &digested);
}

static const struct operation operation = {.store = store, .digest = digest};
static const struct operation keeping = {.store = store, .digest = digest, .keeps_parts = true};
static unsigned chunk_round;
static unsigned part_round;

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
    set = intake_set_new(&mailbox, &events);
    assert_non_null(set);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    connection = (struct connection){.descriptor = pair[0]};
    client = pair[1];
    request = request_new(&server, &mailbox, "/");
    assert_non_null(request);
    request->connection = &connection;
    request_state(request)->operation = &operation;
    atomic_store(&stored, 0);
    atomic_store(&digested, 0);
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

static void every_piece_reaches_both_tasks_in_order(void **state)
{
    size_t length = BODY_BYTES;
    pthread_t sender;

    (void)state;
    assert_true(intake_begin(set, request, BODY_BYTES));
    assert_int_equal(pthread_create(&sender, NULL, send_body, &length), 0);
    run_until_ended(1);
    pthread_join(sender, NULL);
    assert_true(ended_whole);
    assert_true(atomic_load(&stored) == BODY_BYTES && atomic_load(&digested) == BODY_BYTES);
    assert_true(request_state(request)->body_received == BODY_BYTES);
}

static void bytes_after_the_body_are_left_alone(void **state)
{
    size_t length = 1000;
    char next[8];

    (void)state;
    send_body(&length);
    assert_int_equal(send(client, "NEXT", 4, MSG_NOSIGNAL), 4);
    assert_true(intake_begin(set, request, length));
    run_until_ended(1);
    assert_true(ended_whole);
    assert_true(atomic_load(&stored) == length);
    assert_int_equal(recv(connection.descriptor, next, sizeof(next), MSG_DONTWAIT), 4);
    assert_memory_equal(next, "NEXT", 4);
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

static void chunks_of_any_size_reach_both_tasks_in_order(void **state)
{
    static const size_t sizes[] = {1 << 20, 65536, 1000, 524288, 524287, 4096};
    const size_t size = sizes[chunk_round++ % (sizeof(sizes) / sizeof(sizes[0]))];
    pthread_t sender;
    char next[8];

    (void)state;
    chunks_begin(&request_state(request)->chunks);
    assert_true(intake_begin(set, request, INTAKE_CHUNKED));
    assert_int_equal(pthread_create(&sender, NULL, send_chunks, (void *)(uintptr_t)&size), 0);
    run_until_ended(1);
    pthread_join(sender, NULL);
    assert_true(ended_whole);
    assert_true(atomic_load(&stored) == BODY_BYTES && atomic_load(&digested) == BODY_BYTES);
    assert_int_equal(recv(connection.descriptor, next, sizeof(next), MSG_DONTWAIT), 4);
    assert_memory_equal(next, "NEXT", 4);
}

static void a_malformed_chunk_ends_its_body(void **state)
{
    (void)state;
    chunks_begin(&request_state(request)->chunks);
    assert_int_equal(send(client, "5\r\nhelloNEXT", 12, MSG_NOSIGNAL), 12);
    assert_true(intake_begin(set, request, INTAKE_CHUNKED));
    run_until_ended(1);
    assert_true(ended_malformed && !ended_whole);
}

/* Only if the operation says so. */
static void parts_of_a_piece_are_stored_soon(void **state)
{
    size_t length = 1000;

    (void)state;
    request_state(request)->operation = &keeping;
    send_body(&length);
    assert_true(intake_begin(set, request, BODY_BYTES));
    for (unsigned i = 0;
         i < WAIT_S * 100 && (atomic_load(&digested) < length || atomic_load(&stored) < length);
         i++) {
        turn(10);
        intake_store_parts(set, (uint64_t)clock_coarse_ms());
    }
    assert_true(atomic_load(&stored) == length && atomic_load(&digested) == length);
    assert_int_equal(endings, 0);
    assert_int_equal(send(client, body + length, 10, MSG_NOSIGNAL), 10);
    close(client);
    client = -1;
    run_until_ended(1);
    assert_false(ended_whole);
    assert_true(atomic_load(&stored) == length + 10 && atomic_load(&digested) == length + 10);
}

/* As many parts as a slow client makes of it, however short it is. */
static void a_body_that_comes_in_parts_stays_in_its_memory(void **state)
{
    static const size_t lengths[] = {1000, 300000, 1040000};
    const size_t length = lengths[part_round++];
    const size_t slice = length / 7 + 1;
    size_t sent = 0;

    (void)state;
    request_state(request)->operation = &keeping;
    assert_true(intake_begin(set, request, length));
    while (sent < length) {
        const size_t more = length - sent < slice ? length - sent : slice;

        for (size_t done = 0; done < more;) {
            const ssize_t now = send(client, body + sent, more - done, MSG_NOSIGNAL | MSG_DONTWAIT);

            if (now > 0) {
                done += (size_t)now;
                sent += (size_t)now;
            }
            turn(0);
        }
        for (unsigned i = 0;
             i < WAIT_S * 100 && (atomic_load(&digested) < sent || atomic_load(&stored) < sent);
             i++) {
            turn(10);
            intake_store_parts(set, (uint64_t)clock_coarse_ms());
        }
        assert_true(atomic_load(&stored) == sent && atomic_load(&digested) == sent);
    }
    run_until_ended(1);
    assert_true(ended_whole);
}

static void nothing_is_read_while_workers_cannot_keep_up(void **state)
{
    size_t length = BODY_BYTES;
    pthread_t sender;

    (void)state;
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
    assert_true(atomic_load(&digested) == BODY_BYTES);
}

static void a_client_that_leaves_ends_its_body(void **state)
{
    size_t length = BODY_BYTES / 2;
    pthread_t sender;

    (void)state;
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

static void a_client_that_takes_too_long_ends_its_body(void **state)
{
    size_t length = 1000;

    (void)state;
    too_slow = true;
    send_body(&length);
    assert_true(intake_begin(set, request, BODY_BYTES));
    run_until_ended(1);
    assert_false(ended_whole);
    assert_true(atomic_load(&stored) == 0);
}

/* The workers are at a piece when the client leaves. */
static void a_body_ends_after_its_workers(void **state)
{
    size_t length = RING_BYTES;
    pthread_t sender;

    (void)state;
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

static void only_so_many_bodies_are_taken(void **state)
{
    struct connection more[MOST] = {0};
    struct request *requests[MOST];
    int pairs[MOST][2];

    (void)state;
    assert_true(intake_begin(set, request, BODY_BYTES));
    for (unsigned i = 0; i < MOST; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        more[i].descriptor = pairs[i][0];
        requests[i] = request_new(&server, &mailbox, "/");
        requests[i]->connection = &more[i];
        request_state(requests[i])->operation = &operation;
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

#define ON_A_LOOP(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(every_piece_reaches_both_tasks_in_order),
        ON_A_LOOP(bytes_after_the_body_are_left_alone),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(chunks_of_any_size_reach_both_tasks_in_order),
        ON_A_LOOP(a_malformed_chunk_ends_its_body),
        ON_A_LOOP(parts_of_a_piece_are_stored_soon),
        ON_A_LOOP(a_body_that_comes_in_parts_stays_in_its_memory),
        ON_A_LOOP(a_body_that_comes_in_parts_stays_in_its_memory),
        ON_A_LOOP(a_body_that_comes_in_parts_stays_in_its_memory),
        ON_A_LOOP(nothing_is_read_while_workers_cannot_keep_up),
        ON_A_LOOP(a_client_that_leaves_ends_its_body),
        ON_A_LOOP(a_client_that_takes_too_long_ends_its_body),
        ON_A_LOOP(a_body_ends_after_its_workers),
        ON_A_LOOP(only_so_many_bodies_are_taken),
    };

    return cmocka_run_group_tests(tests, make_body, free_body);
}
