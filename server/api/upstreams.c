/* GET /v1/upstreams lists the mirrored servers, /v1/upstreams/{upstream}/repositories lists and
 * removes what is mirrored, /v1/upstreams/{upstream}/prefetch downloads whole repositories. None of
 * them waits for an upstream. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/json_reply.h"
#include "api/parameters.h"
#include "base/metrics.h"
#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"
#include "store/mirror/mirror.h"
#include "store/mirror/mirror_prefetch.h"

#define REVISION_DEFAULT "main"
#define MS_PER_S         1000

/* The number of mirrored upstreams. In tests the store may not be a mirror. */
static unsigned upstream_count(const struct server *server)
{
    return mirror_is(server->store) ? server->config->upstream_count : 0;
}

/* --- the list --- */

static const char *state_of(const struct upstream_report *report)
{
    if (report->is_offline)
        return "offline";
    if (report->is_away)
        return "away";
    return report->was_reached ? "reached" : "unasked";
}

static void write_globs(struct json *json, const char *list)
{
    const char *word;
    struct zt_text glob;

    json_array_member(json, "match");
    while ((word = config_list_next(&list, &glob.length)) != NULL) {
        glob.bytes = word;
        json_text(json, glob);
    }
    json_array_end(json);
}

static void write_state(struct json *json, const struct upstream_report *report)
{
    json_string_member(json, "state", state_of(report));
    if (report->away_since_s != 0)
        manifest_write_seconds(json, "away_since", report->away_since_s);
    if (report->pause_ms > 0)
        json_uint_member(json, "retry_after_s", (report->pause_ms + MS_PER_S - 1) / MS_PER_S);
    if (report->failed_s != 0) {
        manifest_write_seconds(json, "last_failure", report->failed_s);
        json_string_member(json, "reason", report->reason);
    }
}

static const char *const kinds[] = {[CONFIG_UPSTREAM_HUB] = "hub",
                                    [CONFIG_UPSTREAM_ZTSERVE] = "ztserve",
                                    [CONFIG_UPSTREAM_S3] = "s3"};

static void write_upstream(struct json *json, const struct server *server, unsigned index)
{
    const struct config_upstream *upstream = &server->config->upstreams[index];
    struct mirror_report report;

    mirror_report(server->store, index, &report);
    json_object_begin(json);
    json_string_member(json, "name", upstream->name);
    json_string_member(json, "kind", kinds[upstream->kind]);
    json_string_member(json, "url", upstream->url);
    write_globs(json, upstream->match);
    write_state(json, &report.upstream);
    json_uint_member(json, "repositories", report.repositories);
    json_uint_member(json, "requests", report.upstream.requests);
    json_uint_member(json, "lookups", report.upstream.lookups);
    json_uint_member(json, "failures", report.upstream.failures);
    json_uint_member(json, "hits", report.hits);
    json_uint_member(json, "misses", report.misses);
    json_uint_member(json, "fetched_bytes", report.upstream.fetched_bytes);
    json_uint_member(json, "saved_bytes", report.saved_bytes);
    json_uint_member(json, "wrong_files", report.wrong_files);
    json_uint_member(json, "cache_used_bytes", report.cache_used_bytes);
    json_uint_member(json, "cache_limit_bytes", report.cache_limit_bytes);
    json_object_end(json);
}

enum outcome upstreams_list(struct request *request)
{
    struct json *json;
    bool pretty;

    if (!parameter_switch(request, "pretty", &pretty))
        return OUTCOME_READY;
    json = json_reply_new(request, pretty);
    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_array_member(json, "upstreams");
    for (unsigned i = 0; i < upstream_count(request->server); i++)
        write_upstream(json, request->server, i);
    json_array_end(json);
    json_object_end(json);
    return json_reply_send_now(request, json, 200);
}

/* --- prefetches --- */

struct prefetch {
    unsigned index; /* of the upstream */
    const char *repository;
    const char *revision;
    bool pretty;
};

/* Reads a parameter that may be given once; fallback NULL: it must be. Returns NULL if it has
 * replied. */
