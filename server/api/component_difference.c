/* A component as the difference from a base, coding=xor-zstd: the frames of zt/xor.h.
 *
 * The base is any component whose decoded bytes have the digest that the client states, in a model
 * that the client may read. Both are verified before the difference is made or found in the
 * cache. */
#include "api/component.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "catalog/catalog.h"
#include "derived/difference.h"
#include "http/exchange/authorize.h"
#include "store/versions/versions_store.h"
#include "verify/component_digests.h"
#include "verify/held_component.h"
#include "verify/verifier.h"
#include "zt/decode.h"
#include "zt/digest.h"
#include "zt/shards.h"
#include "zt/verify.h"
#include "zt/xor.h"

#define CODING     "xor-zstd"
#define PREFIX     "sha256:"
#define HEX_LENGTH (2 * SHA256_BYTES)
/* Maximum number of bases that are tried if the files of some are damaged. */
#define TRIES_MAX 16
/* Maximum number of components that one request hashes to find the base. */
#define CANDIDATES_MAX 8
/* Number of the repository's youngest commits in which the base is looked for. */
#define COMMITS_MAX 16
/* How long a request may hash components of commits before it begins another one: a client waits
 * much longer for the header of an answer. */
#define HASHING_MS 10000

enum { ID_PARENT, ID_CHILD, ID_YOUNGEST, IDS_COUNT = ID_YOUNGEST + COMMITS_MAX };

struct difference_view {
    uint8_t sha256[SHA256_BYTES]; /* of the base */
    const char *name;             /* as the client states it */
    struct held_component base;   /* generation: held, or NULL */
    bool is_sought;               /* a worker looks for the base, or has */
    bool is_cut_short;            /* asking again may find it */
    unsigned tries;
    bool is_hashed; /* a worker hashes the component, or has */
    struct difference_side component;
    struct decoded *made; /* held; NULL until it is requested */
    struct zt_error error;
};

/* --- the query --- */

static void release_base(void *thing)
{
    struct difference_view *difference = thing;

    generation_release(difference->base.generation);
    difference->base.generation = NULL;
}

static bool refuse(struct request *request, const char *detail)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", detail);
    return false;
}

static bool read_digest(struct zt_text base, uint8_t out_sha256[SHA256_BYTES])
{
    const size_t prefix = strlen(PREFIX);

    return base.length == prefix + HEX_LENGTH && zt_text_starts_with(base, zt_text_from(PREFIX)) &&
           zt_hex_read_lower((struct zt_text){base.bytes + prefix, HEX_LENGTH}, out_sha256,
                             SHA256_BYTES);
}

bool component_difference_read(struct request *request, struct component_view *view,
                               struct zt_text base, struct zt_text coding)
{
    struct difference_view *difference;

    if (coding.bytes == NULL)
        return refuse(request, "base needs coding=" CODING);
    if (!zt_text_is(coding, CODING))
        return refuse(request, "coding must be " CODING);
    if (base.bytes == NULL)
        return refuse(request, "coding needs base, the SHA-256 of the bytes that the client has");
    difference = request_new_memory(request, sizeof(*difference));
    if (difference == NULL)
        return false;
    *difference = (struct difference_view){.name = request_copy(request, base.bytes, base.length)};
    if (!read_digest(base, difference->sha256))
        return refuse(request, "base must be " PREFIX " and 64 lower-case hex digits");
    request_hold(request, difference, release_base);
    view->form = VIEW_DIFFERENCE;
    view->difference = difference;
    return true;
}

