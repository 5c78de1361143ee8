/* The maximum numbers of open files, calculated from the system's limit on descriptors. Connections
 * come first. Models in use may have three quarters of the rest (catalog/parking.c), uploads a
 * quarter, and decoded components a thirty-second; they seldom need their full shares at the same
 * time. */
#ifndef DISK_OPEN_FILES_H
#define DISK_OPEN_FILES_H

#include <stdbool.h>

#include "config/config.h"

/* Returns how many connections the process may have: limits.connections, or fewer if the limit on
 * descriptors is too low. At least 1. */
unsigned open_files_for_connections(const struct config *config);

/* Call it at startup: sets how many descriptors connections may use. Before the call there is no
 * limit. */
void open_files_reckon(unsigned connections);

/* Counts the descriptors of an upload that begins. Returns false without counting if there are too
 * many; the upload must then wait until others have ended. All these functions may be called on any
 * thread. */
bool open_files_begin_upload(unsigned count);
/* Does the same for an upload that continues, or for its record. Twice as many are allowed, so that
 * uploads that have begun can finish. */
bool open_files_continue_upload(unsigned count);
void open_files_end_upload(unsigned count);
/* Returns true if uploads use more than half of their share; idle ones should then be closed. */
bool open_files_are_scarce(void);

/* Returns how many files decoded components may keep open; at most `most`. */
unsigned open_files_for_decoded(unsigned most);

#endif