static const char *read_text(struct request *request, const char *name, const char *fallback)
{
    struct zt_text value;
    const char *text;

    if (!parameter_once(request, name))
        return NULL;
    if (!request_query(request, name, 0, &value)) {
        if (!request->replied && fallback == NULL)
            (void)problem_reply(request, PROBLEM_INVALID_REQUEST,
                                "the parameter %s is missing, such as ?%s=org/model", name, name);
        return request->replied ? NULL : fallback;
    }
    if (value.length == 0 || memchr(value.bytes, '\0', value.length) != NULL) {
        (void)problem_reply(request, PROBLEM_INVALID_REQUEST, "the parameter %s is empty", name);
        return NULL;
    }
    text = request_copy(request, value.bytes, value.length);
    if (text == NULL)
        (void)problem_reply_no_memory(request);
    return text;
}

static bool find_upstream(struct request *request, unsigned *out_index)
{
    const struct zt_text name = request->names[0];

    for (unsigned i = 0; i < upstream_count(request->server); i++)
        if (zt_text_equal(name, zt_text_from(request->server->config->upstreams[i].name))) {
            *out_index = i;
            return true;
        }
    (void)problem_reply(request, PROBLEM_NOT_FOUND, "there is no upstream of this name");
    return false;
}

/* Returns false after replying that a repository does not come from this upstream. */
static bool comes_from_here(struct request *request, unsigned index, struct zt_text repository)
{
    const unsigned source = mirror_upstream_of(request->server->store, repository);

    assert(index < upstream_count(request->server));
    if (source == index)
        return true;
    if (source == UINT_MAX)
        (void)problem_reply(request, PROBLEM_NOT_FOUND,
                            "the globs of this upstream do not match the repository");
    else
        (void)problem_reply(request, PROBLEM_NOT_FOUND,
                            "this repository is mirrored from the upstream %s",
                            request->server->config->upstreams[source].name);
    return false;
}

/* Returns false if it has replied. Clients learn nothing about repositories that they may not see.
 * Only those that may see all of one can make the server download or remove it. */
static bool read_prefetch(struct request *request, struct prefetch *prefetch)
{
    struct zt_text repository;
    bool reads;

    if (!find_upstream(request, &prefetch->index) ||
        !parameter_switch(request, "pretty", &prefetch->pretty))
        return false;
    prefetch->repository = read_text(request, "repository", NULL);
    if (prefetch->repository == NULL)
        return false;
    prefetch->revision = read_text(request, "revision", REVISION_DEFAULT);
    if (prefetch->revision == NULL)
        return false;
    repository = zt_text_from(prefetch->repository);
    reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    if (!(reads && authorize_sees_folder(request, repository)) &&
        authorize_refuse_folder(request, repository))
        return false;
    return comes_from_here(request, prefetch->index, repository);
}

static const char *word_of(enum mirror_prefetch_state state)
{
    static const char *const words[] = {[MIRROR_PREFETCH_LISTING] = "listing",
                                        [MIRROR_PREFETCH_FETCHING] = "fetching",
                                        [MIRROR_PREFETCH_DONE] = "done",
                                        [MIRROR_PREFETCH_FAILED] = "failed"};

    assert(state <= MIRROR_PREFETCH_FAILED);
    return words[state];
}

static enum outcome send_progress(struct request *request, const struct prefetch *prefetch,
                                  const struct mirror_prefetch_report *report, unsigned status)
{
    struct json *json = json_reply_new(request, prefetch->pretty);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_string_member(json, "upstream", request->server->config->upstreams[prefetch->index].name);
    json_string_member(json, "repository", report->repository);
    json_string_member(json, "revision", report->revision);
    json_string_member(json, "state", word_of(report->state));
    if (report->commit[0] != '\0')
        json_string_member(json, "commit", report->commit);
    json_uint_member(json, "files", report->file_count);
    json_uint_member(json, "files_done", report->files_done);
    json_uint_member(json, "bytes", report->size_bytes);
    json_uint_member(json, "bytes_done", report->bytes_here);
    if (report->state == MIRROR_PREFETCH_FAILED)
        json_string_member(json, "error", report->error);
    json_object_end(json);
    return json_reply_send_now(request, json, status);
}

