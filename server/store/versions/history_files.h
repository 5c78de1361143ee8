/* Folders and small files that are durable when a call returns. All return false with errno. */
#ifndef STORE_VERSIONS_HISTORY_FILES_H
#define STORE_VERSIONS_HISTORY_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Appended to the name of a file until it is whole. */
#define HISTORY_NEW_SUFFIX ".new"

/* sync: fsync or fdatasync. */
bool history_sync(int descriptor, int (*sync)(int descriptor));
/* Makes a folder that only this user can read, and syncs the folder above. It does that also if the
 * folder exists, because a process that was killed may have made it. */
bool history_folder_make(int above, const char *name);
/* Replaces or makes a file, which is complete at every moment. Only one caller at the same moment
 * may do this in a folder. */
bool history_file_replace(int folder, const char *name, const void *bytes, size_t length);
/* Closes a descriptor and keeps errno. */
void history_close_folder(int descriptor);
/* Calls visit for each name except those that begin with a dot. Returns false also if visit
 * does. */
bool history_folder_visit(int folder, const char *name,
                          bool (*visit)(void *context, int folder, const char *name),
                          void *context);

#endif
