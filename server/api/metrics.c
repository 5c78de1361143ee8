/* GET /metrics: the counters and the current state of all parts of the server, in the text format
 * of Prometheus, version 0.0.4. A worker writes it, because looking at all models takes a while (30
 * ms for 10,000). It is an ordinary job, because long jobs may wait behind hours of hashing. */
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "access/access.h"
#include "api/handlers.h"
#include "base/process_figures.h"
#include "catalog/catalog.h"
#include "disk/open_files.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"
#include "http/exchange/request_metrics.h"
#include "http/limits/admission.h"
#include "http/tls/tls.h"
#include "store/staging.h"
#include "store/store.h"
#include "store/versions/versions_store.h"
#include "verify/verifier.h"

#define MEDIA_TYPE "text/plain; version=0.0.4; charset=utf-8"
/* Maximum number of models held at once. */
#define MODELS_AT_ONCE 256

struct page {
    char *text;
    size_t length;
    bool is_written;
};

static void gauge(FILE *stream, const char *name, const char *help, uint64_t value)
{
    metrics_write_family(stream, name, "gauge", help);
    metrics_write_sample(stream, name, NULL, value);
}

/* --- models --- */

struct models {
    uint64_t readable;
    uint64_t unreadable;
    uint64_t objects;
    uint64_t open_files;
    struct verifier_tally components;
};

static void add_model(struct models *models, const struct generation *generation)
{
    if (!atomic_load(&generation->parked))
        models->open_files += generation_open_files(generation);
    if (generation->model == NULL) {
        models->unreadable++;
        return;
    }
    models->readable++;
    models->objects += generation->model->object_count;
    verifier_tally(generation, &models->components);
}

/* Adds the models that pass the filter. */
static void add_models(struct models *models, struct catalog *catalog, struct name_filter filter)
{
    struct catalog_page page = {
        .prefix = {"", 0}, .after = {"", 0}, .limit = MODELS_AT_ONCE, .filter = filter};
    struct generation *found[MODELS_AT_ONCE];
    struct generation *last = NULL;
    struct catalog_page_end end = {true, NULL};

    while (end.more) {
        const size_t count = catalog_list(catalog, &page, found, &end);

        /* Released only now, because its name was needed. */
        generation_release(last);
        last = count > 0 ? found[count - 1] : NULL;
        if (last != NULL)
            page.after = generation_name(last);
        end.more = end.more && count > 0;
        for (size_t i = 0; i < count; i++) {
            add_model(models, found[i]);
            if (found[i] != last)
                generation_release(found[i]);
        }
    }
    generation_release(last);
}

static void write_components(FILE *stream, const struct verifier_tally *tally)
{
    static const char name[] = "ztserve_components";

    metrics_write_family(stream, name, "gauge", "Components of the models, by verification state.");
    metrics_write_sample(stream, name, "state=\"unchecked\"", tally->unchecked);
    metrics_write_sample(stream, name, "state=\"verified\"", tally->verified);
    metrics_write_sample(stream, name, "state=\"undigested\"", tally->undigested);
    metrics_write_sample(stream, name, "state=\"unsupported\"", tally->unsupported);
    metrics_write_sample(stream, name, "state=\"failed\"", tally->failed);
}

/* Models that the client may not see are not counted: the numbers would reveal that others
 * exist. */
static void write_models(FILE *stream, const struct server *server, struct name_filter filter)
{
    struct models models = {0};
    uint64_t space;
    size_t open_most;
    const size_t all_open_files = catalog_open_files(server->catalog, &open_most);

    add_models(&models, server->catalog, filter);
    gauge(stream, "ztserve_models", "Models that can be read.", models.readable);
    gauge(stream, "ztserve_models_unreadable", "Models whose file cannot be read.",
          models.unreadable);
    gauge(stream, "ztserve_model_files_open", "Files of models that are open.",
          filter.passes == NULL ? all_open_files : models.open_files);
    gauge(stream, "ztserve_model_files_open_limit",
          "Maximum number of files that stay open without readers.", open_most);
    gauge(stream, "ztserve_objects", "Objects of the models.", models.objects);
    write_components(stream, &models.components);
    gauge(stream, "ztserve_catalog_loaded", "Whether the first scan of the folder has ended.",
          catalog_is_loaded(server->catalog));
    if (staging_space(server->store->staging, &space, NULL) == ZT_OK)
        gauge(stream, "ztserve_upload_available_bytes",
              "Disk space that uploads may use, upload.reserve_bytes deducted.", space);
}

/* --- clients, connections, workers --- */

static void write_refusals(FILE *stream)
{
    static const char name[] = "ztserve_auth_failures_total";
    char labels[64];

    metrics_write_family(stream, name, "counter",
                         "Requests refused with 401, or with 403 for lack of rights.");
    for (enum access_failure failure = 0; failure < ACCESS_FAILURES; failure++) {
        snprintf(labels, sizeof(labels), "reason=\"%s\"", access_failure_name(failure));
        metrics_write_sample(stream, name, labels, access_failures(failure));
    }
}

