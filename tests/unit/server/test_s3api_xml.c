/* XML as S3's clients read it: escapes, encoded keys, times, entity tags. */
#include "tests.h"

#include "s3/s3api_xml.h"

static void assert_written(struct xml_writer *xml, const char *expected)
{
    assert_false(xml->text.failed);
    zt_buffer_append(&xml->text, "", 1);
    assert_string_equal((const char *)xml->text.bytes, expected);
    xml_writer_free(xml);
}

TEST(a_document_has_a_declaration_and_the_namespace)
{
    struct xml_writer xml = {.text = {.bytes = NULL}};

    s3api_xml_begin(&xml, "R");
    xml_write_string(&xml, "A", "x");
    xml_write_uint(&xml, "B", UINT64_MAX);
    xml_write_bool(&xml, "C", true);
    xml_write_bool(&xml, "C", false);
    xml_write_string(&xml, "D", "");
    xml_write_close(&xml, "R");
    assert_written(&xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                         "<R xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><A>x</A>"
                         "<B>18446744073709551615</B><C>true</C><C>false</C><D></D></R>");
}

TEST(keys_are_escaped_or_encoded)
{
    static const struct {
        struct zt_text key;
        const char *escaped;
        const char *encoded;
    } rows[] = {
        {{"a/b-c_d.e~f", 11}, "a/b-c_d.e~f", "a/b-c_d.e~f"},
        {{"a+b %&<>\"'", 10}, "a+b %&amp;&lt;&gt;&quot;'", "a%2Bb%20%25%26%3C%3E%22%27"},
        {{"gr\xC3\xB6\xC3\x9F", 6}, "gr\xC3\xB6\xC3\x9F", "gr%C3%B6%C3%9F"},
        {{"\r\n\t", 3}, "&#13;&#10;&#9;", "%0D%0A%09"},
        {{"a\x01\x1F\0z", 5}, "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz", "a%01%1F%00z"},
        {{"\xFFx\xC3", 3}, "\xEF\xBF\xBDx\xEF\xBF\xBD", "%FFx%C3"},
        {{"\xEF\xBF\xBEy", 4}, "\xEF\xBF\xBDy", "%EF%BF%BEy"},
        {{"]]>", 3}, "]]&gt;", "%5D%5D%3E"},
        {{NULL, 0}, "", ""},
    };
    char expected[128];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct xml_writer xml = {.text = {.bytes = NULL}};

        s3api_xml_key(&xml, "K", rows[i].key, false);
        s3api_xml_key(&xml, "K", rows[i].key, true);
        snprintf(expected, sizeof(expected), "<K>%s</K><K>%s</K>", rows[i].escaped,
                 rows[i].encoded);
        assert_written(&xml, expected);
    }
}

TEST(times_are_whole_seconds)
{
    struct xml_writer xml = {.text = {.bytes = NULL}};

    s3api_xml_time(&xml, "T", 1795351476);
    s3api_xml_time(&xml, "T", 0);
    s3api_xml_time(&xml, "T", -1);
    assert_written(&xml, "<T>2026-11-22T12:44:36.000Z</T><T>1970-01-01T00:00:00.000Z</T>"
                         "<T>1969-12-31T23:59:59.000Z</T>");
}

TEST(a_tag_has_the_form_of_a_multipart_upload)
{
    struct file_identity identity = {.inode = 1, .size_bytes = 2, .modified_ns = 3};
    char first[S3API_ETAG_SIZE];
    char second[S3API_ETAG_SIZE];

    s3api_etag("a", &identity, first);
    assert_int_equal(strlen(first), 36);
    assert_string_equal(first + 33, "-1\"");
    assert_int_equal(strspn(first + 1, "0123456789abcdef"), 32);
    s3api_etag("b", &identity, second);
    assert_string_not_equal(first, second);
    identity.modified_ns++;
    s3api_etag("a", &identity, second);
    assert_string_not_equal(first, second);
}
