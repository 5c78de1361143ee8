/* Requests of the streaming writer without a connection: an upload for the model "m". */
#ifndef WRITER_REQUEST_H
#define WRITER_REQUEST_H

#include "upload_request.h"

#define WRITER_UPLOADS "/v1/models/m/uploads"
#define WRITER_ZT2     "{\"version\": \"2\"}"

static inline struct asked writer_json(const char *method, const char *target, const char *json)
{
    return with_body(to_ask(method, target), json, strlen(json));
}

/* Makes an upload from its JSON; its path is copied. */
static inline void writer_create(struct world *world, const char *json, char out_target[64])
{
    const struct answered answered =
        assert_status(world, writer_json("POST", WRITER_UPLOADS, json), 201);

    assert_true(strlen(value_of(&answered, "Location")) < 64);
    strcpy(out_target, value_of(&answered, "Location"));
}

/* A path below an upload's, in a buffer of its own until the eighth call after it. */
static inline const char *writer_path(const char *target, const char *rest)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];

    assert_true((size_t)snprintf(path, sizeof(paths[0]), "%s%s", target, rest) < sizeof(paths[0]));
    return path;
}

static inline struct asked writer_put(const char *target, const char *rest, const void *body,
                                      size_t length)
{
    return with_body(to_ask("PUT", writer_path(target, rest)), body, length);
}

static inline struct asked writer_declare(const char *target, const char *rest, const char *json)
{
    return writer_json("PUT", writer_path(target, rest), json);
}

static inline struct asked writer_post_commit(const char *target)
{
    return to_ask("POST", writer_path(target, "/commit"));
}

/* Asserts that the upload's status holds a text. */
static inline void assert_status_holds(struct world *world, const char *target, const char *text)
{
    const struct answered answered = assert_status(world, to_ask("GET", target), 200);

    if (strstr(answered.body, text) == NULL)
        print_error("%s\nis not in %s\n", text, answered.body);
    assert_non_null(strstr(answered.body, text));
}

#endif
