/* Converts between models' names and the paths of their indices with a variant, as transformers
 * ("m.safetensors.index.fp16.json") and earlier releases of diffusers
 * ("m.safetensors.fp16.index.json") write them. The parts, and so the model, are named "m.fp16". */
#include "store/variant_index.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/store.h"

#define JSON "json"

/* In order of rank. */
static const struct {
    const char *kind;      /* the text before or after the variant */
    bool is_variant_first; /* ".KIND.VARIANT.index.json", not ".KIND.index.VARIANT.json" */
} forms[VARIANT_INDEX_FORMS] = {
    {"safetensors", false}, {"safetensors", true}, {"bin", false}, {"bin", true}};

/* Cuts off the last word and the dot before it. Returns false if there is no dot. */
static bool take_word(struct zt_text *text, struct zt_text *out_word)
{
    const char *dot = memrchr(text->bytes, '.', text->length);

    if (dot == NULL)
        return false;
    out_word->bytes = dot + 1;
    out_word->length = text->length - (size_t)(out_word->bytes - text->bytes);
    text->length = (size_t)(dot - text->bytes);
    return true;
}

static bool is_word(struct zt_text word, const char *text)
{
    return word.length == strlen(text) && strncasecmp(word.bytes, text, word.length) == 0;
}

static struct zt_text last_part(struct zt_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);
    const size_t before = slash != NULL ? (size_t)(slash + 1 - path.bytes) : 0;

    return (struct zt_text){path.bytes + before, path.length - before};
}

bool variant_index_read(struct zt_text path, struct variant_index *out_index)
{
    struct zt_text rest = last_part(path);
    struct zt_text json, last, middle, kind;
    bool is_variant_first;

    if (!take_word(&rest, &json) || !is_word(json, JSON) || !take_word(&rest, &last) ||
        !take_word(&rest, &middle) || !take_word(&rest, &kind) || rest.length == 0)
        return false;
    is_variant_first = is_word(last, "index");
    if (is_variant_first == is_word(middle, "index"))
        return false;
    out_index->stem = (struct zt_text){path.bytes, (size_t)(kind.bytes - 1 - path.bytes)};
    out_index->variant = is_variant_first ? middle : last;
    for (unsigned form = 0; form < VARIANT_INDEX_FORMS; form++) {
        out_index->form = form;
        if (forms[form].is_variant_first == is_variant_first && is_word(kind, forms[form].kind))
            return out_index->variant.length > 0;
    }
    return false;
}

static bool is_pytorch(unsigned form)
{
    assert(form < VARIANT_INDEX_FORMS);
    return strcmp(forms[form].kind, "bin") == 0;
}

/* Writes the path of a model's index in that form. Returns false if the name has no variant. */
static bool index_path(const char *name, unsigned form, char *out_path, size_t size)
{
    struct zt_text stem = last_part(zt_text_from(name));
    struct zt_text variant;
    int length;

    assert(form < VARIANT_INDEX_FORMS);
    if (!take_word(&stem, &variant) || stem.length == 0 || variant.length == 0)
        return false;
    stem = (struct zt_text){name, (size_t)(variant.bytes - 1 - name)};
    length =
        snprintf(out_path, size,
                 forms[form].is_variant_first ? "%.*s.%s.%s.index." JSON : "%.*s.%s.index.%s." JSON,
                 (int)stem.length, stem.bytes, forms[form].kind, variant.bytes);
    return length > 0 && (size_t)length < size;
}

bool variant_index_has_rank(unsigned rank)
{
    return rank >= VARIANT_INDEX_RANK && rank < VARIANT_INDEX_RANK + VARIANT_INDEX_FORMS;
}

/* --- of all paths of models (store.h) --- */

const char *model_index_extension(unsigned rank)
{
    assert(model_rank_is_index(rank));
    if (!variant_index_has_rank(rank))
        return model_extension(rank);
    return is_pytorch(rank - VARIANT_INDEX_RANK) ? ".bin.index.json" : ".safetensors.index.json";
}

bool model_path_has_noncanonical_extension(const char *path)
{
    char name[MODEL_NAME_MAX + 1];
    char written[MODEL_PATH_SIZE];
    size_t length;
    unsigned rank;

    return model_path_split(path, &length, &rank) && model_path_name(path, name) &&
           model_file_path(name, rank, written) && strcmp(path, written) != 0;
}

bool model_path_name(const char *path, char out_name[MODEL_NAME_MAX + 1])
{
    struct variant_index index;
    size_t length;
    unsigned rank;

    if (!model_path_split(path, &length, &rank))
        return false;
    if (!variant_index_has_rank(rank)) {
        snprintf(out_name, MODEL_NAME_MAX + 1, "%.*s", (int)length, path);
        return true;
    }
    if (!variant_index_read(zt_text_from(path), &index))
        assert(!"the path has been split");
    assert(index.stem.length + 1 + index.variant.length <= MODEL_NAME_MAX);
    snprintf(out_name, MODEL_NAME_MAX + 1, "%.*s.%.*s", (int)index.stem.length, index.stem.bytes,
             (int)index.variant.length, index.variant.bytes);
    return true;
}

bool model_file_path(const char *name, unsigned rank, char out_path[MODEL_PATH_SIZE])
{
    int length;

    if (variant_index_has_rank(rank))
        return index_path(name, rank - VARIANT_INDEX_RANK, out_path, MODEL_PATH_SIZE);
    if (model_extension(rank) == NULL)
        return false;
    length = snprintf(out_path, MODEL_PATH_SIZE, "%s%s", name, model_extension(rank));
    assert(length > 0 && length < MODEL_PATH_SIZE);
    return true;
}

bool model_path_is_index(struct zt_text path)
{
    struct variant_index index;

    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_rank_is_index(rank) && model_extension_ends(path, rank))
            return true;
    return variant_index_read(path, &index);
}
