/* The proxies that are believed when they say for whom they forward a request (trusted_proxies). */
#ifndef ACCESS_PROXIES_H
#define ACCESS_PROXIES_H

#include <stdbool.h>
#include <stddef.h>

#include "config/network.h"

struct proxies {
    struct network *networks; /* NULL: none */
    size_t count;
};

/* Reads the value of the key, which config_validate has accepted. False if out of memory. */
bool proxies_load(const char *list, struct proxies *out_proxies);
void proxies_free(struct proxies *proxies);

bool proxies_contain(const struct proxies *proxies, const struct address *address);

#endif
