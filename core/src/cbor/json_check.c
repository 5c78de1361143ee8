/* A JSON text is read to its end, and nothing is kept of it. */
#include <stdlib.h>

#include "cbor/json_read.h"
#include "zt/json_text.h"

static const struct zt_json_rules rules = {"JSON §2 Grammar", "JSON §9 Depth"};

static enum zt_status check_text(char *bytes, size_t length, struct zt_error *error)
{
    struct zt_json_reader reader = {
        .bytes = bytes, .length = length, .takes_non_finite = true, .rules = &rules};
    enum zt_status status = zt_json_skip(&reader, error);

    return status == ZT_OK ? zt_json_end(&reader, error) : status;
}

enum zt_status zt_json_check(struct zt_source *source, struct zt_error *error)
{
    const uint64_t size = zt_source_size(source);
    enum zt_status status;
    char *bytes;

    if (size > ZT_JSON_TEXT_MAX)
        return zt_fail(error, ZT_LIMIT, rules.syntax, ZT_NO_OFFSET,
                       "a JSON text of more than %llu bytes", (unsigned long long)ZT_JSON_TEXT_MAX);
    bytes = malloc((size_t)size + 1);
    if (bytes == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a JSON text");
    status = zt_source_read_at(source, 0, bytes, (size_t)size, error);
    if (status == ZT_OK)
        status = check_text(bytes, (size_t)size, error);
    free(bytes);
    return status;
}
