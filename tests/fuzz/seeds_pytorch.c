/* Seeds of PyTorch: a pickle of one tensor, alone, in an archive, and among stacked pickles. */
#include <string.h>

#include "seeds.h"
#include "zip_file.h"

#define ONE(place)                                                                               \
    "}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n" \
    "X\x01\0\0\0"                                                                                \
    "0X\x03\0\0\0"                                                                               \
    "cpuK\x04" place "tQK\0K\x02K\x02\x86K\x01K\x02\x86\x89"                                     \
    "ccollections\nOrderedDict\n)RtRs."
#define PROTO "\x80\x02"

static const char object[] = PROTO ONE("");
static const char floats[16] = {0, 0, -128, 63, 0, 0, 0, 64};

static void put_pickle(const char *name, char how, const char *pickle, size_t length)
{
    struct bytes bytes = {0};

    bytes_append(&bytes, &how, 1);
    bytes_append(&bytes, pickle, length);
    seed_put("pickle", name, bytes.at, bytes.length);
    bytes_free(&bytes);
}

static void add(struct zip_file *zip, const char *name, enum zip_file_kind kind, const void *bytes,
                size_t length)
{
    const struct bytes content = {(uint8_t *)(uintptr_t)bytes, length};

    zip_file_add(zip, name, kind, &content);
}

static void put_archive(const char *name, enum zip_file_kind kind)
{
    struct zip_file zip = {0};

    add(&zip, "a/data.pkl", kind, object, sizeof(object) - 1);
    add(&zip, "a/byteorder", kind, "big", 3);
    add(&zip, "a/data/0", kind, floats, sizeof(floats));
    add(&zip, "a/version", kind, "3\n", 2);
    zip_file_end(&zip, "", false);
    seed_put("pytorch", name, zip.bytes.at, zip.bytes.length);
    zip_file_free(&zip);
}

static void put_legacy(void)
{
    static const char head[] =
        PROTO "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." PROTO "M\xe9\x03." PROTO
              "}." PROTO ONE("N") PROTO "]X\x01\0\0\0"
                                        "0a.\x04\0\0\0\0\0\0\0";
    struct bytes bytes = {0};

    bytes_append(&bytes, head, sizeof(head) - 1);
    bytes_append(&bytes, floats, sizeof(floats));
    seed_put("pytorch", "legacy", bytes.at, bytes.length);
    bytes_free(&bytes);
}

void seeds_pytorch(void)
{
    static const char record[] = PROTO "c__torch__\nM\n)\x81}(X\x01\0\0\0tI01\nu.b.";

    put_pickle("tensor", 0, object, sizeof(object) - 1);
    put_pickle("record", 1, record, sizeof(record) - 1);
    put_archive("stored", ZIP_FILE_STORED);
    put_archive("deflated", ZIP_FILE_DEFLATED);
    put_archive("descriptor", ZIP_FILE_DESCRIPTOR);
    put_legacy();
}
