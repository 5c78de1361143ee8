/* model.safetensors: the weights of a tiny Llama, f32, as safetensors writes them.
 *
 * They are made up, but the model says something: after each character of `spoken` comes the next
 * one. An output row of a character is the embedding of the character before it, and attention and
 * MLP add too little to change which row fits best. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numbers.h"
#include "repository.h"

/* No character twice, since each has one successor. */
static const char spoken[] = "tiny model\n";

struct weights {
    struct zt_buffer header;
    struct zt_buffer data;
    struct xorshift numbers;
    char last[96];
};

static void put(struct zt_buffer *file, const char *text)
{
    zt_buffer_append(file, text, strlen(text));
}

/* Adds a tensor's entry to the header, and returns where its values go; NULL if memory is short.
 * A vector has 0 columns. */
static uint8_t *add_tensor(struct weights *weights, const char *name, unsigned rows,
                           unsigned columns)
{
    size_t length = (size_t)rows * (columns == 0 ? 1 : columns) * sizeof(float);
    size_t start = weights->data.length;
    char shape[32];
    char entry[256];
    uint8_t *values = zt_buffer_reserve(&weights->data, length);

    /* safetensors sorts tensors of one type by name. */
    assert(strcmp(weights->last, name) < 0 && strlen(name) < sizeof(weights->last));
    snprintf(weights->last, sizeof(weights->last), "%s", name);
    snprintf(shape, sizeof(shape), columns == 0 ? "%u" : "%u,%u", rows, columns);
    snprintf(entry, sizeof(entry),
             ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", name, shape,
             start, start + length);
    put(&weights->header, entry);
    if (values != NULL)
        weights->data.length += length;
    return values;
}

static void add_values(struct weights *weights, const char *name, unsigned rows, unsigned columns,
                       const float *values)
{
    uint8_t *bytes = add_tensor(weights, name, rows, columns);
    size_t count = (size_t)rows * columns;

    assert(values != NULL && count > 0);
    for (size_t i = 0; bytes != NULL && i < count; i++)
        put_little(bytes + i * sizeof(float), float_bits(values[i]), sizeof(float));
}

static void add_norm(struct weights *weights, const char *name)
{
    uint8_t *bytes = add_tensor(weights, name, WEIGHTS_HIDDEN, 0);

    for (size_t i = 0; bytes != NULL && i < WEIGHTS_HIDDEN; i++)
        put_little(bytes + i * sizeof(float), float_bits(1.0f), sizeof(float));
}

static void add_random(struct weights *weights, const char *name, unsigned rows, unsigned columns)
{
    uint8_t *bytes = add_tensor(weights, name, rows, columns);
    size_t count = (size_t)rows * columns;

    assert(count > 0);
    for (size_t i = 0; bytes != NULL && i < count; i++)
        put_little(bytes + i * sizeof(float), float_bits(xorshift_weight(&weights->numbers)),
                   sizeof(float));
}

static void add_words(struct weights *weights)
{
    static float embeddings[REPOSITORY_VOCABULARY][WEIGHTS_HIDDEN];
    static float outputs[REPOSITORY_VOCABULARY][WEIGHTS_HIDDEN];
    const size_t length = sizeof(spoken) - 1;

    for (size_t token = 0; token < REPOSITORY_VOCABULARY; token++)
        for (size_t i = 0; i < WEIGHTS_HIDDEN; i++) {
            embeddings[token][i] = 16.0f * xorshift_weight(&weights->numbers);
            outputs[token][i] = xorshift_weight(&weights->numbers);
        }
    for (size_t i = 0; i < length; i++) {
        size_t next = (uint8_t)spoken[(i + 1) % length];

        assert(strchr(spoken + i + 1, spoken[i]) == NULL && next < REPOSITORY_BYTES);
        memcpy(outputs[next], embeddings[(uint8_t)spoken[i]], sizeof(outputs[next]));
    }
    add_values(weights, "lm_head.weight", REPOSITORY_VOCABULARY, WEIGHTS_HIDDEN, outputs[0]);
    add_values(weights, "model.embed_tokens.weight", REPOSITORY_VOCABULARY, WEIGHTS_HIDDEN,
               embeddings[0]);
}

static void add_layer(struct weights *weights, unsigned layer)
{
    static const struct {
        const char *name;
        unsigned rows;
        unsigned columns; /* 0: a norm */
    } tensors[] = {
        {"input_layernorm", 0, 0},
        {"mlp.down_proj", WEIGHTS_HIDDEN, WEIGHTS_INNER},
        {"mlp.gate_proj", WEIGHTS_INNER, WEIGHTS_HIDDEN},
        {"mlp.up_proj", WEIGHTS_INNER, WEIGHTS_HIDDEN},
        {"post_attention_layernorm", 0, 0},
        {"self_attn.k_proj", WEIGHTS_HIDDEN / WEIGHTS_HEADS * WEIGHTS_KV_HEADS, WEIGHTS_HIDDEN},
        {"self_attn.o_proj", WEIGHTS_HIDDEN, WEIGHTS_HIDDEN},
        {"self_attn.q_proj", WEIGHTS_HIDDEN, WEIGHTS_HIDDEN},
        {"self_attn.v_proj", WEIGHTS_HIDDEN / WEIGHTS_HEADS * WEIGHTS_KV_HEADS, WEIGHTS_HIDDEN},
    };

    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
        char name[96];

        snprintf(name, sizeof(name), "model.layers.%u.%s.weight", layer, tensors[i].name);
        if (tensors[i].columns == 0)
            add_norm(weights, name);
        else
            add_random(weights, name, tensors[i].rows, tensors[i].columns);
    }
}

void weights_append(struct zt_buffer *file)
{
    struct weights weights = {.numbers = {XORSHIFT_START}};

    assert(file->length == 0);
    put(&weights.header, "{\"__metadata__\":{\"format\":\"pt\"}");
    add_words(&weights);
    for (unsigned layer = 0; layer < WEIGHTS_LAYERS; layer++)
        add_layer(&weights, layer);
    add_norm(&weights, "model.norm.weight");
    put(&weights.header, "}");
    /* The data begins at a multiple of 8. */
    while (weights.header.length % 8 != 0 && !weights.header.failed)
        put(&weights.header, " ");
    zt_buffer_append_le64(file, weights.header.length);
    zt_buffer_append(file, weights.header.bytes, weights.header.length);
    zt_buffer_append(file, weights.data.bytes, weights.data.length);
    file->failed = file->failed || weights.header.failed || weights.data.failed;
    zt_buffer_free(&weights.header);
    zt_buffer_free(&weights.data);
}
