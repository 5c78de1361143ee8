/* Reads the tokens file. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/grants_state.h"
#include "access/line_reader.h"
#include "base/glob.h"
#include "base/hex.h"
#include "base/memory.h"
#include "input/text_file.h"

#define KEY "auth.tokens"
/* Bytes of a certificate's name or of a glob of subjects. */
#define IDENTITY_MAX 1024

struct reader {
    struct line_reader lines; /* first */
    struct grants *grants;
};

/* --- fields --- */

static bool read_name(const struct reader *reader, struct zt_text field, struct entry *entry)
{
    if (field.length > GRANT_NAME_MAX)
        return line_reader_fail(&reader->lines, "the name is longer than %d bytes", GRANT_NAME_MAX);
    entry->grant.name = field.bytes;
    return true;
}

/* What follows a prefix like "mtls:"; false if the field has another one. */
static bool take_prefix(struct zt_text field, const char *prefix, struct zt_text *out_rest)
{
    const struct zt_text wanted = zt_text_from(prefix);

    if (!zt_text_starts_with(field, wanted))
        return false;
    *out_rest = (struct zt_text){field.bytes + wanted.length, field.length - wanted.length};
    return true;
}

static bool check_identity(const struct reader *reader, struct zt_text identity)
{
    if (identity.length == 0)
        return line_reader_fail(&reader->lines, "the third field has no text after its colon");
    if (identity.length > IDENTITY_MAX)
        return line_reader_fail(&reader->lines, "the third field is longer than %d bytes",
                                IDENTITY_MAX);
    return true;
}

static bool read_subject(const struct reader *reader, struct zt_text glob, struct entry *entry)
{
    if (!check_identity(reader, glob))
        return false;
    if (!glob_is_valid(glob))
        return line_reader_fail(&reader->lines, "the subject is not a glob: a [ is not closed");
    entry->proof = PROOF_SUBJECT;
    entry->is.subject.glob = glob;
    entry->is.subject.set = glob_set_new(&glob, 1);
    return entry->is.subject.set != NULL || line_reader_fail(&reader->lines, "out of memory");
}

static bool read_hash(const struct reader *reader, struct zt_text field, struct entry *entry)
{
    uint8_t bytes[sizeof(entry->is.sha256)];

    if (field.length != 2 * sizeof(bytes))
        return line_reader_fail(&reader->lines,
                                "the third field is the token's SHA-256 (64 hexadecimal digits), "
                                "mtls:NAME or jwt:SUBJECT");
    if (!zt_hex_read(field, bytes, sizeof(bytes)))
        return line_reader_fail(&reader->lines,
                                "the SHA-256 contains other characters than hexadecimal digits");
    entry->proof = PROOF_TOKEN;
    memcpy(&entry->is.sha256, bytes, sizeof(bytes));
    return true;
}

static bool read_proof(const struct reader *reader, struct zt_text field, struct entry *entry)
{
    struct zt_text rest;

    if (take_prefix(field, "mtls:", &rest)) {
        entry->proof = PROOF_CERTIFICATE;
        entry->is.name = rest;
        return check_identity(reader, rest);
    }
    if (take_prefix(field, "jwt:", &rest))
        return read_subject(reader, rest, entry);
    return read_hash(reader, field, entry);
}

/* --- lines --- */

static void clear_entry(struct entry *entry)
{
    glob_set_free(entry->grant.models);
    if (entry->proof == PROOF_SUBJECT)
        glob_set_free(entry->is.subject.set);
}

static bool read_entry(struct reader *reader, struct zt_text name, struct entry *entry)
{
    struct zt_text field;

    if (!read_name(reader, name, entry))
        return false;
    if (!line_reader_field(&reader->lines, &field))
        return line_reader_fail(&reader->lines, "the scope is missing: read, write or admin");
    if (!line_reader_scope(&reader->lines, field, "second", &entry->grant.scope))
        return false;
    if (!line_reader_field(&reader->lines, &field))
        return line_reader_fail(
            &reader->lines, "the proof is missing: the token's SHA-256, mtls:NAME or jwt:SUBJECT");
    return read_proof(reader, field, entry) &&
           line_reader_globs(&reader->lines, &entry->grant.models);
}

static bool add_entry(struct reader *reader, const struct entry *entry)
{
    struct grants *grants = reader->grants;

    if (grants->count == GRANTS_MAX)
        return line_reader_fail(&reader->lines, "there are more than %d clients", GRANTS_MAX);
    if (zt_array_reserve(&grants->entries, &grants->capacity, grants->count + 1,
                         sizeof(*grants->entries), GRANTS_MAX) != ZT_OK)
        return line_reader_fail(&reader->lines, "out of memory");
    grants->entries[grants->count++] = *entry;
    return true;
}

