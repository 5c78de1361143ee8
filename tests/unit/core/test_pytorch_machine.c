/* PyTorch: what ends the pickle machine, each rule at its offset. */
#include "pytorch_pieces.h"

#include <stdlib.h>

#include "pickle/pickle.h"

/* A pickle that is refused at the opcode with which the second piece begins. */
struct refused {
    const char *pickle;
    size_t length;
    size_t offset;
    const char *rule;
};

#define AT(before, rest, rule)                                                                 \
    {                                                                                          \
        "\x80\x02" before rest, sizeof("" before rest) + 1, sizeof("" before) + 1, "pt §" rule \
    }

/* The same with a head of its own, at an offset of the whole. */
#define RAW(text, offset, rule)                        \
    {                                                  \
        "" text, sizeof(text) - 1, offset, "pt §" rule \
    }

static void assert_stops(const struct refused *refused, bool is_torchscript)
{
    uint8_t *copy = malloc(refused->length);
    struct pickle machine;
    struct zt_error error;
    pickle_value value;

    assert_non_null(copy);
    memcpy(copy, refused->pickle, refused->length);
    pickle_init(&machine, copy, refused->length, 0);
    machine.is_torchscript = is_torchscript;
    zt_error_clear(&error);
    pickle_run(&machine, &value, &error);
    if (error.rule == NULL || strcmp(error.rule, refused->rule) != 0 ||
        error.offset != refused->offset)
        print_error("wanted %s at %d of %.*s\n", refused->rule, (int)refused->offset,
                    (int)refused->length, refused->pickle);
    assert_failure(&error, ZT_INVALID, refused->rule, refused->offset);
    pickle_free(&machine);
    free(copy);
}

#define ASSERT_ALL_STOP(cases, is_torchscript)                      \
    for (size_t i = 0; i < sizeof(cases) / sizeof((cases)[0]); i++) \
    assert_stops(&(cases)[i], is_torchscript)

/* --- opcodes --- */

TEST(the_machine_stops_at_what_it_does_not_know)
{
    static const struct refused cases[] = {
        AT("", "0.", "Pickle Opcode"),
        AT("N", "2.", "Pickle Opcode"),
        AT("(", "ios\nsystem\n.", "Pickle Opcode"),
        AT("", "\xff.", "Pickle Opcode"),
        AT("", "cos\nsystem\n.", "Pickle Name"),
        AT("", "ctorch.storage\n_load_from_bytes\n.", "Pickle Name"),
        AT("", "c__torch__\nM\n)\x81.", "Pickle Name"),
        RAW("\x80\x04\x8c\x02os\x8c\x06system\x93.", 14, "Pickle Name"),
        RAW("\x80\x06N.", 0, "Pickle Protocol"),
        RAW("\x80\x01N.", 0, "Pickle Protocol"),
        /* Protocol 1, as torch.save writes it: with INT for a bool. */
        RAW("}q\0X\x01\0\0\0aI00\ns.", 0, "Pickle Protocol"),
        AT("N", "\x80\x02.", "Pickle Protocol"),
    };

    ASSERT_ALL_STOP(cases, false);
}

TEST(the_machine_stops_at_a_broken_stack)
{
    static const struct refused cases[] = {
        AT("", "\x85.", "Pickle Stack"),
        AT("N(", "\x85.", "Pickle Stack"),
        AT("", "t.", "Pickle Stack"),
        AT("}(N", "u.", "Pickle Stack"),
        AT("](N", "u.", "Pickle Stack"),
        AT("}N", "a.", "Pickle Type"),
        AT("NN", ".", "Pickle Stop"),
        AT("N(", ".", "Pickle Stop"),
        AT("", ".", "Pickle Stop"),
        AT("", "h\0.", "Pickle Memo"),
        AT("Nq\x01", "h\0.", "Pickle Memo"),
        AT("N", "r\xff\xff\xff\xff.", "Pickle Memo"),
        AT("N", "r\x09\0\0\0.", "Pickle Memo"),
        AT("NN", "R.", "Pickle Call"),
        AT("}}", "b.", "Pickle Call"),
        AT("ctorch\ndevice\n]\x85", "R.", "Pickle Call"),
        AT("ctorch\nTensor\n)", "R.", "Pickle Call"),
        AT("", "Ix\n.", "Pickle Argument"),
        RAW("\x80\x04\x95\xff\0\0\0\0\0\0\0N.", 2, "Pickle Truncated"),
    };

    ASSERT_ALL_STOP(cases, false);
}

