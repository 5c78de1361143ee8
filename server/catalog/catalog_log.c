#include "catalog/catalog_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "parts/split_path.h"

/* A broken file that was modified more recently than this may still be being copied; the next scan
 * decides. */
#define SETTLED_NS CLOCK_NS_PER_S
/* The maximum number of log lines about files that are not models. */
#define NOT_MODELS_LOGGED_MAX 100

/* Limits the number of lines, since a folder may be full of such files. */
static void log_other_formats(struct catalog_content *content, const struct generation *generation)
{
    if (content->not_models_logged > NOT_MODELS_LOGGED_MAX)
        return;
    if (content->not_models_logged++ < NOT_MODELS_LOGGED_MAX)
        log_write(LOG_LEVEL_WARN, "%s is not served: %s", generation->path,
                  generation->error->message);
    else
        log_write(LOG_LEVEL_WARN, "more files without a known format are skipped");
}

static void log_error_once(struct catalog_content *content, struct generation *generation)
{
    const struct zt_error *error = generation->error;
    char where[48] = "";

    if (error->status == ZT_DATA_SHARD || generation->logged_error)
        return;
    generation->logged_error = true;
    if (generation_is_not_a_model(generation)) {
        log_other_formats(content, generation);
        return;
    }
    if (error->offset != ZT_NO_OFFSET)
        snprintf(where, sizeof(where), ", at byte %" PRIu64, error->offset);
    log_write(LOG_LEVEL_WARN, "%s cannot be read: %s (%s%s)", generation->path, error->message,
              error->rule != NULL ? error->rule : zt_status_name(error->status), where);
}

void catalog_log_if_settled(struct catalog_content *content, struct generation *generation)
{
    int64_t age_ns = clock_wall_ns() - generation_modified_ns(generation);

    if (generation->model == NULL &&
        (!atomic_load(&content->loaded) || age_ns < 0 || age_ns > SETTLED_NS))
        log_error_once(content, generation);
}

/* Logs each pair once, in whichever order the two appear, and not again if either is replaced. */
static void log_shadow(struct generation *shadowed, const struct generation *first)
{
    size_t name_length;
    unsigned rank = 0;

    (void)catalog_path_split(first->path, &name_length, &rank);
    if (shadowed->logged_shadow == rank + 1)
        return;
    shadowed->logged_shadow = rank + 1;
    log_write(LOG_LEVEL_WARN, "%s is shadowed by %s, which has the same name", shadowed->path,
              first->path);
}

void catalog_log_shadowed(const struct catalog_content *content, const struct generation *added)
{
    struct generation *first = catalog_index_find_name(&content->index, generation_name(added));
    size_t at = catalog_index_lower_bound(&content->index, generation_name(added));

    for (; first != NULL && at < content->index.count; at++) {
        struct generation *other = content->index.by_name[at];

        if (!zt_text_equal(generation_name(other), generation_name(added)))
            break;
        if (other != first && !generation_is_hidden(other))
            log_shadow(other, first);
    }
}
