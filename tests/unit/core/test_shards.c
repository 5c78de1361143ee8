/* Models in several files: which file is a shard, and content in shards. */
#include "tests.h"

#include <stdlib.h>
#include <string.h>

#include "handmade.h"
#include "zt/verify.h"
#include "zt2_file.h"

#define IDENTITY "zt2 §9 ShardIdentity"

static struct zt_shard shard_of(const char *name, uint64_t size_bytes, const char *digest)
{
    return (struct zt_shard){.name = name,
                             .digest = digest,
                             .size_bytes = size_bytes,
                             .name_length = (uint32_t)strlen(name),
                             .digest_length = (uint32_t)strlen(digest)};
}

static struct zt_source *source_of(const void *bytes, size_t length)
{
    struct zt_source *source = memory_source(bytes, length);

    return source;
}

/* A data shard: 4096 bytes of header and padding, data, a footer without a manifest. */
static struct zt2_file make_data_shard(const char *data)
{
    struct zt2_file file = {0};
    const size_t length = strlen(data);

    zt2_file_make(&file, 4096 + length, "");
    memcpy(file.bytes + 4096, data, length);
    memset(file.bytes + file.length - ZT2_FILE_FOOTER, 0, 24);
    return file;
}

static enum zt_status check_as(const struct zt2_file *file, uint64_t stated_size,
                               struct zt_error *error)
{
    const struct zt_shard shard = shard_of("w", stated_size, "xxh3:0");
    struct zt_source *source = source_of(file->bytes, file->length);
    enum zt_status status;

    zt_error_clear(error);
    status = zt_shard_check(&shard, source, error);
    zt_source_close(source);
    return status;
}

/* --- telling shards --- */

static enum zt_status check_part(const void *bytes, size_t length, uint64_t stated_size,
                                 struct zt_error *error)
{
    struct zt_shard part = shard_of("p", stated_size, "");
    struct zt_source *source = source_of(bytes, length);
    enum zt_status status;

    part.kind = ZT_SHARD_PART;
    part.digest = NULL;
    zt_error_clear(error);
    status = zt_shard_check(&part, source, error);
    zt_source_close(source);
    return status;
}

TEST(parts_are_models_of_exactly_the_size)
{
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    struct zt_error error;

    assert_ok(check_part(empty, 10, 10, &error));
    assert_int_equal(check_part(empty, 10, 11, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "index §Parts PartSize", ZT_NO_OFFSET);
    assert_int_equal(check_part(empty, 9, 9, &error), ZT_INVALID);
    assert_memory_equal(error.message, "shard p: ", 9);
}

TEST(data_shards_and_whole_models_can_be_shards)
{
    struct zt2_file file = make_data_shard("0123");
    struct zt_error error;

    assert_ok(check_as(&file, file.length, &error));
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT(ZT2_PART, ZT2_REST));
    assert_ok(check_as(&file, file.length, &error));
    zt2_file_free(&file);
}

TEST(a_shard_has_exactly_the_stated_size)
{
    struct zt2_file file = make_data_shard("0123");
    struct zt_error error;

    for (int off = -1; off <= 1; off += 2) {
        assert_int_equal(check_as(&file, file.length + (uint64_t)off, &error), ZT_INVALID);
        assert_failure(&error, ZT_INVALID, IDENTITY, ZT_NO_OFFSET);
        assert_non_null(strstr(error.message, "shard w has 4140 bytes"));
    }
    zt2_file_free(&file);
}

TEST(a_shard_is_a_valid_container_itself)
{
    struct zt2_file file = make_data_shard("0123");
    struct zt_error error;

    file.bytes[0] ^= 1;
    assert_int_equal(check_as(&file, file.length, &error), ZT_INVALID);
    assert_failure(&error, ZT_INVALID, "zt2 §1 HeaderMagic", 0);
    assert_string_equal(error.message, "shard w: the file does not begin as zTensor 2 does");
    zt2_file_make(&file, ZT2_MANIFEST_AT, ZT2_OBJECT("{'blob':[4095,8],'dtype':'u8'}", ZT2_REST));
    assert_int_equal(check_as(&file, file.length, &error), ZT_INVALID);
    assert_string_equal(error.rule, "zt2 §1 BlobAlignment");
    assert_string_equal(error.object, "");
    zt2_file_free(&file);
}

static bool count_bytes(void *context, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
    return true;
}

static bool stop_at_once(void *context, uint64_t bytes)
{
    (void)context;
    (void)bytes;
    return false;
}

TEST(the_digest_covers_the_whole_shard)
{
    struct zt2_file file = make_data_shard("0123");
    struct zt_source *source = source_of(file.bytes, file.length);
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_digest digest;
    struct zt_error error;
    uint64_t hashed = 0;
    const struct zt_progress counting = {count_bytes, &hashed};
    struct zt_shard shard;

    assert_ok(zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, &error));
    zt_digest_format(&digest, text);
    shard = shard_of("w", file.length, text);
    assert_ok(zt_shard_check_digest(&shard, source, &counting, &error));
    assert_int_equal(hashed, file.length);
    file.bytes[8] ^= 1; /* padding counts too */
    assert_int_equal(zt_shard_check_digest(&shard, source, NULL, &error), ZT_CORRUPT);
    assert_failure(&error, ZT_CORRUPT, IDENTITY, ZT_NO_OFFSET);
    zt_source_close(source);
    zt2_file_free(&file);
}

