/* The XML reader: bounded whatever it is given, and what it visits is a tree: children before their
 * parents, everything below one root, which comes last. */
#include "fuzz.h"

#include <string.h>

#include "input/xml_read.h"
#include "zt/utf8.h"

struct visits {
    size_t count;
    bool root_ended;
};

static bool visit(void *context, const char *path, struct zt_text text)
{
    struct visits *visits = context;
    const size_t length = strlen(path);
    unsigned depth = 1;

    FUZZ_ASSERT(!visits->root_ended);
    FUZZ_ASSERT(length > 0 && length <= XML_PATH_MAX);
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/';
    FUZZ_ASSERT(depth <= XML_DEPTH_MAX);
    FUZZ_ASSERT(text.length <= XML_TEXT_MAX);
    FUZZ_ASSERT(zt_utf8_valid(path, length));
    if (text.bytes != NULL) {
        FUZZ_ASSERT(strlen(text.bytes) == text.length);
        FUZZ_ASSERT(zt_utf8_valid(text.bytes, text.length));
    }
    visits->root_ended = depth == 1;
    visits->count++;
    return visits->count < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct visits visits = {.count = 0};
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = xml_read((struct zt_text){(const char *)bytes, length}, visit, &visits, &error);
    FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID);
    FUZZ_ASSERT(error.status == status);
    FUZZ_ASSERT(status != ZT_OK || visits.root_ended);
    return 0;
}
