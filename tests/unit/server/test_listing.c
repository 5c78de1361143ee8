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

    assert_listed(&model, "0 objects, 0 components, 0 parameters, 1 byte, npz\n");
    model.version = (struct zt_text){"1\x1b", 2};
    assert_listed(&model, "0 objects, 0 components, 0 parameters, 1 byte, npz 1\\u001b\n");
}

/* The totals of a model with two tensors of these lengths. */
static void assert_totals(uint64_t first, uint64_t second, const char *expected)
{
    const uint64_t dimensions[] = {first, second};
    const struct zt_object objects[] = {{.rank = 1}, {.rank = 1, .first_dimension = 1}};
    const struct zt_model model = {.format_name = "npz",
                                   .objects = objects,
                                   .object_count = 2,
                                   .dimensions = dimensions,
                                   .file_size = 1};
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    listing_print_totals(&model, model.file_size, stream);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
}

TEST(parameters_are_shown_in_units_of_a_thousand)
{
    assert_totals(1, 0, "2 objects, 0 components, 1 parameter, 1 byte, npz\n");
    assert_totals(998, 1, "2 objects, 0 components, 999 parameters, 1 byte, npz\n");
    assert_totals(999, 1, "2 objects, 0 components, 1.0 K parameters, 1 byte, npz\n");
    assert_totals(999949, 0, "2 objects, 0 components, 999.9 K parameters, 1 byte, npz\n");
    assert_totals(999950, 0, "2 objects, 0 components, 1.0 M parameters, 1 byte, npz\n");
    assert_totals(1235814400, 0, "2 objects, 0 components, 1.2 B parameters, 1 byte, npz\n");
    assert_totals(UINT64_MAX, 0, "2 objects, 0 components, 18446744.1 T parameters, 1 byte, npz\n");
}

TEST(a_number_of_parameters_beyond_64_bits_is_not_shown)
{
    assert_totals(UINT64_MAX, 1, "2 objects, 0 components, 1 byte, npz\n");
}
