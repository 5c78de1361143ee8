#include "remote/profile_file.h"

#include <string.h>

#include "remote/credential_text.h"

/* Takes one line off, without its end. False: there is none left. */
static bool next_line(struct zt_text *file, struct zt_text *out_line)
{
    const char *end;

    if (file->length == 0)
        return false;
    end = memchr(file->bytes, '\n', file->length);
    out_line->bytes = file->bytes;
    out_line->length = end == NULL ? file->length : (size_t)(end - file->bytes);
    file->bytes += out_line->length + (end != NULL);
    file->length -= out_line->length + (end != NULL);
    return true;
}

/* "[name]"; false: no heading. */
static bool read_heading(struct zt_text line, struct zt_text *out_name)
{
    const struct zt_text heading = credential_text_trim(line);

    if (heading.length < 2 || heading.bytes[0] != '[' || heading.bytes[heading.length - 1] != ']')
        return false;
    *out_name = credential_text_trim((struct zt_text){heading.bytes + 1, heading.length - 2});
    return true;
}

/* "name = value" into the text of that name. Others are of no use here; indented lines belong to
 * the value above. */
static void read_setting(struct zt_text line, struct credential_texts *texts)
{
    const char *equals = line.length == 0 ? NULL : memchr(line.bytes, '=', line.length);
    struct zt_text name;
    struct zt_text value;

    if (equals == NULL || strchr(" \t#;", line.bytes[0]) != NULL)
        return;
    name = credential_text_trim((struct zt_text){line.bytes, (size_t)(equals - line.bytes)});
    value = credential_text_trim(
        (struct zt_text){equals + 1, line.length - (size_t)(equals + 1 - line.bytes)});
    if (zt_text_is(name, "aws_access_key_id"))
        texts->key = value;
    else if (zt_text_is(name, "aws_secret_access_key"))
        texts->secret = value;
    else if (zt_text_is(name, "aws_session_token"))
        texts->token = value;
}

enum zt_status profile_read(const char *where, struct zt_text file, const char *section,
                            struct credential *out_credential, struct zt_error *error)
{
    struct credential_texts texts = {.key = {NULL, 0}};
    struct zt_text line;
    struct zt_text name;
    bool is_inside = false;

    while (next_line(&file, &line))
        if (read_heading(line, &name))
            is_inside = zt_text_is(name, section);
        else if (is_inside)
            read_setting(line, &texts);
    if (texts.key.length == 0 && texts.secret.length == 0)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "%s: no keys in section [%s]",
                       where, section);
    return credential_make(where, &texts, out_credential, error);
}
