/* The keys file. Every key that is accepted is found again. */
#include "fuzz.h"

#include <string.h>

#include "access/s3_keys.h"

/* The first field of each line. */
static size_t check_names(const struct s3_keys *keys, const char *at, const char *end)
{
    size_t found = 0;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        struct zt_text name = {at, 0};

        while (name.bytes < stop && (*name.bytes == ' ' || *name.bytes == '\t'))
            name.bytes++;
        while (name.bytes + name.length < stop && strchr(" \t\r", name.bytes[name.length]) == NULL)
            name.length++;
        at = stop + (newline != NULL);
        if (name.length > 0 && name.bytes[0] != '#') {
            const struct s3_key *key = s3_keys_find(keys, name);

            FUZZ_ASSERT(key != NULL && zt_text_is(name, key->grant.name));
            FUZZ_ASSERT(s3_key_is_valid(name) && key->grant.scope <= SCOPE_ADMIN);
            FUZZ_ASSERT(key->secret.length >= S3_SECRET_MIN);
            FUZZ_ASSERT(key->secret.length <= S3_SECRET_MAX);
            found++;
        }
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    char error[256] = "";
    struct s3_keys *keys =
        s3_keys_parse((struct zt_text){text, length}, "file", error, sizeof(error));

    FUZZ_ASSERT((keys == NULL) == (error[0] != '\0'));
    FUZZ_ASSERT(keys != NULL || strncmp(error, "s3.keys: file, line ", 20) == 0);
    if (keys != NULL)
        FUZZ_ASSERT(check_names(keys, text, text + length) == s3_keys_count(keys));
    s3_keys_free(keys);
    return 0;
}
