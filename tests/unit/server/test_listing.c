/* The table of `ls`, for models that no readable file produces. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

#include "commands/listing.h"

static void assert_listed(const struct zt_model *model, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    listing_print(model, stream);
    listing_print_totals(model, model->file_size, stream);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
}

TEST(a_format_without_a_version_leaves_no_blank)
{
    struct zt_model model = {.format_name = "npz", .version = {"", 0}, .file_size = 1};

    assert_listed(&model, "0 objects, 0 components, 1 byte, npz\n");
    model.version = (struct zt_text){"1\x1b", 2};
    assert_listed(&model, "0 objects, 0 components, 1 byte, npz 1\\u001b\n");
}
