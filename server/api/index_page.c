/* Writes lines of HTML, or elements of JSON. Names come from users: in text they are escaped, in
 * references they are percent-encoded. */
#include "api/index_page.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hex.h"
#include "http/fields/uri.h"
#include "input/date.h"

#define TIME_SIZE 40
/* The column of the times, as in other servers' indices; longer names push them to the right. */
#define NAME_COLUMNS 50

static time_t seconds_of(int64_t modified_ns)
{
    return (time_t)(modified_ns / CLOCK_NS_PER_S - (modified_ns % CLOCK_NS_PER_S < 0));
}

/* --- HTML --- */

static void put(struct index_page *page, const char *text)
{
    zt_buffer_append(&page->html, text, strlen(text));
}

static void put_escaped(struct index_page *page, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

    while (*text != '\0') {
        const size_t plain = strcspn(text, special);

        zt_buffer_append(&page->html, text, plain);
        text += plain;
        if (*text != '\0')
            put(page, escapes[strchr(special, *text++) - special]);
    }
}

/* Returns the reference of an entry, with a slash after a folder's name; NULL without memory. The
 * caller frees it. */
static char *reference_of(const char *name, bool is_folder)
{
    struct href href;

    href_init(&href);
    href_segment(&href, zt_text_from(name));
    if (is_folder)
        href_plain(&href, "/");
    if (!href.failed)
        return href.text;
    href_free(&href);
    return NULL;
}

static size_t columns_of(const char *name)
{
    size_t columns = 0;

    for (; *name != '\0'; name++)
        columns += ((unsigned char)*name & 0xC0) != 0x80;
    return columns;
}

static void put_time_and_size(struct index_page *page, const struct tree_entry *entry)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char text[2 * TIME_SIZE];
    const time_t seconds = seconds_of(entry->identity.modified_ns);
    struct tm when;

    if (entry->is_folder || gmtime_r(&seconds, &when) == NULL)
        snprintf(text, sizeof(text), "                 -");
    else
        snprintf(text, sizeof(text), "%02d-%s-%04d %02d:%02d", when.tm_mday, months[when.tm_mon],
                 when.tm_year + 1900, when.tm_hour, when.tm_min);
    put(page, text);
    if (!entry->is_folder) {
        snprintf(text, sizeof(text), " %19" PRIu64, entry->identity.size_bytes);
        put(page, text);
    } else {
        put(page, "                   -");
    }
}

static void add_line(struct index_page *page, const struct tree_entry *entry, const char *href)
{
    const size_t columns = columns_of(entry->path) + entry->is_folder;

    put(page, "<a href=\"");
    put(page, href);
    put(page, "\">");
    put_escaped(page, entry->path);
    put(page, entry->is_folder ? "/</a>" : "</a>");
    for (size_t i = columns; i <= NAME_COLUMNS; i++)
        put(page, " ");
    if (columns > NAME_COLUMNS)
        put(page, " ");
    put_time_and_size(page, entry);
    put(page, "\n");
}

static void begin_html(struct index_page *page, const char *folder)
{
    put(page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Index of /");
    put_escaped(page, folder);
    put(page, folder[0] == '\0' ? "" : "/");
    put(page, "</title>\n</head>\n<body>\n<h1>Index of /");
    put_escaped(page, folder);
    put(page, folder[0] == '\0' ? "" : "/");
    put(page, "</h1>\n<hr><pre>");
    put(page, folder[0] == '\0' ? "\n" : "<a href=\"../\">../</a>\n");
}

static void end_html(struct index_page *page)
{
    put(page, "</pre><hr>\n");
    if (page->next != NULL) {
        put(page, "<p><a rel=\"next\" href=\"");
        put_escaped(page, page->next);
        put(page, "\">more</a></p>\n");
    }
    put(page, "</body>\n</html>\n");
}

/* --- JSON --- */

static void begin_json(struct index_page *page, const char *folder)
{
    char path[MODEL_PATH_SIZE];

    snprintf(path, sizeof(path), "%s%s", folder, folder[0] == '\0' ? "" : "/");
    json_init(&page->json, false);
    json_object_begin(&page->json);
    json_string_member(&page->json, "path", path);
    json_array_member(&page->json, "entries");
}

static void add_file_members(struct json *json, const struct tree_entry *entry)
{
    char text[2 * SHA256_BYTES + 1];

    json_uint_member(json, "size", entry->identity.size_bytes);
    if (iso_date_format(seconds_of(entry->identity.modified_ns), text))
        json_string_member(json, "modified", strcat(text, "Z"));
    if (entry->has_sha256) {
        zt_hex_write(text, entry->sha256, SHA256_BYTES);
        json_string_member(json, "sha256", text);
    }
}

static void add_element(struct index_page *page, const struct tree_entry *entry, const char *href)
{
    struct json *json = &page->json;

    json_object_begin(json);
    json_string_member(json, "name", entry->path);
    json_string_member(json, "type", entry->is_folder ? "folder" : "file");
    if (!entry->is_folder)
        add_file_members(json, entry);
    json_string_member(json, "href", href);
    json_object_end(json);
}

static void end_json(struct index_page *page)
{
    struct json *json = &page->json;

    json_array_end(json);
    json_key_string(json, "next");
    if (page->next != NULL)
        json_put_string(json, page->next);
    else
        json_put_null(json);
    json_object_end(json);
}

/* --- both forms --- */

void index_page_begin(struct index_page *page, const char *folder)
{
    if (page->is_json)
        begin_json(page, folder);
    else
        begin_html(page, folder);
}

void index_page_add(struct index_page *page, const struct tree_entry *entry)
{
    char *href = reference_of(entry->path, entry->is_folder);

    page->failed = page->failed || href == NULL;
    if (href != NULL && page->is_json)
        add_element(page, entry, href);
    else if (href != NULL)
        add_line(page, entry, href);
    free(href);
}

void index_page_next(struct index_page *page, const char *last, size_t limit)
{
    char *after = reference_of(last, false);

    assert(page->next == NULL);
    if (after == NULL || asprintf(&page->next, "?limit=%zu&after=%s", limit, after) < 0) {
        page->next = NULL;
        page->failed = true;
    }
    free(after);
}

void index_page_end(struct index_page *page)
{
    if (page->is_json)
        end_json(page);
    else
        end_html(page);
}

bool index_page_text(const struct index_page *page, struct zt_text *out_text)
{
    if (page->failed || page->json.failed || page->html.failed)
        return false;
    *out_text = page->is_json ? (struct zt_text){page->json.text, page->json.length}
                              : (struct zt_text){(const char *)page->html.bytes, page->html.length};
    return true;
}

void index_page_free(struct index_page *page)
{
    json_free(&page->json);
    zt_buffer_free(&page->html);
    free(page->next);
}
