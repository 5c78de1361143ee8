/* Where bytes come from: a file, memory, or anything else behind four functions.
 *
 * A source is a fixed run of bytes. Readers need only these functions, so every reader can be
 * tested on a buffer. All functions except close may be called from several threads at once. */
#ifndef ZT_SOURCE_H
#define ZT_SOURCE_H

#include <stdbool.h>

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_source;

/* A range of a source that is on this machine and stays there. */
struct zt_pin {
    /* A file that has the source's length, with a descriptor and a mapping, and in the range the
     * source's bytes; elsewhere it may have zeros. Borrowed from the source. */
    struct zt_source *view;
    void (*release)(struct zt_pin *pin);
    void *held;
    uint64_t first; /* the holder's */
    uint64_t last;
};

/* A caller that is called back instead of waiting. Embedded in its owner's structure. */
struct zt_source_waiter {
    /* Called once, on any thread, perhaps before the call that waits returns; never waits. Look
     * again if error.status is ZT_OK. */
    void (*wake)(struct zt_source_waiter *waiter);
    struct zt_error error;
    /* The source's. */
    struct zt_source *source; /* that has the waiter */
    struct zt_source_waiter *next;
    uint64_t until;
    bool is_for_checked;
};

struct zt_source_ops {
    /* Length in bytes when the source was opened. */
    uint64_t (*size)(const struct zt_source *source);
    /* Reads exactly length bytes at offset. error is never NULL. ZT_IO if reading fails or the
     * bytes do not exist, for example because the file has been truncated. */
    enum zt_status (*read_at)(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error);
    /* The whole source as memory, borrowed until close; NULL if it cannot be mapped. If the file is
     * truncated, touching the missing bytes raises SIGBUS: only pass the memory to system calls, or
     * map files that are never changed. */
    const uint8_t *(*map)(struct zt_source *source);
    void (*close)(struct zt_source *source);
    /* Only of sources whose bytes come from elsewhere and may leave this machine again; NULL for
     * all others. map of such a source returns NULL, and it has no descriptor. */
    /* Keeps a range here until the pin is released. Without wait it takes no time, and fails with
     * ZT_UNAVAILABLE unless all of it is here; with wait, missing bytes are fetched. ZT_LIMIT:
     * there is no room to keep it, but read_at works; ZT_UNAVAILABLE, ZT_STALE. */
    enum zt_status (*pin)(struct zt_source *source, uint64_t offset, uint64_t length, bool wait,
                          struct zt_pin *out_pin, struct zt_error *error);
    /* Begins to fetch a range, as far as the limit on fetches allows, and never waits. For
     * sequential readers: call it repeatedly with the range ahead. */
    void (*advise)(struct zt_source *source, uint64_t offset, uint64_t length);
    /* A digest has shown that the bytes of a range are wrong: the local copy is discarded, so that
     * the next read fetches it again. May wait for a disk. NULL: nothing is kept. */
    void (*invalidate)(struct zt_source *source, uint64_t offset, uint64_t length);
    /* Fetches a range, of which the first `least` bytes are awaited, and wakes the waiter once
     * pin or take_arrived may return some of them, or if fetching fails. Never waits. NULL if
     * pin is the only way to wait. */
    void (*await)(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                  struct zt_source_waiter *waiter);
    /* Copies bytes that have arrived and that pin does not return yet. Never waits. Returns how
     * many; 0 if the byte at offset has not arrived. NULL if await is. */
    size_t (*take_arrived)(struct zt_source *source, uint64_t offset, void *buffer, size_t length);
    /* Called before bytes of a range are given to a client. Returns how many of them may be, from
     * the first on, and notes that they are; fewer than length if the source has yet to be checked
     * as a whole. await then wakes when more may be. Never waits. NULL: all may be. */
    uint64_t (*pass)(struct zt_source *source, uint64_t offset, uint64_t length);
    /* Takes a waiter back. Returns true if it will not be woken any more; false if it has been, or
     * soon is. Never waits. NULL: waiters are woken within the time that a fetch may take. */
    bool (*forget)(struct zt_source *source, struct zt_source_waiter *waiter);
    /* The bytes are made in units of this length, the first at offset 0: to read a part of one
     * costs as much as all of it, and different units can be read side by side. NULL: no units. */
    uint32_t (*unit)(const struct zt_source *source);
    /* The descriptor of a file that has exactly the source's bytes, borrowed. NULL: none. */
    int (*descriptor)(const struct zt_source *source);
};

