/* How many uploads one client may have at once: bodies, and those that live from request to
 * request. */
#include "tus_request.h"
#include "writer_request.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int listener;
static int clients[2];
static struct connection connections[2];

/* A connection whose client has the address 127.0.0.<last>. */
static void connect_from(unsigned index, uint32_t last)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);

    clients[index] = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(UINT32_C(0x7F000000) + last);
    assert_int_equal(bind(clients[index], (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(clients[index], (struct sockaddr *)&address, length), 0);
    connections[index] = (struct connection){.descriptor = accept(listener, NULL, NULL)};
    assert_true(connections[index].descriptor >= 0);
}

static int set_up(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int failed = tus_set_up(state);

    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 2), 0);
    connect_from(0, 1);
    connect_from(1, 2);
    return failed;
}

static int tear_down(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        close(connections[i].descriptor);
        close(clients[i]);
    }
    close(listener);
    return uploads_tear_down(state);
}

static struct asked from(unsigned client, struct asked asked)
{
    asked.connection = &connections[client];
    return asked;
}

static struct asked put(void)
{
    return with_body(to_ask("PUT", "/v1/models/m"), tus_bytes, tus_length);
}

static void assert_crowded(struct world *world, struct asked asked)
{
    struct answered answered = ask(world, asked);

    assert_problem(&answered, 429, "rate-limited");
    assert_string_not_equal(value_of(&answered, "Retry-After"), "");
}

static void bodies_of_one_client_are_bounded(void **state)
{
    struct world *world = *state;
    struct sending_request first;
    struct sending_request second;

    world->config.upload.open_per_client = 2;
    sending_begin(world, &first, from(0, put()));
    sending_begin(world, &second, from(0, put()));
    assert_false(first.is_early || second.is_early);
    assert_crowded(world, from(0, put()));
    assert_status(world, from(1, put()), 201);
    sending_cut(&first);
    assert_status(world, from(0, put()), 204);
    sending_until(&second, tus_length);
    assert_int_equal(sending_end(&second).status, 204);
}

/* After the answer the client may begin another at once. */
static void answered_bodies_do_not_count(void **state)
{
    struct world *world = *state;

    world->config.upload.open_per_client = 1;
    assert_status(world, from(0, put()), 201);
    assert_status(world, from(0, put()), 204);
    assert_fails_after_body(world, from(0, with_body(to_ask("PUT", "/v1/models/n"), "x", 1)), 422,
                            "invalid-model");
    assert_status(world, from(0, put()), 204);
}

static void lasting_uploads_of_one_client_are_bounded_together(void **state)
{
    struct world *world = *state;

    world->config.upload.sessions_per_client = 2;
    assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
    assert_status(world, from(0, tus_create("10")), 201);
    assert_crowded(world, from(0, to_ask("POST", WRITER_UPLOADS)));
    assert_crowded(world, from(0, tus_create("10")));
    assert_int_equal(entries_of(world, UPLOAD_FOLDER), 2);
    assert_status(world, from(1, tus_create("10")), 201);
}

static void removed_uploads_do_not_count(void **state)
{
    struct world *world = *state;
    struct answered answered;
    char target[64];

    world->config.upload.sessions_per_client = 1;
    answered = assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
    strcpy(target, value_of(&answered, "Location"));
    assert_status(world, from(0, to_ask("DELETE", target)), 204);
    answered = assert_status(world, from(0, tus_create("10")), 201);
    strcpy(target, value_of(&answered, "Location"));
    assert_status(world, from(0, tus_ask("DELETE", target)), 204);
    assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
}

static void no_limit_is_no_limit(void **state)
{
    struct world *world = *state;

    world->config.upload.sessions_per_client = 0;
    for (unsigned i = 0; i < 20; i++)
        assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
}

#define CROWD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CROWD_TEST(bodies_of_one_client_are_bounded),
        CROWD_TEST(answered_bodies_do_not_count),
        CROWD_TEST(lasting_uploads_of_one_client_are_bounded_together),
        CROWD_TEST(removed_uploads_do_not_count),
        CROWD_TEST(no_limit_is_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
