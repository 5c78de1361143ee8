/* Some objects of an opened model, or one rank's part of each, as a model that is converted like
 * any other. */
#ifndef COMMANDS_RANK_SHARE_H
#define COMMANDS_RANK_SHARE_H

#include "base/glob.h"
#include "files/opened_file.h"
#include "selection/axis_rules.h"
#include "zt/verify.h"

struct share_wish {
    struct zt_text matches[GLOB_SET_MAX]; /* valid globs of objects' names; none: all objects */
    size_t match_count;
    struct zt_cut cut; /* parts 0: whole objects */
    struct axis_rule rules[GLOB_SET_MAX];
    size_t rule_count;
    bool to_f32;
};

struct rank_share {
    const struct zt_model *model; /* dies with the share and borrows from the file's model */
    struct zt_source **files;     /* as zt_conversion wants them */
    bool is_sequential;           /* several threads would decode the same data again and again */
};

/* Selects and cuts. All of the file's shards are open; a missing one is NULL. A cut component
 * cannot be compared with its digest afterwards, so it is verified here; progress may be NULL, and
 * stops it. ZT_NOT_FOUND: no object is selected, or a glob or rule matches no object. Otherwise
 * fails as axis_rules_apply, zt_model_select and zt_component_check do; ZT_CORRUPT for a wrong
 * digest. *out_suggestion, set on failure too, is the set of rules for a cut without any; NULL:
 * none. The file and the wish must outlive the share. */
enum zt_status rank_share_make(const struct opened_file *file, const struct share_wish *wish,
                               const struct zt_progress *progress, struct rank_share **out_share,
                               const struct axis_set **out_suggestion, struct zt_error *error);
/* Takes NULL. */
void rank_share_free(struct rank_share *share);

#endif
