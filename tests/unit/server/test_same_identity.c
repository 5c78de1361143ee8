/* A file with other bytes and the same identity: it was written twice within a tick of the clock,
 * or a store gave other bytes for the same version. Nothing known of the first bytes is true of the
 * others. */
#include "model_world.h"
#include "tests.h"

#include "hub/version.h"
#include "views/model_view.h"

#define MODEL "o/m.zt"
#define VIEW  "model.safetensors"

/* The store, but all files of one size have one identity. */
static struct store_ops ops_of_one_identity;
static const struct store_ops *true_ops;

static void make_same(struct file_identity *identity)
{
    *identity = (struct file_identity){.device = 1,
                                       .inode = 1,
                                       .size_bytes = identity->size_bytes,
                                       .modified_ns = 1,
                                       .changed_ns = 1};
}

static enum zt_status open_same(struct store *store, const char *path,
                                struct zt_source **out_source, struct file_identity *out_identity,
                                struct zt_error *error)
{
    const enum zt_status status = true_ops->open(store, path, out_source, out_identity, error);

    if (status == ZT_OK)
        make_same(out_identity);
    return status;
}

static bool same_identity_of(struct store *store, struct zt_source *source,
                             struct file_identity *out_identity)
{
    const bool is_known = true_ops->identity_of(store, source, out_identity);

    if (is_known)
        make_same(out_identity);
    return is_known;
}

struct visit {
    store_visit visit;
    void *context;
};

static bool visit_same(void *context, const char *path, const struct file_identity *identity)
{
    const struct visit *visit = context;
    struct file_identity same;

    if (identity == NULL)
        return visit->visit(visit->context, path, NULL);
    same = *identity;
    make_same(&same);
    return visit->visit(visit->context, path, &same);
}

static enum zt_status walk_same(struct store *store, const char *folder, bool is_deep,
                                store_visit visit, void *context, struct zt_error *error)
{
    return true_ops->walk(store, folder, is_deep, visit_same, &(struct visit){visit, context},
                          error);
}

static int begin_same(void **state)
{
    struct world *world;

    world_set_up(state);
    world = *state;
    true_ops = world->server.store->ops;
    ops_of_one_identity = *true_ops;
    ops_of_one_identity.open = open_same;
    ops_of_one_identity.identity_of = same_identity_of;
    ops_of_one_identity.walk = walk_same;
    world->server.store->ops = &ops_of_one_identity;
    world_command(world, "mkdir o");
    world_add(world, MODEL, true);
    return 0;
}

AROUND_EACH_TEST(begin_same, world_tear_down)

/* Gives the object "d" another name, in place, and lets the catalog see it. */
static void rename_object(const struct world *world)
{
    char path[128];
    uint8_t bytes[4096];
    size_t length;
    size_t at;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", world->root, MODEL);
    file = fopen(path, "r+");
    assert_non_null(file);
    length = fread(bytes, 1, sizeof(bytes), file);
    at = length - 1;
    while (at > 0 && (bytes[at - 1] != 0x61 || bytes[at] != 'd'))
        at--;
    assert_true(at > 0);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc('e', file), 'e');
    assert_int_equal(fclose(file), 0);
    generation_release(catalog_update(world->server.catalog, MODEL));
}

static struct hub_version *list(struct world *world, const struct hub_version *previous)
{
    const struct hub_listing wanted = {.folder = "o", .previous = previous};
    struct hub_version *version = NULL;
    struct zt_error error;

    assert_ok(hub_version_make(&world->server, &wanted, &version, &error));
    return version;
}

/* Lists until the digest of the view is known. Takes over the previous version. */
static struct hub_version *list_with_digest(struct world *world, struct hub_version *previous)
{
    struct hub_version *version = list(world, previous);

    for (int i = 0; i < 120000 && !hub_version_find(version, text_of(VIEW))->has_sha256; i++) {
        pause_ms(1);
        hub_version_release(previous);
        previous = version;
        version = list(world, previous);
    }
    hub_version_release(previous);
    assert_true(hub_version_find(version, text_of(VIEW))->has_sha256);
    return version;
}

TEST_ON(struct world *world, view_of_other_bytes_is_made_again)
{
    struct hub_version *first = list_with_digest(world, NULL);
    const struct hub_file *old = hub_version_find(first, text_of(VIEW));
    struct hub_version *second;
    const struct hub_file *new;
    uint8_t sha256[SHA256_BYTES];

    memcpy(sha256, old->sha256, sizeof(sha256));
    rename_object(world);
    second = list(world, first);
    new = hub_version_find(second, text_of(VIEW));
    assert_true(new->view->manifest_hash != old->view->manifest_hash);
    assert_true(store_identity_equal(&new->identity, &old->identity));
    assert_string_not_equal(second->commit, first->commit);
    hub_version_release(first);
    second = list_with_digest(world, second);
    assert_memory_not_equal(hub_version_find(second, text_of(VIEW))->sha256, sha256,
                            sizeof(sha256));
    hub_version_release(second);
}

TEST_ON(struct world *world, view_of_the_same_bytes_is_kept)
{
    struct hub_version *first = list(world, NULL);
    struct hub_version *second = list(world, first);

    assert_ptr_equal(hub_version_find(second, text_of(VIEW))->view,
                     hub_version_find(first, text_of(VIEW))->view);
    hub_version_release(first);
    hub_version_release(second);
}

TEST_ON(struct world *world, digest_of_a_file_is_forgotten_with_its_bytes)
{
    struct generation *first = catalog_update(world->server.catalog, MODEL);
    const struct file_identity identity = first->identity;
    uint8_t sha256[SHA256_BYTES] = {1};

    generation_release(first);
    file_hashes_keep(world->server.hashes, MODEL, &identity, sha256);
    generation_release(catalog_update(world->server.catalog, MODEL));
    assert_true(file_hashes_find(world->server.hashes, MODEL, &identity, sha256));
    rename_object(world);
    assert_false(file_hashes_find(world->server.hashes, MODEL, &identity, sha256));
}
