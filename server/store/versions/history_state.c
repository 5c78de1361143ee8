/* The records of a log, and the state that they make.
 *
 * A record is the number of the change in 8 bytes, and operations. Each operation begins with a
 * byte:
 *
 *   1  entry: number 8, parent 8, time 8, id 20, then branch, client, title and message as texts
 *   2  a branch or tag is made or moved: is_tag 1, name, number 8, message
 *   3  a branch or tag is deleted: is_tag 1, name
 *   4  entries are forgotten: count 4, then numbers of 8 */
#include <assert.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/memory.h"
#include "store/versions/history_inside.h"

enum operation { OPERATION_ENTRY = 1, OPERATION_REF, OPERATION_UNREF, OPERATION_FORGET };

#define TEXTS 4
/* The length of an entry's record in a rewritten log, without its texts. */
#define ENTRY_BYTES 92u
#define REF_BYTES   40u

/* --- reading --- */

/* Reads a text that is shorter than `size`, has no NUL and is not copied. */
static struct zt_text read_text(struct record_reader *reader, size_t size)
{
    const uint64_t length = record_read_uint(reader, 4);
    const uint8_t *bytes = length < size ? record_read_bytes(reader, (size_t)length) : NULL;

    if (bytes == NULL || memchr(bytes, '\0', (size_t)length) != NULL) {
        reader->failed = true;
        return (struct zt_text){"", 0};
    }
    return (struct zt_text){(const char *)bytes, (size_t)length};
}

static bool read_flag(struct record_reader *reader)
{
    const uint64_t flag = record_read_uint(reader, 1);

    if (flag > 1)
        reader->failed = true;
    return flag == 1;
}

static char *put_text(char *at, struct zt_text text)
{
    if (text.length > 0)
        memcpy(at, text.bytes, text.length);
    at[text.length] = '\0';
    return at + text.length + 1;
}

static enum zt_status read_entry(struct log_state *state, struct record_reader *reader)
{
    static const size_t sizes[TEXTS] = {
        sizeof(((struct history_commit *)NULL)->branch),
        sizeof(((struct history_commit *)NULL)->client),
        sizeof(((struct history_commit *)NULL)->title),
        sizeof(((struct history_commit *)NULL)->message),
    };
    struct log_entry entry = {.number = record_read_uint(reader, 8)};
    struct zt_text texts[TEXTS];
    const uint8_t *id;
    char *at;

    entry.parent = record_read_uint(reader, 8);
    entry.time_ms = (int64_t)record_read_uint(reader, 8);
    id = record_read_bytes(reader, sizeof(entry.id));
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i] = read_text(reader, sizes[i]);
        entry.text_bytes += (uint32_t)texts[i].length + 1;
    }
    if (reader->failed || id == NULL || entry.number == 0 || entry.parent >= entry.number ||
        state->count >= HISTORY_COMMITS_MAX ||
        (state->count > 0 && entry.number <= state->entries[state->count - 1].number))
        return ZT_INVALID;
    if (zt_array_reserve(&state->entries, &state->capacity, state->count + 1,
                         sizeof(*state->entries), HISTORY_COMMITS_MAX) != ZT_OK)
        return ZT_NO_MEMORY;
    at = entry.texts = malloc(entry.text_bytes);
    if (entry.texts == NULL)
        return ZT_NO_MEMORY;
    memcpy(entry.id, id, sizeof(entry.id));
    for (size_t i = 0; i < TEXTS; i++)
        at = put_text(at, texts[i]);
    assert(at == entry.texts + entry.text_bytes);
    state->entries[state->count++] = entry;
    state->live_bytes += ENTRY_BYTES + entry.text_bytes;
    return ZT_OK;
}

/* --- branches and tags --- */

static int compare_refs(const struct log_ref *ref, struct zt_text name, bool is_tag)
{
    const int order = zt_text_compare(zt_text_from(ref->name), name);

    return order != 0 ? order : (int)ref->is_tag - (int)is_tag;
}

