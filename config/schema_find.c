/* Finds keys by name, argument or variable, and suggests one for a mistyped name. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "config/schema.h"

/* Longer than any key; longer names get no suggestion. */
#define SUGGEST_MAX 48

bool config_type_is_number(enum config_type type)
{
    return type == CONFIG_TYPE_COUNT || type == CONFIG_TYPE_BYTES || type == CONFIG_TYPE_SECONDS;
}

static const struct config_key *find(const struct config_key *keys, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

const struct config_key *config_key_find(const char *name)
{
    return find(config_keys, config_keys_count, name);
}

const struct config_key *config_upstream_key_find(const char *name)
{
    return find(config_upstream_keys, config_upstream_keys_count, name);
}

const struct config_key *config_key_find_argument(const char *argument)
{
    for (size_t i = 0; i < config_keys_count; i++)
        if (config_keys[i].argument != NULL && strcmp(config_keys[i].argument, argument) == 0)
            return &config_keys[i];
    return NULL;
}

static bool names_variable(const char *name, const char *variable, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char wanted = name[i] == '.' ? '_' : (char)toupper((unsigned char)name[i]);

        if (variable[i] != wanted)
            return false;
    }
    return true;
}

const struct config_key *config_key_find_variable(const char *variable, size_t length)
{
    static const char prefix[] = "ZTSERVE_";
    const size_t prefix_length = sizeof(prefix) - 1;

    if (length <= prefix_length || memcmp(variable, prefix, prefix_length) != 0)
        return NULL;
    for (size_t i = 0; i < config_keys_count; i++)
        if (names_variable(config_keys[i].name, variable + prefix_length, length - prefix_length))
            return &config_keys[i];
    return NULL;
}

bool config_group_exists(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < config_keys_count; i++)
        if (strncmp(config_keys[i].name, name, length) == 0 && config_keys[i].name[length] == '.')
            return true;
    return false;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein's distance, row by row; b is a key's name. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[SUGGEST_MAX + 1];
    size_t width = strlen(b);

    assert(width <= SUGGEST_MAX);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t above = row[j + 1];

            row[j + 1] = smallest(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
        }
    }
    return row[width];
}

static const struct config_key *suggest(const struct config_key *keys, size_t count,
                                        const char *name)
{
    size_t length = strlen(name);
    size_t best = length / 3 + 1; /* a typing error changes at most a third of the name */
    const struct config_key *nearest = NULL;

    if (length > SUGGEST_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(name, keys[i].name);

        if (distance < best || (distance == best && nearest == NULL)) {
            best = distance;
            nearest = &keys[i];
        }
    }
    return nearest;
}

const struct config_key *config_key_suggest(const char *name)
{
    return suggest(config_keys, config_keys_count, name);
}

const struct config_key *config_upstream_key_suggest(const char *name)
{
    return suggest(config_upstream_keys, config_upstream_keys_count, name);
}
