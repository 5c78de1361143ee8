/* Decides where the parts of a multipart upload are written, before it is known how many there are:
 * pure. If all parts but the last have one length, the unit, part n belongs at (n - 1) x unit of
 * the final file, and completing the upload copies nothing.
 *
 * Clients send parts in any order, and the last, shorter one may come first. So a part other than
 * part 1 is kept aside, in its own file, until a second part shows what the unit is; and so is any
 * part longer than the unit. The unit never changes once it is known. */
#ifndef S3_WRITE_S3API_PLACEMENT_H
#define S3_WRITE_S3API_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Part numbers begin with 1. */
#define S3API_PARTS_MAX 10000u

/* Zeroed: no part has been seen. */
struct s3api_placement {
    uint64_t unit; /* 0: not known yet */
    /* The only part seen so far, until the unit is known. 0: none */
    uint32_t witness;
    uint64_t witness_length;
};

/* Learns from a part that is about to arrive. Returns true if it belongs at *out_offset of the
 * final file, or false if it must be kept aside. A part belongs somewhere only as long as all parts
 * before it have the unit's length, which is checked when the upload is completed. */
bool s3api_placement_find(struct s3api_placement *placement, uint32_t number, uint64_t length,
                          uint64_t *out_offset);

#endif
