/* Changes a repository: records commits, moves branches and tags, forgets commits. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "store/versions/history_inside.h"

/* --- what is forgotten --- */

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a;
    const uint64_t second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

enum zt_status numbers_add(struct numbers *numbers, uint64_t number)
{
    const enum zt_status status =
        zt_array_reserve(&numbers->numbers, &numbers->capacity, numbers->count + 1,
                         sizeof(*numbers->numbers), HISTORY_COMMITS_MAX + HISTORY_REFS_MAX);

    assert(numbers->count <= numbers->capacity);
    if (status == ZT_OK)
        numbers->numbers[numbers->count++] = number;
    return status;
}

bool numbers_have(const struct numbers *numbers, uint64_t number)
{
    assert(numbers->count == 0 || numbers->numbers[0] <= numbers->numbers[numbers->count - 1]);
    return numbers->count > 0 && bsearch(&number, numbers->numbers, numbers->count, sizeof(number),
                                         compare_numbers) != NULL;
}

enum zt_status history_targets(const struct log_state *state, const struct planned *planned,
                               struct numbers *out_targets, struct zt_error *error)
{
    struct numbers targets = {.count = 0};
    enum zt_status status = ZT_OK;

    for (size_t i = 0; status == ZT_OK && i < state->ref_count; i++) {
        const struct log_ref *ref = &state->refs[i];

        if (planned == NULL || planned->ref == NULL || planned->is_tag != ref->is_tag ||
            strcmp(planned->ref, ref->name) != 0)
            status = numbers_add(&targets, ref->number);
    }
    if (status == ZT_OK && planned != NULL && planned->number > 0)
        status = numbers_add(&targets, planned->number);
    if (status != ZT_OK) {
        free(targets.numbers);
        return zt_fail_memory(error, "a change of a repository");
    }
    if (targets.count > 0)
        qsort(targets.numbers, targets.count, sizeof(*targets.numbers), compare_numbers);
    assert(targets.count <= state->ref_count + 1);
    *out_targets = targets;
    return ZT_OK;
}

/* Finds the oldest entries beyond the limit that no branch or tag has after the change. */
static enum zt_status find_beyond(struct history *history, const struct log_state *state,
                                  const struct planned *planned, struct numbers *out_beyond,
                                  struct zt_error *error)
{
    struct history_keep keep = {.commits = 0};
    struct numbers targets;
    enum zt_status status;
    size_t most = HISTORY_COMMITS_MAX - 1;
    size_t beyond;

    assert(planned->added <= 1 && out_beyond->count == 0);
    history->keep(history->context, &keep);
    if (keep.commits > 0 && keep.commits < most)
        most = (size_t)keep.commits;
    if (state->count + planned->added <= most)
        return ZT_OK;
    beyond = state->count + planned->added - most;
    status = history_targets(state, planned, &targets, error);
    if (status != ZT_OK)
        return status;
    for (size_t i = 0; status == ZT_OK && i < beyond && i < state->count; i++)
        if (!numbers_have(&targets, state->entries[i].number))
            status = numbers_add(out_beyond, state->entries[i].number);
    free(targets.numbers);
    return status == ZT_OK ? ZT_OK : zt_fail_memory(error, "a change of a repository");
}

/* The identities of entries that a change forgets, to remove their trees afterwards. */
static enum zt_status find_ids(const struct log_state *state, const struct numbers *forgotten,
                               uint8_t (**out_ids)[HISTORY_SHA1_BYTES], struct zt_error *error)
{
    uint8_t(*ids)[HISTORY_SHA1_BYTES] = calloc(forgotten->count + 1, sizeof(*ids));

    if (ids == NULL)
        return zt_fail_memory(error, "a change of a repository");
    for (size_t i = 0; i < forgotten->count; i++) {
        const struct log_entry *entry = log_state_entry(state, forgotten->numbers[i]);

        assert(entry != NULL);
        memcpy(ids[i], entry->id, sizeof(ids[i]));
    }
    *out_ids = ids;
    return ZT_OK;
}

