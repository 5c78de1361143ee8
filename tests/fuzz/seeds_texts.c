/* Seeds of the decoders, of differences, of the walk through zstd frames, and of the parsers of
 * header fields, request targets, JSON and CBOR. */
#include "seeds.h"

#include <string.h>

#include "cbor_text.h"
#include "handmade.h"

/* --- decoders (target_decoder.c says what the first eight bytes are) --- */

static void put_stored(const char *name, const uint8_t head[8], const struct bytes *stored)
{
    struct bytes input = {NULL, 0};

    bytes_append(&input, head, 8);
    bytes_append(&input, stored->at, stored->length);
    seed_put("decoder", name, input.at, input.length);
    bytes_free(&input);
}

static void put_frames(void)
{
    static const uint8_t plain[600] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct bytes frames = {NULL, 0};

    bytes_append_zstd(&frames, plain, sizeof(plain), true);
    seed_put("zstd_frames", "one", frames.at, frames.length);
    bytes_append(&frames, "\x50\x2A\x4D\x18\3\0\0\0abc", 11);
    seed_put("zstd_frames", "skippable", frames.at, frames.length);
    bytes_append_zstd(&frames, plain, 9, false);
    seed_put("zstd_frames", "three", frames.at, frames.length);
    bytes_free(&frames);
}

/* Two frames of 600 bytes, of a tensor of 1200 bytes and of a shorter one. */
static void put_differences(void)
{
    static const uint8_t plain[600] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct bytes input = {NULL, 0};

    bytes_append(&input, "\0\4\xb0", 3);
    bytes_append_zstd(&input, plain, sizeof(plain), true);
    bytes_append_zstd(&input, plain, sizeof(plain), false);
    seed_put("xor", "two", input.at, input.length);
    input.at[2]--;
    seed_put("xor", "too-long", input.at, input.length);
    bytes_free(&input);
}

void seeds_decoder(void)
{
    static const uint8_t plain[600] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct bytes stored = {NULL, 0};

    put_frames();
    put_differences();
    bytes_append(&stored, plain, 96);
    put_stored("raw", (const uint8_t[8]){0, 1, 1}, &stored);
    /* f32, big-endian, Fortran order, 2 × 3 × 4 */
    put_stored("fortran", (const uint8_t[8]){0, 1, 1 | 2 | 4 | 3 << 3, 2, 3, 4}, &stored);
    bytes_free(&stored);
    /* A view of 3 × 4 u32, big-endian, transposed; the strides come first. */
    bytes_append(&stored, "\1\3\0", 4);
    bytes_append(&stored, plain, 96);
    put_stored("strided", (const uint8_t[8]){0, 9, 0x80 | 1 | 2 << 3, 3, 4}, &stored);
    bytes_free(&stored);
    bytes_append_zstd(&stored, plain, sizeof(plain), true);
    put_stored("zstd", (const uint8_t[8]){1, 11, 0, 0, 0, 0, 2, 88}, &stored);
    put_stored("zstd-unknown", (const uint8_t[8]){1, 11, 4}, &stored);
    bytes_free(&stored);
    bytes_append_seekable(&stored, plain, sizeof(plain), 256);
    put_stored("seekable", (const uint8_t[8]){2, 11, 0, 0, 0, 0, 2, 88}, &stored);
    bytes_free(&stored);
    /* One stored block of 24 bytes; 6 × 4 bytes of u8 in Fortran order, and 3 × 4 u16
     * big-endian. */
    bytes_append(&stored, "\1\x18\0\xE7\xFF", 5);
    bytes_append(&stored, plain, 24);
    put_stored("deflate-fortran", (const uint8_t[8]){3, 11, 2 | 2 << 3, 6, 4}, &stored);
    put_stored("deflate-swapped", (const uint8_t[8]){3, 10, 1 | 2 << 3, 3, 4}, &stored);
    bytes_free(&stored);
}

/* --- texts --- */

