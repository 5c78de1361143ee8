/* Digest fields (RFC 9530), and the structured fields under them; a digest survives being written
 * and read again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/digest_fields.h"
#include "http/fields/structured.h"

static void walk(const char *text)
{
    struct structured_reader reader;
    struct structured_member member;
    enum structured_answer answer;

    structured_begin(&reader, text);
    while ((answer = structured_next(&reader, &member)) == STRUCTURED_MEMBER) {
        FUZZ_ASSERT(member.key.length > 0);
        FUZZ_ASSERT(member.key.bytes >= text &&
                    member.key.bytes + member.key.length <= text + strlen(text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = fuzz_string(bytes, length);
    struct digest_field field;
    struct digest_field again;
    char formatted[DIGEST_FIELD_SIZE];

    walk(text);
    FUZZ_ASSERT(digest_field_wants_sha256(text) >= 0);
    if (digest_field_parse(text, &field) && field.has_sha256) {
        digest_field_format(field.sha256, formatted);
        FUZZ_ASSERT(digest_field_parse(formatted, &again) && again.has_sha256 && !again.has_sha512);
        FUZZ_ASSERT(memcmp(again.sha256, field.sha256, 32) == 0);
    }
    free(text);
    return 0;
}
