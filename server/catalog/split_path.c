/* Between the paths of a split GGUF's parts and the path that stands for all of them. */
#include "catalog/split_path.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "zt/join.h"

/* In any case; all parts of a model have it spelled alike. */
#define EXTENSION ".gguf"
#define MARK      "-*-of-"
/* As gguf-split writes numbers. */
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

bool split_path_read(const char *path, size_t *out_name_length, uint32_t *out_count)
{
    const char *mark = strstr(path, MARK);
    uint32_t count = 0;
    const char *at;

    if (mark == NULL || mark == path)
        return false;
    for (at = mark + strlen(MARK); *at >= '0' && *at <= '9' && count <= ZT_PARTS_MAX; at++)
        count = count * 10 + (uint32_t)(*at - '0');
    if (strcasecmp(at, EXTENSION) != 0 || count == 0 || count > ZT_PARTS_MAX)
        return false;
    *out_name_length = (size_t)(mark - path);
    *out_count = count;
    return true;
}

void split_path_part(const char *split_path, uint32_t number, char out_path[MODEL_PATH_SIZE])
{
    size_t stem = 0;
    uint32_t count = 0;
    const bool is_split = split_path_read(split_path, &stem, &count);

    assert(is_split && number > 0 && number <= count);
    (void)is_split;
    snprintf(out_path, MODEL_PATH_SIZE, "%.*s-%0*" PRIu32 "-of-%0*" PRIu32 "%s", (int)stem,
             split_path, DIGITS, number, DIGITS, count,
             split_path + strlen(split_path) - strlen(EXTENSION));
}

bool catalog_path_split(const char *path, size_t *out_name_length, unsigned *out_rank)
{
    uint32_t count;

    if (!split_path_read(path, out_name_length, &count))
        return model_path_split(path, out_name_length, out_rank);
    *out_rank = SPLIT_RANK;
    return true;
}
