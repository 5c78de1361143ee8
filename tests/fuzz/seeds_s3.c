/* Seeds of the parsers of S3's requests. */
#include "seeds.h"

#include <string.h>

#define SIGNATURE "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"

void seeds_s3(void)
{
    static const struct {
        const char *name;
        const char *text; /* after the length of the pieces */
    } chunked[] = {
        {"unsigned", "\x04"
                     "5\r\nhello\r\n2\r\n!!\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n"},
        {"signed",
         "\x02"
         "3;chunk-signature=" SIGNATURE "\r\nabc\r\n0;chunk-signature=" SIGNATURE "\r\n\r\n"},
        {"signed-trailer", "\x03"
                           "3;chunk-signature=" SIGNATURE "\r\nabc\r\n0;chunk-signature=" SIGNATURE
                           "\r\nx-amz-checksum-crc32c:sOO8/Q==\n\r\n"
                           "x-amz-trailer-signature:" SIGNATURE "\r\n\r\n"},
        {"empty", "\x08"
                  "0\r\n\r\n"},
    };

    for (size_t i = 0; i < sizeof(chunked) / sizeof(*chunked); i++)
        seed_put("aws_chunked", chunked[i].name, chunked[i].text, strlen(chunked[i].text));
}
