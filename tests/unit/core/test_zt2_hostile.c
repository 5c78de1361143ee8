/* zTensor 2 files that are truncated, flipped or hostile: refused at once, in little memory,
 * without reading a byte out of bounds. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sanitized.h"
#include "zt2_file.h"

/* What a file of less than 1 KiB may cost. */
#define MEMORY_KIB_MAX 1024

static struct zt_error error;

/* A little of everything: two layouts, an encoding, a shard, attributes at both levels. */
static const char rich[] =
    "{'shards':{'s':{'size':9000,'digest':'xxh3:00'}},'objects':{'c':{'parts':{'indptr':{'blob':["
    "4096,12],'dtype':'u32'},'values':{'blob':[8192,12],'dtype':'f32','digest':'xxh3:"
    "0011223344556677'},'indices':{'blob':[12288,12],'dtype':'u32'}},'shape':[2,3],'layout':'zt."
    "sparse_csr/"
    "1'},'g':{'parts':{'data':{'blob':[4096,36],'dtype':'u8','shard':'s'}},'shape':[2,32],'layout':"
    "'gguf.q4_0/"
    "1','attributes':{'block_bytes':18,'elems_per_block':32}},'zz':{'parts':{'data':{'blob':[8192,"
    "12],'type':'bool','dtype':'u8','encoding':'zt.zstd-seekable/"
    "1','decoded_length':1000}},'shape':[1000],'layout':'dense'}},'attributes':{'k':[1.5,null,h'"
    "00ff',{'':true}]}}";

