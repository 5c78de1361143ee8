/* Converts between the paths of a split GGUF's parts and the path that represents all of them. */
#include "parts/split_path.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "zt/join.h"

/* Compared case-insensitively; all parts of a model have the same spelling. */
#define EXTENSION ".gguf"
#define MARK      "-*-of-"
/* The number of digits that gguf-split writes. */
#define DIGITS 5

bool split_path_of_part(const char *path, char out_path[MODEL_PATH_SIZE])
{
    size_t length;
    unsigned rank;
    size_t stem;
    uint32_t number;
    uint32_t count;

    if (!model_path_split(path, &length, &rank) || strcasecmp(path + length, EXTENSION) != 0 ||
        !zt_part_name_split((struct zt_text){path, length}, &stem, &number, &count) ||
        count > ZT_PARTS_MAX || !model_name_is_valid((struct zt_text){path, stem}))
        return false;
    snprintf(out_path, MODEL_PATH_SIZE, "%.*s" MARK "%0*" PRIu32 "%s", (int)stem, path, DIGITS,
             count, path + length);
    return true;
}

bool split_path_read(const char *path, struct split_name *out_name)
{
    const char *mark = strstr(path, MARK);
    struct zt_text rest;
    uint64_t count;

    if (mark == NULL || mark == path)
        return false;
    rest = zt_text_from(mark + strlen(MARK));
    if (!zt_decimal_take(&rest, &count) || strcasecmp(rest.bytes, EXTENSION) != 0 || count == 0 ||
        count > ZT_PARTS_MAX)
        return false;
    *out_name = (struct split_name){{path, (size_t)(mark - path)}, (uint32_t)count, rest.bytes};
    return true;
}

bool split_path_read_first(const char *path, struct zt_text segment, struct split_name *out_name)
{
    const char *dot = memrchr(segment.bytes, '.', segment.length);
    const char *end = dot != NULL ? dot : segment.bytes + segment.length;
    uint32_t number;
    uint32_t count;
    size_t stem;

    if (!zt_part_name_split((struct zt_text){segment.bytes, (size_t)(end - segment.bytes)}, &stem,
                            &number, &count) ||
        number != 1)
        return false;
    *out_name = (struct split_name){{path, (size_t)(segment.bytes - path) + stem}, count, end};
    return true;
}

char *split_part_path(const struct split_name *name, uint32_t number)
{
    char *path = NULL;

    assert(number > 0 && number <= name->count);
    if (asprintf(&path, "%.*s-%0*" PRIu32 "-of-%0*" PRIu32 "%s", (int)name->stem.length,
                 name->stem.bytes, DIGITS, number, DIGITS, name->count, name->extension) < 0)
        return NULL;
    return path;
}

bool catalog_path_split(const char *path, size_t *out_name_length, unsigned *out_rank)
{
    struct split_name name;

    if (!split_path_read(path, &name))
        return model_path_split(path, out_name_length, out_rank);
    *out_name_length = name.stem.length;
    *out_rank = SPLIT_RANK;
    return true;
}
