/* A store in a folder, and a server that knows no more than that, its workers and the digests of
 * its files. */
#ifndef TREE_WORLD_H
#define TREE_WORLD_H

#include "tests.h"

#include <time.h>
#include <unistd.h>

#include "base/server.h"
#include "base/workers.h"
#include "digests/file_hashes.h"
#include "store/store.h"
#include "tree/tree_listing.h"

struct world {
    char root[64];
    struct config config;
    struct server server;
};

static inline void command(const struct world *world, const char *commands)
{
    run_in(world->root, commands);
}

static inline void begin(struct world *world)
{
    atomic_store(&world->server.draining, false);
    world->server.workers = workers_start(4);
    assert_non_null(world->server.workers);
    world->server.hash_queue = hash_queue_new(&world->server, 1);
    assert_non_null(world->server.hash_queue);
    world->server.hashes = file_hashes_new(&world->server);
    assert_non_null(world->server.hashes);
}

static inline void end(struct world *world)
{
    atomic_store(&world->server.draining, true);
    workers_stop(world->server.workers);
    hash_queue_free(world->server.hash_queue);
    file_hashes_free(world->server.hashes);
}

/* What another process knows. */
static inline void restart(struct world *world)
{
    end(world);
    begin(world);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->root, "/tmp/zt-test-tree-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    command(world, "mkdir root state outside");
    snprintf(world->config.state.dir, sizeof(world->config.state.dir), "%s/state", world->root);
    strcat(world->root, "/root");
    assert_ok(store_local_open(world->root, 0, &world->server.store, NULL));
    world->server.config = &world->config;
    begin(world);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;

    end(world);
    world->server.store->ops->close(world->server.store);
    strrchr(world->root, '/')[0] = '\0';
    command(world, "chmod -R u+rwx . && rm -r root state outside");
    rmdir(world->root);
    free(world);
    return 0;
}

static inline struct file_identity identity_of(const struct world *world, const char *path)
{
    struct store *store = world->server.store;
    struct file_identity identity;
    struct zt_source *source;

    assert_ok(store->ops->open(store, path, &source, &identity, NULL));
    zt_source_close(source);
    return identity;
}

#define WITH_TREE(name) TEST_IN_WORLD(name, set_up, tear_down)

#endif
