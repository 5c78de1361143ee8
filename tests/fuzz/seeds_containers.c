/* Seeds of the readers: zTensor's versions from manifests, other formats from the writers and the
 * tests' builders. */
#include "seeds.h"

#include <stdio.h>
#include <string.h>

#include "cbor_text.h"
#include "container.h"
#include "gguf_file.h"
#include "safetensors_file.h"
#include "support.h"
#include "written.h"
#include "zip_file.h"
#include "zt2_file.h"

#define DATA_LENGTH 512

/* --- zTensor --- */

#define ATTRIBUTES "'attributes':{'k':[1,2.5,{'z':null,'y':h'0102'}],'s':'text'}"
#define PART(name, dtype, at, length) \
    "'" name "':{'dtype':'" dtype "','offset':" #at ",'length':" #length "}"
#define OBJECT(name, format, shape, parts) \
    "'" name "':{'shape':" shape ",'format':'" format "','components':{" parts "}}"
#define ZT1(objects) "{'version':'1.2.0','objects':{" objects "}}"
#define DENSE        OBJECT("w", "dense", "[2,2]", PART("data", "f32", 64, 16))
#define DIGESTED                                                                              \
    "'d':{'shape':[3],'format':'dense'," ATTRIBUTES                                           \
    ",'components':{'data':{'dtype':'u8','type':'f8_e5m2','offset':128,'length':3,'digest':'" \
    "crc32c:0x00000001'}}}"
#define CSR                                                                                  \
    OBJECT("csr", "sparse_csr", "[2,4]",                                                     \
           PART("indices", "u8", 192, 2) "," PART("indptr", "u8", 256, 3) "," PART("values", \
                                                                                   "f16", 320, 4))
#define COO                              \
    OBJECT("coo", "sparse_coo", "[9,9]", \
           PART("coords", "u8", 192, 4) "," PART("values", "f32", 320, 8))
#define ZSTD                                                                                      \
    "'z':{'shape':[3],'format':'dense','components':{'data':{'dtype':'u8','offset':128,'length':" \
    "12,'uncompressed_length':3,'encoding':'zstd'}}}"

#define ZT10                                                                                       \
    "{'version':'1.0','generator':'g','attributes':{},'tensors':{'x':{'dtype':'int8','shape':[16]" \
    ",'format':'dense','components':{'data':{'offset':64,'length':16}}}}}"
#define ZT01(layout, dtype, shape, size)                                              \
    "[{'name':'x','offset':64,'size':" #size ",'dtype':'" dtype "','layout':'" layout \
    "','shape':" shape                                                                \
    ",'encoding':'raw','data_endianness':'big','checksum':'crc32c:0x1','custom':{'a':[1]}}]"

static void put_container(const char *target, const char *name, enum container_version version,
                          const char *manifest)
{
    struct container container = {0};

    container_make(&container, version, DATA_LENGTH, manifest);
    seed_put(target, name, container.bytes, container.length);
    container_free(&container);
}

#define ZT2_AT       12288
#define ZT2(objects) "{'objects':{" objects "}}"
#define BLOB(name, dtype, at, length) \
    "'" name "':{'blob':[" #at "," #length "],'dtype':'" dtype "'}"
#define ZT2_OBJECT_OF(name, layout, shape, parts) \
    "'" name "':{'parts':{" parts "},'shape':" shape ",'layout':'" layout "'}"

#define WITH(name, layout, shape, attributes, parts)                      \
    "'" name "':{'parts':{" parts "},'shape':" shape ",'layout':'" layout \
    "','attributes':{" attributes "}}"
#define SCALES "'scales':{'blob':[8192,2],'type':'f8_e8m0','dtype':'u8'}"

static const struct {
    const char *name;
    const char *manifest;
} zt2_manifests[] = {
    {"dense", ZT2(ZT2_OBJECT_OF("a", "dense", "[8]", BLOB("data", "u8", 4096, 8)))},
    {"bool", ZT2("'a':{'parts':{'data':{'blob':[4096,8],'type':'bool','dtype':'u8','digest':'xxh3:"
                 "0011223344556677'}},'shape':[2,4],'layout':'dense'}")},
    {"csr", ZT2(ZT2_OBJECT_OF("a", "zt.sparse_csr/1", "[1,8]",
                              BLOB("indptr", "u32", 4096, 8) "," BLOB(
                                  "values", "u8", 8192, 0) "," BLOB("indices", "u32", 8192, 0)))},
    {"coo", ZT2(ZT2_OBJECT_OF("a", "zt.sparse_coo/1", "[8,8]",
                              BLOB("coords", "u32", 4096, 8) "," BLOB("values", "u8", 8192, 1)))},
    {"gguf", ZT2(WITH("a", "gguf.q8_0/1", "[32]", "'block_bytes':34,'elems_per_block':32",
                      BLOB("data", "u8", 4096, 34)))},
    {"mx", ZT2(WITH("a", "zt.mx/1", "[2,32]", "'block_size':32,'scale_form':'e8m0_exponent'",
                    "'data':{'blob':[4096,32],'type':'f4_e2m1','dtype':'u8'}," SCALES))},
    {"quant", ZT2(WITH("a", "zt.quant_group/1", "[16,8]",
                       "'axis':0,'bits':4,'packing':{'word':'u32','order':'lsb_first','per_word':8}"
                       ",'group_size':8,'scale_form':'f16_factors','zero_point':{'form':'none'}",
                       BLOB("data", "i32", 4096, 64) "," BLOB("scales", "f16", 8192, 32)))},
    {"seekable", "{'objects':{'a':{'parts':{'data':{'blob':[4096,17],'dtype':'u8','encoding':'zt."
                 "zstd-seekable/1','decoded_length':0}},'shape':[0],'layout':'dense'}}}"},
    {"shard",
     "{'shards':{'s':{'size':8192,'digest':'xxh3:78af5f94892f3950'}},'objects':{'a':{'parts':{'"
     "data':{'blob':[4096,8],'dtype':'u8','shard':'s'}},'shape':[8],'layout':'dense'}}}"},
};

