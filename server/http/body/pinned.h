/* Parts of an answer whose bytes are elsewhere, brought here and kept while they are sent.
 *
 * A part is an answer of its own with the same bytes, in memory and in files that are here, so that
 * it is sent as if the store were a folder. */
#ifndef HTTP_BODY_PINNED_H
#define HTTP_BODY_PINNED_H

#include "http/body/place.h"

/* All members are 0 when it holds nothing. */
struct pinned {
    struct answer answer; /* only its segments, their number, and content_length */
    struct zt_pin *pins;
    size_t pin_count;
    struct zt_source **slices; /* of what is pinned */
    size_t slice_count;
    uint8_t *bytes; /* of a part that was read */
};

/* Whether any of an answer's bytes come from a source that is elsewhere, directly or as a slice. */
bool answer_is_elsewhere(const struct answer *answer);

/* Whether all its bytes are in memory, in files, or in sources that are elsewhere and can be
 * pinned: slices only if next to nothing lies between the first and the last block that they
 * touch. */
bool pinned_is_possible(const struct answer *answer);

/* Pins the part of such an answer that begins at `from`, which is not its end: `most` bytes, or
 * fewer if they are of very many segments. Without wait it takes no time and fails with
 * ZT_UNAVAILABLE unless all of it is here. Otherwise what is not here is brought; on a thread that
 * may wait. ZT_LIMIT: there is no room to keep it, but pinned_read works; ZT_UNAVAILABLE, ZT_STALE,
 * ZT_NO_MEMORY, ZT_IO. */
enum zt_status pinned_take(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, bool wait, struct zt_error *error);

/* Reads the part into memory instead. On a thread that may wait. */
enum zt_status pinned_read(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, struct zt_error *error);

/* Clears it. */
void pinned_release(struct pinned *part);

/* Has as much be on its way as is allowed of the `length` bytes from a place on; the answer may end
 * before. Never waits. */
void answer_advise(const struct answer *answer, struct place from, uint64_t length);

#endif
