#include "derived/export_lists.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "zt/digest.h"

static int compare_names(const void *a, const void *b)
{
    return zt_text_compare(*(const struct zt_text *)a, *(const struct zt_text *)b);
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

/* --- making --- */

/* One block: the structure, the names, the digests, and the names' bytes. */
static struct export_lists *allocate(const struct zt_text *names, size_t name_count,
                                     size_t have_count)
{
    size_t bytes =
        sizeof(struct export_lists) + name_count * sizeof(*names) + have_count * SHA256_BYTES;
    struct export_lists *lists;

    for (size_t i = 0; i < name_count; i++)
        bytes += names[i].length;
    lists = calloc(1, bytes);
    if (lists == NULL)
        return NULL;
    atomic_init(&lists->references, 1);
    lists->names = (struct zt_text *)(void *)(lists + 1);
    lists->have = (uint8_t(*)[SHA256_BYTES])(void *)(lists->names + name_count);
    return lists;
}

static void add_names(struct export_lists *lists, const struct zt_text *names, size_t count,
                      char *bytes)
{
    assert(count > 0 && lists->name_count == 0);
    memcpy(lists->names, names, count * sizeof(*names));
    qsort(lists->names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count; i++) {
        struct zt_text name = lists->names[i];

        if (lists->name_count > 0 &&
            compare_names(&lists->names[lists->name_count - 1], &name) == 0)
            continue;
        if (name.length > 0)
            memcpy(bytes, name.bytes, name.length);
        lists->names[lists->name_count++] = (struct zt_text){bytes, name.length};
        bytes += name.length;
    }
}

static void add_digests(struct export_lists *lists, const uint8_t (*have)[SHA256_BYTES],
                        size_t count)
{
    assert(count > 0 && lists->have_count == 0);
    memcpy(lists->have, have, count * sizeof(*have));
    qsort(lists->have, count, sizeof(*have), compare_digests);
    for (size_t i = 0; i < count; i++)
        if (lists->have_count == 0 ||
            compare_digests(lists->have[lists->have_count - 1], lists->have[i]) != 0)
            memmove(lists->have[lists->have_count++], lists->have[i], SHA256_BYTES);
}

/* Each name follows its length, and the digests follow the number of names. */
static bool seal(struct export_lists *lists)
{
    const uint64_t count = lists->name_count;
    struct zt_hasher *hasher;
    struct zt_digest digest;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    zt_hasher_update(hasher, &count, sizeof(count));
    for (size_t i = 0; i < lists->name_count; i++) {
        const uint64_t length = lists->names[i].length;

        zt_hasher_update(hasher, &length, sizeof(length));
        zt_hasher_update(hasher, lists->names[i].bytes, lists->names[i].length);
    }
    zt_hasher_update(hasher, lists->have, lists->have_count * sizeof(*lists->have));
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    memcpy(lists->sha256, digest.bytes, sizeof(lists->sha256));
    return true;
}

struct export_lists *export_lists_new(const struct zt_text *names, size_t name_count,
                                      const uint8_t (*have)[SHA256_BYTES], size_t have_count)
{
    struct export_lists *lists = allocate(names, name_count, have_count);

    if (lists == NULL)
        return NULL;
    if (name_count > 0)
        add_names(lists, names, name_count, (char *)(lists->have + have_count));
    if (have_count > 0)
        add_digests(lists, have, have_count);
    if (seal(lists))
        return lists;
    free(lists);
    return NULL;
}

/* --- sharing --- */

void export_lists_hold(struct export_lists *lists)
{
    const unsigned before = atomic_fetch_add(&lists->references, 1);

    assert(before > 0);
    (void)before;
}

void export_lists_release(void *thing)
{
    struct export_lists *lists = thing;

    if (lists != NULL && atomic_fetch_sub(&lists->references, 1) == 1)
        free(lists);
}

/* --- looking up --- */

bool export_lists_have(const struct export_lists *lists, const uint8_t sha256[SHA256_BYTES])
{
    return export_lists_state(lists) && bsearch(sha256, lists->have, lists->have_count,
                                                sizeof(*lists->have), compare_digests) != NULL;
}

bool export_lists_name(const struct export_lists *lists, struct zt_text name)
{
    return lists != NULL && lists->name_count > 0 &&
           bsearch(&name, lists->names, lists->name_count, sizeof(*lists->names), compare_names) !=
               NULL;
}
