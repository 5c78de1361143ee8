/* Where the state folder is (state.dir, by default .ztserve in a root that is a folder), for what
 * outlives the process, and where a bucket's cache is. */
#ifndef STORE_STATE_PLACE_H
#define STORE_STATE_PLACE_H

#include "config/config.h"

/* state.dir, or the root and the name of the folder in it, and the cache in that. */
#define STATE_FOLDER_PATH_SIZE (CONFIG_TEXT_SIZE + 16)

/* Where the state folder is. That of a bucket, unless state.dir says so, is the folder of the
 * service (STATE_DIRECTORY), or one of the bucket's own in "ztserve" in the folder for the state of
 * the user's programs (XDG_STATE_HOME, ~/.local/state), or of the system's (/var/lib). */
void state_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE]);

/* Opens the state folder, and makes it if necessary, for its owner alone (0700). -1 with errno if
 * it cannot be written to; ENOTDIR if something else has its name, in the root also a link. */
int state_folder_open(const struct config *config);

/* Where a bucket's cache is: cache.dir, or "cache" in the state folder. */
void cache_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE]);

/* Makes the cache's folder if necessary. False with errno if it is none that can be written to. */
bool cache_folder_make(const struct config *config);

#endif