/* Forgetting many costs one look through the folder; forgetting one only its own tree. */
static void remove_trees(struct history *history, const struct log *log,
                         uint8_t (*ids)[HISTORY_SHA1_BYTES], size_t count)
{
    char commit[HISTORY_COMMIT_SIZE];

    if (count > 0)
        atomic_store(&history->has_garbage, true);
    if (!log->is_loaded || count > 8) {
        if (log->is_loaded)
            history_trees_sweep(history, log);
        return;
    }
    for (size_t i = 0; i < count && !history_has_damage(history, log->file.key); i++)
        if (log_state_commit(&log->state, ids[i]) == NULL) {
            zt_hex_write(commit, ids[i], sizeof(ids[i]));
            history_tree_remove(history, log->file.key, commit);
        }
}

/* Writes a record that also forgets these entries. Takes over the record. */
static enum zt_status change(struct history *history, struct log *log, struct log_record *record,
                             const struct numbers *forgotten, struct zt_error *error)
{
    uint8_t(*ids)[HISTORY_SHA1_BYTES] = NULL;
    enum zt_status status = find_ids(&log->state, forgotten, &ids, error);

    if (status == ZT_OK) {
        log_record_forget(record, forgotten->numbers, forgotten->count);
        status = log_change(history, log, record, error);
        if (status == ZT_OK)
            remove_trees(history, log, ids, forgotten->count);
        free(ids);
    }
    log_record_free(record);
    return status;
}

enum zt_status history_forget(struct history *history, struct log *log,
                              const struct numbers *forgotten, struct zt_error *error)
{
    struct log_record record;

    if (forgotten->count == 0)
        return ZT_OK;
    log_record_begin(&record, log->state.last + 1);
    return change(history, log, &record, forgotten, error);
}

/* Writes a record, and forgets what is beyond the limit with it. Takes over the record. */
static enum zt_status change_within_limit(struct history *history, struct log *log,
                                          struct log_record *record, const struct planned *planned,
                                          struct zt_error *error)
{
    struct numbers beyond = {.count = 0};
    enum zt_status status = find_beyond(history, &log->state, planned, &beyond, error);

    if (status == ZT_OK)
        status = change(history, log, record, &beyond, error);
    else
        log_record_free(record);
    free(beyond.numbers);
    return status;
}

/* --- commits --- */

/* Copies as many whole characters as there is room for. */
static void copy_text(char *to, size_t size, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;

    assert(size > 0);
    if (length >= size)
        for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--;
    assert(length < size);
    if (length > 0)
        memcpy(to, text, length);
    to[length] = '\0';
}

static void fill_commit(struct history_commit *commit, const char *branch,
                        const struct history_note *note, const struct log *log)
{
    assert(note->title != NULL);
    commit->number = log->state.last + 1;
    commit->time_ms = clock_wall_ns() / CLOCK_NS_PER_MS;
    copy_text(commit->branch, sizeof(commit->branch), branch);
    copy_text(commit->client, sizeof(commit->client), note->client);
    copy_text(commit->title, sizeof(commit->title), note->title);
    copy_text(commit->message, sizeof(commit->message), note->message);
}

static void fill_parent(struct history_commit *commit, const struct log_entry *parent)
{
    if (parent != NULL)
        zt_hex_write(commit->parent, parent->id, sizeof(parent->id));
}

static bool is_in_tree(const struct history_tree *tree, const struct history_file *file)
{
    const struct history_file *found = history_tree_find(tree, zt_text_from(file->path));

    return found != NULL && memcmp(found->sha256, file->sha256, sizeof(file->sha256)) == 0;
}

/* A file of a branch must be kept, or be in the folder at the same path. */
static enum zt_status find_files(struct history *history, const struct log *log,
                                 const struct history_file *files, size_t count,
                                 struct zt_error *error)
{
    const struct log_ref *ref = log_state_ref(&log->state, zt_text_from(HISTORY_MAIN), false);
    const struct log_entry *head = ref != NULL ? log_state_entry(&log->state, ref->number) : NULL;
    const struct history_tree *tree = NULL;
    char commit[HISTORY_COMMIT_SIZE];
    enum zt_status status = ZT_OK;

