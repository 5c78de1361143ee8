/* Requests of tus 1.0.0 without a connection: creation of an upload for the model "m", and
 * pieces. */
#ifndef TUS_REQUEST_H
#define TUS_REQUEST_H

#include "upload_request.h"

#define TUS_TYPE "application/offset+octet-stream"
/* "m" in base64. */
#define TUS_METADATA "model bQ=="

static uint8_t tus_bytes[MODEL_MAX];
static size_t tus_length;
static char tus_length_text[24];

static inline int tus_set_up(void **state)
{
    int failed = uploads_set_up(state);

    tus_length = world_model_bytes(*state, true, tus_bytes, sizeof(tus_bytes));
    snprintf(tus_length_text, sizeof(tus_length_text), "%zu", tus_length);
    return failed;
}

static inline struct asked tus_ask(const char *method, const char *target)
{
    return with_field(to_ask(method, target), "Tus-Resumable", "1.0.0");
}

static inline struct asked tus_create(const char *length)
{
    return with_field(with_field(tus_ask("POST", "/v1/resumable"), "Upload-Length", length),
                      "Upload-Metadata", TUS_METADATA);
}

static inline struct asked tus_with_type(struct asked asked)
{
    return with_field(asked, "Content-Type", TUS_TYPE);
}

/* Makes an upload of so many bytes; its path is copied. */
static inline void tus_begin(struct world *world, const char *length, char out_target[64])
{
    const struct answered answered = assert_status(world, tus_create(length), 201);

    assert_true(strlen(value_of(&answered, "Location")) < 64);
    strcpy(out_target, value_of(&answered, "Location"));
}

/* A piece of tus_bytes; offset_text is borrowed. */
static inline struct asked tus_patch(const char *target, const char *offset_text, size_t length)
{
    const size_t offset = strtoul(offset_text, NULL, 10);
    struct asked asked = with_field(tus_ask("PATCH", target), "Upload-Offset", offset_text);

    return with_body(tus_with_type(asked), tus_bytes + offset, length);
}

/* What HEAD states. */
static inline void assert_offset(struct world *world, const char *target, const char *offset)
{
    const struct answered answered = assert_status(world, tus_ask("HEAD", target), 200);

    assert_string_equal(value_of(&answered, "Upload-Offset"), offset);
    assert_string_equal(value_of(&answered, "Cache-Control"), "no-store");
}

#define WITH_TUS(name) TEST_IN_WORLD(name, tus_set_up, uploads_tear_down)

#endif
