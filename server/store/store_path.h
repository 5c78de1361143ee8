/* Opens paths below a root without leaving it. */
#ifndef STORE_STORE_PATH_H
#define STORE_STORE_PATH_H

#include <stdbool.h>

#include "store/staging.h"
#include "store/store.h"

/* How often a folder is made again if another program removes it at the same time. Each try needs
 * another removal, so more in a row are not a coincidence. */
#define STORE_FOLDER_TRIES_MAX 8

/* Longer paths are not opened. */
#define STORE_PATH_SIZE MODEL_PATH_SIZE

/* Returns true if a text can be a path of this store: relative, without empty, "." and ".." parts,
 * and not too long. */
bool store_path_is_clean(const char *path);

/* Opens a path below the root, with open's flags. Symbolic links are followed as long as they stay
 * below the root. Returns -1 with errno; ENOENT also for links that leave it. */
int store_path_open(int root, const char *path, int flags);

/* Writes the link-free path below the root of an open file or folder ("" for the root). Returns
 * false if it is outside the root, or the system cannot say. */
bool store_path_of(int root, int descriptor, char out_path[STORE_PATH_SIZE]);

/* Resolves the links of a path and writes the resulting path below the root ("" for the root).
 * Returns false if it leads out of the root or to nothing, or if the system cannot say. */
bool store_path_resolve(int root, const char *path, char out_path[STORE_PATH_SIZE]);

/* Opens a regular file below the root, with open's flags. Other things with that name (a device, a
 * FIFO) are never opened, even if one replaces the file at that moment. Returns -1 with errno;
 * ENOENT if it is not a regular file. With O_NOFOLLOW, symbolic links are not regular files. */
int store_path_open_file(int root, const char *path, int flags);

/* Returns true if the name belongs to something other than a folder or a file that
 * store_path_open_file would open: a FIFO, a socket, a device, a link to nothing or out of the
 * root. */
bool store_path_is_other(int root, const char *path);

/* Opens the parent folder of a path; *out_base is the path's last part. With make, missing folders
 * are made durably, and made again if they are removed at the same time. Returns -1 with errno. */
int store_path_open_parent(int root, const char *path, bool make, const char **out_base);

/* Makes every missing folder of a path durably, from the root down. Returns false with errno. */
bool store_path_make_folders(int root, const char *path);

/* Writes "<prefix>0123456789abcdef", with random digits. */
void store_hidden_name(const char *prefix, char out_name[STAGING_HIDDEN_NAME_SIZE]);

/* Fails with what ("cannot write") and the text of os_error. ENOSPC, EDQUOT and EFBIG become
 * ZT_LIMIT. */
enum zt_status store_fail_errno(struct zt_error *error, int os_error, const char *what);

#endif
