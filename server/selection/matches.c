#include "selection/matches.h"

#include "base/glob.h"

/* Longer texts are cut in messages. */
#define SHOWN_MAX ((size_t)200)
#define NO_OBJECT "matches no object of the model"

static enum zt_status fail(const char *what, const char *parameter, struct zt_text text,
                           struct zt_error *error)
{
    size_t shown = text.length < SHOWN_MAX ? text.length : SHOWN_MAX;

    while (shown < text.length && shown > 0 && ((unsigned char)text.bytes[shown] & 0xC0) == 0x80)
        shown--;
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "%s=%.*s%s %s", parameter, (int)shown,
                   text.bytes, shown < text.length ? "…" : "", what);
}

enum zt_status match_fail(const char *parameter, struct zt_text text, struct zt_error *error)
{
    return fail(NO_OBJECT, parameter, text, error);
}

/* glob NULL: any name. */
static bool matches_any(struct zt_text prefix, struct glob_set *glob, const struct zt_model *model)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_text name = zt_object_name(&model->objects[i]);

        if (zt_text_starts_with(name, prefix) && (glob == NULL || glob_set_matches(glob, name)))
            return true;
    }
    return false;
}

static enum zt_status fail_glob(struct zt_text prefix, struct zt_text glob, struct zt_error *error)
{
    return fail(prefix.length > 0 ? "matches no object below the prefix" : NO_OBJECT, "match", glob,
                error);
}

enum zt_status matches_fail_all(struct zt_text prefix, const struct zt_text *globs, size_t count,
                                const struct zt_model *model, struct zt_error *error)
{
    if (count == 0 || !matches_any(prefix, NULL, model))
        return match_fail("prefix", prefix, error);
    return fail_glob(prefix, globs[0], error);
}

enum zt_status matches_check(struct zt_text prefix, const struct zt_text *globs, size_t count,
                             const struct zt_model *model, struct zt_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct glob_set *glob = glob_set_new(&globs[i], 1);
        bool found;

        if (glob == NULL)
            return zt_fail_memory(error, "a glob");
        found = matches_any(prefix, glob, model);
        glob_set_free(glob);
        if (!found)
            return fail_glob(prefix, globs[i], error);
    }
    return ZT_OK;
}
