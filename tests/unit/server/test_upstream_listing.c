/* Lists of files, as a hostile upstream may state them. */
#include "tests.h"

#include "upstream/listing.h"

#define SHA256_TEXT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SHA1_TEXT   "00112233445566778899aabbccddeeff00112233"
#define COMMIT      "0123456789abcdef0123456789abcdef01234567"

/* A file of git, with this path in JSON. */
#define FILE_NAMED(path) \
    "{\"type\":\"file\",\"path\":\"" path "\",\"size\":1,\"oid\":\"" SHA1_TEXT "\"}"

static enum zt_status read_pages(const char *const *pages, bool has_oids,
                                 struct upstream_listing **out_listing, struct zt_error *error)
{
    struct listing_builder *builder = listing_begin(has_oids);

    assert_non_null(builder);
    for (; *pages != NULL; pages++) {
        const enum zt_status status = listing_add_page(builder, zt_text_from(*pages), error);

        if (status != ZT_OK) {
            listing_drop(builder);
            return status;
        }
    }
    return listing_end(builder, COMMIT, out_listing, error);
}

TEST(list_has_the_files_of_all_pages_in_order)
{
    static const char *const pages[] = {
        "[{\"type\":\"directory\",\"path\":\"sub\",\"size\":0,\"oid\":\"" SHA1_TEXT "\"},"
        "{\"type\":\"file\",\"path\":\"sub/model.safetensors\",\"size\":7,\"oid\":\"" SHA1_TEXT
        "\",\"lfs\":{\"oid\":\"" SHA256_TEXT
        "\",\"size\":7,\"pointerSize\":130},\"xetHash\":\"x\"}]",
        "[" FILE_NAMED("sub.txt") "," FILE_NAMED(".gitattributes") "," FILE_NAMED("a/.b/c") "]",
        "[" FILE_NAMED("\\u00fc #+%?.json") "]", NULL};
    struct upstream_listing *listing = NULL;
    const struct upstream_file *file;
    struct zt_error error;

    assert_ok(read_pages(pages, true, &listing, &error));
    assert_string_equal(listing->commit, COMMIT);
    assert_int_equal(listing->count, 3);
    assert_int_equal(listing->left_out, 2);
    assert_string_equal(listing->files[0].path, "sub.txt");
    assert_int_equal(listing->files[0].digest_kind, UPSTREAM_GIT_SHA1);
    assert_string_equal(listing->files[2].path, "\xC3\xBC #+%?.json");
    file = &listing->files[1];
    assert_string_equal(file->path, "sub/model.safetensors");
    assert_int_equal(file->size_bytes, 7);
    assert_int_equal(file->digest_kind, UPSTREAM_SHA256);
    assert_int_equal(file->digest[31], 0xFF);
    upstream_listing_hold(listing);
    upstream_listing_free(listing);
    assert_string_equal(listing->files[0].path, "sub.txt");
    upstream_listing_free(listing);
}

TEST(made_up_oids_of_this_server_are_no_digests)
{
    static const char *const pages[] = {"[" FILE_NAMED("a") "]", NULL};
    static const char *const late[] = {
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"oid\":\"" COMMIT "\",\"lfs\":null}]",
        NULL};
    struct upstream_listing *listing = NULL;

    assert_ok(read_pages(pages, false, &listing, NULL));
    assert_int_equal(listing->files[0].digest_kind, UPSTREAM_NO_DIGEST);
    upstream_listing_free(listing);
    /* Of a Hub that says so. */
    assert_ok(read_pages(late, true, &listing, NULL));
    assert_int_equal(listing->files[0].digest_kind, UPSTREAM_NO_DIGEST);
    upstream_listing_free(listing);
}

/* Parsed, they would take a hundred times their bytes. */
TEST(pages_of_very_many_values_are_refused_unread)
{
    static const struct {
        const char *value;
        size_t count;
    } rows[] = {{"{},", LISTING_OBJECTS_MOST + 1},
                {"[],", LISTING_OBJECTS_MOST + 1},
                {"0,", LISTING_VALUES_MOST + 2}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listing_builder *builder = listing_begin(true);
        const size_t length = strlen(rows[i].value);
        char *page = malloc(rows[i].count * length + 1);
        struct zt_error error;

        assert_non_null(page);
        page[0] = '[';
        for (size_t at = 0; at < rows[i].count; at++)
            memcpy(page + 1 + at * length, rows[i].value, length);
        page[rows[i].count * length] = ']';
        assert_int_equal(
            listing_add_page(builder, (struct zt_text){page, rows[i].count * length + 1}, &error),
            ZT_UNAVAILABLE);
        assert_non_null(strstr(error.message, "too many values"));
        listing_drop(builder);
        free(page);
    }
}

TEST(keys_of_a_bucket_that_are_no_files_are_left_out)
{
    static const char *const keys[] = {"b",   "a//b", "a/../b", "c/", "dir/x",    ".h", "dir",
                                       "b/c", "b",    "e\x01",  "",   "\xff\xfe", "z",  "b/c/d"};
    struct listing_builder *builder = listing_begin(false);
    struct upstream_listing *listing = NULL;

    assert_non_null(builder);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_ok(listing_add(builder, zt_text_from(keys[i]), i, "e1", NULL));
    assert_ok(listing_add(builder, zt_text_from("endless"), UINT64_MAX, "e2", NULL));
    assert_ok(listing_end(builder, COMMIT, &listing, NULL));
    assert_int_equal(listing->count, 3);
    assert_string_equal(listing->files[0].path, "b/c/d");
    assert_string_equal(listing->files[1].path, "dir/x");
    assert_string_equal(listing->files[2].path, "z");
    assert_string_equal(listing->files[2].etag, "e1");
    assert_int_equal(listing->left_out, sizeof(keys) / sizeof(keys[0]) - 2);
    upstream_listing_free(listing);
}

