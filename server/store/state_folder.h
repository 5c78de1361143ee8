/* The folder for what outlives the process (state.dir, by default .ztserve in the root), and for
 * large passing files. */
#ifndef STORE_STATE_FOLDER_H
#define STORE_STATE_FOLDER_H

#include "config/config.h"

/* Opens it, made if need be for the owner alone (0700). -1 with errno when it cannot be written. */
int state_folder_open(const struct config *config);

#endif