static const struct {
    const char *target;
    const char *name;
    const char *text;
} texts[] = {
    {"json", "values",
     "{\"a\":[1,-2.5e3,true,false,null,\"\\u00e9\\ud83d\\ude00\\n\"],\"b\":{\"c\":"
     "18446744073709551615}}"},
    {"json", "deep", "[[[[[[[[{\"a\":[]}]]]]]]]]"},
    {"index", "joined",
     "{\"metadata\":{\"total_size\":6},\"weight_map\":{\"a\":\"p\",\"b\":\"p\",\"c\":\"q\"}}\n"},
    {"index", "others",
     "{\"weight_map\":{\"\\u0061\":\"m-00001-of-00002.bin\",\"b\":\"m-00002-of-00002.bin\"},\"x\":["
     "{}],"
     "\"metadata\":{\"total_size\":6.0,\"y\":\"\\n\"}}"},
    {"index", "refused", "{\"weight_map\":{\"a\":\"../p\"}}"},
    {"ranges", "one", "3bytes=0-99"},
    {"ranges", "many", "3bytes=0-0, 5-9,-3, 100-"},
    {"path", "object", "/v1/models/a%2Fb/objects/x%20y/components/data"},
    {"path", "absolute", "http://host:80/v1/models?prefix=a"},
    {"path", "files", "/v1/models/m/files/a/b/c.zt"},
    {"conditional", "tags", "0\"a\", W/\"b\" , \"c\""},
    {"conditional", "any", "1*"},
    {"conditional", "fixdate", "2Sun, 06 Nov 1994 08:49:37 GMT"},
    {"conditional", "rfc850", "3Sunday, 06-Nov-94 08:49:37 GMT"},
    {"conditional", "asctime", "2Sun Nov  6 08:49:37 1994"},
    {"digest_fields", "sha256", "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:"},
    {"digest_fields", "members",
     "sha-512=:YQ==:;a=1, md5=?1, list=(1 \"a\" tok;q=0.5), sha-256=10"},
    {"sha256", "pieces",
     "\x40\x40\x3F\x01\x05\xC8\x01\x80 fifty-six bytes, and one byte more than a block has, are "
     "two of the "
     "borders; this text is long enough for both of them and for the lengths of the pieces."},
    {"query", "pairs", "/a?prefix=x%2Fy&match=*.w&a&a=1&=2&%61=3"},
    {"grants", "all",
     "# x\n\na read 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed a/* b?[c-d] "
     "#\r\n"
     "b write mtls:b.example\nc admin jwt:system:*:[!x]"},
    {"grants", "same", "a read mtls:b\nc read mtls:b\n"},
    {"s3_keys", "all",
     "# x\n\nrunner\tsecret/+=1  write team/* b?[c-d] #\r\n  AKIAEXAMPLE secret#2 read\nc 12345678 "
     "admin"},
    {"s3_keys", "same", "a 12345678 read\na 12345678 read"},
    {"sigv4", "header",
     "GET\n/s3/models/a%20b/c?list-type=2&prefix=x%2F&uploads\nHost: models.example:8080\n"
     "X-Amz-Date: 20260304T050607Z\nx-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n"
     "x-amz-meta-a:  two   words\nAuthorization: AWS4-HMAC-SHA256 "
     "Credential=ci/runner+1/20260304/eu-north-1/s3/aws4_request, SignedHeaders=host;"
     "x-amz-content-sha256;x-amz-date;x-amz-meta-a, Signature="
     "d5e4681b570c18e2b6d06613c093d143c5ca037994a1d57b148518e59c4e452f"},
    {"sigv4", "query",
     "GET\nhttp://h/s3/models/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ci%2Frunner%2B1"
     "%2F20260304%2Feu-north-1%2Fs3%2Faws4_request&X-Amz-Date=20260304T050607Z&X-Amz-Expires=604800"
     "&X-Amz-SignedHeaders=host%3Brange&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&X-Amz-Signature="
     "e4e33fa2a1b961d3f494024da2fe643c7f36bd39094a5b71de0eddd41ede47f2\nHost: h\nRange:bytes=0-1\n"
     "range: bytes=2-3"},
    {"multipart", "list",
     "<CompleteMultipartUpload "
     "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1"
     "</PartNumber><ETag>&#34;x&#34;</ETag></Part><Part><ETag>\"y\"</ETag><ChecksumCRC32>AAAAAA=="
     "</ChecksumCRC32><PartNumber>10000</PartNumber></Part></CompleteMultipartUpload>"},
    {"multipart", "part", "part 3 0 16777216 8388608 77 1764500000 8388608 CRC32 AAAAAA== .\n"},
    {"multipart", "end",
     "end 1764500000 1111111111111111111111111111111111111111111111111111111111111111 whole .\n"},
    {"delete_list", "objects",
     "<?xml version=\"1.0\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object>"
     "<Key>a&amp;b/c.zt</Key><VersionId>null</VersionId></Object><Object><ETag>&#34;x&#34;</ETag>"
     "<Key>d</Key><Size>7</Size></Object><Quiet>true</Quiet></Delete>"},
    {"delete_list", "twice", "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>"},
    {"xml", "list",
     "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult "
     "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><IsTruncated>false</IsTruncated>"
     "<Contents><Key>a&amp;b&#x9;.zt</Key><ETag>&quot;x&#34;</ETag><Size>7</Size></Contents>"
     "</ListBucketResult>"},
    {"xml", "pieces", "<s:a xmlns:s='u'>x<![CDATA[<y>]]><!--c--><?p i?><b c='d'/>&lt;</s:a>"},
    {"xml", "type", "<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d \"&b;&b;\">]><a>&d;</a>"},
    {"xml", "control", "<a><Key>x&#x01;</Key></a>"},
    {"jwt", "token", "teyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzIn0.AAAA"},
    {"jwt", "claims",
     "c{\"iss\":\"i\",\"aud\":[\"b\",\"a\"],\"sub\":\"s\",\"exp\":1.8e9,\"nbf\":1,\"iat\":1}"},
    {"jwt", "keys",
     "k{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a\",\"use\":\"sig\",\"alg\":"
     "\"ES256\","
     "\"key_ops\":[\"verify\"],\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"y\":"
     "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"},{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":"
     "\"AQAB\"},{\"kty\":\"oct\"}]}"},
    {"upstream", "list",
     "[{\"type\":\"directory\",\"path\":\"a\",\"size\":0},{\"type\":\"file\",\"path\":\"a/b.bin\","
     "\"size\":7,\"oid\":\"00112233445566778899aabbccddeeff00112233\",\"lfs\":{\"oid\":"
     "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\",\"size\":7}},{\"type\":"
     "\"file\",\"path\":\".c\",\"size\":1},{\"type\":\"file\",\"path\":\"a.d\",\"size\":1}]"},
    {"upstream", "commit",
     "{\"sha\":\"00112233445566778899aabbccddeeff00112233\",\"lastModified\":"
     "\"2026-01-31T23:59:59.000Z\"}"},
    {"upstream", "link", "</a>; rel=\"xet-auth\", <http://h:8080/b?c=d>; title=\"e\"; rel=next"},
    {"upstream", "location", "https://cdn.example/a?X-Amz-Signature=1&b=%20#c"},
    {"upstream", "address", "http://[::1]:80/"},
    {"negotiate", "codings", "zstd, gzip;q=0.5, identity;q=0.1, *;q=0"},
    {"negotiate", "types", "application/x-npy;v=\"a\\\",b\";q=0.3, application/*;q=0.2, */*;q=0.1"},
    {"negotiate", "none", ""},
    {"glob", "classes",
     "a*[b-d][!x]?\nab\xC3\xA9"
     "cde"},
    {"glob", "stars", "*a*b\naaab"},
    {"glob", "sets",
     "layers.[0-9].*.weight\n*[^a-\xC3\xA9]?\n*attention.query.and.key.and.value*\nlayers.4."
     "b\xE2\x86\x92s"},
};

