/* NPY headers: a parser for the one kind of Python literal that they use. */
#include "numpy/npy_header.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/decimal.h"
#include "base/little_endian.h"
#include "model/layout.h"
#include "model/model_build.h"
#include "numpy/npy_dtype.h"

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

#define VERSION_AT 6
#define LENGTH_AT  8

struct parser {
    const char *text;
    size_t length;
    size_t position;
    size_t text_at; /* position of the text in the header */
    const struct npy_place *place;
    struct zt_error *error;
};

static uint64_t place_at(const struct npy_place *place, size_t position)
{
    return place->is_inflated ? place->offset : place->offset + position;
}

/* --- before the text --- */

/* The width in bytes of the length field, which depends on the version. */
static unsigned length_width(const uint8_t *bytes)
{
    return bytes[VERSION_AT] == 1 ? 2 : 4;
}

enum zt_status npy_header_measure(const uint8_t *bytes, uint64_t available_bytes,
                                  const struct npy_place *place, uint32_t *out_length,
                                  struct zt_error *error)
{
    uint64_t length;

    if (place->is_file && available_bytes < LENGTH_AT)
        return zt_fail(error, ZT_INVALID, NPY_RULE_MAGIC, 0, CUT_OFF "a file of %" PRIu64 " bytes",
                       available_bytes);
    if (available_bytes < LENGTH_AT || memcmp(bytes, magic, sizeof(magic)) != 0)
        return zt_fail(error, ZT_INVALID, NPY_RULE_MAGIC, place_at(place, 0),
                       "the bytes do not begin with NPY's magic");
    if (bytes[VERSION_AT] < 1 || bytes[VERSION_AT] > 3 || bytes[VERSION_AT + 1] != 0)
        return zt_fail(error, ZT_INVALID, "npy §Header Version", place_at(place, VERSION_AT),
                       "NPY version %u.%u, known are 1.0, 2.0 and 3.0", bytes[VERSION_AT],
                       bytes[VERSION_AT + 1]);
    length = LENGTH_AT + length_width(bytes);
    if (available_bytes < length)
        return zt_fail(error, ZT_INVALID, "npy §Header HeaderBounds", place_at(place, LENGTH_AT),
                       "%sthe header ends before its length", place->is_file ? CUT_OFF : "");
    length += length_width(bytes) == 2 ? zt_load_le16(bytes + LENGTH_AT)
                                       : zt_load_le32(bytes + LENGTH_AT);
    if (length > available_bytes)
        return zt_fail(error, ZT_INVALID, "npy §Header HeaderBounds", place_at(place, LENGTH_AT),
                       "%sa header of %" PRIu64 " bytes where there are %" PRIu64,
                       place->is_file ? CUT_OFF : "", length, available_bytes);
    if (length > NPY_HEADER_MAX)
        return zt_fail(error, ZT_INVALID, "npy §Header HeaderTooLarge", place_at(place, LENGTH_AT),
                       "a header of %" PRIu64 " bytes, more than 64 KiB", length);
    *out_length = (uint32_t)length;
    return ZT_OK;
}

/* --- the literal --- */

static enum zt_status fail_at(const struct parser *parser, const char *rule, size_t position,
                              const char *message)
{
    return zt_fail(parser->error, ZT_INVALID, rule,
                   place_at(parser->place, parser->text_at + position), "%s", message);
}

static enum zt_status fail_syntax(const struct parser *parser, const char *message)
{
    return fail_at(parser, "npy §Header Syntax", parser->position, message);
}

static enum zt_status fail_field(const struct parser *parser, size_t position, const char *message)
{
    return fail_at(parser, "npy §Header Fields", position, message);
}

/* The next character that is not a space; 0 at the end. */
static char peek(struct parser *parser)
{
    while (parser->position < parser->length &&
           strchr(" \t\r\n\f", parser->text[parser->position]) != NULL &&
           parser->text[parser->position] != '\0')
        parser->position++;
    return parser->position < parser->length ? parser->text[parser->position] : '\0';
}

static bool take(struct parser *parser, char wanted)
{
    if (peek(parser) != wanted)
        return false;
    parser->position++;
    return true;
}

/* Python 2 writes a u before a string of Unicode. */
static enum zt_status read_text(struct parser *parser, struct zt_text *out_text)
{
    char quote = peek(parser);
    size_t begin;
    size_t end;

