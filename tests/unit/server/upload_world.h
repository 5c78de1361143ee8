/* A folder of models, the parts of a server over it, and the parts that uploads need. */
#ifndef UPLOAD_WORLD_H
#define UPLOAD_WORLD_H

#include "model_world.h"

#include "hub/write/staged_objects.h"
#include "s3/s3api_meta.h"
#include "s3/write/s3api_upload.h"
#include "store/staging.h"
#include "upload/shared/kept_uploads.h"
#include "upload/tus/resumable.h"
#include "upload/writer/writer_journal.h"

static const struct kept_kind *const upload_kinds[] = {&writer_kind, &resumable_kind, &staged_kind,
                                                       &s3api_upload_kind, NULL};

static inline void uploads_start(struct world *world)
{
    struct server *server = &world->server;

    server->registry = registry_new(60);
    server->s3_meta = s3api_meta_new(&world->config);
    server->kept = kept_uploads_new(server, upload_kinds);
    assert_non_null(server->registry);
    assert_non_null(server->s3_meta);
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
    s3api_meta_free(server->s3_meta);
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

static inline struct writer_session *writer_find(const struct world *world, const char *id)
{
    return (struct writer_session *)kept_uploads_find(world->server.kept, UPLOAD_KIND_WRITER,
                                                      zt_text_from(id));
}

/* Gives a session back, and finds it in the server that is started again. */
static inline struct writer_session *writer_after_restart(struct world *world,
                                                          struct writer_session *session,
                                                          const char *id)
{
    kept_upload_release(session);
    uploads_restart(world);
    session = writer_find(world, id);
    assert_non_null(session);
    return session;
}

static inline struct resumable *resumable_find(const struct world *world, const char *id)
{
    return (struct resumable *)kept_uploads_find(world->server.kept, UPLOAD_KIND_RESUMABLE,
                                                 zt_text_from(id));
}

/* The bytes of a model as world_model makes it; returns their count. */
static inline size_t world_model_bytes(const struct world *world, bool sound, uint8_t *out_bytes,
                                       size_t size)
{
    char path[256];
    ssize_t length;
    int descriptor;

    world_model(world, "made.tmp", sound);
    snprintf(path, sizeof(path), "%s/made.tmp", world->root);
    descriptor = open(path, O_RDONLY);
    assert_true(descriptor >= 0);
    length = read(descriptor, out_bytes, size);
    assert_in_range(length, 1, size - 1);
    close(descriptor);
    world_command(world, "rm made.tmp");
    return (size_t)length;
}

/* A streaming writer's session for model "m", on disk and in the table; the caller's. */
static inline struct writer_session *writer_begin(struct world *world, const char *id,
                                                  enum zt_target target)
{
    struct writer_session *session = writer_session_new(&world->server, id);
    struct staged_file *data;
    struct zt_error error;

    assert_non_null(session);
    strcpy(session->kept.entry.model, "m");
    session->target = target;
    writer_places_init(&session->places, zt_target_places(target).data_alignment);
    assert_true(writer_session_set_attributes(session, (struct zt_text){"", 0}));
    assert_ok(staging_folder_make(world->server.store->staging, id, &error));
    assert_ok(
        staging_folder_create(world->server.store->staging, id, WRITER_DATA, 0, &data, &error));
    staged_file_close(data);
    assert_true(writer_journal_begin(session, &error));
    assert_true(kept_uploads_add(&session->kept));
    return session;
}

#define WITH_UPLOADS(name) TEST_IN_WORLD(name, uploads_set_up, uploads_tear_down)

#endif
