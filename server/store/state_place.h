/* Finds the state folder, which keeps data between runs (state.dir, by default .ztserve in a root
 * that is a folder), a bucket's cache, and the folder of mirrored files. */
#ifndef STORE_STATE_PLACE_H
#define STORE_STATE_PLACE_H

#include "config/config.h"

/* Holds state.dir, or the root and the state folder's name, plus the cache's name. */
#define STATE_FOLDER_PATH_SIZE (CONFIG_TEXT_SIZE + 16)

/* Writes the path of the state folder. For a bucket without state.dir, that is the service's folder
 * (STATE_DIRECTORY); or a separate folder for each bucket in "ztserve", in the user's state folder
 * (XDG_STATE_HOME, ~/.local/state) or the system's (/var/lib). */
void state_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE]);

/* Opens the state folder, and makes it if necessary, accessible only to its owner (0700). Returns
 * -1 with errno if it cannot be written to; ENOTDIR if something else has its name. In the root, a
 * link counts as something else. */
int state_folder_open(const struct config *config);

/* Writes the path of a bucket's cache: cache.dir, or "cache" in the state folder. */
void cache_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE]);

/* Makes the cache's folder if necessary. Returns false with errno if it is not a folder that can be
 * written to. */
bool cache_folder_make(const struct config *config);

/* Writes the path of the folder of mirrored files: "mirror" in cache.dir or in the state
 * folder. */
void mirror_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE]);

/* Makes that folder if necessary. Returns false with errno if it cannot be written to. */
bool mirror_folder_make(const struct config *config);

#endif
