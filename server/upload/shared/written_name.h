/* The names under which models are written. They are narrower than those that are read, and without
 * an extension: the server adds that of the format that it finds, and "new.npy" would become the
 * file "new.npy.npy". */
#ifndef UPLOAD_SHARED_WRITTEN_NAME_H
#define UPLOAD_SHARED_WRITTEN_NAME_H

#include "http/exchange/request.h"
#include "upload/shared/failure.h"

/* Refuses a name that is not a model's, that no file can have, or that ends with a known extension,
 * in any case; the problem then names the URL that is right. True: replied.
 *
 * may_be_shard: the body may be a shard of zTensor 2, whose name is the model's business: of
 * "model-shard.zt", only written_name_is_doubled can judge. */
bool written_name_refuse(struct request *request, struct zt_text name, bool may_be_shard);

/* Whether a model whose extension has been found is meant to be stored without that of its name. If
 * so, failure is set. */
bool written_name_is_doubled(const char *name, const char *extension, struct failure *failure);

#endif