TEST(machine_needs_every_byte_of_a_pickle)
{
    static const char whole[] = "\x80\x02}" TEXT("\x01", "w") PLAIN "s.";

    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        uint8_t *copy = malloc(length + 1);
        struct pickle machine;
        pickle_value value;

        assert_non_null(copy);
        memcpy(copy, whole, length);
        pickle_init(&machine, copy, length, 0);
        assert_int_equal(pickle_run(&machine, &value, NULL), ZT_INVALID);
        pickle_free(&machine);
        free(copy);
    }
}

TEST(machine_reads_integers_of_every_width)
{
#define INTEGER(text, magnitude, negative)                                \
    {                                                                     \
        "\x80\x02" text ".", sizeof("\x80\x02" text), magnitude, negative \
    }
    static const struct {
        const char *pickle;
        size_t length;
        uint64_t magnitude;
        bool negative;
    } cases[] = {
        INTEGER("K\xff", 255, false),
        INTEGER("M\0\x01", 256, false),
        INTEGER("J\xff\xff\xff\xff", 1, true),
        INTEGER("\x8a\0", 0, false),
        INTEGER("\x8a\x08\0\0\0\0\0\0\0\x80", (uint64_t)1 << 63, true),
        INTEGER("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0", UINT64_MAX, false),
        INTEGER("I-17\n", 17, true),
        INTEGER("I139813769770160\n", 139813769770160, false),
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pickle machine;
        pickle_value value = 0;
        bool negative;

        pickle_init(&machine, (const uint8_t *)cases[i].pickle, cases[i].length, 0);
        assert_ok(pickle_run(&machine, &value, NULL));
        assert_int_equal(pickle_kind_of(value), PICKLE_INTEGER);
        assert_true(pickle_magnitude(&machine, value, &negative) == cases[i].magnitude);
        assert_int_equal(negative, cases[i].negative);
        pickle_free(&machine);
    }
}

/* --- calls --- */

TEST(calls_take_their_arguments_and_no_others)
{
    static const struct refused cases[] = {
        AT(ORDERED "K\x01\x85", "R.", "Pickle Call"),
        AT(ORDERED "}}\x86", "R.", "Pickle Call"),
        AT("cbuiltins\nset\nK\x01\x85", "R.", "Pickle Call"),
        AT("cbuiltins\nset\n]]\x86", "R.", "Pickle Call"),
        AT("ctorch\nSize\n)", "R.", "Pickle Call"),
        AT("ctorch\nSize\n]\x85", "R.", "Pickle Call"),
        AT("ctorch.serialization\n_get_layout\n" TEXT("\x0b", "torch.other") "\x85", "R.",
           "Pickle Call"),
        AT("ctorch\nSize\n)", "\x81.", "Pickle Call"),
        AT(ORDERED "N\x85", "\x81.", "Pickle Call"),
        AT(ORDERED ")RN", "b.", "Pickle Call"),
        AT(ORDERED "N", "R.", "Pickle Call"),
        AT("N)", "R.", "Pickle Call"),
        AT("(N", "e.", "Pickle Stack"),
        AT("", "I\n.", "Pickle Argument"),
        AT("", "I-\n.", "Pickle Argument"),
        AT("NN", "\x93.", "Pickle Type"),
        AT("", "ctorch._utils\n_rebuild_wrapper_subclass\n.", "Pickle Name"),
    };

    ASSERT_ALL_STOP(cases, false);
}

