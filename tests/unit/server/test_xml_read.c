/* XML of object stores: what is read, and what hostile documents get. */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/xml_mend.h"
#include "input/xml_read.h"

#define LOG_SIZE 4096

struct visits {
    char log[LOG_SIZE];
    size_t count;
    size_t last_length;
    size_t refuse_at; /* the visit that says no; 0: none */
};

static bool visit(void *context, const char *path, struct zt_text text)
{
    struct visits *visits = context;
    const size_t used = strlen(visits->log);

    visits->count++;
    visits->last_length = text.length;
    if (text.bytes == NULL)
        snprintf(visits->log + used, LOG_SIZE - used, "%s;", path);
    else {
        assert_int_equal(text.bytes[text.length], '\0');
        snprintf(visits->log + used, LOG_SIZE - used, "%s=%.*s;", path, (int)text.length,
                 text.bytes);
    }
    return visits->count != visits->refuse_at;
}

static enum zt_status read_text(struct zt_text text, struct visits *visits, struct zt_error *error)
{
    /* Exactly as long as the document, so that a sanitizer sees a read past it. */
    char *copy = malloc(text.length + (text.length == 0));
    enum zt_status status;

    assert_non_null(copy);
    memcpy(copy, text.bytes, text.length);
    *visits = (struct visits){.refuse_at = visits->refuse_at};
    zt_error_clear(error);
    status = xml_read((struct zt_text){copy, text.length}, visit, visits, error);
    assert_int_equal(error->status, status);
    free(copy);
    return status;
}

static void assert_reads(const char *document, const char *log)
{
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;

    assert_ok(read_text(zt_text_from(document), &visits, &error));
    assert_string_equal(visits.log, log);
}

static void assert_refuses(const char *document, const char *message)
{
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;

    assert_int_equal(read_text(zt_text_from(document), &visits, &error), ZT_INVALID);
    assert_non_null(strstr(error.message, message));
}

TEST(list_of_a_bucket_is_visited_in_order)
{
    assert_reads("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
                 "  <IsTruncated>false</IsTruncated>\n"
                 "  <Contents><Key>a/b.zt</Key><ETag>&quot;x&#34;</ETag><Size>7</Size></Contents>"
                 "<Contents><Key> &lt;&amp;&gt; </Key><Owner/></Contents>\n"
                 "</ListBucketResult>",
                 "ListBucketResult/IsTruncated=false;"
                 "ListBucketResult/Contents/Key=a/b.zt;"
                 "ListBucketResult/Contents/ETag=\"x\";"
                 "ListBucketResult/Contents/Size=7;"
                 "ListBucketResult/Contents;"
                 "ListBucketResult/Contents/Key= <&> ;"
                 "ListBucketResult/Contents/Owner=;"
                 "ListBucketResult/Contents;"
                 "ListBucketResult;");
}

TEST(text_is_joined_over_its_pieces)
{
    assert_reads("<a>x<![CDATA[<y>]]>&apos;&#xe9;<!-- no -->z\r\n<?pi?>&#10;</a>",
                 "a=x<y>'\xc3\xa9z\n\n;");
    assert_reads("<a>before<b>in</b>after<c></c></a>", "a/b=in;a/c=;a;");
}

TEST(namespaces_leave_local_names)
{
    assert_reads("<s:a xmlns:s=\"urn:x\" xmlns=\"urn:y\"><b s:c=\"d\">1</b><s:b>2</s:b></s:a>",
                 "a/b=1;a/b=2;a;");
    assert_refuses("<s:a/>", "unbound prefix");
}

TEST(other_encodings_become_utf_8)
{
    static const char wide[] = "\xff\xfe<\0a\0>\0\xe9\0<\0/\0a\0>\0";
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;

    assert_reads("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe9</a>", "a=\xc3\xa9;");
    assert_ok(read_text((struct zt_text){wide, sizeof(wide) - 1}, &visits, &error));
    assert_string_equal(visits.log, "a=\xc3\xa9;");
    assert_refuses("<?xml version=\"1.0\" encoding=\"x-none\"?><a/>", "encoding");
    assert_refuses("<a>\xff</a>", "not well-formed");
}

TEST(visitor_ends_the_reading)
{
    struct visits visits = {.refuse_at = 2};
    struct zt_error error;

    assert_int_equal(read_text(zt_text_from("<a><b>1</b><c>2</c><d>3</d></a>"), &visits, &error),
                     ZT_INVALID);
    assert_string_equal(visits.log, "a/b=1;a/c=2;");
    assert_string_equal(error.message, "XML: it is not what was expected");
}

TEST(characters_that_xml_cannot_hold_are_invalid)
{
    assert_refuses("<a><Key>x&#x01;</Key></a>", "character");
    assert_refuses("<a><Key>x&#0;</Key></a>", "character");
    assert_refuses("<a><Key>x\x01</Key></a>", "not well-formed");
    assert_refuses("<a><Key>&#xFFFFFFFFFF;</Key></a>", "character");
}

