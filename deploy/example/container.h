/* A writer of small zTensor 1.2 files, for the example model only: everything is held in memory
 * until it is written.
 *
 * Objects are described with example_object and example_component, in bytewise order of their
 * names; then example_write lays them out, computes the digests and writes the file. */
#ifndef EXAMPLE_CONTAINER_H
#define EXAMPLE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXAMPLE_RANK_MAX       4
#define EXAMPLE_COMPONENTS_MAX 3

struct example_component {
    const char *role;
    const char *dtype;
    const char *type; /* logical type, or NULL */
    void *bytes;      /* decoded, little-endian; owned */
    size_t length_bytes;
    bool compressed; /* stored as zstd */
};

struct example_object {
    const char *name;
    const char *format;
    uint64_t shape[EXAMPLE_RANK_MAX];
    unsigned rank;
    /* A quantized group's attributes; bits is 0 for all other objects. */
    unsigned bits;
    unsigned group_size;
    const char *packing;
    struct example_component components[EXAMPLE_COMPONENTS_MAX]; /* in order of their roles */
    unsigned component_count;
};

struct example_attribute {
    const char *name;
    const char *text;
};

struct example_model {
    const struct example_attribute *attributes;
    size_t attribute_count;
    struct example_object *objects;
    size_t object_count;
};

/* Writes the model to path: beside it first, then renamed. False with errno. */
bool example_write(const struct example_model *model, const char *path);

#endif
