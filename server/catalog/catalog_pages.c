/* Pages of the list of models. A filter may pass only a few of very many names, so a page can be
 * listed in steps, between which the catalog may change. */
#include <assert.h>

#include "catalog/catalog_content.h"

/* Returns the start of a list: at the prefix or after the name `after`, whichever is later. */
static size_t list_start(const struct catalog_index *index, struct zt_text prefix,
                         struct zt_text after)
{
    bool continued = after.length > 0 && zt_text_compare(after, prefix) >= 0;
    size_t at = catalog_index_lower_bound(index, continued ? after : prefix);

    while (continued && at < index->count &&
           zt_text_equal(generation_name(index->by_name[at]), after))
        at++;
    return at;
}

static bool has_same_name(const struct catalog_index *index, size_t at, size_t other)
{
    return zt_text_equal(generation_name(index->by_name[at]),
                         generation_name(index->by_name[other]));
}

/* Returns the end of the files that one step examines from `at`; files with equal names stay
 * together. */
static size_t step_end(const struct catalog_index *index, size_t at, size_t looks)
{
    size_t end = index->count;

    assert(at <= index->count);
    if (looks == 0 || index->count - at <= looks)
        return end;
    for (end = at + looks; end < index->count && has_same_name(index, end - 1, end); end++)
        continue;
    return end;
}

static size_t list_step(const struct catalog_index *step, size_t at,
                        const struct catalog_page *page, struct generation **out_generations,
                        struct catalog_page_end *out_end)
{
    struct generation *model;
    size_t count = 0;

    assert(at <= step->count);
    while ((model = catalog_index_model_at(step, at, &at)) != NULL &&
           zt_text_starts_with(generation_name(model), page->prefix)) {
        if (model->is_of_commit || !name_filter_passes(page->filter, generation_name(model)) ||
            !name_filter_passes(page->match, generation_name(model)) ||
            (page->without_parts &&
             catalog_index_model_of(step, model->path, page->filter) != NULL))
            continue;
        if (count == page->limit) {
            out_end->more = true;
            break;
        }
        out_generations[count++] = generation_hold(model);
    }
    return count;
}

size_t catalog_content_list(struct catalog_content *content, const struct catalog_page *page,
                            struct generation **out_generations, struct catalog_page_end *out_end)
{
    struct catalog_index step;
    struct generation *last;
    size_t count;
    size_t at;

    *out_end = (struct catalog_page_end){false, NULL};
    pthread_rwlock_rdlock(&content->index_lock);
    at = list_start(&content->index, page->prefix, page->after);
    step = content->index;
    step.count = step_end(&content->index, at, page->looks);
    count = list_step(&step, at, page, out_generations, out_end);
    last = step.count > at ? step.by_name[step.count - 1] : NULL;
    if (!out_end->more && step.count < content->index.count && last != NULL &&
        zt_text_starts_with(generation_name(last), page->prefix))
        out_end->reached = generation_hold(last);
    pthread_rwlock_unlock(&content->index_lock);
    assert(count <= page->limit);
    return count;
}