static enum outcome report_prefetch(struct request *request, const struct prefetch *prefetch,
                                    unsigned status)
{
    struct mirror_prefetches *prefetches =
        mirror_prefetches_of(request->server->store, prefetch->index);
    struct mirror_prefetch_report *report = request_allocate(request, sizeof(*report));

    if (report == NULL)
        return problem_reply_no_memory(request);
    if (!mirror_prefetch_report(prefetches, prefetch->repository, prefetch->revision, report))
        return problem_reply(request, PROBLEM_NOT_FOUND,
                             "this revision was not prefetched since the server started");
    return send_progress(request, prefetch, report, status);
}

enum outcome prefetch_get(struct request *request)
{
    struct prefetch prefetch;

    return read_prefetch(request, &prefetch) ? report_prefetch(request, &prefetch, 200)
                                             : OUTCOME_READY;
}

enum outcome prefetch_post(struct request *request)
{
    struct prefetch prefetch;
    struct zt_error error;
    enum zt_status status;

    if (!read_prefetch(request, &prefetch))
        return OUTCOME_READY;
    status = mirror_prefetch_begin(mirror_prefetches_of(request->server->store, prefetch.index),
                                   prefetch.repository, prefetch.revision, &error);
    if (status == ZT_LIMIT)
        return problem_reply_error_as(request, PROBLEM_OVERLOADED, &error);
    if (status == ZT_ARGUMENT)
        return problem_reply_error_as(request, PROBLEM_INVALID_REQUEST, &error);
    if (status != ZT_OK)
        return problem_reply_error(request, &error);
    return report_prefetch(request, &prefetch, 202);
}

/* --- mirrored repositories --- */

static void write_repository(struct json *json, const struct mirror_repository_report *report)
{
    assert(report->verified_count <= report->file_count);
    json_object_begin(json);
    json_string_member(json, "repository", report->name);
    json_string_member(json, "commit", report->commit);
    if (report->modified_ns != 0) {
        json_key_string(json, "modified");
        manifest_write_time(json, report->modified_ns);
    }
    if (report->checked_s != 0)
        manifest_write_seconds(json, "checked", report->checked_s);
    if (report->is_gone) {
        json_key_string(json, "gone_upstream");
        json_raw(json, "true", strlen("true"));
    }
    json_uint_member(json, "files", report->file_count);
    json_uint_member(json, "files_verified", report->verified_count);
    json_uint_member(json, "bytes", report->size_bytes);
    json_uint_member(json, "bytes_verified", report->verified_bytes);
    json_object_end(json);
}

enum outcome repositories_get(struct request *request)
{
    struct mirror_repository_report *list;
    struct json *json;
    unsigned index;
    size_t count;
    bool pretty;

    if (!find_upstream(request, &index) || !parameter_switch(request, "pretty", &pretty))
        return OUTCOME_READY;
    json = json_reply_new(request, pretty);
    if (json == NULL)
        return OUTCOME_READY;
    if (!mirror_repositories(request->server->store, index, &list, &count))
        return problem_reply_no_memory(request);
    json_object_begin(json);
    json_array_member(json, "repositories");
    for (size_t i = 0; i < count; i++)
        if (authorize_sees_folder(request, zt_text_from(list[i].name)))
            write_repository(json, &list[i]);
    json_array_end(json);
    json_object_end(json);
    free(list);
    return json_reply_send_now(request, json, 200);
}

/* An offline mirror may have the only copy, so clients without a token need a writable server. */
enum outcome repositories_delete(struct request *request)
{
    struct prefetch removed;
    struct zt_error error;
    enum zt_status status;

    if (!request->server->config->writable && request->grant == NULL)
        return problem_reply(request, PROBLEM_READ_ONLY,
                             "removing a mirrored repository needs a token with the scope write, "
                             "or a writable server");
    if (!read_prefetch(request, &removed))
        return OUTCOME_READY;
    status = mirror_remove(request->server->store, removed.index, removed.repository, &error);
    if (status == ZT_NOT_FOUND)
        return problem_reply_error_as(request, PROBLEM_NOT_FOUND, &error);
    if (status != ZT_OK)
        return problem_reply_error(request, &error);
    request->reply.status = 204;
    return OUTCOME_READY;
}

/* --- metrics and readiness --- */

struct family {
    const char *name;
    const char *type;
    const char *help;
    const char *labels; /* after the upstream's */
    uint64_t (*value)(const struct mirror_report *report);
};

