/* From a view to its bytes: verified before the first of them is sent, decoded where they have to
 * be. */
#ifndef API_COMPONENT_STEPS_H
#define API_COMPONENT_STEPS_H

#include "api/component_view.h"

/* Puts the view's bytes, or the steps that lead to them, into the reply. The view is the request's
 * context. */
void component_prepare(struct request *request);

#endif