int component_difference_tag(const struct difference_view *difference, char *out_text, size_t size)
{
    struct {
        uint8_t sha256[SHA256_BYTES];
        uint64_t revision;
    } key = {.revision = zt_xor_revision()};
    uint64_t words[2];

    memcpy(key.sha256, difference->sha256, SHA256_BYTES);
    zt_xxh3_128(&key, sizeof(key), words);
    return snprintf(out_text, size, "-xor.%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

/* --- step: verify --- */

static enum outcome step_verify(struct request *request)
{
    return component_verify(request, request->context);
}

/* --- step: find and verify the base --- */

/* Returns true if a generation has a plain component of the same name and length. */
static bool has_component(const struct component_view *view, const struct generation *generation,
                          uint32_t *out_index)
{
    const struct zt_model *model = generation->model;
    const struct zt_object *object =
        model != NULL ? zt_model_find(model, zt_object_name(view->object)) : NULL;
    const struct zt_component *component =
        object != NULL ? zt_object_find(model, object, zt_component_name(view->component)) : NULL;

    if (component == NULL || component == view->component || !zt_component_is_plain(component) ||
        component->length != view->component->decoded_length)
        return false;
    *out_index = zt_component_index(model, component);
    return true;
}

static bool find_known(const struct generation *generation, uint32_t index,
                       uint8_t out_sha256[SHA256_BYTES])
{
    struct zt_fingerprint hashed;

    if (!decoded_digest_find(generation, index, ZT_DIGEST_SHA256, &hashed))
        return stored_digest_stated(generation, index, out_sha256) ||
               stored_digest_whole(generation, index, out_sha256);
    memcpy(out_sha256, hashed.digest.bytes, SHA256_BYTES);
    return true;
}

/* Returns true if a component may be the base. Bytes of a mirror that are not verified yet vouch
 * for nothing, and reading them would fetch them. out_is_known: its digest is known. */
static bool may_be_base(const struct component_view *view, const struct generation *generation,
                        uint32_t index, bool *out_is_known)
{
    uint8_t known[SHA256_BYTES];

    *out_is_known = find_known(generation, index, known);
    return (!*out_is_known || memcmp(known, view->difference->sha256, SHA256_BYTES) == 0) &&
           atomic_load(&generation->states[index]) != COMPONENT_CORRUPT &&
           !generation_is_unverified(generation);
}

/* Returns true if a generation has a component that may be the base, and whose digest the index
 * did not have. */
static bool is_candidate(const struct component_view *view, const struct generation *generation,
                         uint32_t *out_index)
{
    uint8_t stated[SHA256_BYTES];
    bool is_known;

    return has_component(view, generation, out_index) && !atomic_load(&generation->retired) &&
           !stored_digest_stated(generation, *out_index, stated) &&
           may_be_base(view, generation, *out_index, &is_known);
}

static bool is_abandoned(struct request *request)
{
    const struct waiter *waiter = request_waiter(request);

    return waiter->is_gone != NULL && waiter->is_gone(waiter);
}

static bool goes_on(void *context, uint64_t bytes)
{
    (void)bytes;
    return !is_abandoned(context);
}

/* Hashes a component unless the client leaves. Returns true if it is the base. Also keeps the
 * digest for the decoded bytes, so that later requests do not hash the component again: the digest
 * of stored bytes may have to wait for its pieces, or for a verification. */
static bool try_candidate(struct request *request, struct generation *candidate, uint32_t index,
                          struct held_component *out_found)
{
    const struct difference_view *difference =
        ((const struct component_view *)request->context)->difference;
    struct generation *generation = catalog_update(request->server->catalog, candidate->path);
    const struct zt_progress progress = {goes_on, request};
    uint8_t sha256[SHA256_BYTES];
    struct zt_error error;
    struct zt_files files;

    if (generation == candidate &&
        difference_hash(request->server, generation, index, &progress, sha256, &error) == ZT_OK) {
        decoded_digest_learn(generation, index, sha256);
        stored_digest_learn(request->server, generation, index, sha256);
        files = generation_files(generation);
        *out_found =
            (struct held_component){generation, index, &generation->model->components[index], NULL};
        out_found->source = zt_files_source(&files, out_found->component);
        if (memcmp(sha256, difference->sha256, SHA256_BYTES) == 0)
            return true;
    }
    generation_release(generation);
    return false;
}

/* Most files state no digests, and the server hashes a file only when a client asks for it. So the
 * base may be unknown although it is here, probably in an earlier version of the model. */
static bool find_unhashed(struct request *request, struct held_component *out_found)
{
    const struct name_filter filter = authorize_filter(request);
    size_t count;
    struct generation **all = catalog_hold_all(request->server->catalog, &count);
    unsigned tried = 0;
    bool is_found = false;

    for (size_t i = 0; all != NULL && i < count; i++) {
        uint32_t index;

        if (!is_found && tried < CANDIDATES_MAX && !is_abandoned(request) &&
            name_filter_passes(filter, generation_name(all[i])) &&
            is_candidate(request->context, all[i], &index)) {
            tried++;
            is_found = try_candidate(request, all[i], index, out_found);
        }
        generation_release(all[i]);
    }
    free(all);
    return is_found;
}

/* --- the base in a commit --- */

struct commit_id {
    char hex[HISTORY_COMMIT_SIZE];
};

/* The commits of the component's repository in which the base is looked for. */
struct kept_search {
    struct history *history;
    struct history_repo repo;
    const char *file;                /* the path of the model in the repository */
    struct commit_id wanted;         /* the component's commit; empty: the folder has it */
    struct commit_id ids[IDS_COUNT]; /* the parent, the child, the youngest; empty: none */
    unsigned visited;
    bool is_parent_next;
    bool has_neighbours;
    /* The SHA-256 of the files that were looked at: most commits do not change all files. */
    uint8_t files[IDS_COUNT + 1][SHA256_BYTES];
    unsigned file_count;
    unsigned hashed;
    unsigned learned;
    bool is_cut_short; /* a digest is still unknown */
    int64_t end_ms;
};

/* Finds the repository of a model of the folder or of a commit. */
static bool find_repo(struct kept_search *search, const struct generation *generation)
{
    struct history_path parts;
    size_t skipped;

    search->file = generation->path;
    if (history_path_split(zt_text_from(generation->path), &parts)) {
        if (parts.repo.length > MODEL_NAME_MAX)
            return false;
        memcpy(search->repo.name, parts.repo.bytes, parts.repo.length);
        memcpy(search->wanted.hex, parts.commit, sizeof(parts.commit));
        search->file = parts.rest.bytes;
        return true;
    }
    history_repo_of_model(search->history, generation_name(generation), &search->repo);
    skipped = search->repo.is_root_model ? 0 : strlen(search->repo.name) + 1;
    search->file += skipped;
    return skipped < strlen(generation->path);
}

/* Collects the neighbours of the wanted commit, which may be old, and the youngest commits: a
 * client that follows a model has one of them. */
static bool collect(void *context, const uint8_t id[20])
{
    struct kept_search *search = context;
    struct commit_id commit;

    zt_hex_write(commit.hex, id, 20);
    if (search->is_parent_next) {
        search->ids[ID_PARENT] = commit;
        search->has_neighbours = true;
    }
    search->is_parent_next = !search->has_neighbours && strcmp(commit.hex, search->wanted.hex) == 0;
    if (!search->is_parent_next && !search->has_neighbours)
        search->ids[ID_CHILD] = commit;
    if (search->visited < COMMITS_MAX)
        search->ids[ID_YOUNGEST + search->visited] = commit;
    search->visited++;
    return search->visited < COMMITS_MAX || !search->has_neighbours;
}

/* Returns false if the commit is gone, or if its file was looked at. A split GGUF has parts instead
 * of a file. */
static bool note_file(struct kept_search *search, const struct commit_id *commit)
{
    const struct history_tree *tree = NULL;
    const struct history_file *file;
    struct zt_error ignored;
    bool is_new = true;

    if (commit->hex[0] == '\0' ||
        history_tree_get(search->history, &search->repo, commit->hex, &tree, &ignored) != ZT_OK)
        return false;
    file = history_tree_find(tree, zt_text_from(search->file));
    for (unsigned i = 0; file != NULL && i < search->file_count && is_new; i++)
        is_new = memcmp(search->files[i], file->sha256, SHA256_BYTES) != 0;
    if (file != NULL && is_new) {
        assert(search->file_count <= IDS_COUNT);
        memcpy(search->files[search->file_count++], file->sha256, SHA256_BYTES);
    }
    history_tree_release(tree);
    return is_new;
}

/* Opens the model of a commit. Returns NULL if the commit has no such file. */
static struct generation *open_at(struct request *request, const struct kept_search *search,
                                  const struct commit_id *commit)
{
    char path[MODEL_PATH_SIZE];

    if ((size_t)snprintf(path, sizeof(path), "%s@%s/%s", search->repo.name, commit->hex,
                         search->file) >= sizeof(path))
        return NULL;
    return catalog_update(request->server->catalog, path);
}

/* Hashes the component if its digest is not known. */
static bool find_in_commit(struct request *request, struct kept_search *search,
                           struct generation *generation, struct held_component *out_found)
{
    const struct component_view *view = request->context;
    uint8_t sha256[SHA256_BYTES];
    bool is_known;
    uint32_t index;

    if (!has_component(view, generation, &index) ||
        !may_be_base(view, generation, index, &is_known))
        return false;
    if (is_known)
        return try_candidate(request, generation, index, out_found);
    if (search->hashed == CANDIDATES_MAX || (search->hashed > 0 && clock_ms() > search->end_ms)) {
        search->is_cut_short = true;
        return false;
    }
    search->hashed++;
    if (try_candidate(request, generation, index, out_found))
        return true;
    search->learned += find_known(generation, index, sha256) ? 1 : 0;
    return false;
}

/* A history that cannot be read has no commits. *out_is_cut_short: asking again helps, since this
 * request has found out digests that the next one does not compute again. */
static bool find_kept(struct request *request, struct held_component *out_found,
                      bool *out_is_cut_short)
{
    struct kept_search search = {.history = store_history(request->server->store),
                                 .end_ms = clock_ms() + HASHING_MS};
    struct zt_error ignored;
    bool is_found = false;

    *out_is_cut_short = false;
    if (search.history == NULL || !find_repo(&search, request->generation))
        return false;
    search.has_neighbours = search.wanted.hex[0] == '\0';
    /* A folder and a model in the root may have the same name. */
    if (!search.has_neighbours && !note_file(&search, &search.wanted)) {
        search.repo.is_root_model = true;
        (void)note_file(&search, &search.wanted);
    }
    if (history_visit(search.history, &search.repo, collect, &search, &ignored) != ZT_OK)
        return false;
    for (unsigned i = 0; i < IDS_COUNT && !is_found && !is_abandoned(request); i++) {
        struct generation *generation =
            note_file(&search, &search.ids[i]) ? open_at(request, &search, &search.ids[i]) : NULL;

        is_found = generation != NULL && find_in_commit(request, &search, generation, out_found);
        generation_release(generation);
    }
    *out_is_cut_short = search.is_cut_short && search.learned > 0;
    return is_found;
}

static void find_on_worker(struct request *request)
{
    struct difference_view *difference =
        ((const struct component_view *)request->context)->difference;
    struct held_component found;

    /* A mirrored file that is not verified yet vouches for nothing. */
    if (held_component_find(request->server, difference->sha256, authorize_filter(request), true,
                            &found) ||
        find_kept(request, &found, &difference->is_cut_short) ||
        (!difference->is_cut_short && find_unhashed(request, &found)))
        difference->base = found;
}

static enum outcome reply_not_found(struct request *request)
{
    const struct component_view *view = request->context;

    if (view->difference->is_cut_short)
        return problem_reply(request, PROBLEM_OVERLOADED,
                             "the server has not hashed all earlier versions of the component yet: "
                             "try again");
    return problem_reply(request, PROBLEM_BASE_NOT_FOUND,
                         "no component that you may read is known to have this digest");
}

static enum outcome reply_other_length(struct request *request)
{
    return problem_reply(request, PROBLEM_BASE_NOT_FOUND,
                         "the component with this digest has another length: a base must have as "
                         "many bytes as the component");
}

/* Returns READY with a verified base, or after replying. */
static enum outcome find_base(struct request *request)
{
    struct difference_view *difference =
        ((const struct component_view *)request->context)->difference;
    struct held_component *base = &difference->base;
    enum component_state state;

    for (;;) {
        if (!difference->is_sought) {
            difference->is_sought = true;
            return request_work_long(request, find_on_worker);
        }
        if (base->generation == NULL)
            return reply_not_found(request);
        state = verifier_insist(request->server->verifier, base->generation, base->index,
                                request_waiter(request));
        if (state == COMPONENT_CHECKING)
            return OUTCOME_WAITING;
        if (state == COMPONENT_UNAVAILABLE)
            return problem_reply_unavailable(request, zt_text_from(base->generation->own_path));
        if (state != COMPONENT_CORRUPT)
            return OUTCOME_READY;
        /* Another component may have the same bytes. */
        release_base(difference);
        if (++difference->tries == TRIES_MAX)
            return reply_not_found(request);
        difference->is_sought = false;
    }
}

static bool has_other_length(const struct component_view *view)
{
    const uint64_t length = view->component->decoded_length;
    const uint64_t other = view->difference->base.component->decoded_length;

    return length != other && length != ZT_LENGTH_UNKNOWN && other != ZT_LENGTH_UNKNOWN;
}

static enum outcome step_base(struct request *request)
{
    const struct component_view *view = request->context;
    const enum outcome outcome = find_base(request);

    if (outcome == OUTCOME_READY && !request->replied && has_other_length(view))
        return reply_other_length(request);
    return outcome;
}

/* --- step: make the difference --- */

static void hash_on_worker(struct request *request)
{
    const struct component_view *view = request->context;
    struct difference_view *difference = view->difference;
    struct generation *generation = request->generation;
    const struct zt_progress progress = {goes_on, request};

    if (difference_hash(request->server, generation, view->index, &progress,
                        difference->component.sha256, &difference->error) != ZT_OK)
        return;
    zt_error_clear(&difference->error);
    if (zt_component_is_plain(view->component))
        stored_digest_learn(request->server, generation, view->index, difference->component.sha256);
    else if (!generation_is_unverified(generation))
        decoded_digest_learn(generation, view->index, difference->component.sha256);
}

/* Finds the SHA-256 of the component's decoded bytes. Hashes them once if it is not known. */
static enum outcome find_digest(struct request *request)
{
    const struct component_view *view = request->context;
    struct difference_view *difference = view->difference;
    struct component_view decoded = *view;

    if (difference->is_hashed)
        return difference->error.status == ZT_OK
                   ? OUTCOME_READY
                   : component_problem_unreadable(request, view, &difference->error);
    difference->is_hashed = true;
    zt_error_clear(&difference->error);
    decoded.form = VIEW_DECODED;
    if (component_sha256(request, &decoded, difference->component.sha256))
        return OUTCOME_READY;
    return request_work_long(request, hash_on_worker);
}

static enum outcome ask(struct request *request)
{
    const struct component_view *view = request->context;
    struct difference_view *difference = view->difference;
    struct difference_side base = {.generation = difference->base.generation,
                                   .component = difference->base.index};
    enum memo_answer answer = MEMO_FAILED;
    struct zt_error error;

    memcpy(base.sha256, difference->sha256, SHA256_BYTES);
    difference->component.generation = request->generation;
    difference->component.component = view->index;
    if (difference->made == NULL) {
        difference->made = difference_hold(request->server->decoded, &difference->component, &base);
        request_hold(request, difference->made, memo_release);
    }
    if (difference->made == NULL)
        zt_fail_memory(&error, "a difference");
    else
        answer = difference_ask(request->server, difference->made, &difference->component, &base,
                                request_waiter(request), &error);
    if (answer == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (answer == MEMO_FAILED && error.status == ZT_ARGUMENT)
        return reply_other_length(request);
    if (answer == MEMO_FAILED)
        return component_problem_unreadable(request, view, &error);
    representation_source(&request->reply, difference->made->source, 0, difference->made->length);
    return OUTCOME_READY;
}

static enum outcome step_difference(struct request *request)
{
    const struct component_view *view = request->context;
    const enum outcome outcome = find_digest(request);
    struct representation *reply = &request->reply;

    if (outcome == OUTCOME_WAITING || request->replied)
        return outcome;
    reply->has_sha256 = true;
    reply->digest_is_of_result = true;
    memcpy(reply->sha256, view->difference->component.sha256, sizeof(reply->sha256));
    return ask(request);
}

void component_difference_prepare(struct request *request)
{
    const struct component_view *view = request->context;
    struct representation *reply = &request->reply;

    assert(view->form == VIEW_DIFFERENCE && view->slice == NULL && view->widener == NULL);
    reply->media_type = "application/zstd";
    reply->lasting = false;
    representation_field(reply, "ZT-Base", view->difference->name);
    representation_step(reply, "verify", step_verify);
    representation_step(reply, "base", step_base);
    representation_step(reply, "difference", step_difference);
}
