/* Checks a stored file before it is published, as a model or index, or according to its path. The
 * check ends with the first step that fails. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "access/access.h"
#include "base/parallel.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "catalog/store_folder.h"
#include "parts/joined_parts.h"
#include "store/staging.h"
#include "store/store_here.h"
#include "upload/shared/publication.h"
#include "upload/shared/write_checks.h"
#include "zt/join.h"
#include "zt/json_text.h"
#include "zt/shards.h"
#include "zt/verify.h"

/* --- an index --- */

/* Maximum number of bytes of white space before the object. */
#define LEAD_BYTES 64

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns true if a file that is not a model looks like an index: a JSON object. */
static bool is_index(struct zt_source *source)
{
    const uint64_t size = zt_source_size(source);
    char lead[LEAD_BYTES];
    size_t length = size < sizeof(lead) ? (size_t)size : sizeof(lead);
    size_t at = 0;

    if (zt_source_read_at(source, 0, lead, length, NULL) != ZT_OK)
        return false;
    while (at < length && is_space(lead[at]))
        at++;
    if (at == length || lead[at++] != '{')
        return false;
    while (at < length && is_space(lead[at]))
        at++;
    return at == length || lead[at] == '"' || lead[at] == '}';
}

static bool has_extension(struct zt_text name, const char *extension)
{
    const size_t length = strlen(extension);

    return name.length > length &&
           memcmp(name.bytes + name.length - length, extension, length) == 0;
}

static bool is_pytorch(struct zt_text name)
{
    return has_extension(name, ".bin") || has_extension(name, ".pt") ||
           has_extension(name, ".pth") || has_extension(name, ".ckpt");
}

static bool fail_part(struct failure *failure, struct zt_text part, const char *why)
{
    struct zt_error error;

    (void)zt_fail(&error, ZT_INVALID, "index §Parts PartName", ZT_NO_OFFSET, "part %.*s %s",
                  (int)part.length, part.bytes, why);
    return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
}

static bool fail_covered(struct failure *failure, struct zt_text part)
{
    access_count_failure(ACCESS_MODEL);
    return failure_refuse(failure, PROBLEM_FORBIDDEN,
                          "part %.*s: this client may not use a file of this name",
                          (int)part.length, part.bytes);
}

/* Returns true if the part's model would have the whole model's name, and so hide it. */
static bool is_whole(const struct publication *publication, const char *path, size_t length)
{
    return strlen(publication->model) == length && strncmp(publication->model, path, length) == 0;
}

static bool check_part(const struct publication *publication, struct zt_text part,
                       struct failure *failure)
{
    const char *slash = strrchr(publication->model, '/');
    const int folder = slash != NULL ? (int)(slash + 1 - publication->model) : 0;
    char path[2 * MODEL_PATH_SIZE];
    const int length = snprintf(path, sizeof(path), "%.*s%.*s", folder, publication->model,
                                (int)part.length, part.bytes);
    size_t name_length;
    unsigned rank;

    if (length < 0 || (size_t)length >= sizeof(path) ||
        !model_path_split(path, &name_length, &rank) || model_rank_is_index(rank))
        return fail_part(failure, part, "cannot be a file of a model");
    if (is_whole(publication, path, name_length))
        return fail_part(failure, part, "has the name of the whole model");
    return name_filter_passes(publication->covers, (struct zt_text){path, name_length}) ||
           fail_covered(failure, part);
}

static bool check_parts(const struct publication *publication, const struct zt_index *index,
                        const char **out_extension, struct failure *failure)
{
    size_t count;
    const struct zt_text *parts = zt_index_parts(index, &count);
    size_t safetensors = 0;

    for (size_t i = 0; i < count; i++) {
        safetensors += has_extension(parts[i], ".safetensors");
        if (!has_extension(parts[i], ".safetensors") && !is_pytorch(parts[i]))
            return fail_part(failure, parts[i], "is neither of safetensors nor of PyTorch");
        if (!check_part(publication, parts[i], failure))
            return false;
    }
    if (safetensors != 0 && safetensors != count)
        return fail_part(failure, parts[0], "has another extension than other parts");
    *out_extension = safetensors > 0 ? ".safetensors.index.json" : ".bin.index.json";
    return true;
}