static uint64_t requests(const struct mirror_report *report)
{
    return report->upstream.requests;
}

static uint64_t lookups(const struct mirror_report *report)
{
    return report->upstream.lookups;
}

static uint64_t failures(const struct mirror_report *report)
{
    return report->upstream.failures;
}

static uint64_t fetched_bytes(const struct mirror_report *report)
{
    return report->upstream.fetched_bytes;
}

static uint64_t saved_bytes(const struct mirror_report *report)
{
    return report->saved_bytes;
}

static uint64_t hits(const struct mirror_report *report)
{
    return report->hits;
}

static uint64_t misses(const struct mirror_report *report)
{
    return report->misses;
}

static uint64_t wrong_files(const struct mirror_report *report)
{
    return report->wrong_files;
}

static uint64_t away(const struct mirror_report *report)
{
    return report->upstream.is_away && !report->upstream.is_offline;
}

static uint64_t used_bytes(const struct mirror_report *report)
{
    return report->cache_used_bytes;
}

static uint64_t limit_bytes(const struct mirror_report *report)
{
    return report->cache_limit_bytes;
}

static uint64_t repositories(const struct mirror_report *report)
{
    return report->repositories;
}

/* Lines of one name follow each other; only the first has a type and a meaning. */
static const struct family families[] = {
    {"ztserve_upstream_requests_total", "counter", "Requests to the upstream, retries included.",
     "", requests},
    {"ztserve_upstream_lookups_total", "counter",
     "Commits and lists of files that the upstream was asked for.", "", lookups},
    {"ztserve_upstream_failures_total", "counter",
     "Requests that the upstream did not answer usefully.", "", failures},
    {"ztserve_upstream_fetched_bytes_total", "counter",
     "Bytes of files that were fetched from the upstream.", "", fetched_bytes},
    {"ztserve_upstream_saved_bytes_total", "counter",
     "Bytes read from its files beyond those fetched: each fetched byte counts once.", "",
     saved_bytes},
    {"ztserve_upstream_files_opened_total", "counter",
     "Mirrored files that were opened, by whether all of the file was here.", ",result=\"hit\"",
     hits},
    {"ztserve_upstream_files_opened_total", NULL, NULL, ",result=\"miss\"", misses},
    {"ztserve_upstream_wrong_files_total", "counter",
     "Files from the upstream whose digest was not the stated one.", "", wrong_files},
    {"ztserve_upstream_away", "gauge", "Whether the upstream does not answer.", "", away},
    {"ztserve_upstream_repositories", "gauge", "Repositories of the upstream that are known here.",
     "", repositories},
    {"ztserve_upstream_cache_used_bytes", "gauge", "Disk space of the upstream's files.", "",
     used_bytes},
    {"ztserve_upstream_cache_limit_bytes", "gauge",
     "Maximum disk space of the upstream's files; 0 if only the reserve limits it.", "",
     limit_bytes},
};

void upstreams_metrics_write(FILE *stream, const struct server *server)
{
    struct mirror_report reports[CONFIG_UPSTREAMS_MAX];
    const unsigned count = upstream_count(server);
    char labels[CONFIG_UPSTREAM_NAME_SIZE + 64];

    for (unsigned i = 0; i < count; i++)
        mirror_report(server->store, i, &reports[i]);
    for (size_t line = 0; count > 0 && line < sizeof(families) / sizeof(families[0]); line++) {
        const struct family *family = &families[line];

        if (family->type != NULL)
            metrics_write_family(stream, family->name, family->type, family->help);
        for (unsigned i = 0; i < count; i++) {
            snprintf(labels, sizeof(labels), "upstream=\"%s\"%s", server->config->upstreams[i].name,
                     family->labels);
            metrics_write_sample(stream, family->name, labels, family->value(&reports[i]));
        }
    }
}

const char *upstreams_state(const struct server *server)
{
    const unsigned count = upstream_count(server);
    struct mirror_report report;

    for (unsigned i = 0; i < count; i++) {
        mirror_report(server->store, i, &report);
        if (away(&report) != 0)
            return "away";
    }
    return count > 0 ? "reached" : NULL;
}
