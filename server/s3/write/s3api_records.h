/* The lines of the file "parts" of a multipart upload: pure. A line that is not complete, or is not
 * exactly as printed, was never acknowledged, and neither was any line after it. */
#ifndef S3_WRITE_S3API_RECORDS_H
#define S3_WRITE_S3API_RECORDS_H

#include "s3/write/s3api_parts.h"

/* The most bytes of a line, its end included. */
#define S3API_RECORD_MAX 256
/* Lines of one upload: every part may be sent a few times. */
#define S3API_RECORDS_MAX (4 * S3API_PARTS_MAX)

enum s3api_record_kind {
    S3API_RECORD_PART,
    S3API_RECORD_END, /* publication was about to begin */
    S3API_RECORD_OPEN /* it has failed */
};

struct s3api_record {
    enum s3api_record_kind kind;
    struct s3api_part part; /* S3API_RECORD_PART */
    uint64_t unit;          /* the same: of the placement; 0: not known yet */
    /* S3API_RECORD_END */
    uint64_t when; /* time of day */
    uint8_t sha256[32];
    bool is_whole; /* the file "whole" was to be published, rather than "data" */
};

/* Writes a line, and NUL. Returns its length. */
size_t s3api_record_print(const struct s3api_record *record, char out_line[S3API_RECORD_MAX]);
/* Reads the line at the start of a text. Returns its length, or 0 if it is not one. */
size_t s3api_record_read(struct zt_text text, struct s3api_record *out_record);

#endif
