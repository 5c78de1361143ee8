/* The JSON of whole manifests: shared while requests hold it, freed when it is not asked for. */
#include "model_world.h"

#include "base/clock.h"
#include "derived/manifest_json.h"

#define BOOLS 400000

/* A GGUF whose JSON is longer than what is always kept. */
static void write_long(const struct world *world)
{
    static const uint8_t head[] = "GGUF\3\0\0\0"
                                  "\0\0\0\0\0\0\0\0"
                                  "\1\0\0\0\0\0\0\0"
                                  "\1\0\0\0\0\0\0\0a"
                                  "\x09\0\0\0\7\0\0\0";
    const size_t length = sizeof(head) - 1 + 8 + BOOLS;
    const uint64_t count = BOOLS;
    uint8_t *bytes = calloc(1, length);

    assert_non_null(bytes);
    memcpy(bytes, head, sizeof(head) - 1);
    memcpy(bytes + sizeof(head) - 1, &count, sizeof(count));
    world_write(world, "long.gguf", bytes, length);
    free(bytes);
}

static struct manifest_text *ask(struct world *world, struct generation *generation,
                                 enum coding coding)
{
    struct manifest_text *text = manifest_hold(world->server.manifests, generation, coding);
    enum memo_answer answer;
    struct zt_error error;
    struct flag flag;

    flag_init(&flag);
    assert_non_null(text);
    while ((answer = manifest_ask(&world->server, text, generation, coding, &flag.waiter,
                                  &error)) == MEMO_PENDING)
        flag_wait(&flag);
    assert_int_equal(answer, MEMO_READY);
    return text;
}

WITH_MODELS(a_long_text_is_freed_when_it_was_not_asked_for)
{
    struct generation *generation;
    struct manifest_text *first;
    struct manifest_text *again;
    struct manifest_text *coded;

    write_long(world);
    world_load(world);
    generation = world_find(world, "long");
    assert_non_null(generation);
    first = ask(world, generation, CODING_IDENTITY);
    assert_true(first->length > 2 * BOOLS);
    coded = ask(world, generation, CODING_ZSTD);
    manifest_release_idle(world->server.manifests, clock_coarse_ms() - 60000);
    again = ask(world, generation, CODING_IDENTITY);
    assert_ptr_equal(again, first);
    memo_release(again);
    manifest_release_idle(world->server.manifests, clock_coarse_ms() + 60000);
    assert_int_equal(manifest_length(world->server.manifests, generation, CODING_IDENTITY), 0);
    /* Whoever holds it reads on; the coded text needs no other. */
    assert_memory_equal(first->bytes, "{\"name\":\"long\"", 14);
    memo_release(coded);
    coded = ask(world, generation, CODING_ZSTD);
    assert_int_equal(manifest_length(world->server.manifests, generation, CODING_IDENTITY), 0);
    again = ask(world, generation, CODING_IDENTITY);
    assert_int_equal(again->length, first->length);
    memo_release(again);
    memo_release(first);
    memo_release(coded);
    generation_release(generation);
}

/* Clients that revalidate get 304, which needs the length. */
WITH_MODELS(a_text_of_which_only_the_length_is_used_is_freed)
{
    struct generation *generation;
    int64_t asked_ms;

    write_long(world);
    world_load(world);
    generation = world_find(world, "long");
    assert_non_null(generation);
    memo_release(ask(world, generation, CODING_IDENTITY));
    asked_ms = clock_coarse_ms();
    AWAIT(clock_coarse_ms() > asked_ms + 1);
    assert_true(manifest_length(world->server.manifests, generation, CODING_IDENTITY) > 2 * BOOLS);
    manifest_release_idle(world->server.manifests, asked_ms + 1);
    assert_int_equal(manifest_length(world->server.manifests, generation, CODING_IDENTITY), 0);
    generation_release(generation);
}
