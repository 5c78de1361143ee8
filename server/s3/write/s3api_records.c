#include "s3/write/s3api_records.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"

/* Written for a part without a checksum. */
#define NONE "-"
/* The last word of each line, so that a cut line is not taken for a shorter one. */
#define LAST "."

/* The most words of a line. */
#define WORDS 11

static const char *word_or_none(const char *word)
{
    return word[0] != '\0' ? word : NONE;
}

static int print_part(const struct s3api_record *record, char out_line[S3API_RECORD_MAX])
{
    const struct s3api_part *part = &record->part;

    return snprintf(out_line, S3API_RECORD_MAX,
                    "part %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64
                    " %" PRIu64 " %s %s " LAST "\n",
                    part->number, part->version, part->offset, part->length, part->xxh3,
                    (int64_t)part->modified, record->unit, word_or_none(part->checksum.algorithm),
                    word_or_none(part->checksum.value));
}

static int print_end(const struct s3api_record *record, char out_line[S3API_RECORD_MAX])
{
    char sha256[65];

    zt_hex_write(sha256, record->sha256, sizeof(record->sha256));
    return snprintf(out_line, S3API_RECORD_MAX, "end %" PRIu64 " %s %s " LAST "\n", record->when,
                    sha256, record->is_whole ? "whole" : "data");
}

size_t s3api_record_print(const struct s3api_record *record, char out_line[S3API_RECORD_MAX])
{
    int length;

    if (record->kind == S3API_RECORD_PART)
        length = print_part(record, out_line);
    else if (record->kind == S3API_RECORD_END)
        length = print_end(record, out_line);
    else
        length = snprintf(out_line, S3API_RECORD_MAX, "open " LAST "\n");
    assert(length > 0 && length < S3API_RECORD_MAX);
    return (size_t)length;
}

/* --- reading --- */

/* Splits at single blanks. Returns the number of words, or 0 if there are too many. */
static size_t split(struct zt_text line, struct zt_text out_words[WORDS])
{
    size_t count = 0;
    const char *at = line.bytes;
    const char *end = line.bytes + line.length;

    for (;;) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const char *stop = blank != NULL ? blank : end;

        if (count == WORDS)
            return 0;
        out_words[count++] = (struct zt_text){at, (size_t)(stop - at)};
        if (blank == NULL)
            return count;
        at = blank + 1;
    }
}

static bool read_number(struct zt_text word, uint64_t most, uint64_t *out_number)
{
    return zt_decimal_read(word, most, out_number);
}

static bool copy_word(struct zt_text word, char *out_text, size_t size)
{
    if (word.length == 0 || word.length >= size)
        return false;
    out_text[0] = '\0';
    if (!zt_text_is(word, NONE)) {
        memcpy(out_text, word.bytes, word.length);
        out_text[word.length] = '\0';
    }
    return true;
}

static bool read_part(const struct zt_text *words, struct s3api_record *record)
{
    struct s3api_part *part = &record->part;
    uint64_t numbers[7];

    assert(zt_text_is(words[0], "part"));
    for (size_t i = 0; i < 7; i++)
        if (!read_number(words[i + 1], UINT64_MAX, &numbers[i]))
            return false;
    if (numbers[0] < 1 || numbers[0] > S3API_PARTS_MAX || numbers[1] > UINT32_MAX ||
        numbers[3] > INT64_MAX || numbers[2] > INT64_MAX - numbers[3] || numbers[5] > INT64_MAX ||
        numbers[6] > INT64_MAX / S3API_PARTS_MAX)
        return false;
    part->number = (uint32_t)numbers[0];
    part->version = (uint32_t)numbers[1];
    part->offset = numbers[2];
    part->length = numbers[3];
    part->xxh3 = numbers[4];
    part->modified = (time_t)numbers[5];
    record->unit = numbers[6];
    return copy_word(words[8], part->checksum.algorithm, sizeof(part->checksum.algorithm)) &&
           copy_word(words[9], part->checksum.value, sizeof(part->checksum.value));
}

static bool read_end(const struct zt_text *words, struct s3api_record *record)
{
    record->is_whole = zt_text_is(words[3], "whole");
    return (record->is_whole || zt_text_is(words[3], "data")) &&
           read_number(words[1], INT64_MAX, &record->when) &&
           zt_hex_read_lower(words[2], record->sha256, sizeof(record->sha256));
}

static bool read_words(const struct zt_text *words, size_t count, struct s3api_record *record)
{
    if (count < 2 || !zt_text_is(words[count - 1], LAST))
        return false;
    if (zt_text_is(words[0], "part")) {
        record->kind = S3API_RECORD_PART;
        return count == 11 && read_part(words, record);
    }
    if (zt_text_is(words[0], "end")) {
        record->kind = S3API_RECORD_END;
        return count == 5 && read_end(words, record);
    }
    record->kind = S3API_RECORD_OPEN;
    return count == 2 && zt_text_is(words[0], "open");
}

size_t s3api_record_read(struct zt_text text, struct s3api_record *out_record)
{
    const size_t most = text.length < S3API_RECORD_MAX ? text.length : S3API_RECORD_MAX;
    const char *end = most > 0 ? memchr(text.bytes, '\n', most) : NULL;
    struct s3api_record record = {.kind = S3API_RECORD_OPEN};
    struct zt_text words[WORDS];
    size_t length;

    if (end == NULL)
        return 0;
    length = (size_t)(end - text.bytes);
    if (!read_words(words, split((struct zt_text){text.bytes, length}, words), &record))
        return 0;
    *out_record = record;
    return length + 1;
}
