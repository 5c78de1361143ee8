/* Selections: the objects that are wanted, whole or cut; and the parts that they are made of, from
 * any position. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "written.h"
#include "zt/component_view.h"
#include "zt/select.h"

#define DENSE(dtype, at, length, shape)                                                          \
    "{'shape':" shape ",'format':'dense','components':{'data':{'dtype':'" dtype "','offset':" at \
    ",'length':" length "}}}"
#define FILE_OF(objects) "{'version':'1.2.0','attributes':{'steps':7},'objects':{" objects "}}"
#define THREE                                                       \
    FILE_OF("'a':" DENSE("f32", "64", "96", "[4,6]") ",'b':" DENSE( \
        "u8", "192", "8", "[8]") ",'c':" DENSE("i16", "256", "64", "[2,4,4]"))
#define DATA_LENGTH 512

static struct zt_error error;

struct chosen {
    struct written from;
    struct zt_selection selection;
    enum zt_slice_verdict verdict;
};

static enum zt_status choose(struct chosen *chosen, const char *manifest,
                             const struct zt_choice *choice)
{
    memset(chosen, 0, sizeof(*chosen));
    chosen->verdict = ZT_SLICE_MALFORMED;
    written_from_text(&chosen->from, DATA_LENGTH, manifest);
    return zt_model_select(chosen->from.model, choice, &chosen->selection, &chosen->verdict,
                           &error);
}

static void chosen_free(struct chosen *chosen)
{
    zt_selection_free(&chosen->selection);
    written_free(&chosen->from);
}

static void assert_refused(const char *manifest, struct zt_cut cut, enum zt_status status,
                           enum zt_slice_verdict verdict)
{
    struct zt_choice choice = {NULL, &cut, NULL, false};
    struct chosen chosen;

    assert_int_equal(choose(&chosen, manifest, &choice), status);
    assert_int_equal(chosen.verdict, verdict);
    assert_int_equal(error.status, status);
    assert_string_equal(error.object, "x");
    assert_null(chosen.selection.model);
    chosen_free(&chosen);
}

/* --- objects --- */

TEST(only_wanted_objects_are_there)
{
    const bool wanted[] = {true, false, true};
    const struct zt_choice choice = {wanted, NULL, NULL, false};
    struct chosen chosen;
    const struct zt_model *model;
    const struct zt_object *last;

    assert_ok(choose(&chosen, THREE, &choice));
    model = chosen.selection.model;
    assert_int_equal(model->object_count, 2);
    assert_int_equal(model->component_count, 2);
    assert_null(zt_model_find(model, zt_text_from("b")));
    last = zt_model_find(model, zt_text_from("c"));
    assert_non_null(last);
    assert_int_equal(zt_object_shape(model, last)[2], 4);
    assert_int_equal(zt_object_components(model, last)->offset, 256);
    assert_int_equal(chosen.selection.components[1], 2);
    assert_int_equal(chosen.selection.objects[1], 2);
    assert_int_equal(chosen.selection.cuts.piece_count, 0);
    assert_int_equal(model->attributes.length, chosen.from.model->attributes.length);
    chosen_free(&chosen);
}

TEST(nothing_chosen_is_an_empty_model)
{
    const bool wanted[] = {false, false, false};
    const struct zt_choice choice = {wanted, NULL, NULL, false};
    struct chosen chosen;

    assert_ok(choose(&chosen, THREE, &choice));
    assert_int_equal(chosen.selection.model->object_count, 0);
    chosen_free(&chosen);
}

/* --- cuts --- */

TEST(one_run_stays_where_it_lies)
{
    const struct zt_cut cut = {1, 2, 0};
    const struct zt_choice choice = {NULL, &cut, NULL, false};
    struct chosen chosen;
    const struct zt_component *parts;

    assert_ok(choose(&chosen, THREE, &choice));
    parts = chosen.selection.model->components;
    assert_int_equal(chosen.verdict, ZT_SLICE_FITS);
    assert_int_equal(chosen.selection.cuts.piece_count, 0);
    assert_int_equal(parts[0].offset, 64 + 48);
    assert_int_equal(parts[0].decoded_length, 48);
    assert_int_equal(parts[1].offset, 192 + 4);
    assert_int_equal(parts[2].offset, 256 + 32);
    assert_int_equal(parts[0].shard, 0);
    assert_int_equal(chosen.selection.model->dimensions[0], 2);
    assert_int_equal(chosen.selection.model->dimensions[1], 6);
    chosen_free(&chosen);
}

TEST(many_runs_get_a_place_in_the_file_of_cuts)
{
    const bool wanted[] = {true, false, true};
    const struct zt_cut cut = {1, 2, -1};
    const struct zt_choice choice = {wanted, &cut, NULL, false};
    struct chosen chosen;
    const struct zt_component *parts;

    assert_ok(choose(&chosen, THREE, &choice));
    parts = chosen.selection.model->components;
    assert_int_equal(chosen.selection.cuts.piece_count, 2);
    assert_int_equal(chosen.selection.cuts.length, 48 + 32);
    assert_int_equal(parts[0].shard, 1);
    assert_int_equal(parts[1].offset, 48);
    assert_int_equal(chosen.selection.cuts.pieces[1].component, 1);
    chosen_free(&chosen);
}

