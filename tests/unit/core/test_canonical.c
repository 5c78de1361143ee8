/* zTensor 2's canonical form: files that have it, and each way to violate it. */
#include "tests.h"

#include <string.h>

#include "zt/verify.h"
#include "zt2_file.h"

#define BLOB 65536
/* XXH3-64 of nothing, and of eight bytes 1 and 2. */
#define EMPTY "xxh3:2d06800538d394c2"
#define ONES  ",'digest':'xxh3:71e702e0b0fb1d66'"
#define TWOS  ",'digest':'xxh3:e4952c07c3685efe'"

static struct zt2_file file;
static struct zt_error error;

static enum zt_status check(void)
{
    struct zt_model *model;
    struct zt_source *source;
    enum zt_status status;

    zt2_file_seal(&file);
    zt_error_clear(&error);
    assert_ok(zt2_file_open(&file, &model, &error));
    source = memory_source(file.bytes, file.length);
    status = zt_canonical_check(model, source, &error);
    zt_source_close(source);
    zt_model_free(model);
    return status;
}

/* A file with eight bytes of each fill at BLOB and 2 BLOB. */
static void make_two(const char *manifest, uint8_t first, uint8_t second)
{
    zt2_file_make(&file, 3 * BLOB, manifest);
    memset(file.bytes + BLOB, first, 8);
    memset(file.bytes + 2L * BLOB, second, 8);
}

#define PART(at, more)     "{'data':{'blob':[" at ",8],'dtype':'u8'" more "}}"
#define OBJECT(at, digest) "{'parts':" PART(at, digest) ",'shape':[8],'layout':'dense'}"
#define TWO                "{'objects':{'a':" OBJECT("65536", ONES) ",'b':" OBJECT("131072", TWOS) "}}"

static void refused(const char *rule, uint64_t offset)
{
    assert_int_equal(check(), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, rule, offset);
}

/* The position of text in the manifest, counted from 0 for the n-th time it is there. */
static uint64_t position_of(const char *text, unsigned n)
{
    const uint8_t *at = file.bytes + file.manifest_offset;
    const uint8_t *end = file.bytes + file.length;

    for (;; at++) {
        at = memmem(at, (size_t)(end - at), text, strlen(text));
        assert_non_null(at);
        if (n-- == 0)
            return (uint64_t)(at - file.bytes);
    }
}

#define TWO_OF(a, b) "{'objects':{'a':" a ",'b':" b "}}"

