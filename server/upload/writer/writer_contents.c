/* A tree of objects (tsearch), with a list of components in each, because layouts have few. */
#include "upload/writer/writer_contents.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* --- components --- */

struct writer_component *writer_component_new(struct zt_text name, const struct zt_shape *shape)
{
    size_t extents_bytes = shape->rank * sizeof(uint64_t);
    struct writer_component *component =
        calloc(1, sizeof(*component) + extents_bytes + name.length);

    if (component == NULL)
        return NULL;
    assert(shape->rank <= ZT_DECLARED_RANK_MAX);
    component->rank = shape->rank;
    component->name_length = (uint32_t)name.length;
    memcpy(component->extents, shape->extents, extents_bytes);
    memcpy(component->extents + shape->rank, name.bytes, name.length);
    return component;
}

struct zt_text writer_component_name(const struct writer_component *component)
{
    return (struct zt_text){(const char *)(component->extents + component->rank),
                            component->name_length};
}

struct zt_shape writer_component_shape(const struct writer_component *component)
{
    struct zt_shape shape = {.stated = true, .rank = component->rank};

    assert(component->rank <= ZT_DECLARED_RANK_MAX);
    memcpy(shape.extents, component->extents, component->rank * sizeof(uint64_t));
    return shape;
}

/* --- objects --- */

static int compare_objects(const void *a, const void *b)
{
    return zt_text_compare(((const struct writer_object *)a)->name,
                           ((const struct writer_object *)b)->name);
}

static void free_declaration(struct zt_declaration *declaration)
{
    if (declaration == NULL)
        return;
    zt_declaration_free(declaration);
    free(declaration);
}

static void free_object(void *node)
{
    struct writer_object *object = node;

    while (object->components != NULL) {
        struct writer_component *component = object->components;

        object->components = component->next;
        free(component);
    }
    free_declaration(object->declared);
    free(object);
}

void writer_contents_free(struct writer_contents *contents)
{
    tdestroy(contents->tree, free_object);
    contents->tree = NULL;
}

struct writer_object *writer_contents_find(const struct writer_contents *contents,
                                           struct zt_text object)
{
    const struct writer_object key = {.name = object};
    struct writer_object *const *found = tfind(&key, &contents->tree, compare_objects);

    return found != NULL ? *found : NULL;
}

static struct writer_object *find_or_add(struct writer_contents *contents, struct zt_text name)
{
    struct writer_object *object = writer_contents_find(contents, name);

    if (object != NULL)
        return object;
    object = calloc(1, sizeof(*object) + name.length);
    if (object == NULL)
        return NULL;
    object->name = (struct zt_text){memcpy(object + 1, name.bytes, name.length), name.length};
    if (tsearch(object, &contents->tree, compare_objects) == NULL) {
        free(object);
        return NULL;
    }
    contents->object_count++;
    contents->held_bytes += sizeof(*object) + name.length;
    return object;
}

static uint64_t held_by(const struct zt_declaration *declaration)
{
    return declaration != NULL
               ? sizeof(*declaration) + declaration->attributes.length + declaration->format.length
               : 0;
}

bool writer_contents_declare(struct writer_contents *contents, struct zt_text object,
                             struct zt_declaration *declaration)
{
    struct writer_object *entry = find_or_add(contents, object);

    assert(declaration != NULL);
    if (entry == NULL)
        return false;
    assert(contents->held_bytes >= held_by(entry->declared));
    contents->held_bytes += held_by(declaration) - held_by(entry->declared);
    free_declaration(entry->declared);
    entry->declared = declaration;
    return true;
}

static uint64_t size_of(const struct writer_component *component)
{
    return sizeof(*component) + component->rank * sizeof(uint64_t) + component->name_length;
}

/* Returns the link to the component of that name, or to the position where it belongs. */
static struct writer_component **find_link(struct writer_object *object, struct zt_text name,
                                           bool *out_found)
{
    struct writer_component **link = &object->components;
    int order = -1;

    while (*link != NULL && (order = zt_text_compare(writer_component_name(*link), name)) < 0)
        link = &(*link)->next;
    *out_found = *link != NULL && order == 0;
    assert(*link == NULL || (*link)->next == NULL ||
           zt_text_compare(writer_component_name(*link), writer_component_name((*link)->next)) < 0);
    return link;
}

struct writer_component *writer_object_find(const struct writer_object *object,
                                            struct zt_text component)
{
    struct writer_component *at = object->components;

    while (at != NULL && zt_text_compare(writer_component_name(at), component) != 0)
        at = at->next;
    return at;
}

bool writer_contents_put(struct writer_contents *contents, struct zt_text object,
                         struct writer_component *component, struct writer_component **out_replaced)
{
    struct writer_object *entry = find_or_add(contents, object);
    bool found;
    struct writer_component **link;
    struct writer_component *replaced;

    if (entry == NULL)
        return false;
    link = find_link(entry, writer_component_name(component), &found);
    replaced = found ? *link : NULL;
    assert(component->next == NULL && component != replaced);
    component->next = found ? replaced->next : *link;
    *link = component;
    entry->component_count += !found;
    assert(!found || contents->held_bytes >= size_of(replaced));
    contents->held_bytes += size_of(component) - (found ? size_of(replaced) : 0);
    assert(entry->component_count > 0 && contents->object_count > 0);
    *out_replaced = replaced;
    return true;
}

/* --- walking --- */

struct walk {
    bool (*visit)(void *context, const struct writer_object *object);
    void *context;
    bool ended;
};

static void visit_node(const void *node, VISIT which, void *closure)
{
    struct walk *walk = closure;

    if (!walk->ended && (which == postorder || which == leaf))
        walk->ended = !walk->visit(walk->context, *(struct writer_object *const *)node);
}

void writer_contents_walk(const struct writer_contents *contents,
                          bool (*visit)(void *context, const struct writer_object *object),
                          void *context)
{
    struct walk walk = {.visit = visit, .context = context};

    twalk_r(contents->tree, visit_node, &walk);
}
