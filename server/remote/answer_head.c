/* Everything that is kept has a fixed size; a value that is too long counts as absent. */
#include "remote/answer_head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "input/blanks.h"

/* A service of S3 sends less than 1 KiB, but users can add 2 KiB of metadata to an object. */
#define HEAD_LENGTH_MAX 65536

void answer_head_clear(struct answer_head *head)
{
    memset(head, 0, sizeof(*head));
    head->fields.content_length = UINT64_MAX;
    head->fields.upload_offset = UINT64_MAX;
    head->fields.linked_size = UINT64_MAX;
}

/* Takes a number below 2^64 - 1, which stands for one that is not stated. */
static bool take_number(struct zt_text *text, uint64_t *out_number)
{
    return zt_decimal_take(text, out_number) && *out_number < UINT64_MAX;
}

static bool take_text(struct zt_text *text, const char *expected)
{
    const size_t length = strlen(expected);

    if (text->length < length || strncasecmp(text->bytes, expected, length) != 0)
        return false;
    text->bytes += length;
    text->length -= length;
    return true;
}

static void keep_content_length(struct answer_head *head, struct zt_text value)
{
    uint64_t length;

    if (!take_number(&value, &length) || value.length > 0)
        head->is_broken = true;
    else if (head->fields.content_length != UINT64_MAX && head->fields.content_length != length)
        head->is_broken = true;
    else
        head->fields.content_length = length;
}

static void keep_number(uint64_t *kept, struct zt_text value)
{
    uint64_t number;

    if (take_number(&value, &number) && value.length == 0)
        *kept = number;
}

/* "bytes 0-99/1000". Without a size, or with "*" for the range, it is not what was asked for. */
static void keep_content_range(struct answer_head *head, struct zt_text value)
{
    struct remote_head *fields = &head->fields;
    uint64_t first;
    uint64_t last;
    uint64_t size;

    if (!take_text(&value, "bytes ") || !take_number(&value, &first) || !take_text(&value, "-") ||
        !take_number(&value, &last) || !take_text(&value, "/") || !take_number(&value, &size) ||
        value.length > 0 || first > last || last >= size)
        return;
    if (fields->has_range && (fields->range_first != first || fields->range_last != last ||
                              fields->range_size != size)) {
        head->is_broken = true;
        return;
    }
    fields->has_range = true;
    fields->range_first = first;
    fields->range_last = last;
    fields->range_size = size;
}

static void keep_text(struct answer_head *head, char *kept, size_t size, struct zt_text value)
{
    if (value.length >= size)
        return;
    if (kept[0] != '\0' && !zt_text_is(value, kept)) {
        head->is_broken = true;
        return;
    }
    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)value.bytes[i] < ' ') {
            head->is_broken = true;
            return;
        }
    memcpy(kept, value.bytes, value.length);
    kept[value.length] = '\0';
}

static bool name_is(struct zt_text name, const char *expected)
{
    return take_text(&name, expected) && name.length == 0;
}

/* Some stores state codings that they have not applied ("aws-chunked"). */
static bool is_compression(struct zt_text value)
{
    static const char *const names[] = {"gzip", "x-gzip", "deflate", "br", "zstd", "compress"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (name_is(value, names[i]))
            return true;
    return false;
}

/* A list of fields is one list (RFC 9110 section 5.3). What does not fit must not be taken for
 * absent: it may name the next page. */
static void keep_link(struct answer_head *head, struct zt_text value)
{
    struct remote_head *fields = &head->fields;
    const size_t used = strlen(fields->link);
    const size_t between = used > 0 ? 2 : 0;

    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)value.bytes[i] < ' ') {
            head->is_broken = true;
            return;
        }
    if (value.length + between >= sizeof(fields->link) - used) {
        fields->is_link_cut = true;
        return;
    }
    memcpy(fields->link + used, ", ", between);
    memcpy(fields->link + used + between, value.bytes, value.length);
    fields->link[used + between + value.length] = '\0';
}

static void keep_hub_field(struct answer_head *head, struct zt_text name, struct zt_text value)
{
    struct remote_head *fields = &head->fields;

    if (name_is(name, "x-repo-commit"))
        keep_text(head, fields->repo_commit, sizeof(fields->repo_commit), value);
    else if (name_is(name, "x-linked-etag"))
        keep_text(head, fields->linked_etag, sizeof(fields->linked_etag), value);
    else if (name_is(name, "x-linked-size"))
        keep_number(&fields->linked_size, value);
    else if (name_is(name, "x-error-code"))
        keep_text(head, fields->error_code, sizeof(fields->error_code), value);
    else if (name_is(name, "link"))
        keep_link(head, value);
}

