/* A folder of models and the parts of a server over it, for the tests of the rooms above. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "tests.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "catalog/catalog.h"
#include "container.h"
#include "derived/decoded.h"
#include "derived/manifest_json.h"
#include "digests/file_hashes.h"
#include "verify/verifier.h"
#include "versions/versions_open.h"
#include "zt/digest.h"

struct world {
    char root[64];
    struct config config;
    struct server server;
};

static inline void world_start(struct world *world)
{
    struct server *server = &world->server;
    struct catalog_observer observer;

    memset(server, 0, sizeof(*server));
    server->config = &world->config;
    assert_ok(store_local_open(world->root, 0, &server->store, NULL));
    assert_ok(versions_open(server, NULL));
    server->workers = workers_start(2);
    server->hash_queue = hash_queue_new(server, 1);
    assert_non_null(server->hash_queue);
    server->hashes = file_hashes_new(server);
    assert_non_null(server->hashes);
    server->verifier = verifier_new(server);
    server->decoded = decoded_cache_new(server);
    server->manifests = manifest_memo_new();
    observer = verifier_observer(server->verifier);
    server->catalog = catalog_new(server, &observer);
    assert_non_null(server->workers);
    assert_non_null(server->verifier);
    assert_non_null(server->decoded);
    assert_non_null(server->manifests);
    assert_non_null(server->catalog);
}

/* Scans the folder, if that was not done, and waits for the end. */
static inline void world_wait_loaded(const struct world *world)
{
    if (!catalog_is_loaded(world->server.catalog))
        catalog_refresh(world->server.catalog);
    AWAIT(catalog_is_loaded(world->server.catalog));
}

static inline void world_load(const struct world *world)
{
    catalog_refresh(world->server.catalog);
    world_wait_loaded(world);
}

static inline struct zt_text text_of(const char *text)
{
    return (struct zt_text){text, strlen(text)};
}

/* What a list begins with, and the name that it comes after. */
struct world_bounds {
    const char *prefix;
    const char *after;
};

/* Lists at most limit models; the caller releases them. */
static inline size_t world_list(const struct world *world, struct world_bounds bounds, size_t limit,
                                struct generation **out_generations, bool *out_more)
{
    const struct catalog_page page = {
        .prefix = text_of(bounds.prefix), .after = text_of(bounds.after), .limit = limit};
    struct catalog_page_end end;
    const size_t count = catalog_list(world->server.catalog, &page, out_generations, &end);

    assert_null(end.reached);
    *out_more = end.more;
    return count;
}

static inline void world_stop(struct world *world)
{
    struct server *server = &world->server;

    verifier_stop(server->verifier);
    decoded_cache_stop(server->decoded);
    workers_stop(server->workers);
    hash_queue_free(server->hash_queue);
    catalog_free(server->catalog);
    decoded_cache_free(server->decoded);
    memo_free(server->manifests);
    verifier_free(server->verifier);
    file_hashes_free(server->hashes);
    server->store->ops->close(server->store);
}

static inline void world_command(const struct world *world, const char *commands)
{
    run_in(world->root, commands);
}

static inline int world_set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    strcpy(world->root, "/tmp/zt-test-model-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    config_defaults(&world->config);
    strcpy(world->config.root, world->root);
    world_start(world);
    *state = world;
    return 0;
}

static inline int world_tear_down(void **state)
{
    struct world *world = *state;

    world_stop(world);
    world_command(world, "chmod -R u+rwX . && rm -rf ./* .ztserve");
    rmdir(world->root);
    free(world);
    return 0;
}

static inline void world_write(const struct world *world, const char *path, const void *bytes,
                               size_t length)
{
    char whole[256];
    int descriptor;

    snprintf(whole, sizeof(whole), "%s/%s", world->root, path);
    descriptor = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), length);
    close(descriptor);
}

/* Overwrites one byte of a file in place, late enough for another time of modification. */
static inline void world_overwrite(const struct world *world, const char *path, off_t offset)
{
    char whole[256];
    char byte;
    int descriptor;

    snprintf(whole, sizeof(whole), "%s/%s", world->root, path);
    descriptor = open(whole, O_RDWR);
    assert_true(descriptor >= 0);
    assert_int_equal(pread(descriptor, &byte, 1, offset), 1);
    byte ^= 1;
    pause_ms(30);
    assert_int_equal(pwrite(descriptor, &byte, 1, offset), 1);
    close(descriptor);
}

