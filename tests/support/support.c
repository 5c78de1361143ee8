/* What every unit test may use. */
#include "support.h"

#include <string.h>

#include "zt/attributes.h"

void json_quotes(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            *text = '"';
}

struct zt_source *memory_source(const void *bytes, size_t length)
{
    struct zt_source *source = NULL;

    assert_ok(zt_source_from_memory(bytes, length, &source, NULL));
    return source;
}

void assert_text(const char *bytes, size_t length, const char *wanted)
{
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(bytes, wanted, length);
}

static void append_json(void *context, const char *text, size_t length)
{
    strncat(context, text, length);
}

void assert_json(struct zt_text attributes, const char *wanted)
{
    char json[4096] = "";

    assert_ok(zt_attributes_write_json(attributes, append_json, json, NULL));
    assert_string_equal(json, wanted);
}