static void keep_field(struct answer_head *head, struct zt_text name, struct zt_text value)
{
    struct remote_head *fields = &head->fields;

    if (name_is(name, "content-length"))
        keep_content_length(head, value);
    else if (name_is(name, "transfer-encoding"))
        head->is_framed = true;
    else if (name_is(name, "content-range"))
        keep_content_range(head, value);
    else if (name_is(name, "content-encoding"))
        fields->is_compressed = is_compression(value);
    else if (name_is(name, "etag"))
        keep_text(head, fields->etag, sizeof(fields->etag), value);
    else if (name_is(name, "last-modified"))
        keep_text(head, fields->last_modified, sizeof(fields->last_modified), value);
    else if (name_is(name, "date"))
        keep_text(head, fields->date, sizeof(fields->date), value);
    else if (name_is(name, "x-amz-version-id"))
        keep_text(head, fields->version_id, sizeof(fields->version_id), value);
    else if (name_is(name, "x-amz-meta-ztserve-sha256"))
        keep_text(head, fields->digest, sizeof(fields->digest), value);
    else if (name_is(name, "x-amz-checksum-sha256"))
        keep_text(head, fields->checksum, sizeof(fields->checksum), value);
    else if (name_is(name, "x-amz-checksum-type"))
        keep_text(head, fields->checksum_type, sizeof(fields->checksum_type), value);
    else if (name_is(name, "repr-digest"))
        keep_text(head, fields->repr_digest, sizeof(fields->repr_digest), value);
    else if (name_is(name, "location"))
        keep_text(head, fields->location, sizeof(fields->location), value);
    else if (name_is(name, "retry-after"))
        keep_text(head, fields->retry_after, sizeof(fields->retry_after), value);
    else if (name_is(name, "axis-suggestion"))
        keep_text(head, fields->axis_suggestion, sizeof(fields->axis_suggestion), value);
    else if (name_is(name, "upload-offset"))
        keep_number(&fields->upload_offset, value);
    else
        keep_hub_field(head, name, value);
}

/* "HTTP/1.1 206 Partial Content" */
static void take_status(struct answer_head *head, struct zt_text line)
{
    const size_t length = head->length;
    uint64_t number;

    answer_head_clear(head);
    head->length = length;
    if (!take_text(&line, "HTTP/1.") || !take_number(&line, &number) || !take_text(&line, " ") ||
        !take_number(&line, &number) || number < 100 || number > 999)
        head->is_broken = true;
    else
        head->fields.status = (unsigned)number;
}

static void end_header(struct answer_head *head)
{
    assert(!head->is_whole);
    if (head->fields.status == 0)
        head->is_broken = true;
    /* An interim answer: the header of the final one follows. */
    if (head->fields.status < 200)
        return;
    if (head->is_framed)
        head->fields.content_length = UINT64_MAX;
    head->is_whole = true;
}

bool answer_head_take(struct answer_head *head, struct zt_text line)
{
    const char *colon;
    struct zt_text name;
    struct zt_text start = line;

    /* libcurl itself asks again, without Expect, after a 417. */
    if (head->is_whole && head->fields.status == 417 && take_text(&start, "HTTP/"))
        answer_head_clear(head);
    if (head->is_whole)
        return true;
    head->length += line.length;
    while (line.length > 0 &&
           (line.bytes[line.length - 1] == '\n' || line.bytes[line.length - 1] == '\r'))
        line.length--;
    start = line;
    if (head->length > HEAD_LENGTH_MAX)
        head->is_broken = true;
    else if (line.length == 0)
        end_header(head);
    else if (take_text(&start, "HTTP/"))
        take_status(head, line);
    else if ((colon = memchr(line.bytes, ':', line.length)) != NULL) {
        name = (struct zt_text){line.bytes, (size_t)(colon - line.bytes)};
        line.length -= name.length + 1;
        line.bytes = colon + 1;
        keep_field(head, name, text_trimmed(line));
    }
    return !head->is_broken;
}
