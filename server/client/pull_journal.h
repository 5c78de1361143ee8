/* The journal of a pull, in the same folder as its part file: the version of the file, and the
 * pieces that were written. JSON, at most some KiB.
 *
 * Written pieces survive the end of a process, but survive a crash of the machine only once they
 * are synced. The journal therefore names the boot in which it was written; after another boot only
 * the synced pieces count. */
#ifndef CLIENT_PULL_JOURNAL_H
#define CLIENT_PULL_JOURNAL_H

#include "client/piece_map.h"
#include "client/web_file.h"

struct pull_journal {
    const char *path;
    const char *url; /* the requested URL */
    const struct web_file *file;
};

/* Reads the pieces of this version of the file into an empty map; leaves it empty if the journal
 * does not exist, is damaged or is of another version. */
void pull_journal_read(const struct pull_journal *journal, struct piece_map *map);

/* Replaces the journal. synced: the pieces as of the last sync (NULL: none). ZT_IO,
 * ZT_NO_MEMORY. */
enum zt_status pull_journal_write(const struct pull_journal *journal, const struct piece_map *map,
                                  const char *synced, struct zt_error *error);

#endif
