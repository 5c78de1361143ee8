/* Building models: arrays that grow within a budget, names that are sorted and found, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/locate.h"
#include "model/model_build.h"
#include "tests.h"

static const char manifest[] = "the manifest's bytes, long enough for a few names: b a a";

static void begin(struct zt_builder *builder, struct zt_source **source)
{
    assert_ok(zt_source_from_memory(manifest, sizeof(manifest) - 1, source, NULL));
    assert_ok(zt_builder_init(builder, *source, 4, sizeof(manifest) - 5, NULL));
}

static struct zt_object *add_object(struct zt_builder *builder, const char *name)
{
    struct zt_object *object;

    assert_ok(zt_builder_object(builder, &object, NULL));
    object->name = name;
    object->name_length = (uint32_t)strlen(name);
    return object;
}

TEST(finish_sorts_any_order_and_finds_every_name)
{
    enum { COUNT = 10000 };
    char(*names)[16] = calloc(COUNT, sizeof(*names));
    struct zt_builder builder;
    struct zt_source *source;
    struct zt_model *model;

    begin(&builder, &source);
    builder.budget_bytes = 16 << 20;
    for (unsigned i = 0; i < COUNT; i++) {
        struct zt_component *component;

        /* In no order, with names of several lengths; the dimension identifies each. */
        snprintf(names[i], sizeof(names[i]), "%u", i * 7919u % COUNT);
        add_object(&builder, names[i]);
        assert_ok(zt_builder_dimension(&builder, i * 7919u % COUNT, NULL));
        assert_ok(zt_builder_component(&builder, &component, NULL));
        component->name = "data";
        component->name_length = 4;
        component->offset = i * 7919u % COUNT;
    }
    assert_ok(zt_builder_finish(&builder, "rule", &model, NULL));
    for (unsigned i = 0; i < COUNT; i++) {
        const struct zt_object *object = zt_model_find(model, zt_text_from(names[i]));

        assert_non_null(object);
        assert_int_equal(zt_object_shape(model, object)[0], i * 7919u % COUNT);
        assert_int_equal(zt_object_components(model, object)[0].offset, i * 7919u % COUNT);
    }
    for (unsigned i = 1; i < COUNT; i++) {
        struct zt_text before = zt_object_name(&model->objects[i - 1]);
        struct zt_text name = zt_object_name(&model->objects[i]);

        assert_true(strncmp(before.bytes, name.bytes, name.length) < 0 ||
                    before.length < name.length);
    }
    zt_model_free(model);
    zt_source_close(source);
    free(names);
}

