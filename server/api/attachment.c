/* Names for downloaded files, without any characters that are special to a shell or to parsers of
 * header fields. */
#include "api/attachment.h"

#include <assert.h>
#include <string.h>

#include "base/percent.h"
#include "zt/utf8.h"

/* Maximum bytes of a name: many file systems allow 255, including the extension. */
#define NAME_BYTES_MOST 200

static bool is_plain(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_' || byte == '.';
}

static struct zt_text cut(struct zt_text name)
{
    size_t at = 0;

    while (at < name.length) {
        const size_t length = zt_utf8_character(name.bytes + at, name.length - at);

        if (length == 0 || at + length > NAME_BYTES_MOST)
            break;
        at += length;
    }
    assert(at <= name.length && at <= NAME_BYTES_MOST);
    return (struct zt_text){name.bytes, at};
}

/* Replaces special characters, and a leading dot, which would hide the file. */
static char *plain_text(struct request *request, struct zt_text name)
{
    char *text = request_allocate(request, name.length + 1);

    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < name.length; i++)
        text[i] = is_plain(name.bytes[i]) && (i > 0 || name.bytes[i] != '.') ? name.bytes[i] : '_';
    text[name.length] = '\0';
    return text;
}

/* Percent-encodes the name. Characters that could make it a path, or hide it, are replaced as in
 * the plain text. */
static char *extended_text(struct request *request, struct zt_text name, const char *plain)
{
    char *text = request_allocate(request, 3 * name.length + 1);
    char *at = text;

    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < name.length; i++) {
        const unsigned char byte = (unsigned char)name.bytes[i];

        if (byte < 0x20 || byte == 0x7F || strchr("/\\.", byte) != NULL || is_plain((char)byte))
            *at++ = plain[i];
        else
            at = zt_percent_put(at, name.bytes[i]);
    }
    assert((size_t)(at - text) <= 3 * name.length);
    *at = '\0';
    return text;
}

static bool is_ascii(struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.bytes[i] >= 0x80)
            return false;
    return true;
}

const char *attachment_named(struct request *request, struct zt_text name, const char *ending)
{
    const struct zt_text kept = cut(name);
    const char *plain = plain_text(request, kept);
    const char *extended;

    if (plain == NULL || ending == NULL)
        return NULL;
    if (is_ascii(kept))
        return request_print(request, "attachment; filename=\"%s%s\"", plain, ending);
    extended = extended_text(request, kept, plain);
    if (extended == NULL)
        return NULL;
    return request_print(request, "attachment; filename=\"%s%s\"; filename*=UTF-8''%s%s", plain,
                         ending, extended, ending);
}

const char *attachment_of_model(struct request *request, struct zt_text model, const char *ending)
{
    size_t start = model.length;

    while (start > 0 && model.bytes[start - 1] != '/')
        start--;
    return attachment_named(request, (struct zt_text){model.bytes + start, model.length - start},
                            ending);
}
