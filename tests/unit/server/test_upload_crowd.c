/* How many uploads one client may have at once: bodies, and those that live from request to
 * request. */
#include "tus_request.h"
#include "writer_request.h"

#include "access/access.h"

static const struct peer peers[2] = {{.address = {{1}}, .text = "100::", .key = 1},
                                     {.address = {{2}}, .text = "200::", .key = 2}};

static struct asked from(unsigned client, struct asked asked)
{
    asked.peer = &peers[client];
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

WITH_TUS(bodies_of_one_client_are_bounded)
{
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
WITH_TUS(answered_bodies_do_not_count)
{
    world->config.upload.open_per_client = 1;
    assert_status(world, from(0, put()), 201);
    assert_status(world, from(0, put()), 204);
    assert_fails_after_body(world, from(0, with_body(to_ask("PUT", "/v1/models/n"), "x", 1)), 422,
                            "invalid-model");
    assert_status(world, from(0, put()), 204);
}

WITH_TUS(lasting_uploads_of_one_client_are_bounded_together)
{
    world->config.upload.sessions_per_client = 2;
    assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
    assert_status(world, from(0, tus_create("10")), 201);
    assert_crowded(world, from(0, to_ask("POST", WRITER_UPLOADS)));
    assert_crowded(world, from(0, tus_create("10")));
    assert_int_equal(entries_of(world, UPLOAD_FOLDER), 2);
    assert_status(world, from(1, tus_create("10")), 201);
}

WITH_TUS(removed_uploads_do_not_count)
{
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

/* With all clients behind one proxy, its limits are those of the clients that it names. */
WITH_TUS(clients_of_a_trusted_proxy_are_counted_apart)
{
    struct network network = {.address = peers[0].address, .bits = 128};
    const struct access access = {.proxies = {&network, 1}};
    struct asked asked = from(0, to_ask("POST", WRITER_UPLOADS));

    world->config.upload.sessions_per_client = 1;
    asked.access = &access;
    assert_status(world, with_field(asked, "X-Forwarded-For", "192.0.2.1"), 201);
    assert_status(world, with_field(asked, "X-Forwarded-For", "192.0.2.2"), 201);
    assert_crowded(world, with_field(asked, "X-Forwarded-For", "192.0.2.1"));
    asked.peer = &peers[1];
    assert_status(world, with_field(asked, "X-Forwarded-For", "192.0.2.3"), 201);
    assert_crowded(world, with_field(asked, "X-Forwarded-For", "192.0.2.4"));
}

WITH_TUS(no_limit_is_no_limit)
{
    world->config.upload.sessions_per_client = 0;
    for (unsigned i = 0; i < 20; i++)
        assert_status(world, from(0, to_ask("POST", WRITER_UPLOADS)), 201);
}
