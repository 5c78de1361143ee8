/* Attributes are CBOR: what is shown is their JSON, taken apart at the outermost level. */
#include "commands/attribute_listing.h"

#include <string.h>

#include "base/memory.h"
#include "terminal/plain_text.h"
#include "zt/attributes.h"

#define NAME_WIDTH_MAX  40
#define VALUE_WIDTH_MAX 60
/* A model has dozens. */
#define SHOWN_MAX 200

struct attribute {
    struct zt_text name;
    struct zt_text value;
};

static void append(void *buffer, const char *text, size_t length)
{
    zt_buffer_append(buffer, text, length);
}

/* The length of the JSON value that text begins with. The JSON is compact and valid. */
static size_t value_length(struct zt_text text)
{
    bool in_string = false;
    size_t depth = 0;
    size_t at = 0;

    for (; at < text.length; at++) {
        const char letter = text.bytes[at];

        if (in_string) {
            in_string = letter != '"';
            at += letter == '\\';
        } else if (letter == '"') {
            in_string = true;
        } else if (letter == '{' || letter == '[') {
            depth++;
        } else if (depth == 0 &&
                   (letter == ',' || letter == ':' || letter == '}' || letter == ']')) {
            break;
        } else if (letter == '}' || letter == ']') {
            depth--;
        }
    }
    return at < text.length ? at : text.length;
}

static struct zt_text take(struct zt_text *rest)
{
    const size_t length = value_length(*rest);
    struct zt_text value = {rest->bytes, length};

    rest->bytes += length;
    rest->length -= length;
    if (rest->length > 0) {
        rest->bytes++;
        rest->length--;
    }
    /* Text is shown without its quotes. */
    if (value.length >= 2 && value.bytes[0] == '"') {
        value.bytes++;
        value.length -= 2;
    }
    return value;
}

/* False after the last one. rest begins behind the brace. */
static bool take_attribute(struct zt_text *rest, struct attribute *out_attribute)
{
    if (rest->length < 2)
        return false;
    out_attribute->name = take(rest);
    out_attribute->value = take(rest);
    return true;
}

static size_t widest_name(struct zt_text rest)
{
    struct attribute attribute;
    size_t widest = strlen("ATTRIBUTE");

    for (unsigned i = 0; i < SHOWN_MAX && take_attribute(&rest, &attribute); i++) {
        const size_t width = plain_text_write_short(NULL, attribute.name.bytes,
                                                    attribute.name.length, NAME_WIDTH_MAX);

        widest = width > widest ? width : widest;
    }
    return widest;
}

static void print_attributes(struct zt_text rest, FILE *stream)
{
    const size_t width = widest_name(rest);
    struct attribute attribute;
    unsigned count = 0;

    if (rest.length < 2)
        return;
    fprintf(stream, "\n%-*s  VALUE\n", (int)width, "ATTRIBUTE");
    for (; take_attribute(&rest, &attribute); count++) {
        size_t used;

        if (count >= SHOWN_MAX)
            continue;
        used = plain_text_write_short(stream, attribute.name.bytes, attribute.name.length,
                                      NAME_WIDTH_MAX);
        fprintf(stream, "%*s", (int)(width - used + 2), "");
        plain_text_write_short(stream, attribute.value.bytes, attribute.value.length,
                               VALUE_WIDTH_MAX);
        fputc('\n', stream);
    }
    if (count > SHOWN_MAX)
        fprintf(stream, "… and %u more, which --json shows\n", count - SHOWN_MAX);
    fputc('\n', stream);
}

void attribute_listing_print(const struct zt_model *model, FILE *stream)
{
    const struct zt_text value = {(const char *)model->attributes.bytes, model->attributes.length};
    struct zt_buffer json = {0};
    struct zt_error error;

    if (value.length == 0)
        return;
    if (zt_attributes_write_json(value, append, &json, &error) == ZT_OK && !json.failed &&
        json.length > 2 && json.bytes[0] == '{')
        print_attributes((struct zt_text){(const char *)json.bytes + 1, json.length - 1}, stream);
    zt_buffer_free(&json);
}
