/* A representation is anything that is sent: JSON, a component, a stored file, a slice or an
 * exported model.
 *
 * A handler fills it in; preconditions, ranges, HEAD, digest fields and sending are implemented
 * once for this type. Bytes are referenced and never copied: they are segments of memory or of a
 * source, and stay valid because the request holds them (request_hold). */
#ifndef HTTP_EXCHANGE_REPRESENTATION_H
#define HTTP_EXCHANGE_REPRESENTATION_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "zt/source.h"

struct request;

enum segment_kind { SEGMENT_MEMORY, SEGMENT_SOURCE };

/* If a source can be neither mapped nor sent from a descriptor (a slice, decoded frames, an
 * exported file), workers read it one window ahead of sending. */
struct segment {
    enum segment_kind kind;
    /* The source is a file that is still being filled, but these bytes are present (a pin of
     * zt/source.h): that the file is written to does not matter. */
    bool is_pinned;
    uint64_t start; /* position in the representation, or in the answer */
    uint64_t length;
    const uint8_t *bytes;     /* SEGMENT_MEMORY */
    struct zt_source *source; /* SEGMENT_SOURCE: length bytes from offset */
    uint64_t offset;
};

/* The result of a step or a handler. WAITING: it has arranged one call of request_wake, and must be
 * called again afterwards. */
enum outcome { OUTCOME_READY, OUTCOME_WAITING };

/* A step between choosing a representation and sending it that may take time, such as verifying or
 * decoding the bytes. It runs on the loop, passes work to workers, and is called until it returns
 * READY. On failure it replaces the reply by a problem and returns READY. It may set length and
 * segments. */
typedef enum outcome (*preparation)(struct request *request);

#define REPRESENTATION_FIELDS   16
#define REPRESENTATION_MORE     32 /* at most, in more_fields */
#define REPRESENTATION_SEGMENTS 4  /* without a separate list */
#define REPRESENTATION_STEPS    4

struct field {
    const char *name;
    const char *value;
};

struct representation {
    unsigned status; /* 200 by default; preconditions and ranges apply to 200 only */
    uint64_t length;
    /* The length that the steps will set, if known before they run; for a 304. 0: unknown. */
    uint64_t expected_length;
    const char *media_type;    /* NULL: no Content-Type */
    const char *coding;        /* Content-Encoding, or NULL */
    const char *etag;          /* with its quotes, strong; NULL: none */
    time_t last_modified;      /* 0: none */
    const char *cache_control; /* NULL: no-store for problems, else none */
    const char *vary;
    /* HEAD omits the length, because some clients give up when they see it. */
    bool hides_length;
    bool ranges; /* send Accept-Ranges: bytes, and honour Range */
    /* The answer depends only on the request, the settings, and changes counted by base/changes.h;
     * the same request may then get it again. */
    bool lasting;
    bool has_sha256;
    uint8_t sha256[32]; /* of the whole representation, for Repr-Digest */
    /* The content is a difference, and sha256 is of what the client makes of it. */
    bool digest_is_of_result;
    struct field fields[REPRESENTATION_FIELDS];
    unsigned field_count;
    /* A list in the request's memory, for replies that may have many; sent after the others. */
    struct field *more_fields;
    unsigned more_count;
    /* Finds the SHA-256 of a range without reading it, for Content-Digest. Returns false if it is
     * unknown. NULL: no such digests are known. */
    bool (*range_sha256)(struct request *request, uint64_t first, uint64_t length,
                         uint8_t out_sha256[32]);
    /* In order, without gaps or empty segments: own_segments, or a list in the request's memory. */
    struct segment *segments;
    size_t segment_count;
    struct segment own_segments[REPRESENTATION_SEGMENTS];
    struct {
        const char *name; /* of the phase in Server-Timing */
        preparation run;
    } steps[REPRESENTATION_STEPS];
    unsigned step_count;
};

void representation_init(struct representation *representation);

/* Adds a header field. Both texts must live as long as the request (request_print). */
void representation_field(struct representation *representation, const char *name,
                          const char *value);

/* Append bytes; length grows accordingly. */
void representation_memory(struct representation *representation, const void *bytes,
                           uint64_t length);
void representation_source(struct representation *representation, struct zt_source *source,
                           uint64_t offset, uint64_t length);

/* Replaces the segments by a list; sets the start of each segment, and length to their sum. The
 * list must live as long as the request (request_allocate). */
void representation_segments(struct representation *representation, struct segment *segments,
                             size_t count);

/* Returns how many segments a range touches. The range must be non-empty and within the
 * representation. Takes time logarithmic in the number of segments. */
size_t representation_count(const struct representation *representation, uint64_t first,
                            uint64_t length);

/* Writes those segments, cut to the range, and returns their number (representation_count). start
 * is the position of the range's first byte in the answer. */
size_t representation_cut(const struct representation *representation, uint64_t first,
                          uint64_t length, uint64_t start, struct segment *out_segments);

/* Removes all segments and sets length to 0. */
void representation_clear(struct representation *representation);

/* Adds a step. name, a token, is its phase in Server-Timing, and must live as long as the
 * program. */
void representation_step(struct representation *representation, const char *name, preparation step);

#endif
