/* Asks the upstreams in the background about repositories of unknown models, so that neither the
 * catalog's thread nor an event loop waits. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "store/mirror/mirror_store.h"
#include "zt/digest.h"

/* Repositories that are asked for at the same time, and how long an answer is good for the requests
 * that waited for it. */
#define RESOLVING_MAX 256u
#define RESOLVED_MS   1000

struct mirror_resolving {
    struct job job; /* first */
    struct mirror *mirror;
    struct mirror_resolving *next;
    struct waiter *waiters;
    char repository[UPSTREAM_REPOSITORY_SIZE];
};

/* --- with sought_lock --- */

static bool was_resolved(const struct mirror *mirror, uint64_t hash)
{
    const size_t at = hash % MIRROR_SOUGHT;

    return mirror->resolved[at].hash == hash &&
           clock_ms() - mirror->resolved[at].at_ms < RESOLVED_MS;
}

static struct mirror_resolving *find(struct mirror *mirror, const char *repository)
{
    struct mirror_resolving *resolving = mirror->resolving;

    while (resolving != NULL && strcmp(resolving->repository, repository) != 0)
        resolving = resolving->next;
    return resolving;
}

/* --- the job --- */

static struct waiter *end(struct mirror_resolving *resolving)
{
    struct mirror *mirror = resolving->mirror;
    struct mirror_resolving **link = &mirror->resolving;
    const uint64_t hash = zt_xxh3(resolving->repository, strlen(resolving->repository));
    struct waiter *waiters;

    pthread_mutex_lock(&mirror->sought_lock);
    while (*link != resolving)
        link = &(*link)->next;
    *link = resolving->next;
    mirror->resolving_count--;
    mirror->resolved[hash % MIRROR_SOUGHT].hash = hash;
    mirror->resolved[hash % MIRROR_SOUGHT].at_ms = clock_ms();
    waiters = resolving->waiters;
    pthread_mutex_unlock(&mirror->sought_lock);
    return waiters;
}

static void run_resolving(struct job *job)
{
    struct mirror_resolving *resolving = (struct mirror_resolving *)job;
    struct mirror *mirror = resolving->mirror;
    struct mirror_found found;
    struct zt_error error;
    const enum zt_status status =
        mirror_find_revision(mirror, resolving->repository, zt_text_from("main"), &found, &error);

    if (status == ZT_OK)
        mirror_version_release(found.version);
    else if (status == ZT_UNAVAILABLE)
        mirror_keep_failure(mirror, resolving->repository, &error);
    waiters_wake(end(resolving));
}

static void end_resolving(struct job *job)
{
    free(job);
}

static struct mirror_resolving *begin(struct mirror *mirror, const char *repository,
                                      uint64_t client)
{
    struct mirror_resolving *resolving =
        mirror->resolving_count < RESOLVING_MAX ? calloc(1, sizeof(*resolving)) : NULL;

    if (resolving == NULL)
        return NULL;
    resolving->job = (struct job){.run = run_resolving, .done = end_resolving, .client = client};
    resolving->mirror = mirror;
    strcpy(resolving->repository, repository);
    resolving->next = mirror->resolving;
    mirror->resolving = resolving;
    mirror->resolving_count++;
    return resolving;
}

bool mirror_resolve(struct store *store, struct zt_text name, struct waiter *waiter)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_resolving *resolving = NULL;
    struct zt_error error;
    char repository[UPSTREAM_REPOSITORY_SIZE];
    bool is_over;
    bool is_new = false;

    if (!mirror_unknown_repository(mirror, name, repository))
        return false;
    pthread_mutex_lock(&mirror->sought_lock);
    is_over = was_resolved(mirror, zt_xxh3(repository, strlen(repository)));
    if (!is_over)
        resolving = find(mirror, repository);
    is_new = !is_over && resolving == NULL;
    if (is_new)
        resolving = begin(mirror, repository, waiter->client);
    if (resolving != NULL) {
        waiter->next = resolving->waiters;
        resolving->waiters = waiter;
    }
    pthread_mutex_unlock(&mirror->sought_lock);
    if (resolving != NULL && is_new)
        workers_submit_long(mirror->waiters, &resolving->job);
    if (resolving == NULL && !is_over) {
        zt_fail(&error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                "too many repositories are being looked up upstream");
        mirror_keep_failure(mirror, repository, &error);
    }
    return resolving != NULL;
}
