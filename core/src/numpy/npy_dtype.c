/* Reads NumPy's names of dtypes: a byte order with a kind and a size or with a letter, or a word.
 * C's types have the sizes of 64-bit Linux. */
#include "numpy/npy_dtype.h"

#include <string.h>

#include "base/decimal.h"
#include "zt/dtype.h"

/* --- a kind and a size in bytes --- */

static const struct sized_kind {
    char kind;
    uint8_t size;
    enum zt_dtype dtype;
    enum zt_logical logical;
} sized_kinds[] = {
    {'f', 8, ZT_F64, ZT_LOGICAL_NONE},      {'f', 4, ZT_F32, ZT_LOGICAL_NONE},
    {'f', 2, ZT_F16, ZT_LOGICAL_NONE},      {'i', 8, ZT_I64, ZT_LOGICAL_NONE},
    {'i', 4, ZT_I32, ZT_LOGICAL_NONE},      {'i', 2, ZT_I16, ZT_LOGICAL_NONE},
    {'i', 1, ZT_I8, ZT_LOGICAL_NONE},       {'u', 8, ZT_U64, ZT_LOGICAL_NONE},
    {'u', 4, ZT_U32, ZT_LOGICAL_NONE},      {'u', 2, ZT_U16, ZT_LOGICAL_NONE},
    {'u', 1, ZT_U8, ZT_LOGICAL_NONE},       {'b', 1, ZT_BOOL, ZT_LOGICAL_NONE},
    {'c', 8, ZT_F32, ZT_LOGICAL_COMPLEX64}, {'c', 16, ZT_F64, ZT_LOGICAL_COMPLEX128},
};

/* NumPy allows zeros and blanks before the size. */
static bool read_size(struct zt_text digits, uint64_t *out_size)
{
    while (digits.length > 1 && digits.bytes[0] == ' ') {
        digits.bytes++;
        digits.length--;
    }
    return zt_decimal_read(digits, UINT64_MAX, out_size);
}

static bool read_sized(struct zt_text text, struct npy_dtype *out_dtype)
{
    uint64_t size;

    if (text.length < 2 || !read_size((struct zt_text){text.bytes + 1, text.length - 1}, &size))
        return false;
    for (size_t i = 0; i < sizeof(sized_kinds) / sizeof(sized_kinds[0]); i++) {
        const struct sized_kind *sized = &sized_kinds[i];

        if (sized->kind != text.bytes[0] || sized->size != size)
            continue;
        *out_dtype = (struct npy_dtype){.dtype = sized->dtype, .logical = sized->logical};
        return true;
    }
    return false;
}

/* --- letters and words --- */

struct alias {
    const char *name;
    const char *sized;
};

/* Letters may follow a byte order; words may not. */
static const struct alias letters[] = {
    {"?", "b1"}, {"b", "i1"}, {"B", "u1"}, {"h", "i2"}, {"H", "u2"}, {"i", "i4"},  {"I", "u4"},
    {"l", "i8"}, {"L", "u8"}, {"q", "i8"}, {"Q", "u8"}, {"p", "i8"}, {"P", "u8"},  {"n", "i8"},
    {"N", "u8"}, {"e", "f2"}, {"f", "f4"}, {"d", "f8"}, {"F", "c8"}, {"D", "c16"},
};

static const struct alias words[] = {
    {"bool", "b1"},          {"bool_", "b1"},       {"bool8", "b1"},     {"int8", "i1"},
    {"byte", "i1"},          {"uint8", "u1"},       {"ubyte", "u1"},     {"int16", "i2"},
    {"short", "i2"},         {"uint16", "u2"},      {"ushort", "u2"},    {"int32", "i4"},
    {"intc", "i4"},          {"uint32", "u4"},      {"uintc", "u4"},     {"int64", "i8"},
    {"int", "i8"},           {"int_", "i8"},        {"intp", "i8"},      {"long", "i8"},
    {"longlong", "i8"},      {"uint64", "u8"},      {"uint", "u8"},      {"uintp", "u8"},
    {"ulong", "u8"},         {"ulonglong", "u8"},   {"float16", "f2"},   {"half", "f2"},
    {"float32", "f4"},       {"single", "f4"},      {"float64", "f8"},   {"double", "f8"},
    {"float", "f8"},         {"float_", "f8"},      {"complex64", "c8"}, {"csingle", "c8"},
    {"singlecomplex", "c8"}, {"complex128", "c16"}, {"cdouble", "c16"},  {"cfloat", "c16"},
    {"complex", "c16"},      {"complex_", "c16"},
};

static bool read_alias(const struct alias *aliases, size_t count, struct zt_text text,
                       struct npy_dtype *out_dtype)
{
    for (size_t i = 0; i < count; i++)
        if (zt_text_is(text, aliases[i].name))
            return read_sized(zt_text_from(aliases[i].sized), out_dtype);
    return false;
}

bool npy_dtype_read(struct zt_text descr, struct npy_dtype *out_dtype)
{
    const bool has_order =
        descr.length > 0 && descr.bytes[0] != '\0' && strchr("<>=|", descr.bytes[0]) != NULL;
    const struct zt_text text = {descr.bytes + has_order, descr.length - has_order};
    bool found = read_sized(text, out_dtype) ||
                 read_alias(letters, sizeof(letters) / sizeof(letters[0]), text, out_dtype);

    if (!found && !has_order)
        found = read_alias(words, sizeof(words) / sizeof(words[0]), text, out_dtype);
    if (found)
        out_dtype->is_big_endian =
            has_order && descr.bytes[0] == '>' && zt_dtype_width(out_dtype->dtype) > 1;
    return found;
}