static long peak_kib(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Opens the file, and asserts the bound on memory. */
static enum zt_status try_bounded(const struct zt2_file *file)
{
    long before_kib = peak_kib();
    enum zt_status status = zt2_file_try(file, &error);

#ifdef ZT_SANITIZED
    (void)before_kib; /* the sanitizer keeps what is freed */
#else
    assert_true(peak_kib() - before_kib <= MEMORY_KIB_MAX);
#endif
    return status;
}

TEST(a_manifest_of_2_gib_costs_nothing)
{
    struct zt2_file file = {0};

    zt2_file_make(&file, 4096, "{'objects':{}}");
    memcpy(file.bytes + file.length - 32, "\0\0\0\x80\0\0\0", 8);
    assert_int_equal(try_bounded(&file), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 ManifestTooLarge", file.length - 32);
    zt2_file_free(&file);
}

TEST(counts_that_the_bytes_cannot_hold_cost_nothing)
{
    static const char *const manifests[] = {
        "^!9a10000000",                                      /* an array of 2^28 */
        "^!bb0000000010000000",                              /* a map of 2^28 */
        "{'objects':^!bb7fffffffffffffff}",                  /* and of 2^63 - 1 */
        "{'a':^!9a10000000}",                                /* where it is skipped */
        "{'objects':{'a':{'parts':^!ba0fffffff}}}",          /* of parts */
        "{'objects':{'a':{'shape':^!9a00000040}}}",          /* of dimensions */
        "{'objects':{'a':{'layout':^!7b7fffffffffffffff}}}", /* a text */
        "{'objects':{},'attributes':{'a':^!5a7fffffff}}",    /* bytes */
    };
    struct zt2_file file = {0};

    for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++) {
        zt2_file_make(&file, 4096, manifests[i]);
        assert_int_equal(try_bounded(&file), ZT_INVALID);
        assert_failure(&error, ZT_INVALID, "zt2 §2 CborSyntax", file.mark);
    }
    zt2_file_free(&file);
}

TEST(a_hundred_thousand_nested_arrays_are_refused_at_the_33rd)
{
    enum { DEPTH = 100000 };
    static char manifest[2 * DEPTH + 4];
    struct zt2_file file = {0};

    manifest[0] = '!';
    for (int i = 0; i < DEPTH; i++)
        memcpy(manifest + 1 + 2L * i, "81", 2);
    memcpy(manifest + 1 + 2L * DEPTH, "80", 3);
    zt2_file_make(&file, 4096, manifest);
    assert_int_equal(try_bounded(&file), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §2 CborDepth", 4096 + 33);
    zt2_file_free(&file);
}

TEST(shapes_that_overflow_are_refused)
{
    static const char *const shapes[] = {"[4294967296,4294967296]", "[18446744073709551615,2,0]",
                                         "[2305843009213693952]"};
    struct zt2_file file = {0};
    char manifest[300];

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        snprintf(manifest, sizeof(manifest),
                 "{'objects':{'a':{'parts':{'data':{'blob':[4096,0],'dtype':'f64'}},'shape':%s,'"
                 "layout':'dense'}}}",
                 shapes[i]);
        zt2_file_make(&file, 4096, manifest);
        assert_int_equal(try_bounded(&file), ZT_INVALID);
        assert_string_equal(error.rule, i < 2 ? "zt2 §3 Shape" : "zt2 §6 DenseSize");
    }
    zt2_file_free(&file);
}

TEST(every_prefix_is_refused)
{
    struct zt2_file file = {0};

    zt2_file_make(&file, ZT2_MANIFEST_AT, rich);
    assert_ok(zt2_file_try(&file, &error));
    for (size_t length = 0; length < file.length; length++) {
        struct zt2_file prefix = {.bytes = malloc(length > 0 ? length : 1), .length = length};

        assert_non_null(prefix.bytes);
        memcpy(prefix.bytes, file.bytes, length);
        assert_int_equal(zt2_file_try(&prefix, &error), ZT_INVALID);
        assert_string_equal(error.rule, length < 48 ? "zt2 §1 FileTooSmall" : "zt2 §1 FooterMagic");
        zt2_file_free(&prefix);
    }
    zt2_file_free(&file);
}

TEST(every_flipped_bit_is_refused_or_harmless)
{
    struct zt2_file file = {0};

    zt2_file_make(&file, ZT2_MANIFEST_AT, rich);
    for (size_t bit = 8 * ZT2_MANIFEST_AT; bit < 8 * file.length; bit++) {
        size_t at = bit / 8;
        bool reserved = at >= file.length - 12 && at < file.length - 8;

        file.bytes[at] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(zt2_file_try(&file, &error), reserved ? ZT_OK : ZT_INVALID);
        assert_true(reserved || error.rule != NULL);
        file.bytes[at] ^= (uint8_t)(1u << bit % 8);
    }
    zt2_file_free(&file);
}

/* With the hash repaired the flipped bit reaches the reader: the result is another valid model or a
 * broken rule, nothing else. */
TEST(every_flipped_bit_under_a_right_hash_is_a_rule_or_a_model)
{
    struct zt2_file file = {0};
    size_t refused = 0;

    zt2_file_make(&file, ZT2_MANIFEST_AT, rich);
    for (size_t bit = 8 * ZT2_MANIFEST_AT; bit < 8 * (file.length - ZT2_FILE_FOOTER); bit++) {
        enum zt_status status;

        file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        zt2_file_seal(&file);
        status = zt2_file_try(&file, &error);
        assert_true(status == ZT_OK || (status == ZT_INVALID && error.rule != NULL));
        assert_true(status == ZT_OK || error.offset <= file.length);
        refused += status != ZT_OK;
        file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(refused > 0);
    zt2_file_free(&file);
}

TEST(every_truncated_manifest_under_a_right_hash_is_refused)
{
    struct zt2_file whole = {0};
    struct zt2_file cut = {0};
    size_t manifest_length;

    zt2_file_make(&whole, ZT2_MANIFEST_AT, rich);
    manifest_length = whole.length - ZT2_MANIFEST_AT - ZT2_FILE_FOOTER;
    for (size_t length = 1; length < manifest_length; length++) {
        cut.length = ZT2_MANIFEST_AT + length + ZT2_FILE_FOOTER;
        cut.manifest_offset = ZT2_MANIFEST_AT;
        cut.bytes = malloc(cut.length);
        assert_non_null(cut.bytes);
        memcpy(cut.bytes, whole.bytes, ZT2_MANIFEST_AT + length);
        memcpy(cut.bytes + ZT2_MANIFEST_AT + length, whole.bytes + whole.length - ZT2_FILE_FOOTER,
               ZT2_FILE_FOOTER);
        cut.bytes[cut.length - 32] = (uint8_t)length;
        cut.bytes[cut.length - 31] = (uint8_t)(length >> 8);
        zt2_file_seal(&cut);
        assert_int_equal(zt2_file_try(&cut, &error), ZT_INVALID);
        assert_string_equal(error.rule, "zt2 §2 CborSyntax");
        zt2_file_free(&cut);
    }
    zt2_file_free(&whole);
}