/* The manifest alone, for target_canonical.c. */
static void put_canonical(const char *name, const char *manifest)
{
    struct zt_buffer encoded = {0};

    cbor_text_append(&encoded, manifest);
    seed_put("canonical", name, encoded.bytes, encoded.length);
    zt_buffer_free(&encoded);
}

#define ONES "'digest':'xxh3:71e702e0b0fb1d66'"
#define TWOS "'digest':'xxh3:e4952c07c3685efe'"
#define CANONICAL(at, digest) \
    "{'parts':{'data':{'blob':[" at ",8],'dtype':'u8'," digest "}},'shape':[8],'layout':'dense'}"

static void put_zt2(void)
{
    struct zt2_file file = {0};

    for (size_t i = 0; i < sizeof(zt2_manifests) / sizeof(*zt2_manifests); i++) {
        zt2_file_make(&file, ZT2_AT, zt2_manifests[i].manifest);
        seed_put("zt2", zt2_manifests[i].name, file.bytes, file.length);
    }
    zt2_file_free(&file);
    put_canonical("two", ZT2("'a':" CANONICAL("65536", ONES) ",'b':" CANONICAL("131072", TWOS)));
    put_canonical(
        "shared",
        "{'objects':{'a':" CANONICAL("65536", ONES) ",'b':" CANONICAL(
            "131072", TWOS) ",'c':" CANONICAL("65536", ONES) "},'attributes':{'k':[1.5,null]}}");
}

static const struct {
    const char *target;
    const char *name;
    enum zt_target format;
    bool zstd;
} made[] = {
    {"zt1", "written", ZT_TARGET_ZT1, false},
    {"zt1", "written-zstd", ZT_TARGET_ZT1, true},
    {"zt2", "written", ZT_TARGET_ZT2, false},
    {"zt2", "written-zstd", ZT_TARGET_ZT2, true},
    {"mag", "written", ZT_TARGET_MAG, false},
    {"safetensors", "written", ZT_TARGET_SAFETENSORS, false},
    {"npz", "written", ZT_TARGET_NPZ, false},
    {"npy", "written", ZT_TARGET_NPY, false},
};

/* One model in every format that can be written. */
static void put_written(void)
{
    struct written from = {0};
    struct zt_error error;

    written_from_text(&from, DATA_LENGTH, ZT1(DENSE));
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        struct zt_writer_options options = {.zstd = made[i].zstd};
        struct zt_buffer bytes = {0};

        if (written_convert(&from, made[i].format, &options, &bytes, &error) != ZT_OK)
            fail_msg("%s: %s", made[i].target, error.message);
        seed_put(made[i].target, made[i].name, bytes.bytes, bytes.length);
        zt_buffer_free(&bytes);
    }
    written_free(&from);
}

void seeds_zt(void)
{
    put_container("zt01", "dense", CONTAINER_ZT01, ZT01("dense", "float32", "[4]", 16));
    put_container("zt01", "sparse", CONTAINER_ZT01, ZT01("sparse", "float32", "[4,4]", 56));
    put_container("zt01", "empty", CONTAINER_ZT01, "[]");
    put_container("zt1", "v10", CONTAINER_ZT10, ZT10);
    put_container("zt1", "dense", CONTAINER_ZT1, ZT1(DENSE));
    put_container("zt1", "digested", CONTAINER_ZT1, ZT1(DIGESTED));
    put_container("zt1", "csr", CONTAINER_ZT1, ZT1(CSR "," DENSE));
    put_container("zt1", "coo", CONTAINER_ZT1, ZT1(COO));
    put_container("zt1", "zstd", CONTAINER_ZT1, ZT1(ZSTD));
    put_zt2();
    put_written();
}

/* --- other formats --- */

