/* Detecting formats by content. */
#include <string.h>

#include "tests.h"
#include "zt/model.h"

static enum zt_status open_bytes(const void *bytes, size_t length, struct zt_error *error)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    enum zt_status status;

    zt_error_clear(error);
    source = memory_source(bytes, length);
    status = zt_model_open(source, &model, error);
    assert_null(model);
    zt_source_close(source);
    return status;
}

TEST(open_names_formats_that_are_not_read)
{
    static const char tar[] = {[257] = 'u', 's', 't', 'a', 'r'};
    static const struct {
        const char *bytes;
        size_t length;
        const char *name;
    } cases[] = {
        {"MAG&\1\0\0\0", 8, ".mag"},
        {"\x89HDF\r\n\x1a\n", 8, "HDF5"},
        {tar, sizeof(tar), "PyTorch wrote before 0.1.10"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zt_error error;

        assert_int_equal(open_bytes(cases[i].bytes, cases[i].length, &error), ZT_UNSUPPORTED);
        assert_non_null(strstr(error.message, cases[i].name));
    }
}

TEST(open_refuses_unknown_content)
{
    static const char vectors[][16] = {"",          "Z", "ZTEN000", "ZTEN0002", "hello, world",
                                       "12345678{}"};
    static const size_t lengths[] = {0, 1, 7, 8, 12, 10};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct zt_error error;

        open_bytes(vectors[i], lengths[i], &error);
        assert_failure(&error, ZT_INVALID, "zt §Detection UnknownFormat", 0);
    }
}
