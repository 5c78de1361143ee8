/* Seeds of .mag in the layouts that magnetron's releases wrote; the writer makes the
 * specification's. */
#include "seeds.h"

#include <string.h>

#include "zip_file.h"
#include "zt/digest.h"

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

static void seal(struct bytes *bytes, size_t at, size_t covered_from)
{
    bytes_put_le(bytes->at + at,
                 zt_crc32c(0, bytes->at + covered_from, bytes->length - covered_from), 4);
}

static void finish(struct bytes *bytes, const char *name)
{
    seed_put("mag", name, bytes->at, bytes->length);
    bytes_free(bytes);
}

/* magnetron 0.1.2: a metadatum and a tensor of [2, 3] f32 at 128. */
static void put_m2(void)
{
    struct bytes bytes = {NULL, 0};

    put_text(&bytes, "MAG!");
    put(&bytes, 1, 4);
    put(&bytes, 0, 4);
    put(&bytes, 1, 4);
    put(&bytes, 1, 4);
    put(&bytes, 0, 4);
    put(&bytes, 1, 4);
    put(&bytes, 7, 8);
    put(&bytes, 5, 4);
    put_text(&bytes, "epoch");
    put(&bytes, 2 << 8, 4);
    put(&bytes, 6, 8);
    put(&bytes, 128, 8);
    put(&bytes, 2, 8);
    put(&bytes, 3, 8);
    put(&bytes, 1, 4);
    put_text(&bytes, "a");
    seal(&bytes, 8, 12);
    put_zeros(&bytes, 128 + 24);
    finish(&bytes, "m2");
}

/* magnetron 0.1.5: two names, two tensors. */
static void put_m3(void)
{
    struct bytes bytes = {NULL, 0};

    put_text(&bytes, "MAG!");
    put(&bytes, 100, 4);
    put(&bytes, 1700000000, 8);
    put(&bytes, 0, 8);
    put(&bytes, 0, 4);
    put(&bytes, 2, 4);
    put_text(&bytes, "SRP!");
    put(&bytes, 2, 4);
    put(&bytes, 0, 4);
    put(&bytes, 1, 4);
    put(&bytes, 2, 4);
    put_text(&bytes, "abMDT!DSC!");
    for (unsigned i = 0; i < 2; i++) {
        put(&bytes, 1 + (i == 0 ? 0 : 3 << 8), 4);
        put(&bytes, i, 4);
        put(&bytes, 4, 8);
        put(&bytes, i * 16, 8);
        put(&bytes, 4, 8);
    }
    seal(&bytes, 16, 20);
    put_text(&bytes, "BUF!");
    put_zeros(&bytes, bytes.length + 20);
    finish(&bytes, "m3");
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

void seeds_mag(void)
{
    put_m2();
    put_m3();
    put_m4();
}
