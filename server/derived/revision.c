#include "derived/revision.h"

#include <assert.h>
#include <string.h>

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

bool revision_find(const struct generation *generation, struct zt_text name,
                   struct zt_text *out_revision)
{
    const struct zt_text current = etag_of(generation);

    if (!zt_text_is(name, "main") && !zt_text_equal(without_quotes(name), current))
        return false;
    *out_revision = current;
    return true;
}

bool revision_is_current(const struct generation *generation, struct zt_text revision)
{
    return zt_text_equal(revision, etag_of(generation));
}

bool revision_has_object(const struct generation *generation, struct zt_text revision,
                         struct zt_text object)
{
    return revision_is_current(generation, revision) &&
           zt_model_find(generation->model, object) != NULL;
}