/* --- existing parts --- */

/* Returns true if the error concerns the index or its parts, and not an additional part in the
 * folder. An additional part may belong to the replaced model, and is removed with it. */
static bool is_about_the_parts(enum zt_status status, const struct zt_error *error)
{
    return (status == ZT_INVALID || status == ZT_CORRUPT || status == ZT_UNSUPPORTED ||
            status == ZT_LIMIT) &&
           !joined_parts_lack_a_part(error) && !joined_parts_have_another_part(error);
}

static bool check_joined(const struct publication *publication, struct zt_source *source,
                         struct failure *failure)
{
    struct store_folder folder = store_folder_of(publication->server->store, NULL);
    struct joined_parts parts;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = joined_parts_open_index(&folder.base, store_path_folder(publication->name), source,
                                     &parts, &error);
    joined_parts_free(&parts);
    if (is_about_the_parts(status, &error))
        return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
    return status != ZT_NO_MEMORY || failure_set(failure, PROBLEM_INTERNAL, &error);
}

/* Parts may be uploaded later, like the shards of zTensor 2. So an index is refused only for errors
 * in itself, or if existing parts contradict it. *out_extension is the extension of the index's
 * file. */
static bool check_index(const struct publication *publication, struct zt_source *source,
                        const char **out_extension, struct failure *failure)
{
    struct zt_index *index = NULL;
    struct zt_error error;
    const enum zt_status status = zt_index_read(source, &index, &error);
    bool valid;

    if (status != ZT_OK)
        return failure_set(failure,
                           status == ZT_IO || status == ZT_NO_MEMORY ? PROBLEM_INTERNAL
                                                                     : PROBLEM_INVALID_MODEL,
                           &error);
    assert(index != NULL);
    valid = check_parts(publication, index, out_extension, failure);
    zt_index_free(index);
    return valid && (publication->is_apart || check_joined(publication, source, failure));
}

/* --- a model --- */

/* Fewer bytes than this are hashed before other workers could start to help. */
#define PARALLEL_BYTES ((uint64_t)16 << 20)

/* Returns the extension under which the model is stored: the name of its format, except for
 * PyTorch. */
static const char *extension_of(const struct zt_model *model, const char *name)
{
    const char *slash = strrchr(name, '/');

    if (model != NULL && model->format == ZT_FORMAT_PYTORCH)
        return zt_text_starts_with(zt_text_from(slash != NULL ? slash + 1 : name),
                                   zt_text_from("pytorch_model"))
                   ? ".bin"
                   : ".pt";
    for (unsigned rank = 0; model != NULL && model_extension(rank) != NULL; rank++)
        if (strcmp(model_extension(rank) + 1, model->format_name) == 0)
            return model_extension(rank);
    /* Data shards have no model; they are always zTensor 2. */
    return ".zt";
}

struct check {
    struct publication *publication;
    struct zt_source *source;
    const struct zt_model *model;
    /* Several objects are hashed at once; the failure of the first of them is reported. */
    pthread_mutex_t lock;
    uint32_t failed_object;
    struct failure failure;
};

static bool fail_model(struct failure *failure, const struct zt_error *error)
{
    bool is_ours = error->status == ZT_IO || error->status == ZT_NO_MEMORY;

    return failure_set(failure, is_ours ? PROBLEM_INTERNAL : PROBLEM_INVALID_MODEL, error);
}

static bool fail_object(struct check *check, uint32_t object, enum problem problem,
                        const struct zt_error *error)
{
    assert(error->status != ZT_OK && object < check->model->object_count);
    pthread_mutex_lock(&check->lock);
    if (!check->failure.is_set || object < check->failed_object) {
        check->failed_object = object;
        check->failure = (struct failure){.is_set = true, .problem = problem, .error = *error};
    }
    pthread_mutex_unlock(&check->lock);
    return false;
}

