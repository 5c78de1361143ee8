/* Slices of views as runs of the file, compared with slices of the decoded view. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "zt/decode.h"
#include "zt/slice.h"

#define FILE_BYTES 20000
#define VIEW_AT    48

struct view {
    unsigned rank;
    uint64_t shape[4];
    uint64_t strides[4];
};

struct subject {
    struct zt_arrangement arrangement;
    struct zt_component component;
    struct zt_slice_tensor tensor;
    uint8_t file[FILE_BYTES];
    uint8_t decoded[FILE_BYTES];
    struct zt_source *source;
    struct zt_source *decoded_source;
};

static void subject_open(struct subject *subject, const struct view *view)
{
    struct zt_decoder *decoder = NULL;
    uint64_t elements = 1;
    uint64_t span = 1;
    size_t length = 0;

    for (unsigned i = 0; i < view->rank; i++) {
        elements *= view->shape[i];
        span += (view->shape[i] - 1) * view->strides[i];
    }
    for (size_t i = 0; i < FILE_BYTES; i++)
        subject->file[i] = (uint8_t)(i * 2654435761u >> 9);
    subject->arrangement = (struct zt_arrangement){
        .rank = (uint8_t)view->rank, .shape = view->shape, .strides = view->strides};
    subject->component = (struct zt_component){.dtype = ZT_F32,
                                               .encoding = ZT_ENCODING_STRIDED,
                                               .arrangement = &subject->arrangement,
                                               .offset = VIEW_AT,
                                               .length = span * 4,
                                               .decoded_length = elements * 4};
    subject->tensor = (struct zt_slice_tensor){view->shape, view->rank, ZT_F32, ZT_LOGICAL_NONE};
    subject->source = memory_source(subject->file, FILE_BYTES);
    assert_ok(zt_decoder_open(&subject->component, subject->source, &decoder, NULL));
    assert_ok(zt_decoder_read(decoder, subject->decoded, FILE_BYTES, &length, NULL));
    assert_int_equal(length, elements * 4);
    zt_decoder_close(decoder);
    subject->decoded_source = memory_source(subject->decoded, length);
}

static void subject_close(struct subject *subject)
{
    zt_source_close(subject->decoded_source);
    zt_source_close(subject->source);
}

static void read_slice(const struct zt_slice *slice, struct zt_source *source, uint64_t base,
                       uint8_t *out)
{
    struct zt_source *gathered;

    assert_ok(zt_slice_source(slice, source, base, &gathered, NULL));
    assert_ok(zt_source_read_at(gathered, 0, out, (size_t)slice->length, NULL));
    zt_source_close(gathered);
}

/* Whether the slice is found in the file; if so, its bytes must be those of the decoded slice. */
static bool is_in_file(const struct subject *subject, const char *text)
{
    struct zt_slice slice;
    struct zt_slice placed;
    uint8_t expected[FILE_BYTES];
    uint8_t actual[FILE_BYTES];

    assert_int_equal(zt_slice_parse(&subject->tensor, zt_text_from(text), &slice, NULL),
                     ZT_SLICE_FITS);
    if (!zt_slice_of_view(&slice, &subject->component, &placed))
        return false;
    assert_int_equal(placed.length, slice.length);
    read_slice(&slice, subject->decoded_source, 0, expected);
    read_slice(&placed, subject->source, VIEW_AT, actual);
    assert_memory_equal(actual, expected, (size_t)slice.length);
    return true;
}

TEST(slices_that_ascend_are_runs_of_the_file)
{
    static const struct {
        struct view view;
        const char *in_file[5];
        const char *decoded[3];
    } cases[] = {
        {{2, {20, 30}, {50, 1}}, {"...", "3", ":,2:5", "1:4,:", "7,9"}, {NULL}},
        {{2, {20, 30}, {50, 1}}, {"5:6,1:2", "19,29", "0:20,0:30"}, {"3:3"}},
        {{2, {20, 30}, {1, 20}}, {"3", ":,2", "7,9", "2:3,4:9"}, {"...", "1:3,1:3"}},
        {{2, {6, 30}, {0, 1}}, {"3", "2:3,4:9"}, {"...", "1:3,1:2"}},
        {{3, {3, 4, 5}, {100, 5, 1}}, {"...", "1", ":,1:3,2:4", ":,:,4"}, {NULL}},
        {{3, {3, 4, 5}, {100, 1, 4}}, {"1,2", ":,1", ":,:,4"}, {"...", "1"}},
        {{3, {1, 4, 5}, {7777, 10, 2}}, {"...", "0,1:3,2:4"}, {NULL}},
        {{2, {20, 5}, {1, 1}}, {"3", ":,2"}, {"..."}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct subject *subject = calloc(1, sizeof(*subject));

        assert_non_null(subject);
        subject_open(subject, &cases[i].view);
        for (unsigned j = 0; j < 5 && cases[i].in_file[j] != NULL; j++)
            assert_true(is_in_file(subject, cases[i].in_file[j]));
        for (unsigned j = 0; j < 3 && cases[i].decoded[j] != NULL; j++)
            assert_false(is_in_file(subject, cases[i].decoded[j]));
        subject_close(subject);
        free(subject);
    }
}

TEST(converted_bytes_are_never_in_the_file)
{
    static const struct view view = {2, {20, 30}, {50, 1}};
    struct subject *subject = calloc(1, sizeof(*subject));

    assert_non_null(subject);
    subject_open(subject, &view);
    subject->component.big_endian = 1;
    assert_false(is_in_file(subject, "3"));
    subject->component.big_endian = 0;
    subject->arrangement.flip = ZT_FLIP_ALL;
    assert_false(is_in_file(subject, "3"));
    subject->arrangement.flip = ZT_FLIP_NONE;
    subject->component.logical = ZT_LOGICAL_F4_E2M1;
    assert_false(is_in_file(subject, "3"));
    subject->component.logical = ZT_LOGICAL_NONE;
    assert_true(is_in_file(subject, "3"));
    subject->component.encoding = ZT_ENCODING_DEFLATE;
    assert_false(is_in_file(subject, "3"));
    subject_close(subject);
    free(subject);
}