    if ((quote == 'u' || quote == 'U') && parser->position + 1 < parser->length)
        quote = parser->text[++parser->position];
    begin = parser->position + 1;
    if (quote != '\'' && quote != '"')
        return fail_syntax(parser, "a string is missing here");
    end = begin;
    while (end < parser->length && parser->text[end] != quote) {
        if (parser->text[end] == '\\' || parser->text[end] == '\n')
            return fail_syntax(parser, "a string with escapes or line ends");
        end++;
    }
    if (end == parser->length)
        return fail_syntax(parser, "a string does not end");
    *out_text = (struct zt_text){parser->text + begin, end - begin};
    parser->position = end + 1;
    assert(parser->position <= parser->length);
    return ZT_OK;
}

static bool take_word(struct parser *parser, const char *word)
{
    size_t length = strlen(word);

    peek(parser);
    if (parser->length - parser->position < length ||
        memcmp(parser->text + parser->position, word, length) != 0)
        return false;
    parser->position += length;
    return true;
}

static enum zt_status read_whole_number(struct parser *parser, uint64_t *out_value)
{
    uint64_t value;
    char first = peek(parser);
    size_t begin = parser->position;
    struct zt_text digits = {parser->text + begin, parser->length - begin};

    digits.length = zt_decimal_length(digits);
    if (digits.length == 0)
        return fail_field(parser, begin, "a dimension is not a whole number");
    if (!zt_decimal_read(digits, UINT64_MAX, &value))
        return fail_at(parser, "npy §Header Shape", begin, "a dimension does not fit in 64 bits");
    if (first == '0' && digits.length > 1)
        return fail_at(parser, "npy §Header Syntax", begin, "a number with leading zeros");
    parser->position += digits.length;
    /* Python 2's long integers. */
    if (parser->position < parser->length && parser->text[parser->position] == 'L')
        parser->position++;
    *out_value = value;
    return ZT_OK;
}

/* --- dtypes --- */

static enum zt_status fail_dtype(const struct parser *parser, size_t position, struct zt_text descr)
{
    bool is_plain = descr.length <= 32;

    for (size_t i = 0; i < descr.length && is_plain; i++)
        is_plain = descr.bytes[i] >= ' ' && descr.bytes[i] <= '~';
    return zt_fail(parser->error, ZT_UNSUPPORTED, NULL,
                   place_at(parser->place, parser->text_at + position),
                   "the dtype %.*s is not supported", is_plain ? (int)descr.length : 9,
                   is_plain ? descr.bytes : "of the array");
}

static enum zt_status read_descr(struct parser *parser, struct npy_header *header)
{
    struct zt_text descr = {NULL, 0};
    char first = peek(parser);
    size_t begin = parser->position;
    struct npy_dtype dtype;
    enum zt_status status;

    if (first == '[' || first == '(')
        return zt_fail(parser->error, ZT_UNSUPPORTED, NULL,
                       place_at(parser->place, parser->text_at + begin),
                       "a structured dtype is not supported");
    status = read_text(parser, &descr);
    if (status != ZT_OK)
        return status;
    if (!npy_dtype_read(descr, &dtype))
        return fail_dtype(parser, begin, descr);
    header->dtype = dtype.dtype;
    header->logical = dtype.logical;
    header->is_big_endian = dtype.is_big_endian;
    return ZT_OK;
}

/* --- the other fields --- */

static enum zt_status read_order(struct parser *parser, struct npy_header *header)
{
    if (take_word(parser, "True"))
        header->is_fortran = true;
    else if (take_word(parser, "False"))
        header->is_fortran = false;
    else
        return fail_field(parser, parser->position, "fortran_order is neither True nor False");
    return ZT_OK;
}

/* Reads a tuple: "()", "(3,)", "(3, 4)" or "(3, 4,)". "(3)" is a number in Python and is
 * rejected. */
static enum zt_status read_shape(struct parser *parser, struct npy_header *header)
{
    bool has_comma = true;

    header->rank = 0;
    if (!take(parser, '('))
        return fail_field(parser, parser->position, "the shape is not a tuple");
    while (!take(parser, ')')) {
        enum zt_status status;

        if (!has_comma)
            return fail_syntax(parser, "a comma or ) is missing here");
        if (header->rank == ZT_RANK_MAX)
            return fail_at(parser, "npy §Header Shape", parser->position,
                           "more than 64 dimensions");
        status = read_whole_number(parser, &header->shape[header->rank]);
        if (status != ZT_OK)
            return status;
        header->rank++;
        has_comma = take(parser, ',');
    }
    if (header->rank == 1 && !has_comma)
        return fail_field(parser, parser->position, "the shape is a number, not a tuple");
    return ZT_OK;
}

static const struct {
    const char *key;
    enum zt_status (*read)(struct parser *parser, struct npy_header *header);
} fields[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};

#define FIELD_COUNT (sizeof(fields) / sizeof(*fields))
#define FIELDS_ALL  ((1u << FIELD_COUNT) - 1)