static bool read_line(struct line_reader *lines, struct zt_text name)
{
    struct reader *reader = (struct reader *)lines;
    struct entry entry = {.grant = {.line = lines->line, .print = lines->print}};

    assert(lines->line > 0 && name.length > 0);
    if (read_entry(reader, name, &entry) && add_entry(reader, &entry))
        return true;
    clear_entry(&entry);
    return false;
}

/* --- repetitions --- */

static int compare_lines(const struct entry *a, const struct entry *b)
{
    return (a->grant.line > b->grant.line) - (a->grant.line < b->grant.line);
}

static int compare_names(const void *left, const void *right)
{
    const struct entry *a = *(const struct entry *const *)left;
    const struct entry *b = *(const struct entry *const *)right;
    const int order = strcmp(a->grant.name, b->grant.name);

    return order != 0 ? order : compare_lines(a, b);
}

static int order_of_proofs(const struct entry *a, const struct entry *b)
{
    if (a->proof != b->proof)
        return a->proof < b->proof ? -1 : 1;
    switch (a->proof) {
    case PROOF_TOKEN:
        return memcmp(&a->is.sha256, &b->is.sha256, sizeof(a->is.sha256));
    case PROOF_CERTIFICATE:
        return zt_text_compare(a->is.name, b->is.name);
    case PROOF_SUBJECT:
        break;
    }
    return zt_text_compare(a->is.subject.glob, b->is.subject.glob);
}

static int compare_proofs(const void *left, const void *right)
{
    const struct entry *a = *(const struct entry *const *)left;
    const struct entry *b = *(const struct entry *const *)right;
    const int order = order_of_proofs(a, b);

    return order != 0 ? order : compare_lines(a, b);
}

static bool refuse_repeated(struct reader *reader, const struct entry **order)
{
    static const char *const proofs[] = {[PROOF_TOKEN] = "SHA-256",
                                         [PROOF_CERTIFICATE] = "name of a certificate",
                                         [PROOF_SUBJECT] = "subject"};
    const size_t count = reader->grants->count;

    qsort(order, count, sizeof(*order), compare_names);
    for (size_t i = 1; i < count; i++) {
        reader->lines.line = order[i]->grant.line;
        if (strcmp(order[i - 1]->grant.name, order[i]->grant.name) == 0)
            return line_reader_fail(&reader->lines, "line %u already has this name",
                                    order[i - 1]->grant.line);
    }
    qsort(order, count, sizeof(*order), compare_proofs);
    for (size_t i = 1; i < count; i++) {
        reader->lines.line = order[i]->grant.line;
        if (order_of_proofs(order[i - 1], order[i]) == 0)
            return line_reader_fail(&reader->lines, "line %u already has this %s",
                                    order[i - 1]->grant.line, proofs[order[i]->proof]);
    }
    return true;
}

static bool check_repeated(struct reader *reader)
{
    const size_t count = reader->grants->count;
    const struct entry **order = calloc(count + 1, sizeof(*order));
    bool distinct;

    if (order == NULL)
        return line_reader_fail(&reader->lines, "out of memory");
    for (size_t i = 0; i < count; i++)
        order[i] = &reader->grants->entries[i];
    distinct = refuse_repeated(reader, order);
    free(order);
    return distinct;
}

/* --- the file --- */

struct grants *grants_parse(struct zt_text text, const char *path, char *error, size_t error_size)
{
    struct grants *grants = calloc(1, sizeof(*grants));
    struct reader reader = {
        .lines = {.key = KEY, .path = path, .error = error, .error_size = error_size},
        .grants = grants};

    if (grants == NULL)
        snprintf(error, error_size, KEY ": out of memory");
    else if (line_reader_run(&reader.lines, text, read_line, &grants->text) &&
             check_repeated(&reader))
        return grants;
    grants_free(grants);
    return NULL;
}

struct grants *grants_load(const char *path, char *error, size_t error_size)
{
    struct text_file file;
    struct grants *grants;

    if (!text_file_read(KEY, path, &file, error, error_size))
        return NULL;
    grants = grants_parse((struct zt_text){file.text, file.length}, path, error, error_size);
    if (grants != NULL) {
        grants->is_public = file.is_public;
        grants->path = strdup(path);
    }
    text_file_free(&file);
    return grants;
}

void grants_free(struct grants *grants)
{
    if (grants == NULL)
        return;
    for (size_t i = 0; i < grants->count; i++)
        clear_entry(&grants->entries[i]);
    free(grants->entries);
    free(grants->path);
    free(grants->text);
    free(grants);
}
