/* A local store in a folder of its own, what it lists and opens; for the tests of the store. */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_local.h"

struct world {
    char root[64];
    struct store *store;
};

static inline void command(const struct world *world, const char *commands)
{
    run_in(world->root, commands);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->root, "/tmp/zt-test-store-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    command(world, "mkdir root outside");
    strcat(world->root, "/root");
    assert_ok(store_local_open(world->root, 0, &world->store, NULL));
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;

    world->store->ops->close(world->store);
    strrchr(world->root, '/')[0] = '\0';
    command(world, "chmod -R u+rwx . && rm -r root outside");
    rmdir(world->root);
    free(world);
    return 0;
}

static inline bool collect(void *context, const char *path, const struct file_identity *identity)
{
    char *list = context;

    assert_true(identity->inode != 0);
    strcat(list, path);
    strcat(list, " ");
    return true;
}

static inline int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Asserts the sorted list of paths, each followed by a space. */
static inline void assert_lists(const struct world *world, const char *expected)
{
    char list[4096] = "";
    char sorted[4096] = "";
    char *words[64];
    size_t count = 0;

    assert_ok(world->store->ops->list(world->store, collect, list, NULL));
    for (char *word = strtok(list, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    qsort(words, count, sizeof(words[0]), compare_words);
    for (size_t i = 0; i < count; i++)
        strcat(strcat(sorted, words[i]), " ");
    assert_string_equal(sorted, expected);
}

static inline enum zt_status open_path(const struct world *world, const char *path,
                                       char out_bytes[16])
{
    struct zt_source *source = NULL;
    struct file_identity identity;
    struct zt_error error;
    enum zt_status status = world->store->ops->open(world->store, path, &source, &identity, &error);

    if (status != ZT_OK) {
        assert_int_equal(error.status, status);
        assert_null(strstr(error.message, world->root));
        return status;
    }
    memset(out_bytes, 0, 16);
    assert_true(zt_source_size(source) < 16);
    assert_ok(zt_source_read_at(source, 0, out_bytes, (size_t)zt_source_size(source), NULL));
    assert_int_equal(identity.size_bytes, zt_source_size(source));
    zt_source_close(source);
    return ZT_OK;
}

#define WITH_STORE(name) TEST_IN_WORLD(name, set_up, tear_down)

#endif