static bool fail_digest(struct check *check, uint32_t index, const struct zt_component *component,
                        const struct zt_component_check *result)
{
    struct zt_error error;

    if (result->actual[0] != '\0') {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset, "expected %s, actual %s",
                result->expected, result->actual);
    } else {
        zt_fail(&error, ZT_CORRUPT, NULL, component->offset,
                "expected %s, but the bytes do not decode", result->expected);
    }
    zt_error_at(&error, zt_object_name(&check->model->objects[index]),
                zt_component_name(component));
    return fail_object(check, index, PROBLEM_DIGEST_MISMATCH, &error);
}

static bool check_component(struct check *check, uint32_t index,
                            const struct zt_component *component)
{
    struct zt_component_check result;
    struct zt_error error;
    unsigned char *verdict =
        &check->publication->verdicts[zt_component_index(check->model, component)];

    assert(zt_component_index(check->model, component) < check->publication->verdict_count);
    *verdict = ZT_VERDICT_UNDIGESTED;
    /* Components in a shard are checked when the shard exists. */
    if (component->digest == NULL || component->shard != 0)
        return true;
    if (zt_component_check(check->model, component, check->source, NULL, &result, &error) != ZT_OK)
        return fail_object(check, index, PROBLEM_INTERNAL, &error);
    *verdict = (unsigned char)result.verdict;
    return result.verdict != ZT_VERDICT_FAILED || fail_digest(check, index, component, &result);
}

static bool check_object_digests(void *context, uint32_t index)
{
    struct check *check = context;
    const struct zt_object *object = &check->model->objects[index];
    const struct zt_component *components;

    assert(index < check->model->object_count);
    components = zt_object_components(check->model, object);
    for (uint32_t i = 0; i < object->component_count; i++)
        if (!check_component(check, index, &components[i]))
            return false;
    return true;
}

static bool check_digests(struct check *check)
{
    const struct parallel_work work = {check->model->object_count, check_object_digests, check};
    struct workers *helpers =
        zt_source_size(check->source) < PARALLEL_BYTES ? NULL : check->publication->server->workers;

    assert(check->publication->verdicts != NULL);
    pthread_mutex_init(&check->lock, NULL);
    parallel_for(helpers, &work);
    pthread_mutex_destroy(&check->lock);
    return !check->failure.is_set;
}

/* Contents that no rule can judge (an unknown encoding, bytes in a shard) are accepted. */
static bool check_contents(struct check *check)
{
    const struct zt_files files = {check->source, NULL};

    assert(!check->failure.is_set);
    for (uint32_t i = 0; i < check->model->object_count; i++) {
        struct zt_error error;
        enum zt_status status =
            zt_object_check(check->model, &check->model->objects[i], &files, &error);

        if (status != ZT_OK && status != ZT_UNSUPPORTED)
            return fail_model(&check->failure, &error);
    }
    return true;
}

static bool check_data(struct check *check)
{
    struct publication *publication = check->publication;

    assert(publication->verdicts == NULL);
    publication->verdict_count = check->model->component_count;
    publication->verdicts = calloc((size_t)publication->verdict_count + 1, 1);
    if (publication->verdicts == NULL)
        return failure_no_memory(&check->failure, "checking the model");
    return check_digests(check) && check_contents(check);
}

/* --- the shards --- */

static bool fail_shard(struct check *check, const struct zt_shard *shard)
{
    access_count_failure(ACCESS_MODEL);
    return failure_refuse(&check->failure, PROBLEM_FORBIDDEN,
                          "shard %.*s: this client may not use a file of this name",
                          (int)shard->name_length, shard->name);
}

