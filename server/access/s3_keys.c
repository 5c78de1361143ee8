/* Reads the keys file, and finds keys by binary search. */
#include "access/s3_keys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/line_reader.h"
#include "base/glob.h"
#include "base/memory.h"
#include "input/text_file.h"

#define KEY "s3.keys"

struct s3_keys {
    char *text; /* of the file; names and secrets point into it */
    size_t text_length;
    struct s3_key *entries; /* sorted by name */
    size_t count;
    size_t capacity;
};

struct reader {
    struct line_reader lines; /* first */
    struct s3_keys *keys;
};

/* --- lines --- */

bool s3_key_is_valid(struct zt_text access_key)
{
    if (access_key.length == 0 || access_key.length > GRANT_NAME_MAX || access_key.bytes[0] == '#')
        return false;
    for (size_t i = 0; i < access_key.length; i++)
        if (access_key.bytes[i] <= 0x20 || access_key.bytes[i] >= 0x7F ||
            access_key.bytes[i] == ',')
            return false;
    return true;
}

static bool read_secret(struct line_reader *lines, struct s3_key *key)
{
    if (!line_reader_field(lines, &key->secret))
        return line_reader_fail(lines, "the secret is missing");
    if (key->secret.length < S3_SECRET_MIN || key->secret.length > S3_SECRET_MAX)
        return line_reader_fail(lines, "the second field is the secret, of %d to %d bytes",
                                S3_SECRET_MIN, S3_SECRET_MAX);
    return true;
}

static bool read_key(struct line_reader *lines, struct zt_text name, struct s3_key *key)
{
    struct zt_text field;

    if (!s3_key_is_valid(name))
        return line_reader_fail(lines,
                                "the first field is the access key: 1 to %d letters, digits and "
                                "signs without a comma",
                                GRANT_NAME_MAX);
    key->grant.name = name.bytes;
    if (!read_secret(lines, key))
        return false;
    if (!line_reader_field(lines, &field))
        return line_reader_fail(lines, "the scope is missing: read, write or admin");
    return line_reader_scope(lines, field, "third", &key->grant.scope) &&
           line_reader_globs(lines, &key->grant.models);
}

static bool add_key(const struct line_reader *lines, struct s3_keys *keys, const struct s3_key *key)
{
    assert(key->grant.name != NULL && key->secret.length >= S3_SECRET_MIN);
    assert(keys->count <= S3_KEYS_MAX);
    if (keys->count == S3_KEYS_MAX)
        return line_reader_fail(lines, "there are more than %d keys", S3_KEYS_MAX);
    if (zt_array_reserve(&keys->entries, &keys->capacity, keys->count + 1, sizeof(*keys->entries),
                         S3_KEYS_MAX) != ZT_OK)
        return line_reader_fail(lines, "out of memory");
    keys->entries[keys->count++] = *key;
    return true;
}

static bool read_line(struct line_reader *lines, struct zt_text name)
{
    struct s3_key key = {.grant = {.line = lines->line, .print = lines->print}};

    assert(lines->line > 0 && name.length > 0);
    if (read_key(lines, name, &key) && add_key(lines, ((struct reader *)lines)->keys, &key))
        return true;
    glob_set_free(key.grant.models);
    return false;
}

/* By name, then by line. */
static int compare_keys(const void *left, const void *right)
{
    const struct s3_key *a = left;
    const struct s3_key *b = right;
    const int order = strcmp(a->grant.name, b->grant.name);

    return order != 0 ? order : (a->grant.line > b->grant.line) - (a->grant.line < b->grant.line);
}

static bool sort_keys(struct line_reader *lines, struct s3_keys *keys)
{
    if (keys->count > 1)
        qsort(keys->entries, keys->count, sizeof(*keys->entries), compare_keys);
    for (size_t i = 1; i < keys->count; i++) {
        lines->line = keys->entries[i].grant.line;
        if (strcmp(keys->entries[i - 1].grant.name, keys->entries[i].grant.name) == 0)
            return line_reader_fail(lines, "line %u already has this access key",
                                    keys->entries[i - 1].grant.line);
    }
    return true;
}

/* --- the file --- */

struct s3_keys *s3_keys_parse(struct zt_text text, const char *path, char *error, size_t error_size)
{
    struct s3_keys *keys = calloc(1, sizeof(*keys));
    struct reader reader = {
        .lines = {.key = KEY, .path = path, .error = error, .error_size = error_size},
        .keys = keys};
    bool is_read;

    if (keys == NULL) {
        snprintf(error, error_size, KEY ": out of memory");
        return NULL;
    }
    is_read = line_reader_run(&reader.lines, text, read_line, &keys->text);
    keys->text_length = text.length;
    if (is_read && sort_keys(&reader.lines, keys))
        return keys;
    s3_keys_free(keys);
    return NULL;
}

struct s3_keys *s3_keys_load(const char *path, char *error, size_t error_size)
{
    struct text_file file;
    struct s3_keys *keys = NULL;

    if (!text_file_read(KEY, path, &file, error, error_size))
        return NULL;
    if (file.is_private)
        keys = s3_keys_parse((struct zt_text){file.text, file.length}, path, error, error_size);
    else
        snprintf(error, error_size,
                 KEY ": %s: contains secrets and must be private: owned by the user of the server "
                     "or by root, with mode 0600 or 0400",
                 path);
    text_file_free(&file);
    return keys;
}

void s3_keys_free(struct s3_keys *keys)
{
    if (keys == NULL)
        return;
    for (size_t i = 0; i < keys->count; i++)
        glob_set_free(keys->entries[i].grant.models);
    free(keys->entries);
    if (keys->text != NULL)
        explicit_bzero(keys->text, keys->text_length);
    free(keys->text);
    free(keys);
}

/* --- finding --- */

static int compare_name(const void *name, const void *entry)
{
    const struct s3_key *key = entry;

    return zt_text_compare(*(const struct zt_text *)name, zt_text_from(key->grant.name));
}

const struct s3_key *s3_keys_find(const struct s3_keys *keys, struct zt_text access_key)
{
    assert(keys->count <= keys->capacity);
    return keys->count > 0 ? bsearch(&access_key, keys->entries, keys->count,
                                     sizeof(*keys->entries), compare_name)
                           : NULL;
}

size_t s3_keys_count(const struct s3_keys *keys)
{
    return keys->count;
}
