/* What is remembered of a pull beside its part file, so that it can be taken up after any
 * interruption: which file it is of, and which pieces are there. JSON, at most some KiB.
 *
 * Pieces that were written survive the end of a process as they are, but a crash of the machine
 * only once they are synced. The journal therefore names the boot in which it was written; after
 * another one only what was synced counts. */
#ifndef CLIENT_PULL_JOURNAL_H
#define CLIENT_PULL_JOURNAL_H

#include "client/piece_map.h"
#include "client/web_file.h"

struct pull_journal {
    const char *path;
    const char *url; /* as it was asked for */
    const struct web_file *file;
};

/* Reads what is there of this version of the file into a map that has just been made; leaves it
 * empty where the journal is of something else, or is none. */
void pull_journal_read(const struct pull_journal *journal, struct piece_map *map);

/* Replaces the journal. synced: the pieces as of the last sync (NULL: none). ZT_IO,
 * ZT_NO_MEMORY. */
enum zt_status pull_journal_write(const struct pull_journal *journal, const struct piece_map *map,
                                  const char *synced, struct zt_error *error);

#endif
