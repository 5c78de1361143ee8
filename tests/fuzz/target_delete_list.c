/* The list of keys that a client deletes with one request: what is accepted is within bounds, and
 * every object has a key. */
#include "fuzz.h"

#include <string.h>

#include "s3/write/s3api_delete_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct s3api_delete_list list = {.objects = NULL};
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = s3api_delete_xml_read((struct zt_text){(const char *)bytes, length}, &list, &error);
    FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID);
    FUZZ_ASSERT(error.status == status && list.count <= S3API_DELETE_MAX);
    FUZZ_ASSERT(status != ZT_OK || list.count > 0);
    for (size_t i = 0; status == ZT_OK && i < list.count; i++) {
        const struct s3api_named_object *object = &list.objects[i];

        FUZZ_ASSERT(object->key != NULL && object->key[0] != '\0');
        FUZZ_ASSERT(strlen(object->key) < length);
    }
    s3api_delete_list_free(&list);
    FUZZ_ASSERT(list.count == 0);
    return 0;
}
