/* One account per file system of the bytes that this process is about to write, so that all writers
 * together (uploads of every kind, copies, decoded components, the block cache) leave a reserve
 * free. A writer claims space first, with the whole length if it is known:
 *
 *     disk_claim_init(&claim, descriptor, 0);
 *     disk_claim_ahead(&claim, length, reserve, &error);          the declared length, if any
 *     disk_claim_cover(&claim, offset, count, reserve, &error);   before each write
 *     … the write …
 *     disk_claim_spend(&claim, offset, count);                    after it
 *     disk_claim_end(&claim);                                     gives back the rest
 *
 * Free space is the figure that the system reports, minus what other writers have claimed and not
 * written yet. While space is plentiful, the system is asked at most every 100 ms; while it is
 * scarce, for each claim. So space that becomes free counts at once. Safe on any thread. */
#ifndef DISK_DISK_SPACE_H
#define DISK_DISK_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/status.h"

struct disk_space;

/* Returns the account of the file system that contains an open file or folder. It is the same for
 * all of them and lives as long as the process. Returns NULL if the system does not identify the
 * file system, or if out of memory. */
struct disk_space *disk_space_of(int descriptor);

/* Returns a twentieth of the path's file system, but at most 1 GiB; 1 GiB if the size is
 * unknown. */
uint64_t disk_space_automatic_reserve(const char *path);

/* For the functions below, descriptor is a file or folder in the file system. */

/* Sets the result of disk_space_reserve. */
void disk_space_set_reserve(int descriptor, uint64_t bytes);
/* Returns the space to leave free: the configured reserve, or else wanted_bytes, but at most a
 * quarter of the file system; for DISK_RESERVE_AUTOMATIC the automatic reserve. */
#define DISK_RESERVE_AUTOMATIC UINT64_MAX
uint64_t disk_space_reserve(int descriptor, uint64_t wanted_bytes);

/* Finds the free space that no writer has claimed. Returns false with errno if the system does not
 * report it. */
bool disk_space_left(int descriptor, uint64_t *out_bytes);

/* Returns how many bytes savers (below) could free on that file system; while one frees files, how
 * many they could free when it began. */
uint64_t disk_space_savable(int descriptor);

/* Returns true if an error means that the disk has too little space: ZT_LIMIT with the system's
 * error for a full disk. */
bool disk_space_is_short(const struct zt_error *error);
/* Sets such an error. Returns ZT_LIMIT. */
enum zt_status disk_space_fail(struct zt_error *error);

/* The claim of one writer. */
struct disk_claim {
    /* Private. */
    struct disk_space *space; /* NULL: no account, and no claim is refused */
    int descriptor;
    /* Under the account's lock. */
    uint64_t ahead_bytes; /* claimed but not written */
    uint64_t end;         /* end of the part of the file that has blocks */
};

/* Starts a claim for an open file of this length. The descriptor must stay open until the claim
 * ends. */
void disk_claim_init(struct disk_claim *claim, int descriptor, uint64_t length);

/* Claims further bytes that are free, or that savers could free; they do so before the bytes are
 * written. Waits for no disk. On failure returns ZT_LIMIT (disk_space_fail) and claims nothing. */
enum zt_status disk_claim_ahead(struct disk_claim *claim, uint64_t bytes, uint64_t reserve,
                                struct zt_error *error);

/* Does the same without a check, for a caller that has found enough space with disk_space_left. */
void disk_claim_note(struct disk_claim *claim, uint64_t bytes);

/* Claims the part of a write that is not claimed yet, which is nothing within the file. If too
 * little is free for the write, asks savers to make room. Returns ZT_LIMIT also if other processes
 * have used the claimed space. */
enum zt_status disk_claim_cover(struct disk_claim *claim, uint64_t offset, uint64_t length,
                                uint64_t reserve, struct zt_error *error);
/* Call it after the write. */
void disk_claim_spend(struct disk_claim *claim, uint64_t offset, uint64_t length);

/* Give back some of the claimed and unwritten bytes, or all. */
void disk_claim_give_back(struct disk_claim *claim, uint64_t bytes);
void disk_claim_end(struct disk_claim *claim);

/* --- what can make room --- */

/* A component that keeps removable files. Both functions may be called on any thread, without a
 * claim's lock. */
struct disk_saver {
    /* Returns how many bytes free_some could free on a file system, or more; does not wait for a
     * disk. May be called on several threads at once. */
    uint64_t (*could_free)(void *context, const struct disk_space *space);
    /* Removes files from a file system until this many bytes are free, or no such files are left.
     * Returns false if it removed no file. */
    bool (*free_some)(void *context, const struct disk_space *space, uint64_t bytes);
    void *context;
    struct disk_saver *next; /* private */
};

/* A saver must stay valid until it is removed; it is not called afterwards. */
void disk_saver_add(struct disk_saver *saver);
void disk_saver_remove(struct disk_saver *saver);

#endif
