/* Query parameters that several resources share. A function that returns false has replied with
 * 400, or 500 if out of memory. Texts live as long as the request. */
#ifndef API_PARAMETERS_H
#define API_PARAMETERS_H

#include "http/exchange/request.h"
#include "selection/axis_rules.h"

/* Replies with an error if a parameter is given more than once. */
bool parameter_once(struct request *request, const char *name);

/* Reads prefix, which may be given once; empty if absent. */
bool parameter_prefix(struct request *request, struct zt_text *out_prefix);

/* Reads match: all of its globs, which must be valid and within the limits of one set; none if
 * absent. */
bool parameter_matches(struct request *request, struct zt_text **out_globs, size_t *out_count);

/* Reads a switch: absent, "0" and "false" are false; "", "1" and "true" are true. */
bool parameter_switch(struct request *request, const char *name, bool *out_value);
/* Does the same for a switch that is true if absent. */
bool parameter_switch_off(struct request *request, const char *name, bool *out_value);

/* Reads dtype=f32; false if absent. */
bool parameter_dtype(struct request *request, bool *out_to_f32);

/* Reads shard=R/N and axis=A; parts is 0 if they are absent. */
bool parameter_shard(struct request *request, struct zt_cut *out_cut);

/* Reads shard=R/N, and axis any number of times as A, GLOB:A, GLOB:none or @SET, for
 * axis_rules_apply. The cut's own axis stays 0. */
bool parameter_shard_by_rules(struct request *request, struct zt_cut *out_cut,
                              struct axis_rule **out_rules, size_t *out_count);

#endif