TEST(document_types_are_refused_as_they_begin)
{
    assert_refuses("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "document type");
    assert_refuses("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>", "document type");
    assert_refuses("<!DOCTYPE a PUBLIC \"b\" \"http://127.0.0.1/x.dtd\"><a/>", "document type");
    assert_refuses("<!DOCTYPE a><a/>", "document type");
    assert_refuses("<!DOCTYPE a [<!ENTITY % b SYSTEM \"file:///dev/zero\">%b;]><a/>",
                   "document type");
    assert_refuses(
        "<!DOCTYPE l [<!ENTITY l0 \"ha\"><!ENTITY l1 \"&l0;&l0;&l0;&l0;\">"
        "<!ENTITY l2 \"&l1;&l1;&l1;&l1;\"><!ENTITY l3 \"&l2;&l2;&l2;&l2;\">]><l>&l3;</l>",
        "document type");
    assert_refuses("<a>&b;</a>", "undefined entity");
    assert_refuses("<a b=\"&c;\"/>", "undefined entity");
}

TEST(what_is_not_one_whole_document_is_refused)
{
    assert_refuses("", "no element");
    assert_refuses("<a>", "no element");
    assert_refuses("<a></b>", "mismatched");
    assert_refuses("<a/><b/>", "junk");
    assert_refuses("<a/>x", "junk");
    assert_refuses("{\"a\":1}", "not well-formed");
    assert_refuses("<a b=\"1\" b=\"2\"/>", "duplicate");
}

TEST(every_prefix_fails_cleanly)
{
    static const char document[] =
        "<?xml version=\"1.0\"?><r xmlns=\"u\"><a>x&amp;<![CDATA[y]]></a>"
        "<!--c--><b c=\"d\"/></r>";
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;

    for (size_t length = 0; length < sizeof(document) - 1; length++)
        assert_int_equal(read_text((struct zt_text){document, length}, &visits, &error),
                         ZT_INVALID);
    assert_reads(document, "r/a=x&y;r/b=;r;");
}

/* <a> and </a> `depth` times around a text. */
static char *nested(unsigned depth)
{
    char *text = malloc(depth * 7 + 2);
    char *at = text;

    assert_non_null(text);
    for (unsigned i = 0; i < depth; i++)
        at = stpcpy(at, "<a>");
    at = stpcpy(at, "x");
    for (unsigned i = 0; i < depth; i++)
        at = stpcpy(at, "</a>");
    return text;
}

TEST(depth_is_bounded)
{
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;
    char *text = nested(XML_DEPTH_MAX);

    assert_ok(read_text(zt_text_from(text), &visits, &error));
    assert_int_equal(visits.count, XML_DEPTH_MAX);
    free(text);
    text = nested(XML_DEPTH_MAX + 1);
    assert_refuses(text, "too deeply");
    free(text);
    text = nested(20000);
    assert_refuses(text, "too deeply");
    free(text);
}

/* "<NAME>TEXT</NAME>" with a name and a text of these lengths. */
static char *large(size_t name, size_t text)
{
    char *document = malloc(2 * name + text + 6);
    char *at = document;

    assert_non_null(document);
    *at++ = '<';
    at = (char *)memset(at, 'n', name) + name;
    *at++ = '>';
    at = (char *)memset(at, 't', text) + text;
    at = stpcpy(at, "</");
    at = (char *)memset(at, 'n', name) + name;
    strcpy(at, ">");
    return document;
}

static void assert_large(size_t name, size_t text, enum zt_status expected)
{
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;
    char *document = large(name, text);

    assert_int_equal(read_text(zt_text_from(document), &visits, &error), expected);
    if (expected == ZT_OK)
        assert_int_equal(visits.last_length, text);
    free(document);
}

TEST(sizes_are_bounded)
{
    char *document;

    assert_large(1, XML_TEXT_MAX, ZT_OK);
    assert_large(1, XML_TEXT_MAX + 1, ZT_INVALID);
    assert_large(XML_PATH_MAX, 1, ZT_OK);
    assert_large(XML_PATH_MAX + 1, 1, ZT_INVALID);
    document = large(1, XML_DOCUMENT_MAX);
    assert_refuses(document, "it is too long");
    free(document);
}

TEST(names_of_all_elements_are_bounded_together)
{
    struct visits visits = {.refuse_at = 0};
    struct zt_error error;
    char document[XML_PATH_MAX + 64];
    char *at = stpcpy(document, "<a><");

    at = (char *)memset(at, 'n', XML_PATH_MAX - 2) + XML_PATH_MAX - 2;
    strcpy(at, "/></a>");
    assert_ok(read_text(zt_text_from(document), &visits, &error));
    strcpy(at, "n/></a>");
    assert_refuses(document, "names are too long");
}

TEST(mended_documents_can_be_read)
{
    static const struct {
        const char *text;
        const char *mended;
    } cases[] = {
        {"<a>x</a>", "<a>x</a>"},
        {"<a>&#x01;</a>", "<a>?</a>"},
        {"<a>&#1;\x01\x1f</a>", "<a>?\?\?</a>"},
        {"<a>&#9;&#x0A;\r&amp;&#x20;</a>", "<a>&#9;&#x0A;\r&amp;&#x20;</a>"},
        {"<a>\xff\x7f&#xFFFF;&#xD800;</a>", "<a>?\?\?\?</a>"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t length = strlen(cases[i].text);
        struct visits visits = {.refuse_at = 0};
        char *text = strdup(cases[i].text);
        struct zt_error error;
        size_t mended;

        assert_non_null(text);
        mended = xml_mend(text, length);
        assert_int_equal(mended, strlen(cases[i].mended));
        assert_memory_equal(text, cases[i].mended, mended);
        assert_ok(read_text((struct zt_text){text, mended}, &visits, &error));
        free(text);
    }
}