TEST(finish_refuses_the_second_of_two_equal_names)
{
    struct zt_builder builder;
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;
    const char *copy;
    size_t last;

    begin(&builder, &source);
    copy = (const char *)builder.model->storage->manifest;
    last = builder.model->manifest_length - 1;
    for (size_t i = 0; i < 3; i++) {
        struct zt_object *object = add_object(&builder, "a");

        object->name = copy + last - 2 * i;
    }
    assert_int_equal(zt_builder_finish(&builder, "some rule", &model, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "some rule", 4 + last);
    assert_string_equal(error.object, "a");
    assert_null(model);
    zt_builder_abandon(&builder);
    zt_source_close(source);
}

TEST(growing_past_the_budget_is_a_limit)
{
    struct zt_builder builder;
    struct zt_source *source;
    struct zt_object *object;
    struct zt_error error;
    enum zt_status status = ZT_OK;
    unsigned count = 0;

    begin(&builder, &source);
    builder.budget_bytes = builder.held_bytes + 64 * sizeof(*object);
    while (status == ZT_OK && count < 1000) {
        status = zt_builder_object(&builder, &object, &error);
        count += status == ZT_OK;
    }
    assert_int_equal(status, ZT_LIMIT);
    assert_int_equal(count, 64);
    zt_builder_abandon(&builder);
    zt_source_close(source);
}

TEST(only_texts_of_the_manifest_have_a_position)
{
    struct zt_builder builder;
    struct zt_source *source;
    const uint8_t *bytes;

    begin(&builder, &source);
    bytes = builder.model->storage->manifest;
    assert_true(zt_manifest_position(builder.model, bytes) == 4);
    assert_true(zt_manifest_position(builder.model, bytes + 3) == 7);
    assert_true(zt_manifest_position(builder.model, bytes + builder.model->manifest_length) ==
                ZT_NO_OFFSET);
    assert_true(zt_manifest_position(builder.model, "elsewhere") == ZT_NO_OFFSET);
    assert_true(zt_manifest_position(builder.model, NULL) == ZT_NO_OFFSET);
    zt_builder_abandon(&builder);
    zt_source_close(source);
}

TEST(init_reports_an_unreadable_source)
{
    struct zt_builder builder;
    struct zt_error error;
    struct zt_source *source = memory_source(manifest, 4);

    assert_int_equal(zt_builder_init(&builder, source, 0, 5, &error), ZT_IO);
    assert_null(builder.model);
    zt_source_close(source);
}

TEST(arena_keeps_its_budget)
{
    struct zt_arena arena;
    struct zt_error error;
    void *bytes = NULL;
    size_t taken;

    zt_arena_init(&arena, 100000);
    taken = 0;
    while (zt_arena_take(&arena, 100, &bytes, &error) == ZT_OK) {
        memset(bytes, 0xAB, 100);
        assert_int_equal((uintptr_t)bytes % 16, 0);
        taken += 100;
    }
    assert_int_equal(error.status, ZT_LIMIT);
    assert_in_range(taken, 80000, 100000);
    assert_true(arena.held_bytes <= 100000);
    assert_int_equal(zt_arena_take(&arena, SIZE_MAX, &bytes, &error), ZT_LIMIT);
    zt_arena_free(&arena);
}

/* --- errors --- */

TEST(fail_fills_the_whole_error)
{
    struct zt_error error;

    memset(&error, 0x55, sizeof(error));
    assert_int_equal(zt_fail(&error, ZT_CORRUPT, "rule", 7, "%d of %s", 3, "four"), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, "rule", 7);
    assert_string_equal(error.message, "3 of four");
    assert_string_equal(error.object, "");
    assert_string_equal(error.component, "");
    assert_int_equal(error.os_error, 0);
    assert_int_equal(zt_fail(NULL, ZT_IO, NULL, 0, "nobody asks"), ZT_IO);
}

TEST(fail_may_quote_the_error_that_it_replaces)
{
    struct zt_error error;

    zt_fail(&error, ZT_INVALID, "rule", 7, "too long");
    zt_error_at(&error, zt_text_from("w"), zt_text_from("data"));
    zt_fail(&error, ZT_CORRUPT, NULL, 0, "%s.%s: %s", error.object, error.component, error.message);
    assert_string_equal(error.message, "w.data: too long");
    assert_string_equal(error.object, "");
}

TEST(texts_of_errors_are_cut_between_characters)
{
    struct zt_error error;
    char text[3000];

    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[2999] = '\0';
    text[2998] = '\0';
    zt_fail(&error, ZT_INVALID, NULL, 0, "x%s", text);
    assert_int_equal(strlen(error.message), 255);
    zt_fail(&error, ZT_INVALID, NULL, 0, "%s", text);
    assert_int_equal(strlen(error.message), 254);
    text[0] = 'x';
    text[1] = 'y';
    zt_error_at(&error, (struct zt_text){text + 1, 2000}, (struct zt_text){text, 2000});
    assert_int_equal(strlen(error.object), ZT_ERROR_NAME_MAX - 1);
    assert_int_equal(strlen(error.component), ZT_ERROR_NAME_MAX);
}

TEST(every_status_has_a_name)
{
    assert_string_equal(zt_status_name(ZT_OK), "ok");
    assert_string_equal(zt_status_name(ZT_INVALID), "invalid");
    assert_string_equal(zt_status_name(ZT_NOT_FOUND), "not-found");
    for (int i = ZT_OK; i <= ZT_STALE; i++)
        assert_string_not_equal(zt_status_name((enum zt_status)i), "unknown");
    assert_string_equal(zt_status_name((enum zt_status)99), "unknown");
}