/* Eight bytes of one fill each at the first and the second place. */
TEST(blobs_are_packed_in_the_order_of_names_and_shared)
{
    static const struct {
        const char *row;
        const char *manifest;
        uint8_t first, second;
        const char *rule; /* NULL: it is canonical */
        unsigned part;    /* the number of the one that is refused */
        const char *object;
    } cases[] = {
        {"packed", TWO, 1, 2, NULL, 0, NULL},
        /* "b" comes first in the manifest, being shorter; "aa" comes first in the file */
        {"ordered by bytes",
         "{'objects':{'b':" OBJECT("131072", TWOS) ",'aa':" OBJECT("65536", ONES) "}}", 1, 2, NULL,
         0, NULL},
        {"out of order", TWO_OF(OBJECT("131072", ONES), OBJECT("65536", TWOS)), 1, 2,
         "zt2 §7 Placement", 0, "a"},
        {"out of place", TWO_OF(OBJECT("65536", ONES), OBJECT("135168", TWOS)), 1, 2,
         "zt2 §7 Placement", 1, "b"},
        {"before the first place", TWO_OF(OBJECT("65536", ONES), OBJECT("4096", ONES)), 1, 0,
         "zt2 §7 Placement", 1, "b"},
        {"the same bytes twice", TWO_OF(OBJECT("65536", ONES), OBJECT("131072", ONES)), 1, 1,
         "zt2 §7 Sharing", 1, "b"},
        {"two digests of one blob", TWO_OF(OBJECT("65536", ONES), OBJECT("65536", TWOS)), 1, 2,
         "zt2 §7 Digest", 1, "b"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum zt_status status;

        make_two(cases[i].manifest, cases[i].first, cases[i].second);
        status = check();
        if (status != (cases[i].rule == NULL ? ZT_OK : ZT_INVALID))
            fail_msg("%s: %s", cases[i].row, status == ZT_OK ? "canonical" : error.message);
        if (cases[i].rule == NULL)
            continue;
        if (strcmp(error.object, cases[i].object) != 0)
            fail_msg("%s: at %s", cases[i].row, error.object);
        assert_failure(&error, ZT_INVALID, cases[i].rule, position_of("data", cases[i].part));
    }
}

TEST(accepts_an_empty_model_and_attributes)
{
    zt2_file_make(&file, BLOB, "{'objects':{}}");
    assert_ok(check());
    zt2_file_make(&file, BLOB, "{'objects':{},'attributes':{'k':[1.5,null]}}");
    assert_ok(check());
}

TEST(accepts_one_blob_for_the_same_bytes)
{
    zt2_file_make(&file, 2 * BLOB,
                  "{'objects':{'a':" OBJECT("65536", ONES) ",'b':" OBJECT("65536", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    assert_ok(check());
}

TEST(parts_of_no_bytes_may_lie_anywhere)
{
    zt2_file_make(
        &file, 2 * BLOB,
        "{'objects':{'a':{'parts':{'data':{'blob':[4096,0],'dtype':'f32','digest':'" EMPTY
        "'}},'shape':[0],'layout':'dense'},'b':" OBJECT(
            "65536", ONES) ",'c':{'parts':{'data':{'blob':[65536,0],'dtype':'f32','digest':'" EMPTY
                           "'}},'shape':[0],'layout':'dense'}}}");
    memset(file.bytes + BLOB, 1, 8);
    assert_ok(check());
}

TEST(refuses_a_wrong_digest_of_nothing)
{
    zt2_file_make(&file, BLOB,
                  "{'objects':{'a':{'parts':{'data':{'blob':[65536,0],'dtype':'f32','digest':'xxh3:"
                  "0000000000000000'}},'shape':[0],'layout':'dense'}}}");
    refused("zt2 §7 Digest", position_of("data", 0));
}

TEST(refuses_a_blob_that_nothing_refers_to)
{
    zt2_file_make(&file, 3 * BLOB, "{'objects':{'a':" OBJECT("65536", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    refused("zt2 §7 Placement", 3 * BLOB);
}

TEST(refuses_bytes_between_manifest_and_footer)
{
    uint8_t hash[8];
    uint64_t value;
    struct zt_model *model;
    struct zt_source *source;

    zt2_file_make(&file, BLOB,
                  "{'objects':{}} 0"); /* the footer is made to leave out the last byte */
    file.bytes[file.length - 32]--;
    value = zt_xxh3(file.bytes + BLOB, file.length - ZT2_FILE_FOOTER - BLOB - 1);
    for (int i = 0; i < 8; i++)
        hash[i] = (uint8_t)(value >> (8 * i));
    memcpy(file.bytes + file.length - 24, hash, 8);

    assert_ok(zt2_file_open(&file, &model, &error));
    source = memory_source(file.bytes, file.length);
    assert_int_equal(zt_canonical_check(model, source, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §7 Unreferenced", file.length - ZT2_FILE_FOOTER - 1);
    zt_source_close(source);
    zt_model_free(model);
}

TEST(refuses_the_same_bytes_twice_with_others_between)
{
    zt2_file_make(&file, 4 * BLOB,
                  "{'objects':{'a':" OBJECT("65536", ONES) ",'b':" OBJECT(
                      "131072", TWOS) ",'c':" OBJECT("196608", ONES) "}}");
    memset(file.bytes + BLOB, 1, 8);
    memset(file.bytes + 2L * BLOB, 2, 8);
    memset(file.bytes + 3L * BLOB, 1, 8);
    refused("zt2 §7 Sharing", position_of("data", 2));
}

TEST(refuses_dirty_padding_and_the_reserved_word)
{
    static const size_t places[] = {8, BLOB - 1, BLOB + 8, 2 * BLOB + 8, 3 * BLOB - 1};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        make_two(TWO, 1, 2);
        file.bytes[places[i]] = 0x80;
        refused("zt2 §7 Padding", places[i]);
    }
    make_two(TWO, 1, 2);
    file.bytes[file.length - 9] = 1;
    refused("zt2 §7 Reserved", file.length - 9);
}

TEST(refuses_data_that_is_not_its_digest)
{
    make_two(TWO, 1, 2);
    file.bytes[2 * BLOB + 7] ^= 1;
    refused("zt2 §7 Digest", position_of("data", 1));
}

TEST(refuses_digests_missing_or_by_another_algorithm)
{
    zt2_file_make(&file, 2 * BLOB, "{'objects':{'a':" OBJECT("65536", "") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
    zt2_file_make(&file, 2 * BLOB,
                  "{'objects':{'a':" OBJECT("65536", ",'digest':'crc32c:00000000'") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
    zt2_file_make(&file, 2 * BLOB, "{'objects':{'a':" OBJECT("65536", ",'digest':'xxh3:00'") "}}");
    refused("zt2 §7 Digest", position_of("data", 0));
}

TEST(refuses_encoded_parts)
{
    zt2_file_make(&file, 2 * BLOB,
                  "{'objects':{'a':" OBJECT("65536",
                                            ",'digest':'xxh3:0000000000000000','encoding':'zt.zstd-"
                                            "seekable/1','decoded_length':8") "}}");
    refused("zt2 §7 Encoding", position_of("data", 0));
}

TEST(refuses_shards)
{
    zt2_file_make(&file, BLOB, "{'shards':{@'s':{'size':48,'digest':'xxh3:00'}},'objects':{}}");
    refused("zt2 §7 Shards", file.mark);
}

TEST(refuses_what_a_fresh_manifest_would_not_hold)
{
    zt2_file_make(&file, BLOB, "{'x':1,'objects':{}}");
    refused("zt2 §7 Manifest", BLOB);
    zt2_file_make(&file, BLOB, "{'shards':{},'objects':{}}");
    refused("zt2 §7 Manifest", BLOB);
    make_two(
        "{'objects':{'a':" OBJECT("65536", ONES ",'future':1") ",'b':" OBJECT("131072", TWOS) "}}",
        1, 2);
    refused("zt2 §7 Manifest",
            position_of("data", 0) + 4); /* the head of the part's map counts one more */
}

TEST(refuses_names_that_are_not_composed)
{
    zt2_file_make(&file, BLOB, "{'objects':{},'attributes':{@'e\xcc\x81':1}}");
    refused("zt2 §7 Name", file.mark);
    zt2_file_make(&file, BLOB, "{'objects':{},'attributes':{'\xc3\xa9':{'e\xcc\x81':1}}}");
    assert_ok(check()); /* composed; what is nested is not a name */
    zt2_file_make(
        &file, 2 * BLOB,
        "{'objects':{@'e\xcc\x81':" OBJECT("65536", ",'digest':'xxh3:0000000000000000'") "}}");
    refused("zt2 §7 Name", file.mark);
}

TEST(is_asked_of_zt2_alone)
{
    const struct zt_model model = {.format = ZT_FORMAT_ZT1};

    assert_int_equal(zt_canonical_check(&model, NULL, &error), ZT_ARGUMENT);
}

static int free_file(void **state)
{
    (void)state;
    zt2_file_free(&file);
    return 0;
}

AROUND_ALL_TESTS(NULL, free_file)
