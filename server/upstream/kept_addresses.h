/* Where an upstream redirected requests for files: signed addresses that work for some time, so
 * that each range does not cost another request to the upstream. */
#ifndef UPSTREAM_KEPT_ADDRESSES_H
#define UPSTREAM_KEPT_ADDRESSES_H

#include "upstream/address.h"
#include "upstream/upstream.h"

struct kept_addresses;

/* NULL without memory. */
struct kept_addresses *kept_addresses_new(void);
/* Takes NULL. */
void kept_addresses_free(struct kept_addresses *kept);

/* Copies the address of a file. False: none is kept. Any thread. */
bool kept_addresses_find(struct kept_addresses *kept, const struct upstream_place *place,
                         struct upstream_address *out_address);
void kept_addresses_keep(struct kept_addresses *kept, const struct upstream_place *place,
                         const struct upstream_address *address);
/* Drops it, unless another one is kept by now. */
void kept_addresses_forget(struct kept_addresses *kept, const struct upstream_place *place,
                           const struct upstream_address *address);

#endif