    if (head != NULL) {
        zt_hex_write(commit, head->id, sizeof(head->id));
        status = history_tree_get(history, &log->repo, commit, &tree, error);
    }
    for (size_t i = 0; status == ZT_OK && i < count; i++) {
        struct file_identity identity;

        if (tree != NULL && is_in_tree(tree, &files[i]))
            continue;
        status = history_stat_kept(history, files[i].sha256, &identity, error);
        if (status == ZT_OK && identity.size_bytes != files[i].size_bytes)
            status = zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                             "a file of the commit has another size");
    }
    if (tree != NULL)
        history_tree_release(tree);
    return status;
}

static enum zt_status protect_files(struct history *history, const struct history_file *files,
                                    size_t count, struct zt_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!history_protect(history, files[i].sha256))
            return zt_fail_memory(error, "a commit");
    return ZT_OK;
}

static enum zt_status ignore_file(void *context, const struct history_file *file)
{
    (void)context;
    (void)file;
    return ZT_OK;
}

/* The tree of an earlier entry with the same files is used again, unless it is damaged. */
static enum zt_status write_tree(struct history *history, const struct log *log, const char *commit,
                                 const struct history_file *files, size_t count,
                                 struct zt_error *error)
{
    uint8_t id[HISTORY_SHA1_BYTES];

    if (zt_hex_read_lower(zt_text_from(commit), id, sizeof(id)) &&
        log_state_commit(&log->state, id) != NULL &&
        history_tree_visit(history, log->file.key, commit, ignore_file, NULL, NULL) == ZT_OK)
        return ZT_OK;
    return history_tree_write(history, log->file.key, commit, files, count, error);
}

/* Writes the entry of a branch's new head. Its tree is durable. */
static enum zt_status add_entry(struct history *history, struct log *log,
                                const struct history_commit *commit, const struct log_entry *parent,
                                struct zt_error *error)
{
    const struct planned planned = {.ref = commit->branch, .number = commit->number, .added = 1};
    struct log_record record;

    assert(commit->number == log->state.last + 1);
    log_record_begin(&record, commit->number);
    log_record_entry(&record, commit, parent != NULL ? parent->number : 0);
    log_record_ref(&record, commit->branch, false, commit->number, "");
    return change_within_limit(history, log, &record, &planned, error);
}

static const struct log_entry *find_head(const struct log_state *state, const char *branch)
{
    const struct log_ref *ref = log_state_ref(state, zt_text_from(branch), false);

    return ref != NULL ? log_state_entry(state, ref->number) : NULL;
}

static enum zt_status record(struct history *history, struct log *log,
                             struct history_commit *commit, const struct history_file *files,
                             size_t count, struct zt_error *error)
{
    const struct log_entry *head = find_head(&log->state, commit->branch);
    enum zt_status status;
    char head_id[HISTORY_COMMIT_SIZE] = "";

    assert(strlen(commit->id) == HISTORY_COMMIT_SIZE - 1);
    if (head != NULL)
        zt_hex_write(head_id, head->id, sizeof(head->id));
    if (head != NULL && strcmp(head_id, commit->id) == 0) {
        log_entry_read(head, commit);
        fill_parent(commit, log_state_entry(&log->state, head->parent));
        return ZT_OK;
    }
    if (head == NULL && log->state.ref_count >= HISTORY_REFS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the repository has too many branches and tags");
    status = protect_files(history, files, count, error);
    if (status == ZT_OK && strcmp(commit->branch, HISTORY_MAIN) != 0)
        status = find_files(history, log, files, count, error);
    if (status == ZT_OK)
        status = write_tree(history, log, commit->id, files, count, error);
    fill_parent(commit, head);
    return status == ZT_OK ? add_entry(history, log, commit, head, error) : status;
}

enum zt_status history_record(struct history *history, const struct history_repo *repo,
                              const struct history_head *head, const struct history_note *note,
                              struct history_commit *out_commit, struct zt_error *error)
{
    struct history_commit commit = {.number = 0};
    struct zt_error own;
    struct log *log;
    enum zt_status status;

    assert(head->count == 0 || head->files != NULL);
    error = error != NULL ? error : &own;
    if (!history_is_writing(history))
        return history_refuse(error);
    if (!history_ref_is_valid(zt_text_from(head->branch)))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "a branch cannot have this name");
    status = history_files_check(head->files, head->count, error);
    if (status == ZT_OK)
        status = history_commit_id(head->files, head->count, commit.id, error);
    if (status == ZT_OK)
        status = log_pin(history, repo, &log, error);
    if (status != ZT_OK)
        return status;
    fill_commit(&commit, head->branch, note, log);
    status = record(history, log, &commit, head->files, head->count, error);
    log_unpin(history, log);
    if (status == ZT_OK)
        *out_commit = commit;
    return status;
}

