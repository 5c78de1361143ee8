/* tokenizer.json: byte-level BPE without merges, so that each byte is a token and its value is the
 * token's number. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "repository.h"

static void put(struct zt_buffer *file, const char *text)
{
    zt_buffer_append(file, text, strlen(text));
}

/* Byte-level tokenizers write a byte as a visible character: printable ASCII and most of Latin-1
 * as themselves, all others as the characters from U+0100 on. */
static bool is_itself(unsigned byte)
{
    return (byte > ' ' && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

static void put_character(struct zt_buffer *file, unsigned character)
{
    char utf8[2];

    assert(character > ' ' && character < 0x800);
    if (character == '"' || character == '\\')
        put(file, "\\");
    if (character < 0x80) {
        utf8[0] = (char)character;
        zt_buffer_append(file, utf8, 1);
        return;
    }
    utf8[0] = (char)(0xc0 | character >> 6);
    utf8[1] = (char)(0x80 | (character & 0x3f));
    zt_buffer_append(file, utf8, 2);
}

static void put_vocabulary(struct zt_buffer *file)
{
    unsigned replaced = 0;

    for (unsigned byte = 0; byte < REPOSITORY_BYTES; byte++) {
        char number[16];

        put(file, byte == 0 ? "      \"" : ",\n      \"");
        put_character(file, is_itself(byte) ? byte : 0x100 + replaced++);
        snprintf(number, sizeof(number), "\": %u", byte);
        put(file, number);
    }
    assert(replaced == 68);
}

static void put_special(struct zt_buffer *file, unsigned number, const char *name)
{
    char entry[256];
    int length = snprintf(entry, sizeof(entry),
                          "    {\"id\": %u, \"content\": \"%s\", \"single_word\": false, "
                          "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                          "\"special\": true}",
                          number, name);

    assert(length > 0 && (size_t)length < sizeof(entry));
    put(file, entry);
}

void tokenizer_append(struct zt_buffer *file)
{
    assert(file->length == 0);
    put(file, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
              "  \"added_tokens\": [\n");
    put_special(file, REPOSITORY_BEGIN, "<s>");
    put(file, ",\n");
    put_special(file, REPOSITORY_END, "</s>");
    put(file,
        "\n  ],\n  \"normalizer\": null,\n"
        "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
        "\"trim_offsets\": true, \"use_regex\": true},\n"
        "  \"post_processor\": null,\n"
        "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
        "\"trim_offsets\": true, \"use_regex\": true},\n"
        "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
        "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
        "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"vocab\": {\n");
    put_vocabulary(file);
    put(file, "\n    },\n    \"merges\": []\n  }\n}\n");
}
