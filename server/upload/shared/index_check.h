/* An uploaded index (zt/join.h): recognised by its content, and checked before it is published. */
#ifndef UPLOAD_SHARED_INDEX_CHECK_H
#define UPLOAD_SHARED_INDEX_CHECK_H

#include "upload/shared/publication.h"
#include "zt/source.h"

/* Whether a file that is no model looks like one: a JSON object. */
bool index_is_meant(struct zt_source *source);

/* Reads an index and checks that the client may use the files that it names, that these can be
 * parts of the model, and, if all of them are there, that they are the model that it describes.
 * *out_extension is that of its file. False: failure is set. */
bool index_check(const struct publication *publication, struct zt_source *source,
                 const char **out_extension, struct failure *failure);

#endif