/* Returns the position of a reference, or where it would be. */
static size_t find_ref(const struct log_state *state, struct zt_text name, bool is_tag,
                       bool *out_is_there)
{
    size_t low = 0;
    size_t high = state->ref_count;

    *out_is_there = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_refs(&state->refs[middle], name, is_tag);

        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t ref_bytes(const struct log_ref *ref)
{
    return REF_BYTES + strlen(ref->name) + strlen(ref->message);
}

static void remove_ref(struct log_state *state, size_t at)
{
    struct log_ref *ref = &state->refs[at];

    assert(at < state->ref_count);
    assert(state->live_bytes >= ref_bytes(ref));
    state->live_bytes -= ref_bytes(ref);
    free(ref->name);
    state->ref_count--;
    memmove(ref, ref + 1, (state->ref_count - at) * sizeof(*ref));
}

static enum zt_status read_ref(struct log_state *state, struct record_reader *reader)
{
    struct log_ref ref = {.is_tag = read_flag(reader)};
    const struct zt_text name = read_text(reader, HISTORY_REF_SIZE);
    struct zt_text message;
    bool is_there;
    size_t at;

    ref.number = record_read_uint(reader, 8);
    message = read_text(reader, sizeof(((struct history_ref *)NULL)->message));
    if (reader->failed || name.length == 0 || log_state_entry(state, ref.number) == NULL)
        return ZT_INVALID;
    at = find_ref(state, name, ref.is_tag, &is_there);
    if (!is_there && state->ref_count >= HISTORY_REFS_MAX)
        return ZT_INVALID;
    if (zt_array_reserve(&state->refs, &state->ref_capacity, state->ref_count + 1,
                         sizeof(*state->refs), HISTORY_REFS_MAX + 1) != ZT_OK)
        return ZT_NO_MEMORY;
    ref.name = malloc(name.length + message.length + 2);
    if (ref.name == NULL)
        return ZT_NO_MEMORY;
    ref.message = put_text(ref.name, name);
    put_text(ref.name + name.length + 1, message);
    if (is_there)
        remove_ref(state, at);
    assert(at <= state->ref_count && state->ref_count < state->ref_capacity);
    memmove(state->refs + at + 1, state->refs + at, (state->ref_count - at) * sizeof(*state->refs));
    state->refs[at] = ref;
    state->ref_count++;
    state->live_bytes += ref_bytes(&ref);
    return ZT_OK;
}

static enum zt_status read_unref(struct log_state *state, struct record_reader *reader)
{
    const bool is_tag = read_flag(reader);
    const struct zt_text name = read_text(reader, HISTORY_REF_SIZE);
    bool is_there;
    const size_t at = find_ref(state, name, is_tag, &is_there);

    if (reader->failed || !is_there)
        return ZT_INVALID;
    remove_ref(state, at);
    return ZT_OK;
}

const struct log_ref *log_state_ref(const struct log_state *state, struct zt_text name, bool is_tag)
{
    bool is_there;
    const size_t at = find_ref(state, name, is_tag, &is_there);

    return is_there ? &state->refs[at] : NULL;
}

/* --- entries --- */

const struct log_entry *log_state_entry(const struct log_state *state, uint64_t number)
{
    size_t low = 0;
    size_t high = state->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint64_t here = state->entries[middle].number;

        if (here == number)
            return state->entries[middle].texts != NULL ? &state->entries[middle] : NULL;
        if (here < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct log_entry *log_state_commit(const struct log_state *state,
                                         const uint8_t id[HISTORY_SHA1_BYTES])
{
    for (size_t i = state->count; i > 0; i--)
        if (memcmp(state->entries[i - 1].id, id, HISTORY_SHA1_BYTES) == 0)
            return &state->entries[i - 1];
    return NULL;
}

/* Only marks them, so that many are removed in one pass. */
static enum zt_status read_forget(struct log_state *state, struct record_reader *reader)
{
    const uint64_t count = record_read_uint(reader, 4);

    for (uint64_t i = 0; i < count; i++) {
        const struct log_entry *found = log_state_entry(state, record_read_uint(reader, 8));
        struct log_entry *entry;

        if (reader->failed || found == NULL)
            return ZT_INVALID;
        entry = &state->entries[found - state->entries];
        assert(state->live_bytes >= ENTRY_BYTES + entry->text_bytes);
        state->live_bytes -= ENTRY_BYTES + entry->text_bytes;
        free(entry->texts);
        entry->texts = NULL;
    }
    return ZT_OK;
}

static void remove_forgotten(struct log_state *state)
{
    size_t left = 0;

    for (size_t i = 0; i < state->count; i++)
        if (state->entries[i].texts != NULL)
            state->entries[left++] = state->entries[i];
    assert(left <= state->count);
    state->count = left;
}

static bool refs_have_entries(const struct log_state *state)
{
    for (size_t i = 0; i < state->ref_count; i++)
        if (log_state_entry(state, state->refs[i].number) == NULL)
            return false;
    return true;
}

static enum zt_status apply_operations(struct log_state *state, struct record_reader *reader,
                                       bool *out_forgets)
{
    static enum zt_status (*const operations[])(struct log_state *, struct record_reader *) = {
        [OPERATION_ENTRY] = read_entry,
        [OPERATION_REF] = read_ref,
        [OPERATION_UNREF] = read_unref,
        [OPERATION_FORGET] = read_forget,
    };
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && reader->left > 0) {
        const uint64_t operation = record_read_uint(reader, 1);

        if (operation == 0 || operation >= sizeof(operations) / sizeof(operations[0]))
            return ZT_INVALID;
        *out_forgets = *out_forgets || operation == OPERATION_FORGET;
        status = operations[operation](state, reader);
    }
    return status;
}

enum zt_status log_state_apply(struct log_state *state, struct record_reader *reader)
{
    const uint64_t change = record_read_uint(reader, 8);
    bool forgets = false;
    enum zt_status status;

    if (reader->failed || change < state->last)
        return ZT_INVALID;
    status = apply_operations(state, reader, &forgets);
    if (forgets) {
        if (status == ZT_OK && !refs_have_entries(state))
            status = ZT_INVALID;
        remove_forgotten(state);
    }
    if (status == ZT_OK && state->count > 0 && state->entries[state->count - 1].number > change)
        status = ZT_INVALID;
    if (status == ZT_OK)
        state->last = change;
    return status;
}

/* Returns NULL without memory. */
static char *copy_bytes(const char *bytes, size_t count)
{
    char *copy = malloc(count);

    return copy != NULL ? memcpy(copy, bytes, count) : NULL;
}

static bool copy_entries(const struct log_state *state, struct log_state *copy)
{
    copy->entries = calloc(state->count + 1, sizeof(*copy->entries));
    copy->capacity = copy->entries != NULL ? state->count + 1 : 0;
    for (; copy->entries != NULL && copy->count < state->count; copy->count++) {
        const struct log_entry *entry = &state->entries[copy->count];
        char *texts = copy_bytes(entry->texts, entry->text_bytes);

        if (texts == NULL)
            return false;
        copy->entries[copy->count] = *entry;
        copy->entries[copy->count].texts = texts;
    }
    return copy->entries != NULL;
}

static bool copy_refs(const struct log_state *state, struct log_state *copy)
{
    copy->refs = calloc(state->ref_count + 1, sizeof(*copy->refs));
    copy->ref_capacity = copy->refs != NULL ? state->ref_count + 1 : 0;
    for (; copy->refs != NULL && copy->ref_count < state->ref_count; copy->ref_count++) {
        const struct log_ref *ref = &state->refs[copy->ref_count];
        const size_t name_size = strlen(ref->name) + 1;
        char *name = copy_bytes(ref->name, name_size + strlen(ref->message) + 1);

        if (name == NULL)
            return false;
        copy->refs[copy->ref_count] = *ref;
        copy->refs[copy->ref_count].name = name;
        copy->refs[copy->ref_count].message = name + name_size;
    }
    return copy->refs != NULL;
}

enum zt_status log_state_copy(const struct log_state *state, struct log_state *out_copy)
{
    struct log_state copy = {.last = state->last, .live_bytes = state->live_bytes};

    if (!copy_entries(state, &copy) || !copy_refs(state, &copy)) {
        log_state_free(&copy);
        return ZT_NO_MEMORY;
    }
    *out_copy = copy;
    return ZT_OK;
}

void log_state_free(struct log_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        free(state->entries[i].texts);
    for (size_t i = 0; i < state->ref_count; i++)
        free(state->refs[i].name);
    free(state->entries);
    free(state->refs);
    *state = (struct log_state){.count = 0};
}

/* --- writing --- */

void log_record_begin(struct log_record *record, uint64_t change)
{
    *record = (struct log_record){.writer = {.limit_bytes = HISTORY_FILE_BYTES}};
    record_write_uint(&record->writer, change, 8);
}

void log_record_entry(struct log_record *record, const struct history_commit *commit,
                      uint64_t parent)
{
    uint8_t id[HISTORY_SHA1_BYTES];
    const bool is_id = zt_hex_read_lower(zt_text_from(commit->id), id, sizeof(id));

    assert(is_id && commit->number > parent);
    record_write_uint(&record->writer, OPERATION_ENTRY, 1);
    record_write_uint(&record->writer, commit->number, 8);
    record_write_uint(&record->writer, parent, 8);
    record_write_uint(&record->writer, (uint64_t)commit->time_ms, 8);
    record_write_bytes(&record->writer, id, sizeof(id));
    record_write_text(&record->writer, commit->branch);
    record_write_text(&record->writer, commit->client);
    record_write_text(&record->writer, commit->title);
    record_write_text(&record->writer, commit->message);
}

void log_record_ref(struct log_record *record, const char *name, bool is_tag, uint64_t number,
                    const char *message)
{
    assert(name[0] != '\0' && number > 0);
    record_write_uint(&record->writer, OPERATION_REF, 1);
    record_write_uint(&record->writer, is_tag, 1);
    record_write_text(&record->writer, name);
    record_write_uint(&record->writer, number, 8);
    record_write_text(&record->writer, message);
}

void log_record_unref(struct log_record *record, const char *name, bool is_tag)
{
    assert(name[0] != '\0');
    record_write_uint(&record->writer, OPERATION_UNREF, 1);
    record_write_uint(&record->writer, is_tag, 1);
    record_write_text(&record->writer, name);
}

void log_record_forget(struct log_record *record, const uint64_t *numbers, size_t count)
{
    assert(count <= HISTORY_COMMITS_MAX);
    if (count == 0)
        return;
    record_write_uint(&record->writer, OPERATION_FORGET, 1);
    record_write_uint(&record->writer, count, 4);
    for (size_t i = 0; i < count; i++)
        record_write_uint(&record->writer, numbers[i], 8);
}

void log_record_free(struct log_record *record)
{
    record_writer_free(&record->writer);
}