static void write_connections(FILE *stream, const struct server *server)
{
    unsigned surplus;
    unsigned open = admission_count(&surplus);

    gauge(stream, "ztserve_connections", "Open connections.", open);
    gauge(stream, "ztserve_connections_limit", "Maximum number of open connections.",
          open_files_for_connections(server->config));
    gauge(stream, "ztserve_connections_surplus",
          "Connections over the limit that are open until their response is sent.", surplus);
    gauge(stream, "ztserve_draining", "Whether the server is shutting down.",
          atomic_load(&server->draining));
}

static void write_certificate(FILE *stream, const struct server *server)
{
    if (server->tls != NULL)
        gauge(stream, "ztserve_tls_certificate_expiry_timestamp_seconds",
              "When the current TLS certificate expires.", (uint64_t)tls_expires_s(server->tls));
}

static void write_jobs(FILE *stream, const char *name, const char *help,
                       const size_t counts[WORKERS_KINDS])
{
    char labels[32];

    metrics_write_family(stream, name, "gauge", help);
    for (unsigned kind = 0; kind < WORKERS_KINDS; kind++) {
        snprintf(labels, sizeof(labels), "kind=\"%s\"", workers_kind_name(kind));
        metrics_write_sample(stream, name, labels, counts[kind]);
    }
}

static void write_workers(FILE *stream, const struct server *server)
{
    struct workers_load load;

    workers_load(server->workers, &load);
    gauge(stream, "ztserve_workers", "Worker threads.", load.threads);
    write_jobs(stream, "ztserve_worker_jobs_running", "Jobs that workers are running.",
               load.running);
    write_jobs(stream, "ztserve_worker_jobs_queued", "Jobs that wait for a worker.", load.queued);
}

/* --- a bucket --- */

static void set_store(const struct server *server)
{
    struct store_report report;

    if (!store_needs_claims(server->store))
        return;
    server->store->search->report(server->store, &report);
    metric_set(METRIC_CACHE_USED_BYTES, (int64_t)report.cache_used_bytes);
    metric_set(METRIC_CACHE_LIMIT_BYTES, (int64_t)report.cache_limit_bytes);
    metric_set(METRIC_STORE_AWAY, report.is_unreachable);
    if (report.has_list)
        metric_set(METRIC_STORE_LIST_AGE, (int64_t)report.list_age_s);
    metric_set(METRIC_STORE_RUNNING, report.requests_running);
}

/* --- versions --- */

static void write_versions(FILE *stream, const struct server *server)
{
    struct history *history = store_history(server->store);
    struct history_report report;

    if (history == NULL)
        return;
    history_report(history, &report);
    gauge(stream, "ztserve_versions_repositories", "Repositories with commits.",
          report.repositories);
    gauge(stream, "ztserve_versions_commits", "Commits that are kept.", report.commits);
    gauge(stream, "ztserve_versions_kept_files", "Replaced and removed files that are kept.",
          report.kept_files);
    gauge(stream, "ztserve_versions_kept_bytes", "Size of these files.", report.kept_bytes);
    metrics_write_family(stream, "ztserve_versions_removed_files_total", "counter",
                         "Kept files that were deleted because no commit needs them.");
    metrics_write_sample(stream, "ztserve_versions_removed_files_total", NULL,
                         report.removed_files);
}

/* --- the page --- */

static void write_page(FILE *stream, const struct request *request)
{
    const struct server *server = request->server;

    metrics_write_family(stream, "ztserve_build_info", "gauge", "The version of the program.");
    metrics_write_sample(stream, "ztserve_build_info", "version=\"" ZTSERVE_VERSION "\"", 1);
    request_metrics_write(stream);
    set_store(server);
    metrics_write(stream);
    upstreams_metrics_write(stream, server);
    write_refusals(stream);
    write_connections(stream, server);
    write_certificate(stream, server);
    write_models(stream, server, authorize_filter(request));
    write_workers(stream, server);
    write_versions(stream, server);
    process_figures_write(stream);
}

static void free_text(void *page)
{
    free(((struct page *)page)->text);
}

/* On a worker. */
static void write_text(struct request *request)
{
    struct page *page = request->context;
    FILE *stream = open_memstream(&page->text, &page->length);

    if (stream == NULL)
        return;
    write_page(stream, request);
    page->is_written = ferror(stream) == 0;
    if (fclose(stream) != 0)
        page->is_written = false;
}

enum outcome metrics_get(struct request *request)
{
    struct representation *reply = &request->reply;
    struct page *page = request->context;

    if (page == NULL) {
        page = request_new_context(request, sizeof(*page));
        if (page == NULL)
            return OUTCOME_READY;
        request_hold(request, page, free_text);
        return request_work_here(request, write_text);
    }
    if (!page->is_written)
        return problem_reply_no_memory(request);
    reply->media_type = MEDIA_TYPE;
    reply->cache_control = "no-store";
    representation_memory(reply, page->text, page->length);
    return OUTCOME_READY;
}