struct zt_source {
    const struct zt_source_ops *ops;
};

uint64_t zt_source_size(const struct zt_source *source);
/* error may be NULL. */
enum zt_status zt_source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                 size_t length, struct zt_error *error);
const uint8_t *zt_source_map(struct zt_source *source);
/* Takes NULL. */
void zt_source_close(struct zt_source *source);

/* Lets the library read from the mappings of files that are in the page cache, which is quicker
 * than read_at. For programs, at their start: it handles SIGBUS, so that a file that is truncated
 * while it is read gives ZT_IO. Without this call nothing touches a mapping. */
void zt_source_allow_mapped(void);

/* Whether all of these bytes of a mapping are in the page cache now, as reported by the kernel. */
bool zt_is_resident(const uint8_t *bytes, uint64_t length);

/* Opens a regular file for reading. ZT_IO if it cannot be opened or is not a regular file;
 * ZT_NO_MEMORY. Closed with zt_source_close, like every source. */
enum zt_status zt_source_open_file(const char *path, struct zt_source **out_source,
                                   struct zt_error *error);

/* Takes ownership of an open descriptor of a regular file, which is closed with the source. On
 * failure (ZT_IO, ZT_NO_MEMORY) the descriptor stays the caller's. */
enum zt_status zt_source_from_descriptor(int descriptor, struct zt_source **out_source,
                                         struct zt_error *error);

/* Borrows bytes, which must outlive the source. ZT_NO_MEMORY. */
enum zt_status zt_source_from_memory(const void *bytes, size_t length,
                                     struct zt_source **out_source, struct zt_error *error);

/* Whether pin and advise exist. */
bool zt_source_is_remote(const struct zt_source *source);
/* pin of a remote source. */
enum zt_status zt_source_pin(struct zt_source *source, uint64_t offset, uint64_t length, bool wait,
                             struct zt_pin *out_pin, struct zt_error *error);
/* Takes a cleared pin; clears it. */
void zt_pin_release(struct zt_pin *pin);
/* Does nothing for local sources. */
void zt_source_advise(struct zt_source *source, uint64_t offset, uint64_t length);

/* Whether await and take_arrived exist. */
bool zt_source_can_await(const struct zt_source *source);
void zt_source_await(struct zt_source *source, uint64_t offset, uint64_t length, uint64_t least,
                     struct zt_source_waiter *waiter);
/* forget of the source that has the waiter. False if it waits for nothing. Not while the same
 * waiter begins to wait. */
bool zt_source_forget(struct zt_source_waiter *waiter);
size_t zt_source_take_arrived(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length);
/* length for sources without pass. */
uint64_t zt_source_pass(struct zt_source *source, uint64_t offset, uint64_t length);

/* invalidate of a remote source. Returns false if the bytes are local, so that reading them again
 * would return the same. */
bool zt_source_invalidate(struct zt_source *source, uint64_t offset, uint64_t length);

/* For whoever reads `left` bytes in order from `at` on: to be called before each read. Has the next
 * ones be brought while these are worked on, about `most` of them (0: as many as are ever worth
 * it), in pieces as a store gives them. */
void zt_source_read_on(struct zt_source *source, uint64_t at, uint64_t left, uint64_t most);

/* The length of its units; 0: it has none. */
uint32_t zt_source_unit(const struct zt_source *source);

/* The descriptor of a source that is a file, borrowed; -1 for any other source. */
int zt_source_descriptor(const struct zt_source *source);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
