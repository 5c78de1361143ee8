/* Layout profiles: which components an object must have and how large they must be.
 *
 * Metadata rules only (what the manifest tells); content rules are in verify. One function for each layout, chosen by
 * the object's layout; formats translate their own spelling into enum zt_layout before they call this. */
#ifndef ZT_LAYOUT_H
#define ZT_LAYOUT_H

#include "zt/model.h"

/* Which family of names a file uses: zTensor 1.x (sparse_csr, quantized_group) or 2 (zt.sparse_csr/1, …). */
enum zt_layout_family { ZT_LAYOUTS_ZT1, ZT_LAYOUTS_ZT2 };

enum zt_layout zt_layout_from_name(enum zt_layout_family family, struct zt_text name);

/* Checks one object against its layout. Rules "zt1 §3 …" or "zt2 §6 …"; the error names object and component. Objects of
 * ZT_LAYOUT_OTHER pass. A component whose logical type is unknown has no size to check. */
enum zt_status zt_layout_check(const struct zt_model *model, const struct zt_object *object,
                               enum zt_layout_family family, struct zt_error *error);

#endif
