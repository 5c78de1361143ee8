/* ztserve-example OUT: writes the example model, a tiny transformer with made-up weights that has
 * every kind of object a zTensor 1.2 file can hold. The same release of zstd always gives the same
 * bytes. ztserve-example --repository FOLDER writes the example repository instead. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "numbers.h"
#include "repository.h"

#define HIDDEN      64
#define INNER       256
#define VOCABULARY  256
#define POSITIONS   128
#define OBJECTS_MAX 32
#define GROUP       32

struct making {
    struct example_object objects[OBJECTS_MAX];
    size_t count;
    struct xorshift numbers;
};

/* IEEE binary16 of a normal number within its range, cut rather than rounded: these weights fit
 * exactly. */
static uint16_t half_bits(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t exponent = bits >> 23 & 0xff;

    if (exponent < 127 - 14)
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

static struct example_object *add_object(struct making *making, const char *name,
                                         const char *format, unsigned rank, const uint64_t shape[])
{
    struct example_object *object = &making->objects[making->count++];

    assert(making->count <= OBJECTS_MAX);
    /* The manifest lists names in bytewise order; this program names them in that order. */
    assert(making->count < 2 || strcmp(object[-1].name, name) < 0);
    object->name = name;
    object->format = format;
    object->rank = rank;
    if (rank > 0)
        memcpy(object->shape, shape, rank * sizeof(shape[0]));
    return object;
}

/* Adds a component of count words and returns where its bytes go. */
static uint8_t *add_component(struct example_object *object, const char *role, const char *dtype,
                              size_t count, unsigned width)
{
    struct example_component *component = &object->components[object->component_count++];

    assert(object->component_count <= EXAMPLE_COMPONENTS_MAX);
    component->role = role;
    component->dtype = dtype;
    component->length_bytes = count * width;
    component->bytes = calloc(count + 1, width);
    if (component->bytes == NULL)
        abort();
    return component->bytes;
}

static void add_weights(struct making *making, const char *name, const char *dtype, unsigned rank,
                        const uint64_t shape[])
{
    struct example_object *object = add_object(making, name, "dense", rank, shape);
    bool single = strcmp(dtype, "f32") == 0;
    bool half = strcmp(dtype, "f16") == 0;
    unsigned width = single ? 4 : 2;
    size_t count = 1;
    uint8_t *bytes;

    for (unsigned i = 0; i < rank; i++)
        count *= shape[i];
    bytes = add_component(object, "data", dtype, count, width);
    for (size_t i = 0; i < count; i++) {
        float weight = xorshift_weight(&making->numbers);
        uint32_t bits = single ? float_bits(weight)
                        : half ? half_bits(weight)
                               : float_bits(weight) >> 16;

        put_little(bytes + i * width, bits, width);
    }
}

/* Waves of a different length in each column: regular, so that they compress well. */
static void add_positions(struct making *making)
{
    const uint64_t shape[] = {POSITIONS, HIDDEN};
    struct example_object *object =
        add_object(making, "embeddings.position.weight", "dense", 2, shape);
    uint8_t *bytes = add_component(object, "data", "f32", (size_t)POSITIONS * HIDDEN, 4);

    object->components[0].compressed = true;
    for (unsigned i = 0; i < POSITIONS * HIDDEN; i++) {
        unsigned period = 4 + i % HIDDEN / 4;
        float wave = (float)(i / HIDDEN % period) / 16.0f;

        put_little(bytes + (size_t)i * 4, float_bits(wave), 4);
    }
}

/* A position sees itself and what came before it. */
static void add_mask(struct making *making)
{
    const uint64_t shape[] = {POSITIONS, POSITIONS};
    struct example_object *object = add_object(making, "encoder.attention_mask", "dense", 2, shape);
    uint8_t *bytes = add_component(object, "data", "bool", (size_t)POSITIONS * POSITIONS, 1);

    for (unsigned i = 0; i < POSITIONS * POSITIONS; i++)
        bytes[i] = i % POSITIONS <= i / POSITIONS;
}

static void add_fp8(struct making *making, const char *name)
{
    const uint64_t shape[] = {INNER, HIDDEN};
    struct example_object *object = add_object(making, name, "dense", 2, shape);
    uint8_t *bytes = add_component(object, "data", "u8", (size_t)INNER * HIDDEN, 1);

    object->components[0].type = "f8_e4m3fn";
    for (size_t i = 0; i < (size_t)INNER * HIDDEN; i++) {
        uint64_t random = xorshift_bits(&making->numbers) >> 32;

        /* Exponents 2 to 5 of 15: small weights, and never the NaN 0x7f. */
        bytes[i] = (uint8_t)((random & 0x80) | (2 + (random >> 8) % 4) << 3 | (random & 7));
    }
}

static void add_quantized(struct making *making, const char *name)
{
    const uint64_t shape[] = {HIDDEN, INNER};
    struct example_object *object = add_object(making, name, "quantized_group", 2, shape);
    const size_t words = (size_t)HIDDEN * INNER / 8;
    const size_t groups = (size_t)HIDDEN * INNER / GROUP;
    uint8_t *packed = add_component(object, "packed_weight", "i32", words, 4);
    uint8_t *scales = add_component(object, "scales", "f16", groups, 2);
    uint8_t *zeros = add_component(object, "zeros", "f16", groups, 2);

    object->bits = 4;
    object->group_size = GROUP;
    object->packing = "8_per_i32";
    for (size_t i = 0; i < words; i++)
        put_little(packed + i * 4, xorshift_bits(&making->numbers) >> 32, 4);
    for (size_t i = 0; i < groups; i++) {
        put_little(scales + i * 2, half_bits((float)(1 + i % 15) / 1024.0f), 2);
        put_little(zeros + i * 2, half_bits(8.0f), 2);
    }
}

/* Every row keeps each eighth column, beginning at one of its own; every fourth row is empty. */
static void add_csr(struct making *making, const char *name)
{
    const uint64_t shape[] = {INNER, HIDDEN};
    struct example_object *object = add_object(making, name, "sparse_csr", 2, shape);
    const size_t kept = HIDDEN / 8;
    const size_t stored = (size_t)INNER / 4 * 3 * kept;
    uint8_t *indices = add_component(object, "indices", "u64", stored, 8);
    uint8_t *pointers = add_component(object, "indptr", "u64", INNER + 1, 8);
    uint8_t *values = add_component(object, "values", "f32", stored, 4);
    size_t at = 0;

    for (size_t row = 0; row < INNER; row++) {
        put_little(pointers + row * 8, at, 8);
        for (size_t i = 0; row % 4 != 3 && i < kept; i++, at++) {
            put_little(indices + at * 8, row % 8 + i * 8, 8);
            put_little(values + at * 4, float_bits(xorshift_weight(&making->numbers)), 4);
        }
    }
    assert(at == stored);
    put_little(pointers + (size_t)INNER * 8, at, 8);
}

/* A diagonal through three dimensions; coordinates one dimension after another. */
static void add_coo(struct making *making, const char *name)
{
    const uint64_t shape[] = {4, HIDDEN, HIDDEN};
    struct example_object *object = add_object(making, name, "sparse_coo", 3, shape);
    uint8_t *coordinates = add_component(object, "coords", "u64", (size_t)3 * HIDDEN, 8);
    uint8_t *values = add_component(object, "values", "f16", HIDDEN, 2);

    for (size_t i = 0; i < HIDDEN; i++) {
        put_little(coordinates + i * 8, i % 4, 8);
        put_little(coordinates + (HIDDEN + i) * 8, i, 8);
        put_little(coordinates + (2 * HIDDEN + i) * 8, HIDDEN - 1 - i, 8);
        put_little(values + i * 2, half_bits(1.0f + (float)i / 64.0f), 2);
    }
}

/* Unit steps around the circle in quarters: 1, i, -1, -i. */
static void add_rotary(struct making *making)
{
    static const float parts[] = {1.0f, 0.0f, -1.0f, 0.0f};
    const uint64_t shape[] = {POSITIONS, 8};
    struct example_object *object =
        add_object(making, "encoder.rotary.frequencies", "dense", 2, shape);
    uint8_t *bytes = add_component(object, "data", "f32", (size_t)POSITIONS * 8 * 2, 4);

    object->components[0].type = "complex64";
    for (unsigned i = 0; i < POSITIONS * 8; i++) {
        unsigned quarter = i / 8 * (i % 8 + 1) % 4;

        put_little(bytes + (size_t)i * 8, float_bits(parts[quarter]), 4);
        put_little(bytes + (size_t)i * 8 + 4, float_bits(parts[(quarter + 3) % 4]), 4);
    }
}

static void add_integers(struct making *making, const char *name, unsigned rank, uint64_t count,
                         uint64_t first)
{
    struct example_object *object = add_object(making, name, "dense", rank, &count);
    uint8_t *bytes = add_component(object, "data", "i64", count, 8);

    for (uint64_t i = 0; i < count; i++)
        put_little(bytes + i * 8, first + i, 8);
}

static void make_model(struct making *making)
{
    const uint64_t hidden[] = {HIDDEN};
    const uint64_t square[] = {HIDDEN, HIDDEN};
    const uint64_t up[] = {INNER, HIDDEN};
    const uint64_t words[] = {VOCABULARY, HIDDEN};
    const uint64_t nothing[] = {0, HIDDEN};

    add_positions(making);
    add_weights(making, "embeddings.word.weight", "f32", 2, words);
    add_mask(making);
    add_weights(making, "encoder.layer.0.attention.key.weight", "f16", 2, square);
    add_weights(making, "encoder.layer.0.attention.query.bias", "f32", 1, hidden);
    add_weights(making, "encoder.layer.0.attention.query.weight", "f32", 2, square);
    add_weights(making, "encoder.layer.0.attention.value.weight", "bf16", 2, square);
    add_quantized(making, "encoder.layer.0.mlp.down.weight");
    add_fp8(making, "encoder.layer.0.mlp.gate.weight");
    add_weights(making, "encoder.layer.0.mlp.up.weight", "f32", 2, up);
    add_weights(making, "encoder.layer.0.norm.weight", "f32", 1, hidden);
    add_coo(making, "encoder.layer.1.attention.bias");
    add_csr(making, "encoder.layer.1.mlp.up.weight");
    add_rotary(making);
    add_weights(making, "head.adapter.weight", "f32", 2, nothing);
    add_integers(making, "tokenizer.ids", 1, VOCABULARY, 0);
    add_integers(making, "training.step", 0, 1, 12000);
}

static void free_model(struct making *making)
{
    for (size_t i = 0; i < making->count; i++)
        for (unsigned j = 0; j < making->objects[i].component_count; j++)
            free(making->objects[i].components[j].bytes);
}

static bool write_model(const char *path)
{
    static const struct example_attribute attributes[] = {
        {"architecture", "encoder"},
        {"description", "A tiny transformer with made-up weights"},
        {"license", "MIT"},
    };
    struct making making = {.numbers = {XORSHIFT_START}};
    struct example_model model = {
        .attributes = attributes, .attribute_count = 3, .objects = making.objects};
    bool written;

    make_model(&making);
    model.object_count = making.count;
    written = example_write(&model, path);
    free_model(&making);
    return written;
}

int main(int argc, char **argv)
{
    bool is_repository = argc == 3 && strcmp(argv[1], "--repository") == 0;
    const char *out = argv[argc - 1];

    if (argc != 2 && !is_repository) {
        fprintf(stderr, "usage: ztserve-example OUT | ztserve-example --repository FOLDER\n");
        return 2;
    }
    if (is_repository ? repository_write(out) : write_model(out))
        return 0;
    fprintf(stderr, "ztserve-example: %s: %s\n", out, strerror(errno));
    return 1;
}