TEST(unknown_digests_are_not_judged)
{
    const struct zt_shard shard = shard_of("w", 4, "blake3:00");
    const struct zt_progress stopping = {stop_at_once, NULL};
    struct zt_source *source = source_of("data", 4);
    struct zt_digest digest;
    struct zt_error error;

    assert_int_equal(zt_shard_check_digest(&shard, source, NULL, &error), ZT_UNSUPPORTED);
    assert_int_equal(zt_source_digest(source, ZT_DIGEST_XXH3, &stopping, &digest, &error),
                     ZT_ARGUMENT);
    zt_source_close(source);
}

TEST(siblings_are_named_after_the_stem)
{
    static const char *const paths[][2] = {
        {"m.zt", "m-w.zt"},      {"d.ir/m", "d.ir/m-w.zt"},   {"/d/a.b.zt", "/d/a.b-w.zt"},
        {"d/.zt", "d/.zt-w.zt"}, {"m.safetensors", "m-w.zt"},
    };
    const struct zt_shard shard = shard_of("w", 48, "xxh3:0");

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        char *path = zt_shard_sibling(paths[i][0], &shard);

        assert_string_equal(path, paths[i][1]);
        free(path);
    }
}

/* --- content in shards --- */

/* Two parts, the second of them in the only shard. */
static void make_csr(struct handmade *made, struct bytes *shard, const uint32_t indptr[3])
{
    static const uint64_t shape[] = {2, 2};
    static const uint32_t indices[] = {0, 1};
    struct zt_component *pointers;

    handmade_init(made, ZT_FORMAT_ZT2, ZT_LAYOUT_SPARSE_CSR, 2, shape);
    handmade_add(made, "indices", ZT_U32, indices, sizeof(indices));
    pointers = handmade_add(made, "indptr", ZT_U32, indptr, 12);
    handmade_add(made, "values", ZT_U8, "ab", 2);
    pointers->shard = 1;
    bytes_append(shard, "shard...", 8);
    pointers->offset = 8;
    bytes_append(shard, indptr, 12);
    handmade_open(made);
}

static enum zt_status check_with(struct handmade *made, struct zt_source *shard,
                                 struct zt_error *error)
{
    struct zt_source *const shards[] = {shard};
    const struct zt_files files = {made->source, shards};

    zt_error_clear(error);
    return zt_object_check(&made->model, &made->object, &files, error);
}

TEST(content_rules_are_judged_across_files)
{
    static const uint32_t good[] = {0, 1, 2};
    static const uint32_t bad[] = {0, 1, 1};
    struct handmade made;
    struct bytes data = {0};
    struct zt_error error;
    struct zt_source *shard;

    make_csr(&made, &data, good);
    shard = source_of(data.at, data.length);
    assert_ok(check_with(&made, shard, &error));
    memcpy(data.at + 8, bad, sizeof(bad));
    assert_int_equal(check_with(&made, shard, &error), ZT_INVALID);
    assert_string_equal(error.rule, "zt2 §6 LayoutData");
    zt_source_close(shard);
    bytes_free(&data);
    handmade_free(&made);
}

TEST(content_in_a_missing_shard_is_unsupported)
{
    static const uint32_t good[] = {0, 1, 2};
    struct handmade made;
    struct bytes data = {0};
    struct zt_error error;
    struct zt_files files;

    make_csr(&made, &data, good);
    assert_int_equal(check_with(&made, NULL, &error), ZT_UNSUPPORTED);
    assert_non_null(strstr(error.message, "missing"));
    files = (struct zt_files){made.source, NULL};
    assert_int_equal(zt_object_check(&made.model, &made.object, &files, &error), ZT_UNSUPPORTED);
    assert_ptr_equal(zt_files_source(&files, &made.parts[0]), made.source);
    assert_null(zt_files_source(&files, &made.parts[1]));
    bytes_free(&data);
    handmade_free(&made);
}

TEST(a_spare_nibble_in_a_shard_must_be_zero)
{
    static const uint64_t shape[] = {1};
    struct handmade made;
    struct zt_error error;
    struct zt_source *good = source_of("\x05", 1);
    struct zt_source *bad = source_of("\x15", 1);
    struct zt_component *part;

    handmade_init(&made, ZT_FORMAT_ZT2, ZT_LAYOUT_DENSE, 1, shape);
    part = handmade_add(&made, "data", ZT_U8, "\x15", 1);
    part->logical = ZT_LOGICAL_F4_E2M1;
    part->shard = 1;
    part->offset = 0;
    handmade_open(&made);
    assert_ok(check_with(&made, good, &error));
    assert_int_equal(check_with(&made, bad, &error), ZT_INVALID);
    assert_int_equal(check_with(&made, NULL, &error), ZT_UNSUPPORTED);
    zt_source_close(good);
    zt_source_close(bad);
    handmade_free(&made);
}
