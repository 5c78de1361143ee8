/* A writer to the bucket of writable_remote.h, with a staging folder and a journal of its own; and
 * how it publishes the model "m". */
#ifndef S3_WRITE_WORLD_H
#define S3_WRITE_WORLD_H

#include "writable_remote.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/workers.h"
#include "store/s3/s3_listing.h"
#include "store/s3_write/s3_multipart.h"
#include "store/staging.h"

/* For all that is done under a claim. */
#define CLAIM_MS    25000
#define SMALL_BYTES 1000
#define LARGE_BYTES 150000
#define PART_BYTES  65536
/* Of a request under a claim. */
#define TRIES 5

struct world {
    struct s3_store store;
    struct s3_writing writing;
    struct config config;
    char folder[64];
};

static const struct store_ops ops = {.list = s3_list};
static uint8_t content[LARGE_BYTES];

static inline void open_staging(struct world *world)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/uploads", world->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    world->writing.staging_folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    staging_init(&world->writing.staging, world->writing.staging_folder);
    world->store.base.staging = &world->writing.staging;
    world->writing.journal = open(world->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->writing.journal >= 0);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct s3_store *store = &world->store;
    struct zt_error error;

    memset(&shelf, 0, sizeof(shelf));
    shelf.now_s = 1800000000;
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i * 7 + i / 4096);
    strcpy(world->folder, "/tmp/zt-test-s3w-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    config_defaults(&world->config);
    world->config.s3.part_bytes = PART_BYTES;
    store->base.ops = &ops;
    store->config = &world->config;
    store->folder = world->folder;
    store->writing = &world->writing;
    store->listing = s3_listing_new();
    strcpy(store->bucket.origin, "http://store.test");
    strcpy(store->bucket.name, "b");
    store->bucket.path_style = true;
    store->claims = store->bucket;
    pthread_mutex_init(&world->writing.lock, NULL);
    pthread_cond_init(&world->writing.changed, NULL);
    open_staging(world);
    assert_ok(cache_open(&(struct cache_options){.folder = world->folder}, &store->cache, &error));
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    char command[128];

    s3_keeper_stop(&world->store);
    cache_close(world->store.cache);
    s3_listing_free(world->store.listing);
    staging_end(&world->writing.staging);
    close(world->writing.staging_folder);
    close(world->writing.journal);
    for (size_t i = 0; i < SHELF_OBJECTS; i++)
        free(shelf.objects[i].bytes);
    free(shelf.upload.bytes);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

static inline void probe(struct world *world)
{
    struct zt_error error;

    assert_ok(s3_probe(&world->store, &error));
}

static inline struct store_claim *claim_ok(struct world *world)
{
    struct store_claim *claim = NULL;
    struct zt_error error;

    assert_ok(
        s3_claim(&world->store.base, zt_text_from("m"), clock_ms() + CLAIM_MS, &claim, &error));
    return claim;
}

static inline struct staged_file *received(struct world *world, size_t length, uint8_t digest[32])
{
    struct staged_file *upload = NULL;
    struct zt_error error;
    char sha256[BUCKET_SHA256_SIZE];

    assert_ok(staging_create(world->store.base.staging, length, &upload, &error));
    assert_ok(staged_file_write_at(upload, 0, content, length, &error));
    assert_ok(bucket_sha256(content, length, sha256, &error));
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(sscanf(sha256 + 2 * i, "%2hhx", &digest[i]), 1);
    return upload;
}

static inline struct staged_file *upload_of(struct world *world, size_t length)
{
    uint8_t digest[32];
    struct staged_file *upload = received(world, length, digest);
    struct zt_error error;

    assert_ok(s3_prepare(&world->store.base, upload, "m.zt", digest, &error));
    return upload;
}

/* Publishes under a claim of its own. */
static inline enum zt_status publish(struct world *world, size_t length,
                                     const struct store_expected *expected)
{
    struct staged_file *upload = upload_of(world, length);
    struct store_claim *claim = claim_ok(world);
    struct zt_error error;
    const enum zt_status status = s3_publish(&world->store.base, upload, "m.zt", expected, &error);

    assert_true(claim->has_published == (status == ZT_OK));
    s3_release(claim);
    if (status != ZT_OK)
        staged_file_close(upload);
    assert_int_equal(shelf_count(S3_CLAIMS_PREFIX), 0);
    return status;
}

static inline bool is_published(size_t length)
{
    const struct shelf_object *object = shelf_find("m.zt");

    return object != NULL && object->length == length &&
           memcmp(object->bytes, content, length) == 0;
}

static inline struct store_expected expect_shelf(void)
{
    const struct shelf_object *object = shelf_find("m.zt");

    return (struct store_expected){
        .what = STORE_EXPECTS_VERSION,
        .identity = bucket_identity(object->etag, object->length, object->modified_s)};
}

#define WITH_S3(name) TEST_IN_WORLD(name, set_up, tear_down)

#endif
