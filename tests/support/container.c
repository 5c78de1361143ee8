/* zTensor 0.1 and 1.x files for tests. */
#include "container.h"

#include <stdlib.h>
#include <string.h>

#include "cbor_text.h"
#include "support.h"

void container_make_bytes(struct container *container, enum container_version version,
                          size_t data_length, const struct zt_buffer *manifest)
{
    struct zt_buffer file = {0};

    container_free(container);
    zt_buffer_append(&file, version == CONTAINER_ZT01 ? "ZTEN0001" : "ZTEN1000", 8);
    for (size_t i = file.length; data_length > 0 && i < CONTAINER_DATA; i++)
        zt_buffer_append(&file, "", 1);
    for (size_t i = 0; i < data_length; i++) {
        uint8_t byte = (uint8_t)(i % 251);

        zt_buffer_append(&file, &byte, 1);
    }
    container->manifest_offset = file.length;
    container->manifest_length = manifest->length;
    container->mark = ZT_NO_OFFSET;
    zt_buffer_append(&file, manifest->bytes, manifest->length);
    zt_buffer_append_le64(&file, manifest->length);
    if (version == CONTAINER_ZT1)
        zt_buffer_append(&file, "ZTEN1000", 8);
    assert_false(file.failed);
    container->bytes = file.bytes;
    container->length = file.length;
}

void container_make(struct container *container, enum container_version version, size_t data_length,
                    const char *manifest)
{
    struct zt_buffer buffer = {0};
    size_t mark = cbor_text_append(&buffer, manifest);

    container_make_bytes(container, version, data_length, &buffer);
    if (strpbrk(manifest, "^@") != NULL)
        container->mark = container->manifest_offset + mark;
    zt_buffer_free(&buffer);
}

void container_free(struct container *container)
{
    free(container->bytes);
    memset(container, 0, sizeof(*container));
}

enum zt_status container_open(const struct container *container, size_t length,
                              struct zt_model **out_model, struct zt_error *error)
{
    struct zt_source *source;
    /* A copy of exactly that length, so that a sanitizer sees a read past its end. */
    uint8_t *bytes = malloc(length > 0 ? length : 1);
    enum zt_status status;

    assert_non_null(bytes);
    memcpy(bytes, container->bytes, length);
    assert_int_equal(zt_source_from_memory(bytes, length, &source, error), ZT_OK);
    status = zt_model_open(source, out_model, error);
    zt_source_close(source);
    free(bytes);
    return status;
}

struct zt_model *container_model(const struct container *container)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    if (container_open(container, container->length, &model, &error) != ZT_OK)
        fail_msg("%s: %s", error.rule != NULL ? error.rule : "no rule", error.message);
    return model;
}

void container_assert_refused(const struct container *container, const char *rule, uint64_t offset)
{
    struct zt_model *model = NULL;
    struct zt_error error;

    zt_error_clear(&error);
    container_open(container, container->length, &model, &error);
    zt_model_free(model);
    if (error.rule == NULL || strcmp(error.rule, rule) != 0)
        print_error("expected rule %s: %s\n", rule, error.message);
    assert_failure(&error, ZT_INVALID, rule, offset);
    assert_null(model);
}
