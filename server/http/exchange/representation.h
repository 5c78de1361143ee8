/* A representation: whatever is sent, be it JSON, a component, a stored file, a slice or an
 * exported model.
 *
 * A handler fills it in; preconditions, ranges, HEAD, digest fields and sending are written once,
 * for this value. Bytes are referenced, never copied: they are segments of memory or of a source,
 * kept alive by what the request holds (request_hold). */
#ifndef HTTP_EXCHANGE_REPRESENTATION_H
#define HTTP_EXCHANGE_REPRESENTATION_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "zt/source.h"

struct request;

enum segment_kind { SEGMENT_MEMORY, SEGMENT_SOURCE };

/* Workers read a source that can be neither mapped nor sent from a descriptor (a slice, decoded
 * frames, an exported file), one window ahead of what is sent. */
struct segment {
    enum segment_kind kind;
    /* The source is a file that is filled while it is sent from, of which these bytes are there (a
     * pin of zt/source.h): that it is written to says nothing. */
    bool is_pinned;
    uint64_t start; /* position in the representation, or in the answer */
    uint64_t length;
    const uint8_t *bytes;     /* SEGMENT_MEMORY */
    struct zt_source *source; /* SEGMENT_SOURCE: length bytes from offset */
    uint64_t offset;
};

/* The result of a step or a handler. WAITING: it has arranged for one call of request_wake, after
 * which it is called again. */
enum outcome { OUTCOME_READY, OUTCOME_WAITING };

/* A step between choosing a representation and sending it, which may take time: verifying or
 * decoding the bytes. It runs on the loop, hands work to the workers, and is called until it is
 * ready. On failure it replaces the reply by a problem and is ready. It may fill in length and
 * segments. */
typedef enum outcome (*preparation)(struct request *request);

#define REPRESENTATION_FIELDS   16
#define REPRESENTATION_SEGMENTS 4 /* without a separate list */
#define REPRESENTATION_STEPS    4

struct field {
    const char *name;
    const char *value;
};

struct representation {
    unsigned status; /* 200 by default; preconditions and ranges apply to 200 only */
    uint64_t length;
    /* The length that the steps will fill in, if it is known before they run; for a 304.
     * 0: unknown. */
    uint64_t expected_length;
    const char *media_type;    /* NULL: no Content-Type */
    const char *coding;        /* Content-Encoding, or NULL */
    const char *etag;          /* with its quotes, strong; NULL: none */
    time_t last_modified;      /* 0: none */
    const char *cache_control; /* NULL: no-store for problems, else none */
    const char *vary;
    /* HEAD tells no length: there are clients that give up because of it. */
    bool hides_length;
    bool ranges; /* Accept-Ranges: bytes, and Range is honoured */
    /* Whether the answer depends on nothing but the request, settings, and what base/changes.h
     * counts; the same request may then get it again. */
    bool lasting;
    bool has_sha256;
    uint8_t sha256[32]; /* of the whole representation, for Repr-Digest */
    struct field fields[REPRESENTATION_FIELDS];
    unsigned field_count;
    /* Finds the SHA-256 of a range without reading it, for Content-Digest. False if it is not
     * known; NULL if that of no range is. */
    bool (*range_sha256)(struct request *request, uint64_t first, uint64_t length,
                         uint8_t out_sha256[32]);
    /* In order, without gaps, none empty: own_segments, or a list in the request's memory. */
    struct segment *segments;
    size_t segment_count;
    struct segment own_segments[REPRESENTATION_SEGMENTS];
    struct {
        const char *name; /* of the phase, in Server-Timing */
        preparation run;
    } steps[REPRESENTATION_STEPS];
    unsigned step_count;
};

void representation_init(struct representation *representation);

/* Adds a header field; both texts must live as long as the request (request_print). */
void representation_field(struct representation *representation, const char *name,
                          const char *value);

/* Adds bytes to the end; length grows by them. */
void representation_memory(struct representation *representation, const void *bytes,
                           uint64_t length);
void representation_source(struct representation *representation, struct zt_source *source,
                           uint64_t offset, uint64_t length);

/* Replaces the segments by a list; sets each start, and length to their sum. The list must live as
 * long as the request (request_allocate). */
void representation_segments(struct representation *representation, struct segment *segments,
                             size_t count);

/* How many segments a range touches. The range is not empty and lies within the representation. The
 * time grows with the logarithm of the number of segments. */
size_t representation_count(const struct representation *representation, uint64_t first,
                            uint64_t length);

/* Writes those segments, cut to the range, and returns their number (representation_count). start
 * is the position that the range's first byte gets. */
size_t representation_cut(const struct representation *representation, uint64_t first,
                          uint64_t length, uint64_t start, struct segment *out_segments);

/* Removes all segments; length becomes 0. */
void representation_clear(struct representation *representation);

/* name, a token, is that of the phase in Server-Timing, and lives as long as the program. */
void representation_step(struct representation *representation, const char *name, preparation step);

#endif
