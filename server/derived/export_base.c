#include "derived/export_base.h"

#include <assert.h>
#include <string.h>

#include "store/versions/history.h"

/* The ETag of the whole manifest names the version of the model's files. */
static struct zt_text etag_of(const struct generation *generation)
{
    assert(generation->etag[0] == '"' && generation->model != NULL);
    return (struct zt_text){generation->etag + 1, strlen(generation->etag) - 2};
}

static struct zt_text without_quotes(struct zt_text name)
{
    if (name.length < 2 || name.bytes[0] != '"' || name.bytes[name.length - 1] != '"')
        return name;
    return (struct zt_text){name.bytes + 1, name.length - 2};
}

/* A model that is read at a commit has the commit in its name. */
static bool names_own_revision(const struct generation *generation, struct zt_text name)
{
    struct history_path path;

    return history_path_split(generation_name(generation), &path) ? zt_text_is(name, path.commit)
                                                                  : zt_text_is(name, "main");
}

bool export_base_find(const struct generation *generation, struct zt_text name,
                      struct zt_text *out_base)
{
    const struct zt_text current = etag_of(generation);

    if (!names_own_revision(generation, name) && !zt_text_equal(without_quotes(name), current))
        return false;
    *out_base = current;
    return true;
}

bool export_base_is_current(const struct generation *generation, struct zt_text base)
{
    return zt_text_equal(base, etag_of(generation));
}

bool export_base_has_object(const struct generation *generation, struct zt_text base,
                            struct zt_text object)
{
    return export_base_is_current(generation, base) &&
           zt_model_find(generation->model, object) != NULL;
}
