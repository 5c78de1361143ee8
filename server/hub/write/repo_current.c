/* Waits on the worker, because listing a repository takes only a short time. */
#include "hub/write/repo_current.h"

#include <time.h>

#include "base/server.h"
#include "store/store_here.h"

#define WAIT_NS   2000000
#define WAITS_MAX 30000

static void wait_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = WAIT_NS};

    nanosleep(&moment, NULL);
}

enum hub_found repo_current_look(struct server *server, struct zt_text name,
                                 struct zt_text revision, struct hub_version **out_version,
                                 struct zt_error *error)
{
    struct hub_lookup lookup = {.name = name, .revision = revision};
    unsigned waits = 0;

    store_here_begin();
    hub_repos_find(server->hub, &lookup);
    for (; lookup.found == HUB_BUSY && waits < WAITS_MAX; waits++) {
        wait_a_moment();
        hub_repos_find(server->hub, &lookup);
    }
    store_here_end();
    *out_version = lookup.version;
    if (lookup.found == HUB_BUSY)
        zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the repository is still being listed");
    else
        *error = lookup.error;
    return lookup.found;
}

bool repo_current_find(struct server *server, struct zt_text name, struct hub_version **out_version,
                       struct zt_error *error)
{
    const enum hub_found found =
        repo_current_look(server, name, zt_text_from("main"), out_version, error);

    return found != HUB_FAILED && found != HUB_BUSY;
}

bool repo_current_is_absent(const struct server *server, const struct hub_version *version)
{
    return version == NULL && !store_needs_claims(server->store);
}

const struct hub_file *repo_current_file(const struct hub_version *version, struct zt_text path)
{
    const struct hub_file *file = hub_version_find(version, path);

    return file != NULL && file->view == NULL ? file : NULL;
}

bool repo_current_has_bytes(const struct hub_file *file)
{
    return file->view == NULL && file->has_sha256 && !file->is_stated;
}

bool repo_current_may_read_bytes(const struct request *request, const char *repo,
                                 const struct hub_file *file)
{
    return repo_current_has_bytes(file) && hub_sees_file(request, zt_text_from(repo), file);
}
