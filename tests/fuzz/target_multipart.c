/* The list of parts with which a client completes a multipart upload: what is accepted is in order
 * and within bounds. And the lines that keep parts over a restart: what is read prints as the same
 * line again. */
#include "fuzz.h"

#include <string.h>

#include "s3/write/s3api_complete_xml.h"
#include "s3/write/s3api_records.h"

static void check_list(struct zt_text text)
{
    struct s3api_named_parts parts;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = s3api_complete_xml_read(text, &parts, &error);
    FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID || status == ZT_ARGUMENT);
    FUZZ_ASSERT(error.status == status && parts.count <= S3API_PARTS_MAX);
    FUZZ_ASSERT(status != ZT_OK || parts.count > 0);
    for (size_t i = 0; i < parts.count; i++) {
        const struct s3api_named_part *part = &parts.parts[i];

        FUZZ_ASSERT(part->number >= 1 && part->number <= S3API_PARTS_MAX);
        FUZZ_ASSERT(i == 0 || part->number > part[-1].number);
        FUZZ_ASSERT(part->etag[0] != '\0' && strlen(part->etag) < sizeof(part->etag));
    }
    s3api_named_parts_free(&parts);
}

static void check_record(struct zt_text text)
{
    struct s3api_record record;
    struct s3api_record again;
    char line[S3API_RECORD_MAX];
    const size_t length = s3api_record_read(text, &record);

    if (length == 0)
        return;
    FUZZ_ASSERT(length <= text.length && text.bytes[length - 1] == '\n');
    FUZZ_ASSERT(
        s3api_record_read((struct zt_text){line, s3api_record_print(&record, line)}, &again) > 0);
    FUZZ_ASSERT(again.kind == record.kind && again.unit == record.unit);
    FUZZ_ASSERT(again.part.number == record.part.number && again.part.xxh3 == record.part.xxh3 &&
                again.part.offset == record.part.offset && again.part.length == record.part.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const struct zt_text text = {(const char *)bytes, length};

    check_list(text);
    check_record(text);
    return 0;
}