/* target_slice.c says what the first eight bytes are. */
static const struct {
    const char *name;
    uint8_t head[8];
    const char *text;
} slices[] = {
    {"strided", {3, 2, 4, 3, 5, 0, 0, 100}, "1:3,:,-2"},
    {"ellipsis", {4, 1, 9, 2, 3, 40, 0, 77}, "...,1,0:-1,5:30"},
    {"halves", {2, 5, 7, 8, 0, 0, 0, 9}, "1:,2:6"},
    {"scalar", {0, 4, 0, 0, 0, 0, 0, 0}, "..."},
    {"huge", {3, 0, 0, 2, 1, 0, 5, 0}, "9223372036854775808:,1,-18446744073709551616:"},
    {"windows", {2, 0, 255, 255, 0, 0, 0, 200}, ":,3:200"},
    {"shard", {3, 2, 6, 8, 10, 0, 0x10, 33}, "\x03\x04\x01"},
};

static void put_slices(void)
{
    for (size_t i = 0; i < sizeof(slices) / sizeof(*slices); i++) {
        struct bytes input = {NULL, 0};

        bytes_append(&input, slices[i].head, sizeof(slices[i].head));
        bytes_append(&input, slices[i].text, strlen(slices[i].text));
        seed_put("slice", slices[i].name, input.at, input.length);
        bytes_free(&input);
    }
}

static void put_cbor(const char *name, char profile, const char *text)
{
    struct zt_buffer buffer = {0};

    zt_buffer_append(&buffer, &profile, 1);
    cbor_text_append(&buffer, text);
    seed_put("cbor", name, buffer.bytes, buffer.length);
    zt_buffer_free(&buffer);
}

void seeds_texts(void)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        seed_put_text(texts[i].target, texts[i].name, texts[i].text);
    put_slices();
    put_cbor("lenient", 1, "{\"b\":[1,-2,2.5,null,true,h'0102'],\"a\":{\"c\":\"text\"}}");
    put_cbor("old", 0, "[{\"name\":\"x\"},{\"name\":\"y\"}]");
    put_cbor("strict", 2, "{\"a\":1,\"b\":[{},[]],\"aa\":2.5}");
}
