/* Query parameters that several resources share. A function that returns false has replied with
 * 400, or 500 if out of memory. Texts live as long as the request. */
#ifndef API_PARAMETERS_H
#define API_PARAMETERS_H

#include "derived/axis_rules.h"
#include "http/exchange/request.h"

/* Replies if a parameter is given more than once. */
bool parameter_once(struct request *request, const char *name);

/* prefix, given once: empty where absent. */
bool parameter_prefix(struct request *request, struct zt_text *out_prefix);

/* match: all of its globs, valid and within the bounds of one set; none where absent. */
bool parameter_matches(struct request *request, struct zt_text **out_globs, size_t *out_count);

/* A switch: absent, "0" and "false" are false; "", "1" and "true" are true. */
bool parameter_switch(struct request *request, const char *name, bool *out_value);
/* The same for a switch that is true where it is absent. */
bool parameter_switch_off(struct request *request, const char *name, bool *out_value);

/* dtype=f32: false where it is absent. */
bool parameter_dtype(struct request *request, bool *out_to_f32);

/* shard=R/N and axis=A: parts is 0 where they are absent. */
bool parameter_shard(struct request *request, struct zt_cut *out_cut);

/* shard=R/N, and axis any number of times as A, GLOB:A or GLOB:none, for axis_rules_apply: the
 * cut's own axis stays 0. */
bool parameter_shard_by_rules(struct request *request, struct zt_cut *out_cut,
                              struct axis_rule **out_rules, size_t *out_count);

#endif