TEST(names_of_torchscript_have_no_dots)
{
    static const struct refused cases[] = {
        AT("", "c__torch__.m\nM.x\n.", "Pickle Name"),
        AT("", "c__torch__.m\n\n.", "Pickle Name"),
        AT("", "c__torch\nM\n.", "Pickle Name"),
        AT("", "ctorch.jit._pickle\nload\n.", "Pickle Name"),
        AT("ctorch.jit._pickle\nbuild_intlist\n)", "R.", "Pickle Call"),
    };

    ASSERT_ALL_STOP(cases, true);
}

TEST(frames_end_within_the_pickle)
{
    static const struct refused longer = AT("", "\x95\x03\0\0\0\0\0\0\0N.", "Pickle Truncated");
    static const char whole[] = "\x80\x04\x95\x02\0\0\0\0\0\0\0N.";
    struct pickle machine;
    pickle_value value = 0;

    assert_stops(&longer, false);
    pickle_init(&machine, (const uint8_t *)whole, sizeof(whole) - 1, 0);
    assert_ok(pickle_run(&machine, &value, NULL));
    pickle_free(&machine);
}

/* Marks take as many words as bytes; the memo, as many as its highest number says. */
TEST(values_take_no_more_than_their_budget)
{
    const size_t length = 400000;
    const size_t put_at = 300000;
    uint8_t *bytes = malloc(length);
    struct pickle machine;
    struct zt_error error;
    pickle_value value;

    assert_non_null(bytes);
    memset(bytes, '(', length);
    memcpy(bytes, "\x80\x02", 2);
    bytes[put_at - 1] = 'N';
    bytes[put_at] = 'r';
    bytes_put_le(bytes + put_at + 1, length - 1, 4);
    pickle_init(&machine, bytes, length, 0);
    assert_int_equal(pickle_run(&machine, &value, &error), ZT_LIMIT);
    assert_failure(&error, ZT_LIMIT, "pt §Pickle Memory", put_at);
    assert_true(pickle_held_bytes(&machine) <= 9 * length + (256 << 10));
    pickle_free(&machine);
    free(bytes);
}

/* --- storages and tensors --- */

/* As a number of eight bytes. */
#define HUGE(top) "\x8a\x08\0\0\0\0\0\0\0" top

#define V1      "ctorch._utils\n_rebuild_tensor\n("
#define V3      "ctorch._utils\n_rebuild_tensor_v3\n("
#define UNTYPED STORAGE("torch.storage\nUntypedStorage", "\x10")
/* Eight numbers 1. */
#define ONES "K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01"
#define RANK_65                                         \
    "(" ONES ONES ONES ONES ONES ONES ONES ONES "K\x01" \
    "t"

TEST(storages_and_shapes_are_numbers_that_fit)
{
    static const struct refused cases[] = {
        AT("(" TEXT("\x07", "storage") "ctorch\nFloatStorage\n" TEXT("\x01", "0")
               TEXT("\x03", "cpu") HUGE("\x7f") "t",
           "Q.", "Storage Id"),
        AT(REBUILD "Nt", "R.", "Pickle Call"),
        AT(REBUILD FLOAT_STORAGE "K\0)t", "R.", "Pickle Call"),
        AT(REBUILD FLOAT_STORAGE "N))" HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "J\xff\xff\xff\xff))" HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "K\0])" HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "K\0N\x85K\x01\x85" HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "K\0" RANK_65 RANK_65 HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "K\0K\x01\x85N\x85" HOOKS "t", "R.", "Tensor Shape"),
        /* 2^62 floats; 2^62 bytes; 2^62 times 4 times 0. */
        AT(REBUILD FLOAT_STORAGE "K\0" HUGE("\x40") "\x85K\0\x85" HOOKS "t", "R.", "Tensor Shape"),
        AT(REBUILD STORAGE("torch\nByteStorage", "\x10") "K\0" HUGE("\x40") "\x85K\0\x85" HOOKS "t",
           "R.", "Tensor Shape"),
        AT(REBUILD FLOAT_STORAGE "K\0" HUGE("\x40") "K\x04K\0\x87K\0K\0K\0\x87" HOOKS "t", "R.",
           "Tensor Shape"),
        /* A stride of 2^62, once and four times. */
        AT(REBUILD FLOAT_STORAGE "K\0K\x02\x85" HUGE("\x40") "\x85" HOOKS "t", "R.",
           "Tensor Bounds"),
        AT(REBUILD FLOAT_STORAGE "K\0K\x05\x85" HUGE("\x40") "\x85" HOOKS "t", "R.",
           "Tensor Bounds"),
        AT(V3 UNTYPED "K\0))" HOOKS "ctorch\nfloat4_e2m1fn_x2\nt", "R.", "Tensor Shape"),
    };

    ASSERT_ALL_STOP(cases, false);
}

