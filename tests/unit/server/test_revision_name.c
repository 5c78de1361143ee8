/* Names of models at a revision. */
#include "tests.h"

#include "http/fields/revision_name.h"

struct row {
    const char *raw;
    const char *model; /* NULL: it is not split */
    const char *revision;
};

static const struct row rows[] = {
    {"tiny@v1", "tiny", "v1"},
    {"org/model/weights@v1", "org/model/weights", "v1"},
    {"org%2Fmodel%2Fweights@v1", "org%2Fmodel%2Fweights", "v1"},
    {"tiny@feature%2Fx", "tiny", "feature%2Fx"},
    {"org/model/weights@feature%2Fx", "org/model/weights", "feature%2Fx"},
    {"me%40home@v1", "me%40home", "v1"},
    {"me@home@v1", "me@home", "v1"},
    {"me@home/tiny@v1", "me@home/tiny", "v1"},
    {"tiny@v1%40rc", "tiny", "v1%40rc"},
    {"tiny@@", NULL, NULL},
    {"tiny@@v1", "tiny@", "v1"},
    {"tiny", NULL, NULL},
    {"me%40home", NULL, NULL},
    {"tiny@", NULL, NULL},
    {"@v1", NULL, NULL},
    {"@", NULL, NULL},
    {"", NULL, NULL},
    {"me@home/tiny", NULL, NULL},
    {"tiny@feature/x", NULL, NULL},
    {"org/model@0123456789012345678901234567890123456789/weights", NULL, NULL},
};

TEST(name_is_split_at_the_last_unescaped_at_sign)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct zt_text model = {NULL, 0};
        struct zt_text revision = {NULL, 0};
        const bool is_split = revision_name_split(zt_text_from(row->raw), &model, &revision);

        assert_int_equal(is_split, row->revision != NULL);
        if (!is_split) {
            assert_null(model.bytes);
            continue;
        }
        assert_true(zt_text_is(model, row->model));
        assert_true(zt_text_is(revision, row->revision));
    }
}
