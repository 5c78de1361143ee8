/* The file with the bytes of a kept upload, in the upload's folder. It is open only while requests
 * use it, so that idle uploads hold no descriptors. Several threads may write different ranges at
 * once.
 *
 *     kept_data_begin … kept_data_leave     the request that began the upload
 *     kept_data_enter … kept_data_leave     every other request
 *     kept_data_close, kept_data_end        the request or expiry that ends it */
#ifndef UPLOAD_SHARED_KEPT_DATA_H
#define UPLOAD_SHARED_KEPT_DATA_H

#include <pthread.h>

#include "upload/shared/failure.h"
#include "upload/shared/kept_uploads.h"

struct kept_data {
    struct kept_upload *upload; /* borrowed; constant, as is the name */
    const char *name;
    pthread_mutex_t lock;         /* held while the file is opened and closed */
    atomic_int users;             /* number of requests; negative: no request may enter */
    struct staged_file *file;     /* set while there are users; read by them without the lock */
    atomic_bool has_failed_write; /* a write failed: the file stays open, because only this
                                   * descriptor knows */
};

/* Initialises a cleared structure. name is borrowed. */
void kept_data_init(struct kept_data *data, struct kept_upload *upload, const char *name);
/* Closes the file if it is open. */
void kept_data_destroy(struct kept_data *data);

/* Makes the upload's folder and the file, and enters. expected_bytes: see staging_folder_create.
 * Returns false with failure set; then there is no folder. Fast. */
bool kept_data_begin(struct kept_data *data, uint64_t expected_bytes, struct failure *failure);
/* Enters. Returns false if the file is closed for requests, or with failure set if it cannot be
 * opened. */
bool kept_data_enter(struct kept_data *data, struct failure *failure);
void kept_data_leave(struct kept_data *data);

/* Ends the entering of requests. Returns false, without effect, while a request uses the file or if
 * it is closed already. */
bool kept_data_close(struct kept_data *data);
bool kept_data_is_closed(const struct kept_data *data);
/* Enters, for the caller that has closed it. Returns false with failure set. */
bool kept_data_enter_closed(struct kept_data *data, struct failure *failure);
/* Lets requests enter again. */
void kept_data_reopen(struct kept_data *data);
/* Closes the file for good. For the only user. */
void kept_data_end(struct kept_data *data);

/* For users; these return false with failure set. Writing postpones expiry. */
bool kept_data_write(struct kept_data *data, uint64_t offset, const void *bytes, size_t length,
                     struct failure *failure);
/* Claims disk space for bytes that are about to be written; writing uses it up. */
bool kept_data_take_space(struct kept_data *data, uint64_t bytes, struct failure *failure);

#endif
