/* Placeholder until the store is here. */
#include "store/mirror/mirror.h"

enum zt_status mirror_open(struct store *inner, const struct mirror_options *options,
                           struct store **out_store, struct zt_error *error)
{
    (void)inner;
    (void)options;
    (void)out_store;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "upstreams are not supported yet");
}

bool mirror_is(const struct store *store)
{
    (void)store;
    return false;
}

enum zt_status mirror_set_token(struct store *store, unsigned index, const char *token,
                                struct zt_error *error)
{
    (void)store;
    (void)index;
    (void)token;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "upstreams are not supported yet");
}

bool mirror_matches(const struct store *store, unsigned index, struct zt_text repository)
{
    (void)store;
    (void)index;
    (void)repository;
    return false;
}

void mirror_report(struct store *store, unsigned index, struct mirror_report *out_report)
{
    (void)store;
    (void)index;
    *out_report = (struct mirror_report){.hits = 0};
}

struct mirror_prefetches *mirror_prefetches_of(struct store *store, unsigned index)
{
    (void)store;
    (void)index;
    return NULL;
}
