/* Lists the objects of any tensor file, then reads the first raw f32 component from the mapped file
 * (docs/library.md). */
#include <inttypes.h>
#include <stdio.h>

#include <zt/decode.h>

static void list_object(const struct zt_model *model, const struct zt_object *object)
{
    printf("%.*s %.*s [", (int)object->name_length, object->name, (int)object->format_length,
           object->format);
    for (unsigned i = 0; i < object->rank; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "", zt_object_shape(model, object)[i]);
    puts("]");
}

int main(int count, char **arguments)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    struct zt_error error;
    zt_error_clear(&error);

    if (count != 2 || zt_source_open_file(arguments[1], &source, &error) != ZT_OK ||
        zt_model_open(source, &model, &error) != ZT_OK) {
        fprintf(stderr, "%s [%s]\n", error.message,
                error.rule != NULL ? error.rule : zt_status_name(error.status));
        zt_source_close(source);
        return 1;
    }
    for (uint32_t i = 0; i < model->object_count; i++)
        list_object(model, &model->objects[i]);
    const uint8_t *bytes = zt_source_map(source);
    for (uint32_t i = 0; bytes != NULL && i < model->component_count; i++) {
        const struct zt_component *component = &model->components[i];
        if (component->shard != 0 || !zt_component_is_plain(component) ||
            component->dtype != ZT_F32 || component->length < sizeof(float))
            continue;
        /* Containers and this machine are both little-endian. */
        const float *values = (const float *)(const void *)(bytes + component->offset);
        printf("first value: %g\n", values[0]);
        break;
    }
    zt_model_free(model);
    zt_source_close(source);
    return 0;
}