TEST(lists_that_make_no_sense_are_refused)
{
    static const char *const lists[] = {
        "",
        "{}",
        "[",
        "[1]",
        "[{}]",
        "[{\"type\":\"file\",\"path\":\"a\"}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":-1}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1.5}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":\"1\"}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":9223372036854775807}]",
        "[{\"type\":\"file\",\"path\":7,\"size\":1}]",
        "[" FILE_NAMED("") "]",
        "[" FILE_NAMED("/a") "]",
        "[" FILE_NAMED("a/") "]",
        "[" FILE_NAMED("a//b") "]",
        "[" FILE_NAMED("..") "]",
        "[" FILE_NAMED("a/../b") "]",
        "[" FILE_NAMED("./a") "]",
        "[" FILE_NAMED("a\\nb") "]",
        "[" FILE_NAMED("a\\u0000b") "]",
        "[" FILE_NAMED("a\\u007fb") "]",
        "[" FILE_NAMED("a\xFF") "]",
        "[" FILE_NAMED("a") "," FILE_NAMED("a") "]",
        "[" FILE_NAMED("a") "," FILE_NAMED("a.b") "," FILE_NAMED("a/b") "]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"lfs\":7}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"lfs\":{\"size\":1}}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"lfs\":{\"oid\":\"" SHA1_TEXT
        "\",\"size\":1}}]",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"lfs\":{\"oid\":\"" SHA256_TEXT
        "\",\"size\":2}}]",
        "[" FILE_NAMED("a") "] x",
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *const pages[] = {lists[i], NULL};
        struct upstream_listing *listing = NULL;
        struct zt_error error;

        if (read_pages(pages, true, &listing, &error) != ZT_UNAVAILABLE || listing != NULL)
            fail_msg("%s", lists[i]);
        assert_string_equal(error.rule, UPSTREAM_REFUSED);
    }
}

TEST(too_many_files_and_too_long_names_are_bounded)
{
    struct listing_builder *builder = listing_begin(true);
    struct upstream_listing *listing = NULL;
    char page[2000];
    char *long_page = calloc(1, LISTING_PAGE_MOST + 2);
    int length;

    assert_non_null(long_page);
    memset(long_page, ' ', LISTING_PAGE_MOST + 1);
    assert_int_equal(listing_add_page(builder, zt_text_from(long_page), NULL), ZT_LIMIT);
    free(long_page);
    length = snprintf(page, sizeof(page), "[{\"type\":\"file\",\"size\":1,\"path\":\"");
    memset(page + length, 'x', 300);
    strcpy(page + length + 300, "\"}]");
    assert_ok(listing_add_page(builder, zt_text_from(page), NULL));
    for (size_t i = 0; i < LISTING_FILES_MOST; i++) {
        snprintf(page, sizeof(page), "[{\"type\":\"file\",\"size\":1,\"path\":\"%zu\"}]", i);
        assert_ok(listing_add_page(builder, zt_text_from(page), NULL));
    }
    assert_int_equal(listing_add_page(builder, zt_text_from(page), NULL), ZT_LIMIT);
    assert_ok(listing_end(builder, COMMIT, &listing, NULL));
    assert_int_equal(listing->count, LISTING_FILES_MOST);
    assert_int_equal(listing->left_out, 1);
    upstream_listing_free(listing);
}

TEST(commit_is_read_with_its_date)
{
    static const struct {
        const char *json;
        int64_t modified_s; /* -1: refused */
    } rows[] = {
        {"{\"sha\":\"" COMMIT "\",\"lastModified\":\"1970-01-01T00:01:00.500Z\"}", 60},
        {"{\"sha\":\"" SHA256_TEXT "\"}", 0},
        {"{\"sha\":\"" COMMIT "\",\"lastModified\":\"yesterday\"}", 0},
        {"{\"sha\":\"" COMMIT "\",\"lastModified\":\"1969-01-01T00:00:00Z\"}", 0},
        {"{\"sha\":\"0123456789ABCDEF0123456789abcdef01234567\"}", -1},
        {"{\"sha\":\"main\"}", -1},
        {"{\"sha\":7}", -1},
        {"{\"sha\":\"" COMMIT "\",\"sha\":\"" COMMIT "\"}", -1},
        {"[]", -1},
        {"<html>", -1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char commit[UPSTREAM_COMMIT_SIZE];
        int64_t modified_ns = -1;
        const enum zt_status status =
            listing_read_commit(zt_text_from(rows[i].json), commit, &modified_ns, NULL);

        if (status != (rows[i].modified_s < 0 ? ZT_UNAVAILABLE : ZT_OK))
            fail_msg("%s", rows[i].json);
        if (status == ZT_OK)
            assert_int_equal(modified_ns, rows[i].modified_s * 1000000000);
    }
}