TEST(each_object_has_an_axis_of_its_own)
{
    const struct zt_cut cut = {1, 2, 0};
    const int64_t axes[] = {0, ZT_AXIS_NONE, -1};
    const struct zt_choice choice = {NULL, &cut, axes, false};
    struct chosen chosen;
    const struct zt_component *parts;

    assert_ok(choose(&chosen, THREE, &choice));
    parts = chosen.selection.model->components;
    assert_int_equal(parts[0].offset, 64 + 48);
    assert_int_equal(parts[1].offset, 192);
    assert_int_equal(parts[1].decoded_length, 8);
    assert_int_equal(chosen.selection.cuts.piece_count, 1);
    assert_int_equal(chosen.selection.cuts.pieces[0].component, 2);
    chosen_free(&chosen);
}

TEST(what_cannot_be_cut_is_named)
{
    assert_refused(
        FILE_OF("'a':" DENSE("u8", "64", "6", "[6]") ",'x':" DENSE("u8", "128", "8", "[8]")),
        (struct zt_cut){0, 3, 0}, ZT_ARGUMENT, ZT_SLICE_NOT_DIVISIBLE);
    assert_refused(FILE_OF("'x':" DENSE("u8", "64", "1", "[]")), (struct zt_cut){0, 1, 0},
                   ZT_ARGUMENT, ZT_SLICE_OUT_OF_RANGE);
    assert_refused(FILE_OF("'x':" DENSE("u8", "64", "6", "[6]")), (struct zt_cut){0, 2, 1},
                   ZT_ARGUMENT, ZT_SLICE_OUT_OF_RANGE);
    assert_refused(FILE_OF("'x':{'shape':[6],'format':'own','components':{'data':{'dtype':'u8','"
                           "offset':64,'length':6}}}"),
                   (struct zt_cut){0, 2, 0}, ZT_UNSUPPORTED, ZT_SLICE_FITS);
    assert_refused(FILE_OF("'x':{'shape':[6],'format':'dense','components':{'data':{'dtype':'u8','"
                           "type':'own','offset':64,'length':6}}}"),
                   (struct zt_cut){0, 2, 0}, ZT_UNSUPPORTED, ZT_SLICE_FITS);
}

/* --- parts --- */

static void assert_part(const struct zt_component_view *part, const uint8_t *expected,
                        size_t length)
{
    uint8_t bytes[256];

    for (size_t first = 0; first < length; first++) {
        for (size_t end = first; end <= length; end++) {
            memset(bytes, 0xA5, sizeof(bytes));
            assert_ok(zt_component_view_read(part, first, bytes, end - first, &error));
            assert_memory_equal(bytes, expected + first, end - first);
            assert_int_equal(bytes[end - first], 0xA5);
        }
    }
}

TEST(a_cut_part_is_gathered_from_anywhere)
{
    const struct zt_cut cut = {1, 2, 1};
    struct written from = {0};
    struct zt_slice slice;
    uint8_t expected[48];
    struct zt_component_view part;

    written_from_text(&from, DATA_LENGTH, THREE);
    zt_object_cut(from.model, &from.model->objects[0], &cut, false, &slice);
    part = (struct zt_component_view){.source = from.source, .base = 64, .cut = &slice};
    for (size_t row = 0; row < 4; row++)
        memcpy(expected + row * 12, from.bytes.bytes + 64 + row * 24 + 12, 12);
    assert_int_equal(slice.length, sizeof(expected));
    assert_part(&part, expected, sizeof(expected));
    written_free(&from);
}

TEST(integers_become_wider_from_anywhere)
{
    const struct zt_component from = {.dtype = ZT_I16};
    const struct zt_component to = {.dtype = ZT_U64};
    const uint8_t words[] = {1, 0, 2, 1, 255, 127, 0, 0};
    uint8_t expected[32] = {0};
    struct zt_component_view part = {.base = 0};

    for (size_t i = 0; i < 4; i++)
        memcpy(expected + i * 8, words + i * 2, 2);
    part.source = memory_source(words, sizeof(words));
    part.widening = zt_widening_of(&(struct zt_origin){.change = ZT_CHANGE_INDEX}, &from, &to);
    assert_part(&part, expected, sizeof(expected));
    zt_source_close(part.source);
}

TEST(more_integers_than_a_block_become_wider)
{
    const struct zt_component from = {.dtype = ZT_U8};
    const struct zt_component to = {.dtype = ZT_U32};
    uint8_t words[10000];
    uint8_t wide[39990];
    struct zt_component_view part = {.base = 0};

    for (size_t i = 0; i < sizeof(words); i++)
        words[i] = (uint8_t)(i * 7 + 1);
    part.source = memory_source(words, sizeof(words));
    part.widening = zt_widening_of(&(struct zt_origin){.change = ZT_CHANGE_INDEX}, &from, &to);
    assert_ok(zt_component_view_read(&part, 5, wide, sizeof(wide), &error));
    for (size_t i = 0; i < sizeof(wide); i++)
        assert_int_equal(wide[i], (i + 5) % 4 == 0 ? words[(i + 5) / 4] : 0);
    zt_source_close(part.source);
}

TEST(negative_integers_are_refused_when_met)
{
    const struct zt_component from = {.dtype = ZT_I8};
    const struct zt_component to = {.dtype = ZT_U32};
    const uint8_t words[] = {1, 0x80};
    uint8_t wide[8];
    struct zt_component_view part = {.base = 0};

    part.source = memory_source(words, sizeof(words));
    part.widening = zt_widening_of(&(struct zt_origin){.change = ZT_CHANGE_INDEX}, &from, &to);
    assert_ok(zt_component_view_read(&part, 0, wide, 4, &error));
    assert_int_equal(zt_component_view_read(&part, 0, wide, 5, &error), ZT_INVALID);
    zt_source_close(part.source);
}