static bool covers_shard(struct check *check, const char *path, const struct zt_shard *shard)
{
    char *sibling = zt_shard_sibling(path, shard);
    struct zt_text name;
    bool covered;

    if (sibling == NULL)
        return failure_no_memory(&check->failure, "the name of a shard");
    name = zt_text_from(sibling);
    assert(name.length > strlen(".zt"));
    name.length -= strlen(".zt");
    covered = name_filter_passes(check->publication->covers, name);
    free(sibling);
    return covered || fail_shard(check, shard);
}

/* Refuses external data. Its file names are not model names, so these files cannot be uploaded; and
 * an existing file could be any file of the folder, which the client may not be allowed to see. */
static bool refuse_external(struct check *check, const struct zt_shard *shard)
{
    return failure_refuse(&check->failure, PROBLEM_INVALID_MODEL,
                          "the model has external data, in %.*s, which cannot be uploaded: upload "
                          "it as one file, or place its files on the server",
                          (int)shard->name_length, shard->name);
}

/* Shards are served, and removed, as part of the model. So a client that could name any file as a
 * shard would get access to models that it may not see. The refusal does not reveal whether the
 * file exists. */
static bool check_shards(struct check *check)
{
    const struct zt_model *model = check->model;
    char path[MODEL_NAME_MAX + sizeof(".zt")];

    if (model != NULL && model->shard_count > 0 && model->shards[0].kind == ZT_SHARD_DATA)
        return refuse_external(check, &model->shards[0]);
    if (model == NULL || check->publication->covers.passes == NULL)
        return true;
    snprintf(path, sizeof(path), "%s.zt", check->publication->model);
    for (uint32_t i = 0; i < model->shard_count; i++)
        if (!covers_shard(check, path, &model->shards[i]))
            return false;
    return true;
}

/* A part of a split GGUF may only be stored under its own part's name. */
static bool check_part_name(struct check *check)
{
    const char *slash = strrchr(check->publication->model, '/');
    const char *base = slash != NULL ? slash + 1 : check->publication->model;
    char name[MODEL_PATH_SIZE];
    struct zt_error error;
    const int length = snprintf(name, sizeof(name), "%s%s", base, check->publication->extension);

    assert(length > 0 && (size_t)length < sizeof(name));
    return zt_gguf_check_name(check->model, (struct zt_text){name, (size_t)length}, &error) ==
               ZT_OK ||
           fail_model(&check->failure, &error);
}

/* *out_model is NULL for a data shard, which needs no further check, and for an index, whose
 * extension is then known. */
static bool open_model(struct check *check, struct zt_model **out_model)
{
    struct publication *publication = check->publication;
    struct store *store = publication->server->store;
    struct zt_error error;
    enum zt_status status;

    assert(publication->stored != NULL && check->source == NULL);
    if (staged_file_read_back(publication->stored, &check->source, &error) != ZT_OK)
        return failure_of_store(&check->failure, &error);
    check->publication->has_identity =
        store->ops->identity_of(store, check->source, &check->publication->identity);
    status = zt_model_open(check->source, out_model, &error);
    if (status == ZT_INVALID && is_index(check->source))
        return check_index(publication, check->source, &publication->extension, &check->failure);
    return status == ZT_OK || status == ZT_DATA_SHARD || fail_model(&check->failure, &error);
}

static bool check_model(struct publication *publication, struct failure *failure)
{
    struct check check = {.publication = publication};
    struct zt_model *model = NULL;
    bool valid;

    assert(publication->model[0] != '\0');
    valid = open_model(&check, &model);
    check.model = model;
    if (valid && publication->extension == NULL)
        publication->extension = extension_of(model, publication->model);
    valid = valid &&
            (model == NULL || !written_name_is_doubled(publication->model, publication->extension,
                                                       &check.failure)) &&
            (model == NULL || check_part_name(&check)) && check_shards(&check) &&
            (model == NULL || check_data(&check));
    zt_model_free(model);
    assert(valid == !check.failure.is_set);
    return valid || failure_set(failure, check.failure.problem, &check.failure.error);
}

/* --- a file at a path --- */

#define JSON ".json"

