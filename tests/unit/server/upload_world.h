/* A folder of models, the parts of a server over it, and the parts that uploads need. */
#ifndef UPLOAD_WORLD_H
#define UPLOAD_WORLD_H

#include "model_world.h"

#include <dirent.h>

#include "upload/shared/kept_uploads.h"
#include "upload/tus/resumable.h"
#include "upload/writer/writer_session.h"

static const struct kept_kind *const upload_kinds[] = {&writer_kind, &resumable_kind, NULL};

static inline void uploads_start(struct world *world)
{
    struct server *server = &world->server;

    server->registry = registry_new(60);
    server->kept = kept_uploads_new(server, upload_kinds);
    assert_non_null(server->registry);
    assert_non_null(server->kept);
}

static inline int uploads_set_up(void **state)
{
    int failed = world_set_up(state);
    struct world *world = *state;

    world->config.writable = true;
    uploads_start(world);
    return failed;
}

/* What workers are still doing ends first. */
static inline void uploads_stop(struct world *world)
{
    struct server *server = &world->server;

    workers_stop(server->workers);
    server->workers = workers_start(2);
    kept_uploads_free(server->kept);
    registry_free(server->registry);
}

static inline int uploads_tear_down(void **state)
{
    struct world *world = *state;

    uploads_stop(world);
    world_command(world, "rm -rf .ztserve-uploads");
    return world_tear_down(state);
}

/* Ends the server's parts and starts them again over the same folder. */
static inline void uploads_restart(struct world *world)
{
    uploads_stop(world);
    world_stop(world);
    world_start(world);
    uploads_start(world);
    kept_uploads_restore(world->server.kept);
}

/* How many descriptors this process has open. */
static inline unsigned open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static inline struct writer_session *writer_find(const struct world *world, const char *id)
{
    return (struct writer_session *)kept_uploads_find(world->server.kept, UPLOAD_KIND_WRITER,
                                                      zt_text_from(id));
}

static inline struct resumable *resumable_find(const struct world *world, const char *id)
{
    return (struct resumable *)kept_uploads_find(world->server.kept, UPLOAD_KIND_RESUMABLE,
                                                 zt_text_from(id));
}

#endif
