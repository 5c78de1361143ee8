/* Elements that S3 does not define are skipped. */
#include "s3/write/s3api_delete_xml.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "input/xml_read.h"

struct reading {
    struct s3api_delete_list *list;
    bool has_object; /* the last object is not complete */
    bool is_out_of_memory;
};

static bool fail_memory(struct reading *reading)
{
    reading->is_out_of_memory = true;
    return false;
}

/* Returns the object whose elements are being read; NULL if there is no room. */
static struct s3api_named_object *current(struct reading *reading)
{
    struct s3api_delete_list *list = reading->list;

    assert(list->count <= S3API_DELETE_MAX && (!reading->has_object || list->count > 0));
    if (reading->has_object)
        return &list->objects[list->count - 1];
    if (list->count == S3API_DELETE_MAX)
        return NULL;
    if (zt_array_reserve(&list->objects, &list->capacity, list->count + 1, sizeof(*list->objects),
                         S3API_DELETE_MAX) != ZT_OK) {
        (void)fail_memory(reading);
        return NULL;
    }
    reading->has_object = true;
    list->objects[list->count] = (struct s3api_named_object){.key = NULL};
    return &list->objects[list->count++];
}

/* An element that is repeated, or contains NUL, is refused. */
static bool copy(struct reading *reading, char **to, struct zt_text text)
{
    if (*to != NULL || memchr(text.bytes, '\0', text.length) != NULL)
        return false;
    *to = strndup(text.bytes, text.length);
    return *to != NULL || fail_memory(reading);
}

static bool take_element(struct reading *reading, const char *name, struct zt_text text)
{
    struct s3api_named_object *object = current(reading);

    if (object == NULL)
        return false;
    if (strcmp(name, "Key") == 0)
        return text.length > 0 && copy(reading, &object->key, text);
    if (strcmp(name, "ETag") == 0)
        return copy(reading, &object->etag, text);
    if (strcmp(name, "VersionId") == 0)
        object->has_version = text.length > 0 && !zt_text_is(text, "null");
    if (strcmp(name, "Size") == 0 || strcmp(name, "LastModifiedTime") == 0)
        object->has_condition = true;
    return true;
}

static bool visit(void *context, const char *path, struct zt_text text)
{
    static const char objects[] = "Delete/Object";
    struct reading *reading = context;
    const size_t length = sizeof(objects) - 1;

    if (strcmp(path, "Delete/Quiet") == 0 && text.bytes != NULL)
        reading->list->is_quiet = zt_text_is(text, "true");
    if (strncmp(path, objects, length) == 0 && path[length] == '/' && text.bytes != NULL)
        return take_element(reading, path + length + 1, text);
    if (strcmp(path, objects) != 0)
        return strncmp(path, "Delete", strlen("Delete")) == 0;
    if (!reading->has_object || reading->list->objects[reading->list->count - 1].key == NULL)
        return false;
    reading->has_object = false;
    return true;
}

enum zt_status s3api_delete_xml_read(struct zt_text document, struct s3api_delete_list *out_list,
                                     struct zt_error *error)
{
    struct reading reading = {.list = out_list};
    enum zt_status status;

    assert(out_list->count == 0);
    status = xml_read(document, visit, &reading, error);
    if (reading.is_out_of_memory)
        return zt_fail_memory(error, "a list of keys");
    if (status == ZT_OK && out_list->count == 0)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "the list names no key");
    return status;
}

void s3api_delete_list_free(struct s3api_delete_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->objects[i].key);
        free(list->objects[i].etag);
    }
    free(list->objects);
    *list = (struct s3api_delete_list){.objects = NULL};
}
