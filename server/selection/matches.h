/* Globs and rules that match no object of a model. Their author mistyped a name: whatever else is
 * selected would be taken for all that was asked for. */
#ifndef SELECTION_MATCHES_H
#define SELECTION_MATCHES_H

#include "zt/model.h"

/* Whether each of the valid globs (base/glob.h) matches the name of an object of the model that
 * begins with the prefix. ZT_NOT_FOUND names the first that does not; ZT_NO_MEMORY. */
enum zt_status matches_check(struct zt_text prefix, const struct zt_text *globs, size_t count,
                             const struct zt_model *model, struct zt_error *error);

/* Fails with ZT_NOT_FOUND for a prefix and globs that together match no object: names the prefix if
 * no object has it, otherwise the first glob. */
enum zt_status matches_fail_all(struct zt_text prefix, const struct zt_text *globs, size_t count,
                                const struct zt_model *model, struct zt_error *error);

/* Fails with ZT_NOT_FOUND: what a parameter says matches no object. */
enum zt_status match_fail(const char *parameter, struct zt_text text, struct zt_error *error);

#endif