static enum zt_status read_field(struct parser *parser, struct npy_header *header, unsigned *seen)
{
    struct zt_text key = {NULL, 0};
    size_t number = 0;
    size_t begin;
    enum zt_status status;

    peek(parser);
    begin = parser->position;
    status = read_text(parser, &key);
    if (status != ZT_OK)
        return status;
    while (number < FIELD_COUNT && !zt_text_is(key, fields[number].key))
        number++;
    if (number == FIELD_COUNT)
        return fail_field(parser, begin, "a key that is not descr, fortran_order or shape");
    if (*seen & 1u << number)
        return fail_field(parser, begin, "a key occurs twice");
    *seen |= 1u << number;
    if (!take(parser, ':'))
        return fail_syntax(parser, "a colon is missing here");
    return fields[number].read(parser, header);
}

static enum zt_status read_dict(struct parser *parser, struct npy_header *header)
{
    bool has_comma = true;
    unsigned seen = 0;

    if (!take(parser, '{'))
        return fail_syntax(parser, "the header is not a dictionary");
    while (!take(parser, '}')) {
        enum zt_status status;

        if (!has_comma)
            return fail_syntax(parser, "a comma or } is missing here");
        status = read_field(parser, header, &seen);
        if (status != ZT_OK)
            return status;
        has_comma = take(parser, ',');
    }
    if (seen != FIELDS_ALL)
        return fail_field(parser, 0, "descr, fortran_order or shape is missing");
    peek(parser);
    if (parser->position < parser->length)
        return fail_syntax(parser, "bytes follow the dictionary");
    return ZT_OK;
}

enum zt_status npy_header_read(const uint8_t *bytes, uint32_t length, const struct npy_place *place,
                               struct npy_header *out_header, struct zt_error *error)
{
    size_t text_at = LENGTH_AT + length_width(bytes);
    struct parser parser = {.text = (const char *)bytes + text_at,
                            .length = length - text_at,
                            .text_at = text_at,
                            .place = place,
                            .error = error};
    struct npy_header header = {.length_bytes = length};
    uint64_t elements;
    enum zt_status status;

    assert(length >= NPY_PREAMBLE_MIN && length <= NPY_HEADER_MAX);
    /* The file may have changed since the header was measured. */
    if (length < text_at)
        return zt_fail(error, ZT_INVALID, "npy §Header HeaderBounds", place_at(place, LENGTH_AT),
                       "the header ends before its length");
    status = read_dict(&parser, &header);
    assert(parser.position <= parser.length && header.rank <= ZT_RANK_MAX);
    if (status != ZT_OK)
        return status;
    if (!zt_shape_product(header.shape, header.rank, &elements) ||
        zt_element_bytes(header.dtype, header.logical, elements, &header.data_bytes) != ZT_OK ||
        header.data_bytes > UINT64_MAX - length)
        return fail_at(&parser, "npy §Header Shape", 0, "the array's size does not fit in 64 bits");
    *out_header = header;
    return ZT_OK;
}

/* --- into the model --- */

enum zt_status npy_array_add(const struct npy_header *header, struct zt_text name, uint64_t offset,
                             struct zt_builder *builder, struct zt_error *error)
{
    struct zt_tensor tensor = {.name = name,
                               .rank = header->rank,
                               .dtype = header->dtype,
                               .logical = header->logical,
                               .offset = offset,
                               .length = header->data_bytes};
    struct zt_arrangement *arrangement;
    struct zt_component *component;
    void *held;
    enum zt_status status;

    assert(header->rank <= ZT_RANK_MAX);
    memcpy(tensor.shape, header->shape, header->rank * sizeof(*header->shape));
    status = zt_tensor_add(builder, &tensor, error);
    if (status == ZT_OK)
        status = zt_arena_take(&builder->model->storage->arena, sizeof(*arrangement), &held, error);
    if (status != ZT_OK)
        return status;
    arrangement = held;
    *arrangement = (struct zt_arrangement){
        .lead_bytes = header->length_bytes, .fortran = header->is_fortran, .rank = header->rank};
    component = zt_last_component(builder);
    component->arrangement = arrangement;
    component->big_endian = header->is_big_endian;
    return ZT_OK;
}

void npy_attach_shapes(struct zt_model *model)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        /* npy_array_add allocated it in the arena; it is const for everyone else. */
        struct zt_arrangement *arrangement =
            (struct zt_arrangement *)(uintptr_t)zt_object_components(model, object)->arrangement;

        assert(arrangement != NULL && arrangement->rank == object->rank);
        arrangement->shape = zt_object_shape(model, object);
    }
}
