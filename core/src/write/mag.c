/* .mag as its specification lays it out: header, metadata, tensor records, data at multiples of 64.
 *
 * Where the specification leaves a choice: the version is 1; the checksum is a CRC-32C from the
 * field after it to the last record; unused dimensions are 1; padding is zero. Every aux is 0,
 * except that a tensor whose shape ends in 1 has its rank in the second byte, as in magnetron's own
 * code, because it could not be told from a shorter shape otherwise. */
#include <assert.h>

#include "base/little_endian.h"
#include "cbor/cbor_read.h"
#include "write/planning.h"

#define VERSION      1
#define DIMENSIONS   6
#define ALIGNMENT    64
#define CHECKSUM_AT  8
#define COVERED_FROM 12
/* Length of a tensor record without the bytes of its key. */
#define RECORD_LENGTH 73

int mag_type(const struct zt_component *component)
{
    if (component->logical != ZT_LOGICAL_NONE)
        return -1;
    switch ((enum zt_dtype)component->dtype) {
    case ZT_F32:
        return 0;
    case ZT_F16:
        return 1;
    case ZT_BOOL:
        return 2;
    case ZT_I32:
        return 3;
    default:
        return -1;
    }
}

static void put_key(struct zt_buffer *buffer, struct zt_text key)
{
    zt_buffer_append_le32(buffer, (uint32_t)key.length);
    zt_buffer_append(buffer, key.bytes, key.length);
}

/* The projection has made the model's attributes a map of numbers. */
static enum zt_status put_metadata(struct zt_buffer *buffer, struct zt_text attributes,
                                   struct zt_error *error)
{
    struct zt_cbor_reader reader;
    struct zt_cbor_item map = {.value = 0};
    struct zt_cbor_item key;
    struct zt_cbor_item value;
    enum zt_status status = ZT_OK;

    zt_cbor_reader_init(&reader, attributes.bytes, attributes.length, 0, ZT_CBOR_ZT1, NULL);
    if (attributes.length > 0)
        status = zt_cbor_next(&reader, &map, error);
    zt_buffer_append_le32(buffer, (uint32_t)map.value);
    zt_buffer_append_le32(buffer, 0);
    for (uint64_t i = 0; status == ZT_OK && i < map.value; i++) {
        status = zt_cbor_next(&reader, &key, error);
        if (status == ZT_OK)
            status = zt_cbor_next(&reader, &value, error);
        if (status != ZT_OK)
            break;
        zt_buffer_append_le32(buffer, 0);
        zt_buffer_append_le64(buffer, value.value);
        put_key(buffer, (struct zt_text){(const char *)key.bytes, (size_t)key.value});
    }
    return status;
}

static void put_record(struct zt_buffer *buffer, const struct zt_model *model,
                       const struct zt_object *object, uint64_t offset)
{
    const struct zt_component *data = zt_object_components(model, object);
    const uint64_t *shape = zt_object_shape(model, object);
    bool ends_in_one = object->rank > 1 && shape[object->rank - 1] == 1;

    assert(object->rank <= DIMENSIONS && mag_type(data) >= 0); /* checked by the projection */
    put_key(buffer, zt_object_name(object));
    for (unsigned i = 0; i < DIMENSIONS; i++)
        zt_buffer_append_le64(buffer, i < object->rank ? shape[i] : 1);
    zt_buffer_append(buffer, &(uint8_t){(uint8_t)mag_type(data)}, 1);
    zt_buffer_append_le64(buffer, data->decoded_length);
    zt_buffer_append_le64(buffer, offset);
    zt_buffer_append_le32(buffer, ends_in_one ? (uint32_t)object->rank << 8 : 0);
}

static uint64_t records_length(const struct zt_model *model)
{
    uint64_t length = 0;

    for (uint32_t i = 0; i < model->object_count; i++)
        length += RECORD_LENGTH + model->objects[i].name_length;
    return length;
}

static enum zt_status put_records(struct zt_planning *planning, struct zt_buffer *head)
{
    const struct zt_model *model = planning->projection->model;
    uint64_t offset = head->length + records_length(model);
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++) {
        const struct zt_object *object = &model->objects[i];

        status = zt_planning_place(planning, &offset, object->first_component, ALIGNMENT);
        if (status == ZT_OK)
            put_record(head, model, object, offset);
        offset += zt_object_components(model, object)->decoded_length;
    }
    if (status == ZT_OK && head->failed)
        return zt_fail_memory(planning->error, "a file plan");
    assert(status != ZT_OK || offset >= head->length);
    return status;
}

static enum zt_status put_head(struct zt_planning *planning, struct zt_buffer *head)
{
    const struct zt_model *model = planning->projection->model;
    enum zt_status status;
    uint32_t checksum;

    zt_buffer_append(head, "MAG!", 4);
    zt_buffer_append_le32(head, VERSION);
    zt_buffer_append_le32(head, 0);
    zt_buffer_append_le32(head, model->object_count);
    status = put_metadata(head, model->attributes, planning->error);
    if (status == ZT_OK)
        status = put_records(planning, head);
    if (status != ZT_OK)
        return status;
    checksum = zt_crc32c(0, head->bytes + COVERED_FROM, head->length - COVERED_FROM);
    zt_store_le32(head->bytes + CHECKSUM_AT, checksum);
    return ZT_OK;
}

enum zt_status mag_plan(struct zt_planning *planning)
{
    const struct zt_model *model = planning->projection->model;
    struct zt_buffer head = {0};
    enum zt_status status = put_head(planning, &head);

    if (status == ZT_OK)
        status = zt_planning_add(planning, 0, &head);
    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = zt_planning_component(planning, zt_align(planning->plan->length, ALIGNMENT),
                                       model->objects[i].first_component);
    zt_buffer_free(&head);
    return status;
}
