/* The place of a history in a folder (history_place.h): ".ztserve/versions" below the root. Kept
 * files are links or clones of the store's files, and are never copied.
 *
 * Besides the names of every place:
 *
 *   removed/    kept files that are being removed */
#ifndef STORE_VERSIONS_HISTORY_FOLDER_H
#define STORE_VERSIONS_HISTORY_FOLDER_H

#include "store/versions/history_place.h"

/* Opens the place, and makes its folders if it is writable. root: the store's folder, borrowed.
 * Removes what a killed process has left. Returns ZT_IO with a one-line message for the user at the
 * command line. */
enum zt_status history_folder_open(int root, bool is_writable, struct history_place **out_place,
                                   struct zt_error *error);

/* --- shared by its files --- */

struct history_folder {
    struct history_place base; /* first */
    int root;                  /* borrowed */
    int folder;                /* the next three are in it; all are -1 if base.is_missing */
    int repos;
    int objects;
    int removed;
};

static inline struct history_folder *history_folder_of(struct history_place *place)
{
    return (struct history_folder *)place;
}

/* Operations on kept files (history_folder_files.c). */
enum zt_status history_folder_keep(struct history_place *place, const char *path,
                                   const struct file_identity *identity, const uint8_t sha256[32],
                                   bool *out_is_new, struct zt_error *error);
enum zt_status history_folder_keep_removed(struct history_place *place, const char *path,
                                           const struct file_identity *identity,
                                           const uint8_t sha256[32], bool *out_is_new,
                                           struct zt_error *error);
enum zt_status history_folder_keep_staged(struct history_place *place, struct staged_file *file,
                                          const uint8_t sha256[32], bool *out_is_new,
                                          struct zt_error *error);
enum zt_status history_folder_find(struct history_place *place, const uint8_t sha256[32],
                                   bool names_it, struct file_identity *out_identity,
                                   struct zt_error *error);
enum zt_status history_folder_open_kept(struct history_place *place, const uint8_t sha256[32],
                                        struct zt_source **out_source,
                                        struct file_identity *out_identity, struct zt_error *error);
enum zt_status history_folder_restore(struct history_place *place, const uint8_t sha256[32],
                                      const char *path, struct zt_error *error);
enum zt_status history_folder_remove_path(struct history_place *place, const char *path,
                                          const struct file_identity *identity,
                                          struct zt_error *error);
enum zt_status history_folder_list_objects(struct history_place *place, uint8_t first,
                                           bool (*visit)(void *context,
                                                         const struct history_object *object),
                                           void *context, struct zt_error *error);
bool history_folder_set_aside(struct history_place *place, const uint8_t sha256[32]);
bool history_folder_drop(struct history_place *place, const uint8_t sha256[32]);

#endif