/* The digest of the 16 bytes at offset 64 of every file made here. */
static inline void world_digest(const uint8_t *bytes, size_t length,
                                char out_text[ZT_DIGEST_TEXT_SIZE])
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;

    assert_ok(zt_hasher_new(ZT_DIGEST_SHA256, &hasher));
    zt_hasher_update(hasher, bytes, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, out_text);
}

/* A file of three objects of one u8 component "data" each: "a" with the right digest, "b" with that
 * of other bytes (or the right one too, if sound), "c" without a digest, and "d" with one of an
 * unknown kind. */
static inline void world_model(const struct world *world, const char *path, bool sound)
{
    static const char object[] =
        "\"%s\":{\"shape\":[16],\"format\":\"dense\",\"components\":{\"data\":"
        "{\"dtype\":\"u8\",\"offset\":%d,\"length\":16%s%s%s}}}";
    struct container container = {0};
    char a[ZT_DIGEST_TEXT_SIZE];
    char b[ZT_DIGEST_TEXT_SIZE];
    char manifest[2048];
    char objects[4][320];
    uint8_t data[256];

    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i % 251);
    world_digest(data, 16, a);
    world_digest(data + (sound ? 64 : 65), 16, b);
    snprintf(objects[0], sizeof(objects[0]), object, "a", 64, ",\"digest\":\"", a, "\"");
    snprintf(objects[1], sizeof(objects[1]), object, "b", 128, ",\"digest\":\"", b, "\"");
    snprintf(objects[2], sizeof(objects[2]), object, "c", 192, "", "", "");
    snprintf(objects[3], sizeof(objects[3]), object, "d", 256, ",\"digest\":\"", "md99:00", "\"");
    snprintf(manifest, sizeof(manifest), "{\"version\":\"1.2.0\",\"objects\":{%s,%s,%s,%s}}",
             objects[0], objects[1], objects[2], objects[3]);
    container_make(&container, CONTAINER_ZT1, 256, manifest);
    world_write(world, path, container.bytes, container.length);
    container_free(&container);
}

/* Makes a model and lets the catalog see it. */
static inline void world_add(struct world *world, const char *path, bool sound)
{
    world_model(world, path, sound);
    generation_release(catalog_update(world->server.catalog, path));
}

/* --- waiting --- */

struct flag {
    struct waiter waiter; /* first: the waiter is the structure */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool raised;
};

static inline void flag_raise(struct waiter *waiter)
{
    struct flag *flag = (struct flag *)waiter;

    pthread_mutex_lock(&flag->lock);
    flag->raised = true;
    pthread_cond_signal(&flag->changed);
    pthread_mutex_unlock(&flag->lock);
}

static inline void flag_init(struct flag *flag)
{
    memset(flag, 0, sizeof(*flag));
    flag->waiter.wake = flag_raise;
    pthread_mutex_init(&flag->lock, NULL);
    pthread_cond_init(&flag->changed, NULL);
}

static inline void flag_wait(struct flag *flag)
{
    pthread_mutex_lock(&flag->lock);
    while (!flag->raised)
        pthread_cond_wait(&flag->changed, &flag->lock);
    flag->raised = false;
    pthread_mutex_unlock(&flag->lock);
}

/* The verdict on a component, waited for. */
static inline enum component_state world_verdict(struct world *world, struct generation *generation,
                                                 uint32_t component)
{
    struct flag flag;
    enum component_state state;

    flag_init(&flag);
    while ((state = verifier_ask(world->server.verifier, generation, component, &flag.waiter)) ==
           COMPONENT_CHECKING)
        flag_wait(&flag);
    return state;
}

/* The model of that name, with a reference; NULL if there is none. */
static inline struct generation *world_find(struct world *world, const char *name)
{
    struct generation *found = NULL;
    enum catalog_answer answer;
    struct flag flag;

    flag_init(&flag);
    while ((answer = catalog_find(world->server.catalog, text_of(name), &flag.waiter, &found)) ==
           CATALOG_PENDING)
        flag_wait(&flag);
    return answer == CATALOG_FOUND ? found : NULL;
}

#define WITH_MODELS(name) TEST_IN_WORLD(name, world_set_up, world_tear_down)

#endif
