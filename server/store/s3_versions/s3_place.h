/* Stores a history in a bucket (store/versions/history_place.h).
 *
 * Several servers may change one history. A server claims a repository, as a writer claims a
 * model's name (store/s3_write), before it changes it. A repository is claimed before the names of
 * models, and no claim is waited for while a kept file is claimed, so writers never wait for each
 * other in a circle.
 *
 * Kept files are copies that the service makes. A file that a commit is about to name is copied
 * again if it was kept long ago, and a collection removes only files that were kept long ago. So it
 * never removes a file that another server is about to name. Ages are measured by the service's
 * clock. */
#ifndef STORE_S3_VERSIONS_S3_PLACE_H
#define STORE_S3_VERSIONS_S3_PLACE_H

#include "store/versions/history_place.h"

/* Opens the place in a bucket, which store_s3_open has opened. The store is borrowed. Sends no
 * request. Returns ZT_NO_MEMORY, or ZT_IO if there is no thread. */
enum zt_status s3_place_open(struct store *bucket, bool is_writable,
                             struct history_place **out_place, struct zt_error *error);

#endif
