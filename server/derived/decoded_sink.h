/* Collects decoded bytes, in memory if they are few, else in an unnamed file. */
#ifndef DERIVED_DECODED_SINK_H
#define DERIVED_DECODED_SINK_H

#include "config/config.h"
#include "disk/disk_space.h"
#include "zt/source.h"

struct decoded_sink {
    const struct config *config; /* for the state folder */
    uint64_t declared_length;
    uint8_t *bytes;
    size_t capacity;
    int file; /* -1 while in memory */
    uint64_t length;
    uint64_t reserved; /* length of the file for which blocks were requested */
    struct disk_claim space;
};

/* declared_length may be ZT_LENGTH_UNKNOWN or wrong: it only decides where the first bytes are
 * stored. */
void decoded_sink_init(struct decoded_sink *sink, const struct config *config,
                       uint64_t declared_length);
void decoded_sink_free(struct decoded_sink *sink);

/* Adds bytes. Fails with ZT_LIMIT (see disk_space_is_short) if the disk's reserve would not stay
 * free. */
enum zt_status decoded_sink_add(struct decoded_sink *sink, const void *bytes, size_t length,
                                struct zt_error *error);

/* Makes a source of the collected bytes, and empties the sink. *out_bytes: the memory that the
 * source reads, which the caller must free after closing the source; NULL for a file. */
enum zt_status decoded_sink_finish(struct decoded_sink *sink, struct zt_source **out_source,
                                   uint8_t **out_bytes, struct zt_error *error);

#endif
