/* Upstreams with the Hub's reading API: what its files share. */
#ifndef UPSTREAM_HUB_H
#define UPSTREAM_HUB_H

#include "upstream/kind.h"

enum zt_status hub_find_commit(const struct upstream_question *question,
                               struct lookup_answer *out_answer, struct zt_error *error);
enum zt_status hub_list(const struct upstream_question *question, struct lookup_answer *out_answer,
                        struct zt_error *error);
void hub_fetch(struct upstream *upstream, const struct upstream_place *place,
               struct cache_fetch *fetch);

#endif
