/* Seeds of the parsers of xet. */
#include "seeds.h"

#include <string.h>

#include "handmade.h"

/* Behind the length of the pieces: a chunk as it is, "xxx…" as a frame of LZ4, and four planes. */
static const uint8_t xorb[] = {
    5,    0,    3,    0,    0,    0,    3,   0,    0,    'a',  'b',  'c',  /* plain */
    0,    27,   0,    0,    1,    100,  0,   0,    0x04, 0x22, 0x4d, 0x18, /* LZ4 */
    0x60, 0x40, 0x82, 12,   0,    0,    0,   0x1f, 'x',  1,    0,    0x4a, 0x60, 'x', 'x',
    'x',  'x',  'x',  'x',  0,    0,    0,   0,    0,    20,   0,    0,    2,    5,   0,
    0,    0x04, 0x22, 0x4d, 0x18, 0x60, /* planes */
    0x40, 0x82, 5,    0,    0,    0x80, 'a', 'e',  'b',  'c',  'd',  0,    0,    0,   0,
};

static const char tag[32] = "HFRepoMetaData\0UigEj{\x81W\x83\xa5\xbd\xd9\\\xcd\xd1J\xa9";

static void put_record(struct bytes *shard, int hash, const char numbers[16])
{
    uint8_t record[48];

    memset(record, hash, 32);
    memcpy(record + 32, numbers, 16);
    bytes_append(shard, record, sizeof(record));
}

void seeds_xet(void)
{
    struct bytes shard = {NULL, 0};

    seed_put("xorb", "three", xorb, sizeof(xorb));
    bytes_append(&shard, tag, sizeof(tag));
    bytes_append(&shard, "\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    put_record(&shard, 1, "\0\0\0\xc0\2\0\0\0\0\0\0\0\0\0\0");
    put_record(&shard, 2, "\0\0\0\0\x64\0\0\0\0\0\0\0\1\0\0");
    put_record(&shard, 2, "\0\0\0\0\5\0\0\0\1\0\0\0\2\0\0");
    put_record(&shard, 3, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    put_record(&shard, 3, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    put_record(&shard, 4, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    put_record(&shard, 0xff, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    seed_put("shard", "file", shard.at, shard.length);
    bytes_free(&shard);
}
