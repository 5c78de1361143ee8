/* Ledgers: small files of state, made of binary records (base/record.h). A ledger begins with a
 * header, which says which state it has. New records are appended, and the first damaged record
 * ends it. The header and each record end with a hash. A ledger is replaced by writing a new file
 * and renaming it. There is no fsync: after a power cut the hashes reveal damage, and lost state is
 * computed again.
 *
 * A folder of ledgers is in the state folder. The name of a ledger is the hash of a path: of a
 * model, or of a fixed name if the folder has only one. Only this process writes to it. */
#ifndef DISK_LEDGER_H
#define DISK_LEDGER_H

#include <pthread.h>

#include "base/record.h"

/* The size limit. Larger than the state of 100 million components, or of the pieces of 8 TiB. */
#define LEDGER_MAX_BYTES ((uint64_t)1 << 28)

struct ledger_folder {
    int descriptor; /* -1: saving is off */
    pthread_mutex_t lock;
};

/* Opens the folder of that name, and makes it if necessary. state_folder may be -1. */
void ledger_folder_open(struct ledger_folder *folder, int state_folder, const char *name);
void ledger_folder_close(struct ledger_folder *folder);

/* Removes the ledgers of all but the given paths. */
void ledger_folder_sweep(struct ledger_folder *folder, const char *const *paths, size_t count);

/* Removes the ledger of a path, if there is one. */
void ledger_remove(struct ledger_folder *folder, const char *path);

/* Replaces the ledger of a path atomically. Returns false with errno on failure. */
bool ledger_replace(struct ledger_folder *folder, const char *path,
                    const struct record_writer *image);

/* Appends records to a ledger that is *io_bytes long. Returns false if the ledger must be replaced:
 * its length is unknown (0) or differs, it would exceed most_bytes, memory was short, or the file
 * cannot be written. */
bool ledger_append(struct ledger_folder *folder, const char *path,
                   const struct record_writer *records, uint64_t most_bytes, uint64_t *io_bytes);

/* Reads the ledger of a path, which the caller frees. Returns NULL if it cannot be read, or if
 * saving is off. */
uint8_t *ledger_read(const struct ledger_folder *folder, const char *path, size_t *out_length);

/* Takes one record and its hash. Returns false if it is damaged. */
typedef bool (*ledger_take)(void *context, struct record_reader *reader);

/* Takes the records of a ledger in memory up to the first damaged one, if the ledger has this
 * header. Returns the length of the ledger, or 0 if it must be replaced because of its header or a
 * damaged record. */
size_t ledger_scan(const uint8_t *bytes, size_t length, const struct record_writer *header,
                   ledger_take take, void *context);

#endif
