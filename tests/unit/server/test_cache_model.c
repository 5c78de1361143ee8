/* The block cache under everything at once: threads that read, pin, advise, retire and open, with a
 * small limit, wrong fetches and failures, against the bytes that are known. And a pool of workers
 * of which all wait. */
#include "cache_world.h"
#include "tests.h"

#include "base/clock.h"
#include "base/workers.h"

#define ACTORS   6
#define VERSIONS 8
#define RUN_MS   2500

static const uint64_t sizes[VERSIONS] = {1,        MIB - 1,  5 * MIB,      17 * MIB + 3,
                                         40 * MIB, 64 * MIB, 70 * MIB + 9, 130 * MIB};

struct actor {
    pthread_t thread;
    uint64_t random;
    int64_t until_ms;
    unsigned reads;
    unsigned pins;
    unsigned refused;
    unsigned wrong;
};

static uint64_t next_random(struct actor *actor)
{
    actor->random += UINT64_C(0x9E3779B97F4A7C15);
    return world_word(actor->random, 1);
}

static void note(struct actor *actor, enum zt_status status)
{
    if (status == ZT_CORRUPT)
        actor->wrong++;
    else if (status != ZT_OK)
        actor->refused++;
}

static void read_some(struct actor *actor, struct zt_source *source, uint64_t version)
{
    uint64_t size = zt_source_size(source);
    uint64_t offset = next_random(actor) % size;
    uint64_t most = next_random(actor) % 4 == 0 ? 12 * MIB : 8192;
    size_t length = (size_t)(1 + next_random(actor) % most);

    if (length > size - offset)
        length = (size_t)(size - offset);
    note(actor, world_read(source, version, offset, length));
    actor->reads++;
}

static void pin_some(struct actor *actor, struct zt_source *source, uint64_t version)
{
    uint64_t size = zt_source_size(source);
    uint64_t offset = next_random(actor) % size;
    size_t length = (size_t)(1 + next_random(actor) % (3 * MIB));
    bool wait = next_random(actor) % 2 == 0;
    struct zt_pin pin = {0};
    enum zt_status status;

    if (length > size - offset)
        length = (size_t)(size - offset);
    status = zt_source_pin(source, offset, length, wait, &pin, NULL);
    if (status != ZT_OK) {
        note(actor, status);
        return;
    }
    if (next_random(actor) % 8 == 0)
        pause_ms(2);
    if (!world_pin_is(&pin, version, offset, length))
        actor->wrong++;
    if (!world_is(version, offset, zt_source_map(pin.view) + offset, length < 4096 ? length : 4096))
        actor->wrong++;
    actor->pins++;
    zt_pin_release(&pin);
}

static void act(struct actor *actor, struct zt_source *source, uint64_t version)
{
    switch (next_random(actor) % 24) {
    case 0:
        cache_set_limit(world.cache, (20 + next_random(actor) % 150) * MIB);
        break;
    case 2:
        atomic_store(&world.fail_status, next_random(actor) % 2 == 0 ? ZT_UNAVAILABLE : ZT_STALE);
        atomic_store(&world.fail, 1);
        break;
    case 3:
        zt_source_advise(source, next_random(actor) % zt_source_size(source), 20 * MIB);
        break;
    case 4:
        (void)world_figures();
        break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        pin_some(actor, source, version);
        break;
    default:
        read_some(actor, source, version);
    }
}

static void *live(void *argument)
{
    struct actor *actor = argument;

    /* However busy the machine is, something is read. */
    while (clock_ms() < actor->until_ms || actor->reads == 0) {
        uint64_t version = next_random(actor) % VERSIONS;
        struct zt_source *source = world_open(version, sizes[version]);
        uint64_t count = next_random(actor) % 20;

        for (uint64_t i = 0; i < count; i++)
            act(actor, source, version);
        world_close(source);
    }
    return NULL;
}