TEST(tensors_are_made_of_what_torch_gives)
{
    static const struct refused cases[] = {
        AT(REBUILD FLOAT_STORAGE "K\0))N" ORDERED ")Rt", "R.", "Pickle Call"),
        AT(REBUILD FLOAT_STORAGE "K\0))\x89K\x01t", "R.", "Pickle Call"),
        AT(REBUILD FLOAT_STORAGE "K\0))" HOOKS "K\x01t", "R.", "Pickle Call"),
        AT(REBUILD FLOAT_STORAGE "K\0))" HOOKS "NNt", "R.", "Pickle Call"),
        AT(V1 FLOAT_STORAGE "K\0))Nt", "R.", "Pickle Call"),
        AT(V3 UNTYPED "K\0))" HOOKS "Nt", "R.", "Pickle Call"),
        AT(REBUILD UNTYPED "K\0))" HOOKS "t", "R.", "Tensor Dtype"),
        AT(REBUILD STORAGE("torch\nQInt8Storage", "\x10") "K\0))" HOOKS "t", "R.", "Tensor Dtype"),
        AT("ctorch._utils\n_rebuild_parameter\n(N" HOOKS "t", "R.", "Pickle Call"),
        AT("ctorch._utils\n_rebuild_parameter\n(" PLAIN HOOKS "Nt", "R.", "Pickle Call"),
        AT("ctorch._utils\n_rebuild_parameter_with_state\n(" PLAIN HOOKS "t", "R.", "Pickle Call"),
        AT("ctorch._utils\n_rebuild_parameter\n(" PLAIN "NNt", "R.", "Pickle Call"),
        AT("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" PLAIN
           "ctorch\nfloat32\nN\x89t",
           "R.", "Pickle Call"),
        AT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nSize\nctorch\nTensor\n)Nt", "R.",
           "Pickle Call"),
        AT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nSize\nctorch\nSize\n)Nt", "R.",
           "Pickle Call"),
        AT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_parameter\nctorch\n"
           "Size\n(" PLAIN HOOKS "tNt",
           "R.", "Pickle Call"),
        AT("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nctorch\n"
           "Tensor\n)Nt",
           "R.", "Pickle Call"),
    };

    ASSERT_ALL_STOP(cases, false);
}

#define QTENSOR(class)                                                      \
    "ctorch._utils\n_rebuild_qtensor\n(" STORAGE("torch\n" class "Storage", \
                                                 "\x10") "K\0K\x02K\x02\x86" ROWS
#define PER_TENSOR "(ctorch\nper_tensor_affine\nG\x3f\xf0\0\0\0\0\0\0K\x01t"
#define PER_AXIS(axis)                                                  \
    "(ctorch\nper_channel_affine\n" LINE("Double", "\x02", "K\x02\x85") \
        LINE("Long", "\x02", "K\x02\x85") axis "t"

