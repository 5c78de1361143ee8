/* Writes and sends XML documents of S3. */
#include "s3/s3api_xml.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/percent.h"
#include "http/exchange/problem.h"
#include "input/date.h"
#include "tree/stored_file.h"

/* --- entity tags --- */

void s3api_etag(const char *path, const struct file_identity *identity,
                char out_etag[S3API_ETAG_SIZE])
{
    char etag[STORED_FILE_ETAG_SIZE];
    int length;

    stored_file_etag(path, identity, etag);
    length = snprintf(out_etag, S3API_ETAG_SIZE, "%.*s-1\"", (int)strlen(etag) - 1, etag);
    assert(length > 4 && length < S3API_ETAG_SIZE);
}

/* --- elements --- */

void s3api_xml_begin(struct xml_writer *xml, const char *name)
{
    xml_write_declaration(xml);
    xml_write_open(xml, name, S3API_NAMESPACE);
}

void s3api_xml_key(struct xml_writer *xml, const char *name, struct zt_text key, bool is_url)
{
    char *start;

    if (!is_url) {
        xml_write_text(xml, name, key);
        return;
    }
    xml_write_open(xml, name, NULL);
    start = (char *)zt_buffer_reserve(&xml->text, key.length * ZT_PERCENT_LENGTH);
    if (start != NULL)
        xml->text.length += (size_t)(zt_percent_write(start, key, true) - start);
    assert(xml->text.failed || xml->text.length <= xml->text.capacity);
    xml_write_close(xml, name);
}

void s3api_xml_prefix(struct xml_writer *xml, struct zt_text prefix, bool is_url)
{
    xml_write_open(xml, "CommonPrefixes", NULL);
    s3api_xml_key(xml, "Prefix", prefix, is_url);
    xml_write_close(xml, "CommonPrefixes");
}

void s3api_xml_time(struct xml_writer *xml, const char *name, time_t time)
{
    char text[ISO_DATE_SIZE + sizeof(".000Z")];

    if (!iso_date_format(time, text))
        strcpy(text, "1970-01-01T00:00:00");
    strcat(text, ".000Z");
    xml_write_string(xml, name, text);
}

void s3api_xml_owner(struct xml_writer *xml, const char *name)
{
    xml_write_open(xml, name, NULL);
    xml_write_string(xml, "ID", "ztserve");
    xml_write_string(xml, "DisplayName", "ztserve");
    xml_write_close(xml, name);
}

/* --- replies --- */

static void release(void *thing)
{
    xml_writer_free(thing);
}

struct xml_writer *s3api_xml_new(struct request *request)
{
    struct xml_writer *xml = request_new_memory(request, sizeof(*xml));

    if (xml == NULL)
        return NULL;
    request_hold(request, xml, release);
    return xml;
}

enum outcome s3api_xml_reply(struct request *request, unsigned status, const struct xml_writer *xml)
{
    if (xml->text.failed)
        return problem_reply_no_memory(request);
    assert(xml->text.length > 0);
    request->reply.status = status;
    request->reply.media_type = "application/xml";
    representation_memory(&request->reply, xml->text.bytes, xml->text.length);
    return OUTCOME_READY;
}
