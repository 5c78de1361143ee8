/* Makes models for the benchmarks: `bench-model FILE BYTES [OBJECTS [COLUMNS]]` writes a zTensor
 * 1.2 file with OBJECTS objects (1 by default) of BYTES bytes each, as f32 with COLUMNS columns (1
 * by default). One object is called "weight"; many have the names of layers, as real models do. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cbor/cbor_write.h"

#define BLOB_ALIGNMENT 64
#define CHUNK_BYTES    (1 << 20)

static const char magic[8] = "ZTEN1000";

static uint64_t aligned(uint64_t offset)
{
    return (offset + BLOB_ALIGNMENT - 1) / BLOB_ALIGNMENT * BLOB_ALIGNMENT;
}

static void put_object(struct zt_buffer *manifest, const char *name, uint64_t offset,
                       uint64_t length, uint64_t columns)
{
    zt_cbor_put_string(manifest, name);
    zt_cbor_put_map(manifest, 3);
    zt_cbor_put_string(manifest, "shape");
    zt_cbor_put_array(manifest, 2);
    zt_cbor_put_uint(manifest, length / 4 / columns);
    zt_cbor_put_uint(manifest, columns);
    zt_cbor_put_string(manifest, "format");
    zt_cbor_put_string(manifest, "dense");
    zt_cbor_put_string(manifest, "components");
    zt_cbor_put_map(manifest, 1);
    zt_cbor_put_string(manifest, "data");
    zt_cbor_put_map(manifest, 3);
    zt_cbor_put_string(manifest, "dtype");
    zt_cbor_put_string(manifest, "f32");
    zt_cbor_put_string(manifest, "offset");
    zt_cbor_put_uint(manifest, offset);
    zt_cbor_put_string(manifest, "length");
    zt_cbor_put_uint(manifest, length);
}

/* Pads the JSON of a small model to about 1 KiB. */
static void put_attributes(struct zt_buffer *manifest)
{
    char text[513];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    zt_cbor_put_string(manifest, "attributes");
    zt_cbor_put_map(manifest, 1);
    zt_cbor_put_string(manifest, "note");
    zt_cbor_put_string(manifest, text);
}

static void make_manifest(struct zt_buffer *manifest, uint64_t bytes, uint64_t objects,
                          uint64_t columns)
{
    zt_cbor_put_map(manifest, 3);
    zt_cbor_put_string(manifest, "version");
    zt_cbor_put_string(manifest, "1.2.0");
    put_attributes(manifest);
    zt_cbor_put_string(manifest, "objects");
    zt_cbor_put_map(manifest, objects);
    for (uint64_t i = 0; i < objects; i++) {
        char name[64] = "weight";

        if (objects > 1)
            snprintf(name, sizeof(name), "model.layers.%06" PRIu64 ".self_attn.weight", i);
        put_object(manifest, name, BLOB_ALIGNMENT + i * aligned(bytes), bytes, columns);
    }
}

/* Bytes that differ from block to block and lie on the disk: a file of holes would flatter every
 * reader. */
static int write_data(int file, uint64_t length)
{
    static uint32_t chunk[CHUNK_BYTES / sizeof(uint32_t)];
    uint32_t state = 20;

    for (uint64_t offset = 0; offset < length; offset += CHUNK_BYTES) {
        uint64_t size;

        for (size_t i = 0; i < CHUNK_BYTES / sizeof(uint32_t); i++)
            chunk[i] = state = state * 1664525u + 1013904223u;
        size = length - offset < CHUNK_BYTES ? length - offset : CHUNK_BYTES;
        if (pwrite(file, chunk, size, (off_t)(BLOB_ALIGNMENT + offset)) != (ssize_t)size)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t bytes;
    uint64_t objects;
    uint64_t end;
    struct zt_buffer tail = {0};
    uint64_t length;
    int file;

    if (argc < 3) {
        fprintf(stderr, "usage: bench-model FILE BYTES [OBJECTS [COLUMNS]]\n");
        return 2;
    }
    bytes = strtoull(argv[2], NULL, 10);
    objects = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    end = BLOB_ALIGNMENT + objects * aligned(bytes);
    make_manifest(&tail, bytes, objects, argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
    length = tail.length;
    zt_buffer_append(&tail, &length, sizeof(length));
    zt_buffer_append(&tail, magic, sizeof(magic));
    file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (tail.failed || file < 0 || pwrite(file, magic, sizeof(magic), 0) != sizeof(magic) ||
        write_data(file, end - BLOB_ALIGNMENT) != 0 ||
        pwrite(file, tail.bytes, tail.length, (off_t)end) != (ssize_t)tail.length ||
        close(file) != 0) {
        perror(argv[1]);
        return 1;
    }
    zt_buffer_free(&tail);
    return 0;
}