static bool is_json(const char *path)
{
    const size_t length = strlen(path);

    return length >= strlen(JSON) && strcasecmp(path + length - strlen(JSON), JSON) == 0;
}

/* The format that the check found must match the extension of the path. */
static bool check_extension(const struct publication *publication, struct failure *failure)
{
    const char *path = publication->name;
    const char *extension;
    size_t length;
    unsigned rank;

    assert(publication->is_file && publication->extension != NULL);
    if (!model_path_split(path, &length, &rank))
        assert(!"the file belongs to a model");
    extension = model_rank_is_index(rank) ? model_index_extension(rank) : model_extension(rank);
    if (strcmp(extension, publication->extension) == 0 || model_path_needs_sniffing(path))
        return true;
    return failure_refuse(failure, PROBLEM_INVALID_MODEL,
                          "the content is a %s file, but the name is for a %s file",
                          publication->extension + 1, extension + 1);
}

static bool check_named_model(struct publication *publication, struct failure *failure)
{
    return check_model(publication, failure) && check_extension(publication, failure);
}

/* Returns true with *out_source, which the store closes, or false with failure set. */
static bool read_back(struct publication *publication, struct zt_source **out_source,
                      struct failure *failure)
{
    struct zt_error error;

    return staged_file_read_back(publication->stored, out_source, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

/* A file whose extension PyTorch shares with other programs counts as a model if it has a known
 * format, even if it is damaged. */
static bool check_ambiguous(struct publication *publication, struct failure *failure)
{
    struct zt_source *source;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    assert(publication->is_file);
    if (!read_back(publication, &source, failure))
        return false;
    status = zt_model_open(source, &model, &error);
    zt_model_free(model);
    if (status != ZT_OK && error_is_not_a_model(publication->name, &error)) {
        publication->model[0] = '\0';
        return true;
    }
    return check_named_model(publication, failure);
}

static bool check_json(struct publication *publication, struct failure *failure)
{
    struct zt_source *source;
    struct zt_error error;
    enum zt_status status;

    if (!read_back(publication, &source, failure))
        return false;
    status = zt_json_check(source, &error);
    if (status == ZT_OK)
        return true;
    if (status == ZT_INVALID || status == ZT_LIMIT)
        return failure_set(failure, PROBLEM_INVALID_MODEL, &error);
    return failure_of_store(failure, &error);
}

/* If the name says nothing about the content, any content is accepted. */
static bool check_content(struct publication *publication, struct failure *failure)
{
    const char *path = publication->name;

    if (model_path_name(path, publication->model))
        return model_path_needs_sniffing(path) ? check_ambiguous(publication, failure)
                                               : check_named_model(publication, failure);
    publication->model[0] = '\0';
    return !is_json(path) || check_json(publication, failure);
}

/* Identifies the file, as the check of a model does. */
static bool identify(struct publication *publication, struct failure *failure)
{
    struct store *store = publication->server->store;
    struct zt_source *source;

    assert(!publication->has_identity);
    if (!read_back(publication, &source, failure))
        return false;
    publication->has_identity = store->ops->identity_of(store, source, &publication->identity);
    return true;
}

/* --- models and files --- */

static bool check_here(struct publication *publication, struct failure *failure)
{
    assert(publication->name != NULL);
    assert(publication->stored != NULL);
    publication_clear(publication);
    if (publication->is_file)
        return check_content(publication, failure) &&
               (publication->has_identity || identify(publication, failure));
    snprintf(publication->model, sizeof(publication->model), "%s", publication->name);
    return check_model(publication, failure);
}

bool publication_check(struct publication *publication, struct failure *failure)
{
    bool is_good;

    store_here_begin();
    is_good = check_here(publication, failure);
    store_here_end();
    return is_good;
}

void publication_clear(struct publication *publication)
{
    free(publication->verdicts);
    publication->verdicts = NULL;
    publication->verdict_count = 0;
    publication->extension = NULL;
    publication->has_identity = false;
}