static void run_actors(uint64_t seed, int64_t run_ms)
{
    struct actor actors[ACTORS];

    for (size_t i = 0; i < ACTORS; i++) {
        actors[i] = (struct actor){.random = seed * 100 + i, .until_ms = clock_ms() + run_ms};
        pthread_create(&actors[i].thread, NULL, live, &actors[i]);
    }
    for (size_t i = 0; i < ACTORS; i++) {
        pthread_join(actors[i].thread, NULL);
        if (actors[i].wrong > 0)
            fail_msg("seed %u: %u wrong", (unsigned)seed, actors[i].wrong);
    }
}

/* Flips bytes of whatever lies in the folder. */
static void damage(uint64_t seed)
{
    struct actor actor = {.random = seed * 7777};
    char path[160];

    for (uint64_t version = 0; version < VERSIONS; version++)
        for (unsigned half = 0; half < 2; half++) {
            struct stat facts;
            int file;

            world_path(version, half == 0 ? "blocks" : "index", path);
            file = open(path, O_RDWR);
            if (file < 0)
                continue;
            fstat(file, &facts);
            for (unsigned i = 0; i < 6 && facts.st_size > 0; i++) {
                uint8_t bytes[64];

                memset(bytes, (int)next_random(&actor) & 0xff, sizeof(bytes));
                (void)!pwrite(file, bytes, 1 + next_random(&actor) % sizeof(bytes),
                              (off_t)(next_random(&actor) % (uint64_t)facts.st_size));
            }
            if (half == 0)
                (void)!ftruncate(file, facts.st_size);
            close(file);
        }
}

static uint64_t seed_of_run(void)
{
    const char *given = getenv("ZT_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)clock_ns() % 1000000;

    print_message("ZT_SEED=%u\n", (unsigned)seed);
    return seed;
}

AROUND_EACH_TEST(world_begin, world_end)

TEST(no_byte_is_ever_wrong)
{
    uint64_t seed = seed_of_run();

    cache_set_limit(world.cache, 150 * MIB);
    atomic_store(&world.delay_us, 300);
    run_actors(seed, RUN_MS / 2);
    world_stop();
    for (unsigned i = 1; i < 4; i++) {
        damage(seed + i);
        world_start(150 * MIB);
        run_actors(seed + i, RUN_MS / 6);
        world_stop();
    }
}

/* --- all workers wait --- */

struct request {
    struct job job;
    struct zt_source *source;
    uint64_t offset;
    size_t length;
    bool is_pinning;
    atomic_int *done;
    enum zt_status status;
};

static void serve(struct job *job)
{
    struct request *request = (struct request *)job;
    struct zt_pin pin = {0};

    if (request->is_pinning)
        request->status =
            zt_source_pin(request->source, request->offset, request->length, true, &pin, NULL);
    else
        request->status = world_read(request->source, 1, request->offset, request->length);
    zt_pin_release(&pin);
    atomic_fetch_add(request->done, 1);
}

TEST(four_workers_serve_a_hundred_who_wait)
{
    struct workers *workers = workers_start(4);
    struct request requests[100] = {0};
    struct cache_options options = {.workers = workers};
    struct zt_source *source;
    atomic_int done = 0;

    world_stop();
    options.folder = world.folder;
    assert_int_equal(cache_open(&options, &world.cache, NULL), ZT_OK);
    atomic_store(&world.delay_us, 500);
    source = world_open(1, 500 * MIB);
    world_hold(true);
    for (unsigned i = 0; i < 100; i++) {
        requests[i] = (struct request){.job.run = serve,
                                       .source = source,
                                       .offset = (uint64_t)i / 2 * 10 * MIB,
                                       .length = (i % 5 + 1) * 2 * MIB,
                                       .is_pinning = i % 2 == 0,
                                       .done = &done};
        workers_submit(workers, &requests[i].job);
    }
    pause_ms(20);
    assert_int_equal(atomic_load(&done), 0);
    world_hold(false);
    AWAIT(atomic_load(&done) == 100);
    workers_stop(workers);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(requests[i].status, ZT_OK);
}