TEST(quantizers_say_one_scale_or_one_for_each_slice)
{
    static const struct refused cases[] = {
        AT(QTENSOR("QInt8") "N" HOOKS "t", "R.", "Tensor Quantizer"),
        AT(QTENSOR("QInt8") "(ctorch\nper_tensor_affine\nK\x01K\x01t" HOOKS "t", "R.",
           "Tensor Quantizer"),
        AT(QTENSOR("QInt8") "(ctorch\nper_tensor_affine\nG\x3f\xf0\0\0\0\0\0\0Nt" HOOKS "t", "R.",
           "Tensor Quantizer"),
        AT(QTENSOR("QInt8") "(ctorch\nper_tensor_symmetric\nG\x3f\xf0\0\0\0\0\0\0K\x01t" HOOKS "t",
           "R.", "Tensor Quantizer"),
        AT(QTENSOR("QInt8") PER_AXIS("K\x02") HOOKS "t", "R.", "Tensor Quantizer"),
        AT(QTENSOR("QInt8") "(ctorch\nper_channel_affine\n" LINE("Double", "\x02", "K\x01\x85")
               LINE("Long", "\x02", "K\x02\x85") "K\0t" HOOKS "t",
           "R.", "Tensor Quantizer"),
        AT(QTENSOR("QInt8") PER_TENSOR HOOKS "Nt", "R.", "Pickle Call"),
        AT(QTENSOR("QInt8") PER_TENSOR "NNt", "R.", "Pickle Call"),
        AT(QTENSOR("Byte") PER_TENSOR HOOKS "t", "R.", "Tensor Dtype"),
    };

    ASSERT_ALL_STOP(cases, false);
}

#define SPARSE(layout_length, layout, data)                                             \
    "ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n" TEXT( \
        layout_length, layout) "\x85R(" data "tt"
#define COO(data) SPARSE("\x10", "torch.sparse_coo", data)
#define CSR(data) SPARSE("\x10", "torch.sparse_csr", data)
/* Of shape (rows, 3) in memory of 3 times rows. */
#define PAIRS(class, rows)                                                                         \
    REBUILD STORAGE("torch\n" class "Storage", "\x06") "K\0K" rows "K\x03\x86K\x03K\x01\x86" HOOKS \
                                                       "tR"
#define THREE(class) LINE(class, "\x03", "K\x03\x85")
#define TWO(class)   LINE(class, "\x02", "K\x02\x85")

TEST(sparse_tensors_have_parts_that_fit)
{
    static const struct refused cases[] = {
        AT("ctorch._utils\n_rebuild_sparse_tensor\n(N)t", "R.", "Pickle Call"),
        AT(SPARSE("\x0d", "torch.strided", PAIRS("Long", "\x02") THREE("Float") "K\x02K\x02\x86"),
           "R.", "Tensor Sparse"),
        /* Indices of 32 bits, another rank, another number of values. */
        AT(COO(PAIRS("Int", "\x02") THREE("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(COO(PAIRS("Long", "\x01") THREE("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(COO(PAIRS("Long", "\x02") TWO("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(COO(PAIRS("Long", "\x02") THREE("Float") ")"), "R.", "Tensor Sparse"),
        AT(COO(PAIRS("Long", "\x02") THREE("Float") "K\x02K\x02\x86K\x01"), "R.", "Tensor Sparse"),
        AT(COO(PAIRS("Long", "\x02") THREE("Float") HUGE("\x40") HUGE("\x40") "\x86"), "R.",
           "Tensor Shape"),
        /* Rows and columns of two types, or of floats; rows of another number. */
        AT(CSR(THREE("Long") TWO("Int") TWO("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(CSR(THREE("Int") TWO("Long") TWO("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(CSR(THREE("Float") TWO("Float") TWO("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(CSR(TWO("Long") TWO("Long") TWO("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(CSR(THREE("Long") TWO("Long") THREE("Float") "K\x02K\x02\x86"), "R.", "Tensor Sparse"),
        AT(CSR(THREE("Long") TWO("Long") TWO("Float") "K\x02\x85"), "R.", "Tensor Sparse"),
    };

    ASSERT_ALL_STOP(cases, false);
}
