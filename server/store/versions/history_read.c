/* Finds revisions, lists commits, branches and tags. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/thread.h"
#include "store/versions/history_inside.h"

#define BRANCHES "refs/heads/"
#define TAGS     "refs/tags/"

static struct zt_text after(struct zt_text text, const char *prefix)
{
    const size_t length = strlen(prefix);

    assert(length <= text.length);
    return (struct zt_text){text.bytes + length, text.length - length};
}

static enum zt_status fail_unknown(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such revision");
}

/* Returns NULL if it is neither a branch nor a tag. */
static const struct log_ref *find_ref(const struct log_state *state, struct zt_text revision)
{
    const struct log_ref *ref;

    if (zt_text_is(revision, "HEAD"))
        return log_state_ref(state, zt_text_from(HISTORY_MAIN), false);
    if (zt_text_starts_with(revision, zt_text_from(BRANCHES)))
        return log_state_ref(state, after(revision, BRANCHES), false);
    if (zt_text_starts_with(revision, zt_text_from(TAGS)))
        return log_state_ref(state, after(revision, TAGS), true);
    ref = log_state_ref(state, revision, false);
    return ref != NULL ? ref : log_state_ref(state, revision, true);
}

/* *out_ref is NULL for a commit. Returns NULL for an unknown revision. */
static const struct log_entry *find_entry(const struct log_state *state, struct zt_text revision,
                                          const struct log_ref **out_ref)
{
    uint8_t id[HISTORY_SHA1_BYTES];

    *out_ref = find_ref(state, revision);
    if (*out_ref != NULL)
        return log_state_entry(state, (*out_ref)->number);
    return zt_hex_read_lower(revision, id, sizeof(id)) ? log_state_commit(state, id) : NULL;
}

/* Another server may just have made the revision, and acknowledged it. */
static const struct log_entry *look_for_entry(struct history *history, struct log *log,
                                              struct zt_text revision,
                                              const struct log_ref **out_ref)
{
    const struct log_entry *entry = find_entry(&log->state, revision, out_ref);

    return entry == NULL && log_look_again(history, log)
               ? find_entry(&log->state, revision, out_ref)
               : entry;
}

enum zt_status history_find(struct history *history, const struct history_repo *repo,
                            struct zt_text revision, struct history_found *out_found,
                            struct zt_error *error)
{
    struct history_found found = {.is_tag = false};
    const struct log_entry *entry;
    const struct log_ref *ref;
    struct log *log;
    const enum zt_status status = log_begin(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    entry = look_for_entry(history, log, revision, &ref);
    if (entry != NULL)
        zt_hex_write(found.commit, entry->id, sizeof(entry->id));
    if (entry != NULL && ref != NULL) {
        found.is_branch = !ref->is_tag;
        found.is_tag = ref->is_tag;
        strcpy(found.ref, ref->name);
    }
    assert(entry == NULL || entry->texts != NULL);
    log_end(history, log);
    if (entry == NULL)
        return fail_unknown(error);
    *out_found = found;
    return ZT_OK;
}

enum zt_status history_visit(struct history *history, const struct history_repo *repo,
                             bool (*visit)(void *context, const uint8_t id[HISTORY_SHA1_BYTES]),
                             void *context, struct zt_error *error)
{
    struct log *log;
    const enum zt_status status = log_begin(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    for (size_t i = log->state.count; i > 0; i--)
        if (log->state.entries[i - 1].texts != NULL &&
            !visit(context, log->state.entries[i - 1].id))
            break;
    log_end(history, log);
    return ZT_OK;
}

static void fill_commit(const struct log_state *state, const struct log_entry *entry,
                        struct history_commit *out_commit)
{
    const struct log_entry *parent = log_state_entry(state, entry->parent);

    log_entry_read(entry, out_commit);
    if (parent != NULL)
        zt_hex_write(out_commit->parent, parent->id, sizeof(parent->id));
}

/* Returns the first entry from here back with a number below a limit. */
static const struct log_entry *skip(const struct log_state *state, const struct log_entry *entry,
                                    uint64_t below)
{
    while (entry != NULL && entry->number >= below)
        entry = log_state_entry(state, entry->parent);
    return entry;
}

static enum zt_status list(const struct log_state *state, const struct log_entry *first,
                           size_t limit, struct history_commit **out_commits, size_t *out_count)
{
    struct history_commit *commits;
    const struct log_entry *entry = first;
    size_t count = 0;

    for (; entry != NULL && count < limit; count++)
        entry = log_state_entry(state, entry->parent);
    commits = calloc(count + 1, sizeof(*commits));
    if (commits == NULL)
        return ZT_NO_MEMORY;
    entry = first;
    for (size_t i = 0; i < count; i++) {
        fill_commit(state, entry, &commits[i]);
        entry = log_state_entry(state, entry->parent);
    }
    assert(count <= limit);
    *out_commits = commits;
    *out_count = count;
    return ZT_OK;
}

enum zt_status history_list(struct history *history, const struct history_repo *repo,
                            const struct history_range *range, struct history_commit **out_commits,
                            size_t *out_count, struct zt_error *error)
{
    const struct log_entry *entry;
    const struct log_ref *ref;
    struct log *log;
    enum zt_status status = log_begin(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    entry = look_for_entry(history, log, range->revision, &ref);
    if (entry == NULL)
        status = ZT_NOT_FOUND;
    else
        status = list(&log->state, skip(&log->state, entry, range->below), range->limit,
                      out_commits, out_count);
    log_end(history, log);
    if (status == ZT_NOT_FOUND)
        return fail_unknown(error);
    return status == ZT_OK ? ZT_OK : zt_fail_memory(error, "a list of commits");
}

enum zt_status history_refs(struct history *history, const struct history_repo *repo,
                            struct history_ref **out_refs, size_t *out_count,
                            struct zt_error *error)
{
    struct history_ref *refs;
    struct log *log;
    const enum zt_status status = log_begin(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    refs = calloc(log->state.ref_count + 1, sizeof(*refs));
    for (size_t i = 0; refs != NULL && i < log->state.ref_count; i++) {
        const struct log_ref *ref = &log->state.refs[i];

        refs[i].is_tag = ref->is_tag;
        strcpy(refs[i].name, ref->name);
        strcpy(refs[i].message, ref->message);
        zt_hex_write(refs[i].commit, log_state_entry(&log->state, ref->number)->id,
                     HISTORY_SHA1_BYTES);
    }
    if (refs != NULL) {
        *out_refs = refs;
        *out_count = log->state.ref_count;
    }
    assert(lock_is_held(&history->lock));
    log_end(history, log);
    return refs != NULL ? ZT_OK : zt_fail_memory(error, "a list of branches");
}

enum zt_status history_last_change(struct history *history, const struct history_repo *repo,
                                   uint64_t *out_number, struct zt_error *error)
{
    struct log *log;
    const enum zt_status status = log_begin(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    *out_number = log->state.last;
    log_end(history, log);
    return ZT_OK;
}
