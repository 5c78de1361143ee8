/* A store that adds to another one leaves the rest to it: these operations call the same operation
 * of store->inner. */
#ifndef STORE_STORE_INNER_H
#define STORE_STORE_INNER_H

#include "store/store.h"

/* Fills in the operations that are NULL. Those that a store may lack, and the inner one lacks, are
 * NULL afterwards. */
void store_inner_ops(const struct store *inner, struct store_ops *ops);

/* Fills in the inner store's claims, which it must have. */
void store_inner_claims(const struct store *inner, struct store_claim_ops *out_claims);
/* The files that the inner store shares. Only for a store with them. */
extern const struct store_shared_ops store_inner_shared;

#endif
