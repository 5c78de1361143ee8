/* Questions as texts, and their comparison. */
#include "derived/export_question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts with their lengths in front, so that no two questions read the same. */
static void write_question(FILE *stream, const struct export_query *query)
{
    fprintf(stream, "%d %llu/%llu@%lld %zu:", (int)query->target,
            (unsigned long long)query->cut.part, (unsigned long long)query->cut.parts,
            (long long)query->cut.axis, query->prefix.length);
    fwrite(query->prefix.bytes, 1, query->prefix.length, stream);
    for (size_t i = 0; i < query->match_count; i++) {
        fprintf(stream, " %zu:", query->matches[i].length);
        fwrite(query->matches[i].bytes, 1, query->matches[i].length, stream);
    }
}

static char *make_question(const struct export_query *query, size_t *out_length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, out_length);

    if (stream == NULL)
        return NULL;
    write_question(stream, query);
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

static struct export_version version_of(const struct generation *generation)
{
    struct export_version version;

    memset(&version, 0, sizeof(version));
    memcpy(version.etag, generation->etag, sizeof(version.etag));
    version.device = generation->identity.device;
    version.changed_ns = generation->identity.changed_ns;
    return version;
}

/* A copy of the query that the question keeps: one block, the globs' places and then the texts. */
static bool keep_query(struct export_question *question, const struct export_query *query)
{
    size_t texts = query->prefix.length;
    struct zt_text *matches;
    char *at;

    for (size_t i = 0; i < query->match_count; i++)
        texts += query->matches[i].length;
    matches = malloc(query->match_count * sizeof(*matches) + texts + 1);
    if (matches == NULL)
        return false;
    at = (char *)(matches + query->match_count);
    question->query = *query;
    question->query.matches = matches;
    question->query.prefix.bytes = at;
    if (query->prefix.length > 0)
        memcpy(at, query->prefix.bytes, query->prefix.length);
    at += query->prefix.length;
    for (size_t i = 0; i < query->match_count; i++) {
        matches[i] = (struct zt_text){at, query->matches[i].length};
        if (matches[i].length > 0)
            memcpy(at, query->matches[i].bytes, matches[i].length);
        at += matches[i].length;
    }
    return true;
}

bool export_question_init(struct export_question *question, const struct generation *generation,
                          const struct export_query *query)
{
    question->version = version_of(generation);
    question->text = make_question(query, &question->length);
    return question->text != NULL && keep_query(question, query);
}

void export_question_free(struct export_question *question)
{
    free((void *)(uintptr_t)question->query.matches);
    free(question->text);
}

bool export_question_is_same(const struct export_question *a, const struct export_question *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0 &&
           strcmp(a->version.etag, b->version.etag) == 0 &&
           a->version.device == b->version.device && a->version.changed_ns == b->version.changed_ns;
}
