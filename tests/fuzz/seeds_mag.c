/* Seeds of .mag in the layouts that magnetron's releases wrote; the writer makes the
 * specification's. */
#include "seeds.h"

#include <string.h>

#include "mag_file.h"

static void put(struct bytes *bytes, uint64_t value, unsigned width)
{
    uint8_t word[8];

    bytes_put_le(word, value, width);
    bytes_append(bytes, word, width);
}

static void put_text(struct bytes *bytes, const char *text)
{
    bytes_append(bytes, text, strlen(text));
}

static void put_zeros(struct bytes *bytes, size_t until)
{
    while (bytes->length < until)
        put(bytes, 0, 1);
}

static void finish(struct bytes *bytes, const char *name)
{
    seed_put("mag", name, bytes->at, bytes->length);
    bytes_free(bytes);
}

/* magnetron 0.2: a manifest in JSON. */
static void put_m4(void)
{
    static const char manifest[] = "{\"manifest_ver\":1,\"usr_metadata\":{\"lr\":0.5,\"n\":-7,"
                                   "\"l\":[1,null,\"x\"]},\"tensor_map\":{\"a\":{"
                                   "\"shape\":"
                                   "[2,3],\"dtype\":\"float32\",\"dtype_id\":0,\"offset\":0,"
                                   "\"nbytes\":24},\"b\":{\"shape\":[],\"dtype\":"
                                   "\"float8_e4m3fn\",\"dtype_id\":3,\"offset\":64,\"nbytes\":1}}}";
    struct bytes bytes = {NULL, 0};

    put_text(&bytes, "MAG!");
    put(&bytes, 300, 8);
    put(&bytes, 44, 8);
    put(&bytes, sizeof(manifest) - 1, 8);
    put(&bytes, 1024, 8);
    put(&bytes, 65, 8);
    put_text(&bytes, manifest);
    put_zeros(&bytes, 1024 + 65);
    finish(&bytes, "m4");
}

static void put_layout(enum mag_layout layout, const char *name)
{
    struct mag_file file;

    mag_set_up(&file, layout);
    mag_make(&file);
    finish(&file.bytes, name);
}

void seeds_mag(void)
{
    put_layout(MAG_M2, "m2");
    put_layout(MAG_M3, "m3");
    put_layout(MAG_M4, "m3-200");
    put_m4();
}
