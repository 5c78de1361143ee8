/* Fetches parts of an answer from a remote store and keeps them while they are sent.
 *
 * A part is an answer with the same bytes, in memory and local files, so that it is sent as if the
 * store were a folder. */
#ifndef HTTP_BODY_PINNED_H
#define HTTP_BODY_PINNED_H

#include "http/body/place.h"

/* All members are 0 if it is empty. */
struct pinned {
    struct answer answer; /* only its segments, their number, and content_length */
    struct zt_pin *pins;
    size_t pin_count;
    struct zt_source **slices; /* slices of the pinned files */
    size_t slice_count;
    uint8_t *bytes; /* bytes of a part that was read */
};

/* Returns true if any of an answer's bytes come from a remote source, directly or through a
 * slice. */
bool answer_is_remote(const struct answer *answer);

/* Returns true if all bytes are in memory, in files, or in remote sources that can be pinned. A
 * slice can be pinned if there are almost no other bytes between the first and the last block that
 * it touches. */
bool pinned_is_possible(const struct answer *answer);

/* Pins a part of an answer for which pinned_is_possible. It begins at `from`, which must not be the
 * answer's end, and has `most` bytes, or fewer if they are in very many segments. Without wait,
 * returns at once and fails with ZT_UNAVAILABLE unless all bytes are local. With wait, fetches
 * missing bytes; call it on a thread that may wait. Fails with ZT_LIMIT if there is no room to keep
 * the bytes (pinned_read works then), ZT_UNAVAILABLE, ZT_STALE, ZT_NO_MEMORY or ZT_IO. */
enum zt_status pinned_take(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, bool wait, struct zt_error *error);

/* Reads the part into memory instead. Call it on a thread that may wait. */
enum zt_status pinned_read(struct pinned *out_part, const struct answer *answer, struct place from,
                           uint64_t most, struct zt_error *error);

/* Copies bytes that have arrived at a place and are not kept yet, at most `most`, all of one
 * segment. Never waits. Fails with ZT_UNAVAILABLE if there are none, or ZT_NO_MEMORY. */
enum zt_status pinned_take_arrived(struct pinned *out_part, const struct answer *answer,
                                   struct place from, uint64_t most, struct zt_error *error);

/* Returns how many of the next `most` bytes may be given to the client now, and notes that they are
 * (zt_source_pass). Never waits. */
uint64_t answer_pass(const struct answer *answer, struct place from, uint64_t most);

/* Returns true if the bytes at a place need no thread that waits: they are local, or answer_await
 * and pinned_take_arrived fetch them. */
bool answer_can_await(const struct answer *answer, struct place from);

/* Wakes the waiter once the next `least` bytes, of one segment, have arrived and may be given to
 * the client, or never will. It may wake earlier, so look again. Fetches the next `length`
 * bytes. Never waits. */
void answer_await(const struct answer *answer, struct place from, uint64_t length, uint64_t least,
                  struct zt_source_waiter *waiter);

/* Releases the part's pins and memory, and clears it. */
void pinned_release(struct pinned *part);

/* Asks the store to start fetching the next `length` bytes from a place, as far as it allows; the
 * answer may end earlier. Never waits. */
void answer_advise(const struct answer *answer, struct place from, uint64_t length);

#endif
