/* zTensor 2's content digest ("zt.content/1"), which does not depend on the layout of a model's
 * file.
 *
 * It is the digest of a CBOR array of the scheme's name and the objects, without the places of
 * their bytes. */
#include <assert.h>
#include <string.h>

#include "model/zt2_encode.h"
#include "zt/verify.h"

static enum zt_status check_digests(const struct zt_model *model, struct zt_error *error)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *parts = zt_object_components(model, object);

        for (uint32_t j = 0; j < object->component_count; j++) {
            if (parts[j].digest != NULL)
                continue;
            zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                    "no content digest: a part states no digest");
            zt_error_at(error, zt_object_name(object), zt_component_name(&parts[j]));
            return ZT_ARGUMENT;
        }
    }
    return ZT_OK;
}

static enum zt_status hash_piece(void *context, const void *bytes, size_t length,
                                 struct zt_error *error)
{
    (void)error;
    zt_hasher_update(context, bytes, length);
    return ZT_OK;
}

static enum zt_status hash_head(struct zt_hasher *hasher)
{
    struct zt_buffer head = {0};
    enum zt_status status;

    zt_cbor_put_array(&head, 2);
    zt_cbor_put_string(&head, "zt.content/1");
    if (!head.failed)
        zt_hasher_update(hasher, head.bytes, head.length);
    status = head.failed ? ZT_NO_MEMORY : ZT_OK;
    zt_buffer_free(&head);
    return status;
}

enum zt_status zt_content_digest(const struct zt_model *model, enum zt_digest_algorithm algorithm,
                                 struct zt_digest *out_digest, struct zt_error *error)
{
    struct zt_hasher *hasher = NULL;
    enum zt_status status;

    if (model->format != ZT_FORMAT_ZT2)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "only zTensor 2 has content digests");
    if (algorithm != ZT_DIGEST_SHA256 && algorithm != ZT_DIGEST_XXH3)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "a content digest uses sha256 or xxh3");
    if (check_digests(model, error) != ZT_OK)
        return ZT_ARGUMENT;
    status = zt_hasher_new(algorithm, &hasher);
    if (status == ZT_OK)
        status = hash_head(hasher);
    if (status == ZT_OK)
        status = zt2_encode_objects(model, ZT2_VIEW_CONTENT, &(struct zt_sink){hash_piece, hasher},
                                    error);
    if (status == ZT_OK)
        zt_hasher_finish(hasher, out_digest);
    else
        zt_fail_memory(error, "the content digest");
    assert(status != ZT_OK || out_digest->algorithm == algorithm);
    zt_hasher_free(hasher);
    return status;
}