static void put_safetensors(const char *name, const char *header, size_t data_length)
{
    struct container container = {0};

    safetensors_make(&container, header, data_length);
    seed_put("safetensors", name, container.bytes, container.length);
    container_free(&container);
}

static void put_gguf(void)
{
    struct gguf_file file = {0};
    struct container container = {0};

    gguf_begin(&file);
    for (uint32_t type = 0; type <= 12; type++) {
        char key[8];

        if (type == 8 || type == 9)
            continue;
        snprintf(key, sizeof(key), "k%u", type);
        gguf_put_key(&file, key, type);
        gguf_put(&file, 1, type < 2 || type == 7 ? 1 : type < 4 ? 2 : type < 7 ? 4 : 8);
    }
    gguf_put_key(&file, "general.alignment", 4);
    gguf_put(&file, 32, 4);
    gguf_put_key(&file, "text", 8);
    gguf_put_string(&file, "value");
    gguf_put_key(&file, "list", 9);
    gguf_put(&file, 8, 4);
    gguf_put(&file, 2, 8);
    gguf_put_string(&file, "a");
    gguf_put_string(&file, "bc");
    gguf_put_tensor(&file, "w", 2, (const uint64_t[2]){3, 2}, 0);
    gguf_put_offset(&file, 64);
    gguf_put_tensor(&file, "q", 1, (const uint64_t[1]){32}, 8);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 88, &container);
    seed_put("gguf", "values", container.bytes, container.length);
    container_free(&container);
}

static void make_split(uint64_t number, const char *tensor, struct container *container)
{
    struct gguf_file file = {0};

    gguf_begin(&file);
    gguf_put_key(&file, "k", 8);
    gguf_put_string(&file, "v");
    gguf_put_key(&file, "split.no", 2);
    gguf_put(&file, number, 2);
    gguf_put_key(&file, "split.count", 2);
    gguf_put(&file, 2, 2);
    gguf_put_key(&file, "split.tensors.count", 5);
    gguf_put(&file, 2, 4);
    gguf_put_tensor(&file, tensor, 1, (const uint64_t[1]){32}, 8);
    gguf_put_offset(&file, 0);
    gguf_finish(&file, 32, 34, container);
}

/* target_split.c says what the first four bytes are. */
static void put_split(const char *name, uint64_t number)
{
    struct container first = {0};
    struct container second = {0};
    struct zt_buffer input = {0};

    make_split(number, "a", &first);
    make_split(1 - number, "b", &second);
    zt_buffer_append_le32(&input, (uint32_t)first.length);
    zt_buffer_append(&input, first.bytes, first.length);
    zt_buffer_append(&input, second.bytes, second.length);
    seed_put("split", name, input.bytes, input.length);
    zt_buffer_free(&input);
    container_free(&first);
    container_free(&second);
}

static void put_npy(const char *name, const char *dict, size_t data_length)
{
    static const uint8_t data[256] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct bytes bytes = {NULL, 0};

    npy_append(&bytes, dict, data, data_length);
    seed_put("npy", name, bytes.at, bytes.length);
    bytes_free(&bytes);
}

static void put_npz(const char *name, enum zip_file_kind kind, bool is_wide)
{
    struct zip_file zip = {0};
    struct bytes fortran = {NULL, 0};
    static const uint8_t data[24] = {1, 2, 3, 4};

    zip_file_add_u8(&zip, "a.npy", kind, 5);
    npy_append(&fortran, "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }", data,
               sizeof(data));
    zip_file_add(&zip, "b/c.npy", kind, &fortran);
    zip_file_end(&zip, "", is_wide);
    seed_put("npz", name, zip.bytes.at, zip.bytes.length);
    bytes_free(&fortran);
    zip_file_free(&zip);
}

void seeds_neighbours(void)
{
    put_safetensors(
        "dtypes",
        "{'__metadata__':{'format':'pt'},'w':{'dtype':'F32','shape':[2,1],'data_offsets':[4,12]},'"
        "b':{'dtype':'BOOL','shape':[4],'data_offsets':[0,4]},'c':{'dtype':'C64','shape':[1],'data_"
        "offsets':[12,20]},'q':{'dtype':'F4','shape':[4],'data_offsets':[20,22]},'s':{'dtype':'F6_"
        "E2M3','shape':[4],'data_offsets':[22,25]}}  ",
        25);
    put_safetensors("empty", "{}", 0);
    put_gguf();
    put_split("ordered", 0);
    put_split("reversed", 1);
    put_npy("fortran", "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }", 24);
    put_npy("bool", "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1);
    put_npy("complex", "{'descr': '>c8', 'fortran_order': True, 'shape': (2, 2, 2), }", 64);
    put_npz("stored", ZIP_FILE_STORED, false);
    put_npz("deflated", ZIP_FILE_DEFLATED, false);
    put_npz("zip64", ZIP_FILE_ZIP64, true);
    put_npz("descriptor", ZIP_FILE_DESCRIPTOR, false);
}