/* --- branches and tags --- */

/* Returns ZT_ARGUMENT unless the reference has the expected commit. */
static enum zt_status check_expected(const struct log_state *state, const struct history_ref *ref,
                                     const char *expected, struct zt_error *error)
{
    const struct log_ref *present = log_state_ref(state, zt_text_from(ref->name), ref->is_tag);
    char commit[HISTORY_COMMIT_SIZE] = "";

    if (present != NULL)
        zt_hex_write(commit, log_state_entry(state, present->number)->id, HISTORY_SHA1_BYTES);
    if (present == NULL && state->ref_count >= HISTORY_REFS_MAX)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "the repository has too many branches and tags");
    if (expected == NULL || strcmp(expected, commit) == 0)
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   expected[0] == '\0' ? "the %s %s exists"
                                       : "the %s %s has another commit than expected",
                   ref->is_tag ? "tag" : "branch", ref->name);
}

static enum zt_status set_ref(struct history *history, struct log *log,
                              const struct history_ref *ref, const char *expected,
                              struct zt_error *error)
{
    struct planned planned = {.ref = ref->name, .is_tag = ref->is_tag};
    const struct log_entry *entry;
    struct log_record record;
    uint8_t id[HISTORY_SHA1_BYTES];
    char message[sizeof(ref->message)];
    enum zt_status status = check_expected(&log->state, ref, expected, error);

    if (status != ZT_OK)
        return status;
    entry = zt_hex_read_lower(zt_text_from(ref->commit), id, sizeof(id))
                ? log_state_commit(&log->state, id)
                : NULL;
    if (entry == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such commit");
    planned.number = entry->number;
    copy_text(message, sizeof(message), ref->message);
    log_record_begin(&record, log->state.last + 1);
    log_record_ref(&record, ref->name, ref->is_tag, entry->number, message);
    return change_within_limit(history, log, &record, &planned, error);
}

/* Locks a repository and gets its log. */
static enum zt_status begin_change(struct history *history, const struct history_repo *repo,
                                   struct log **out_log, struct zt_error *error)
{
    enum zt_status status;

    if (!history_is_writing(history))
        return history_refuse(error);
    status = history_lock(history, repo, error);
    if (status != ZT_OK)
        return status;
    status = log_pin(history, repo, out_log, error);
    if (status != ZT_OK)
        history_unlock(history, repo);
    return status;
}

static void end_change(struct history *history, const struct history_repo *repo, struct log *log)
{
    log_unpin(history, log);
    history_unlock(history, repo);
}

static bool is_main(const char *name, bool is_tag)
{
    return !is_tag && strcmp(name, HISTORY_MAIN) == 0;
}

enum zt_status history_set_ref(struct history *history, const struct history_repo *repo,
                               const struct history_ref *ref, const char *expected,
                               struct zt_error *error)
{
    struct log *log;
    enum zt_status status;

    if (is_main(ref->name, ref->is_tag) || !history_ref_is_valid(zt_text_from(ref->name)))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "a branch or tag cannot have this name, or cannot be moved");
    status = begin_change(history, repo, &log, error);
    if (status != ZT_OK)
        return status;
    status = set_ref(history, log, ref, expected, error);
    end_change(history, repo, log);
    return status;
}

