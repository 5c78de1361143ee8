/* An array, the youngest last. */
#include "hub/created_repos.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "hub/hub_names.h"

/* About 200 bytes each. Users create fewer within a day or two. */
#define CREATED_MAX 1000

struct created_repo {
    int64_t made_ms;
    char name[HUB_REPO_SIZE];
};

struct created_repos {
    pthread_mutex_t lock; /* guards the following */
    struct created_repo *repos;
    size_t count;
    size_t capacity;
};

struct created_repos *created_repos_new(void)
{
    struct created_repos *created = calloc(1, sizeof(*created));

    if (created == NULL || pthread_mutex_init(&created->lock, NULL) == 0)
        return created;
    free(created);
    return NULL;
}

void created_repos_free(struct created_repos *created)
{
    if (created == NULL)
        return;
    pthread_mutex_destroy(&created->lock);
    free(created->repos);
    free(created);
}

/* Returns the index of a name; count if it is missing. */
static size_t find(const struct created_repos *created, const char *name)
{
    size_t at = 0;

    while (at < created->count && strcmp(created->repos[at].name, name) != 0)
        at++;
    return at;
}

static void drop(struct created_repos *created, size_t at)
{
    assert(at < created->count);
    created->count--;
    memmove(&created->repos[at], &created->repos[at + 1],
            (created->count - at) * sizeof(created->repos[0]));
}

enum zt_status created_repos_add(struct created_repos *created, const char *name,
                                 struct zt_error *error)
{
    struct created_repo repo = {.made_ms = clock_ms()};
    enum zt_status status;
    size_t at;

    assert(strlen(name) < sizeof(repo.name));
    strcpy(repo.name, name);
    pthread_mutex_lock(&created->lock);
    at = find(created, name);
    if (at < created->count)
        drop(created, at);
    else if (created->count == CREATED_MAX)
        drop(created, 0);
    status = zt_array_reserve(&created->repos, &created->capacity, created->count + 1, sizeof(repo),
                              CREATED_MAX);
    if (status == ZT_OK)
        created->repos[created->count++] = repo;
    pthread_mutex_unlock(&created->lock);
    return status == ZT_OK ? ZT_OK : zt_fail_memory(error, "a repository");
}

bool created_repos_has(struct created_repos *created, const char *name, int64_t within_ms)
{
    bool has;
    size_t at;

    pthread_mutex_lock(&created->lock);
    at = find(created, name);
    has = at < created->count && clock_ms() - created->repos[at].made_ms < within_ms;
    pthread_mutex_unlock(&created->lock);
    return has;
}
