/* Checks names as the Hub's clients do before they send a request. */
#include "hub/hub_names.h"

#include <assert.h>
#include <string.h>

#include "base/hex.h"

#define PART_MAX     96
#define REVISION_MAX 255

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static bool is_edge(char c)
{
    return c != '.' && c != '-';
}

static bool part_is_valid(struct zt_text part)
{
    if (part.length < 1 || part.length > PART_MAX || !is_edge(part.bytes[0]) ||
        !is_edge(part.bytes[part.length - 1]) || zt_text_ends_with(part, zt_text_from(".git")))
        return false;
    for (size_t i = 0; i < part.length; i++)
        if (!is_name_character(part.bytes[i]) ||
            (i > 0 && !is_edge(part.bytes[i]) && part.bytes[i] == part.bytes[i - 1]))
            return false;
    return true;
}

/* Returns true if the name begins like other paths of the server: files of such a repository could
 * not be fetched. */
static bool is_reserved(struct zt_text first)
{
    static const char *const names[] = {"api", "files",    "s3",     "ui",
                                        "v1",  "datasets", "spaces", "kernels"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (zt_text_is(first, names[i]))
            return true;
    return false;
}

bool hub_owner_is_valid(struct zt_text name)
{
    return part_is_valid(name) && !is_reserved(name);
}

bool hub_repo_is_valid(struct zt_text name)
{
    const char *slash = name.length > 0 ? memchr(name.bytes, '/', name.length) : NULL;
    const size_t owner = slash != NULL ? (size_t)(slash - name.bytes) : name.length;

    if (!hub_owner_is_valid((struct zt_text){name.bytes, owner}))
        return false;
    return slash == NULL || part_is_valid((struct zt_text){slash + 1, name.length - owner - 1});
}

enum hub_revision hub_revision_of(struct zt_text text)
{
    if (zt_text_is(text, "main") || zt_text_is(text, "HEAD") || zt_text_is(text, "refs/heads/main"))
        return HUB_REVISION_NOW;
    return zt_hex_is_lower(text, HUB_COMMIT_SIZE - 1) ? HUB_REVISION_COMMIT : HUB_REVISION_UNKNOWN;
}

/* A part of a branch's name. */
static bool ref_part_is_valid(struct zt_text part)
{
    if (part.length == 0 || part.bytes[0] == '.' || part.bytes[part.length - 1] == '.' ||
        zt_text_ends_with(part, zt_text_from(".lock")))
        return false;
    for (size_t i = 0; i < part.length; i++) {
        const char c = part.bytes[i];

        if ((unsigned char)c <= ' ' || c == 0x7F || strchr("~^:?*[\\", c) != NULL ||
            (i > 0 && part.bytes[i - 1] == '.' && c == '.') ||
            (i > 0 && part.bytes[i - 1] == '@' && c == '{'))
            return false;
    }
    return true;
}

bool hub_revision_is_valid(struct zt_text text)
{
    if (text.length > REVISION_MAX || zt_text_is(text, "@"))
        return false;
    for (;;) {
        const char *slash = text.length > 0 ? memchr(text.bytes, '/', text.length) : NULL;
        const size_t length = slash != NULL ? (size_t)(slash - text.bytes) : text.length;

        if (!ref_part_is_valid((struct zt_text){text.bytes, length}))
            return false;
        if (slash == NULL)
            return true;
        text = (struct zt_text){slash + 1, text.length - length - 1};
    }
}

void hub_revision_split(struct zt_text raw, struct zt_text *out_revision, struct zt_text *out_path)
{
    unsigned segments = zt_text_starts_with(raw, zt_text_from("refs/")) ? 3 : 1;
    size_t end = 0;

    while (end < raw.length && (raw.bytes[end] != '/' || --segments > 0))
        end++;
    *out_revision = (struct zt_text){raw.bytes, end};
    if (end < raw.length)
        end++;
    *out_path = (struct zt_text){raw.bytes + end, raw.length - end};
    assert(out_revision->length + out_path->length <= raw.length);
}

bool lfs_is_sha256(struct zt_text algorithm)
{
    return zt_text_is(algorithm, "sha256") || zt_text_is(algorithm, "sha_256");
}
