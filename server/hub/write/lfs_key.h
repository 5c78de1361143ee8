/* The secret with which a server recognises its own permits (lfs_permit.h). */
#ifndef HUB_WRITE_LFS_KEY_H
#define HUB_WRITE_LFS_KEY_H

#include "config/config.h"
#include "input/ticket.h"

/* The name of its file in the state folder. */
#define LFS_KEY_NAME "lfs-key"

/* Loads the key from the state folder, or makes it there, so that permits remain valid over
 * restarts and on all servers with that folder. Makes a temporary key if the folder cannot be used.
 * Call it at start. */
void lfs_key_load(const struct config *config, uint8_t out_key[TICKET_KEY_BYTES]);

#endif