enum zt_status history_delete_ref(struct history *history, const struct history_repo *repo,
                                  const char *name, bool is_tag, struct zt_error *error)
{
    const struct planned planned = {.ref = name, .is_tag = is_tag};
    struct log_record record;
    struct log *log;
    enum zt_status status;

    if (is_main(name, is_tag))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the branch main cannot be deleted");
    status = begin_change(history, repo, &log, error);
    if (status != ZT_OK)
        return status;
    if (log_state_ref(&log->state, zt_text_from(name), is_tag) == NULL)
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such %s",
                         is_tag ? "tag" : "branch");
    if (status == ZT_OK) {
        log_record_begin(&record, log->state.last + 1);
        log_record_unref(&record, name, is_tag);
        status = change_within_limit(history, log, &record, &planned, error);
    }
    end_change(history, repo, log);
    return status;
}

/* --- fewer commits --- */

/* Marks the entries that are reached from an entry, and returns how many. */
static void mark_line(const struct log_state *state, uint64_t number, bool *marks)
{
    const struct log_entry *entry;

    assert(marks != NULL);
    for (; (entry = log_state_entry(state, number)) != NULL; number = entry->parent) {
        if (marks[entry - state->entries])
            return;
        marks[entry - state->entries] = true;
    }
}

/* Finds the entries that only this branch leads to. */
static enum zt_status find_own(const struct log_state *state, const char *branch,
                               struct numbers *out_own, struct zt_error *error)
{
    bool *others = calloc(state->count + 1, sizeof(*others));
    bool *own = calloc(state->count + 1, sizeof(*own));
    enum zt_status status = others != NULL && own != NULL ? ZT_OK : ZT_NO_MEMORY;

    for (size_t i = 0; status == ZT_OK && i < state->ref_count; i++) {
        const struct log_ref *ref = &state->refs[i];

        mark_line(state, ref->number,
                  !ref->is_tag && strcmp(ref->name, branch) == 0 ? own : others);
    }
    for (size_t i = 0; status == ZT_OK && i < state->count; i++)
        if (own[i] && !others[i])
            status = numbers_add(out_own, state->entries[i].number);
    free(others);
    free(own);
    return status == ZT_OK ? ZT_OK : zt_fail_memory(error, "a change of a repository");
}

static enum zt_status squash(struct history *history, struct log *log, const char *branch,
                             const struct history_note *note, struct zt_error *error)
{
    const struct log_entry *head = find_head(&log->state, branch);
    struct history_commit commit = {.number = 0};
    struct numbers own = {.count = 0};
    struct log_record record;
    enum zt_status status;

    if (head == NULL)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such branch");
    status = find_own(&log->state, branch, &own, error);
    if (status == ZT_OK) {
        zt_hex_write(commit.id, head->id, sizeof(head->id));
        fill_commit(&commit, branch, note, log);
        log_record_begin(&record, commit.number);
        log_record_entry(&record, &commit, 0);
        log_record_ref(&record, branch, false, commit.number, "");
        status = change(history, log, &record, &own, error);
    }
    free(own.numbers);
    return status;
}

enum zt_status history_squash(struct history *history, const struct history_repo *repo,
                              const char *branch, const struct history_note *note,
                              struct zt_error *error)
{
    struct log *log;
    enum zt_status status = begin_change(history, repo, &log, error);

    if (status != ZT_OK)
        return status;
    status = squash(history, log, branch, note, error);
    end_change(history, repo, log);
    return status;
}

enum zt_status history_purge(struct history *history, const struct history_repo *repo,
                             struct zt_error *error)
{
    struct log *log;
    enum zt_status status;

    if (!history_is_writing(history))
        return history_refuse(error);
    status = log_pin(history, repo, &log, error);
    if (status != ZT_OK)
        return status;
    if (log->state.count > 0 || log->state.ref_count > 0) {
        status = log_clear(history, log, error);
        if (status == ZT_OK) {
            history_forget_damage(history, log->file.key);
            history_trees_sweep(history, log);
            atomic_store(&history->has_garbage, true);
        }
    }
    log_unpin(history, log);
    return status;
}
