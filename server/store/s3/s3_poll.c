/* Notices changes of the bucket: lists it every poll_s, and looks up unknown names. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "store/s3/s3_listing.h"
#include "zt/digest.h"

/* The pause after a failure. It doubles with each further failure, up to poll_s. */
#define FAILED_GAP_NS CLOCK_NS_PER_S
/* Random jitter of poll_s, so that replicas do not poll in step. */
#define JITTER_PERCENT 10
/* Limits for name lookups: milliseconds between lookups of one name, and lookups per second in
 * total. */
#define SOUGHT_AGAIN_MS 2000
#define SOUGHT_A_SECOND 10
/* A list of a name may also find longer names that begin with it. Reading stops after this many
 * keys. */
#define SEEK_KEYS_MAX 4000
/* More files than this are not plausible for one server. */
#define FILES_MAX ((size_t)4 << 20)
/* Maximum number of disputed keys that are resolved by a HEAD. A store that lists more keys twice
 * is broken. */
#define SETTLED_MAX 16
/* So many HEADs run side by side. Clients need connections too. */
#define SETTLED_TOGETHER 4

static struct s3_store *of(const struct store *store)
{
    return (struct s3_store *)(uintptr_t)store;
}

/* --- the timer --- */

static void arm(struct s3_listing *listing, int64_t at_ns)
{
    const struct itimerspec when = {
        .it_value = {at_ns / CLOCK_NS_PER_S, at_ns % CLOCK_NS_PER_S},
    };

    if (listing->timer >= 0)
        (void)timerfd_settime(listing->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static int64_t gap_ns(const struct s3_store *store, unsigned failures)
{
    const int64_t usual_ns = config_number(&store->config->s3.poll_s) * CLOCK_NS_PER_S;
    int64_t gap = usual_ns;

    if (failures > 0 && failures < 16)
        gap = FAILED_GAP_NS << (failures - 1);
    gap = gap < usual_ns ? gap : usual_ns;
    /* Microseconds are random enough. */
    return gap + gap / 100 * (clock_ns() / 1000 % (2 * JITTER_PERCENT + 1) - JITTER_PERCENT);
}

void s3_poll_plan(struct s3_store *store, bool succeeded)
{
    struct s3_listing *listing = store->listing;

    pthread_mutex_lock(&listing->lock);
    listing->failures = succeeded ? 0 : listing->failures + 1;
    listing->is_poll_due = false;
    listing->next_poll_ns = clock_ns() + gap_ns(store, listing->failures);
    arm(listing, listing->next_poll_ns);
    pthread_mutex_unlock(&listing->lock);
}

void s3_poll_adjust(struct s3_store *store)
{
    struct s3_listing *listing = store->listing;
    int64_t next_ns;

    pthread_mutex_lock(&listing->lock);
    next_ns = clock_ns() + gap_ns(store, listing->failures);
    if (next_ns < listing->next_poll_ns) {
        listing->next_poll_ns = next_ns;
        arm(listing, next_ns);
    }
    pthread_mutex_unlock(&listing->lock);
}

int s3_watch(struct store *base)
{
    struct s3_listing *listing = of(base)->listing;
    int timer;

    pthread_mutex_lock(&listing->lock);
    if (listing->timer < 0) {
        listing->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        arm(listing,
            listing->next_poll_ns > 0 ? listing->next_poll_ns : clock_ns() + gap_ns(of(base), 0));
    }
    timer = listing->timer;
    pthread_mutex_unlock(&listing->lock);
    return timer;
}

bool s3_changed(struct store *base)
{
    struct s3_listing *listing = of(base)->listing;
    uint64_t times;
    bool is_due;

    pthread_mutex_lock(&listing->lock);
    is_due = read(listing->timer, &times, sizeof(times)) == (ssize_t)sizeof(times);
    listing->is_poll_due = listing->is_poll_due || is_due;
    pthread_mutex_unlock(&listing->lock);
    return is_due;
}

bool s3_is_changing(struct store *base)
{
    /* Other writers' changes are not reported; identity_of already knows this server's own. */
    (void)base;
    return false;
}

bool s3_reports(const struct store *base)
{
    (void)base;
    return true;
}

enum zt_status s3_list_changes(struct store *base, store_visit visit, void *context,
                               bool *out_whole, struct zt_error *error)
{
    struct s3_listing *listing = of(base)->listing;

    (void)visit;
    (void)context;
    (void)error;
    pthread_mutex_lock(&listing->lock);
    *out_whole = listing->is_poll_due;
    pthread_mutex_unlock(&listing->lock);
    return ZT_OK;
}

/* --- lists --- */

struct taking {
    struct s3_entries entries;
    struct s3_facts facts;
    struct skipped *skipped; /* NULL: nothing is reported */
    struct zt_text name;     /* only files of this model; empty: all */
    size_t misnamed_files;
    size_t keys;
    bool out_of_memory;
    bool is_partial;
};

/* Hidden files and folders are not models. The server's own are in .ztserve. */
static bool is_hidden(const char *key)
{
    return key[0] == '.' || strstr(key, "/.") != NULL;
}

static void skip(struct taking *taking, const char *key)
{
    if (is_hidden(key) || taking->skipped == NULL)
        return;
    if (model_path_has_bad_name(key)) {
        taking->misnamed_files++;
        skipped_note(taking->skipped, key, SKIP_NAME, 0);
    } else if (model_path_is_unsupported_format(key)) {
        skipped_note(taking->skipped, key, SKIP_EXTENSION, 0);
    }
}

static bool take(void *context, const struct listed_object *object)
{
    struct taking *taking = context;
    size_t name_length;
    unsigned rank;

    taking->keys++;
    if (taking->name.length > 0 && taking->keys > SEEK_KEYS_MAX) {
        taking->is_partial = true;
        return false;
    }
    if (!model_path_split(object->key, &name_length, &rank)) {
        s3_facts_take(&taking->facts, object->key);
        skip(taking, object->key);
        return true;
    }
    if (taking->name.length > 0 &&
        !zt_text_equal(taking->name, (struct zt_text){object->key, name_length}))
        return true;
    taking->out_of_memory = taking->entries.count >= FILES_MAX ||
                            !s3_entries_add(&taking->entries, object->key, object->etag,
                                            object->size_bytes, object->modified_s);
    return !taking->out_of_memory;
}

/* Disputed entries for which a HEAD is sent. */
struct settling {
    struct s3_store *store;
    const struct s3_entries *entries;
    uint32_t count;
    size_t places[SETTLED_MAX];
    struct object_version versions[SETTLED_MAX];
    bool is_settled[SETTLED_MAX];
};

static bool ask_for_version(void *context, uint32_t index)
{
    struct settling *settling = context;
    const struct s3_entry *entry = settling->entries->items[settling->places[index]];
    struct object_version *version = &settling->versions[index];

    settling->is_settled[index] = bucket_head(&settling->store->bucket, entry->path,
                                              BUCKET_USUAL_TIME, version, NULL) == ZT_OK &&
                                  version->etag[0] != '\0';
    return true;
}

/* A list may contain several versions of a key, for example while it is replaced. A HEAD then finds
 * the current one. If that fails too, the earlier entry is kept. */
static void settle_disputes(struct s3_store *store, struct s3_entries *entries)
{
    struct settling settling = {.store = store, .entries = entries};
    struct parallel_work asking = {.run = ask_for_version, .context = &settling};
    uint32_t asked = 0;

    for (size_t i = 0; i < entries->count && settling.count < SETTLED_MAX; i++)
        if (entries->items[i]->is_disputed)
            settling.places[settling.count++] = i;
    asking.count = settling.count;
    if (settling.count > 0)
        parallel_for_threads("settle",
                             settling.count < SETTLED_TOGETHER ? settling.count : SETTLED_TOGETHER,
                             &asking);
    for (size_t i = 0; i < entries->count; i++) {
        struct object_version version;
        bool is_settled = false;

        if (!entries->items[i]->is_disputed)
            continue;
        if (asked < settling.count) {
            is_settled = settling.is_settled[asked];
            version = settling.versions[asked++];
        }
        if (is_settled || s3_known_version(store, entries->items[i]->path, &version))
            (void)s3_entries_settle(entries, i, &version);
    }
}

/* Lists the bucket and stores the result. */
static enum zt_status list_whole(struct s3_store *store, struct zt_error *error)
{
    struct s3_listing *listing = store->listing;
    struct taking taking = {.skipped = &listing->skipped};
    const uint64_t notes = s3_listing_notes(listing);
    const int64_t begun_ns = clock_wall_ns();
    enum zt_status status;

    skipped_begin(&listing->skipped);
    status = bucket_list(&store->bucket, "", BUCKET_USUAL_TIME, take, &taking, error);
    if (status == ZT_OK && taking.out_of_memory)
        status = zt_fail_memory(error, "the list of the bucket");
    skipped_end(&listing->skipped, status == ZT_OK);
    if (status == ZT_OK) {
        s3_entries_sort(&taking.entries);
        settle_disputes(store, &taking.entries);
        s3_saved_write(store, &taking.entries, begun_ns);
        s3_listing_replace(listing, &taking.entries, notes, begun_ns);
        s3_facts_replace(listing, &taking.facts);
        atomic_store(&listing->misnamed_files, taking.misnamed_files);
    }
    s3_entries_free(&taking.entries);
    s3_facts_free(&taking.facts);
    return status;
}

enum zt_status s3_list(struct store *base, store_visit visit, void *context, struct zt_error *error)
{
    struct s3_store *store = of(base);
    struct s3_listing *listing = store->listing;
    bool is_first;
    enum zt_status status;

    pthread_mutex_lock(&listing->lock);
    is_first = listing->next_poll_ns == 0;
    pthread_mutex_unlock(&listing->lock);
    /* Connecting has just failed: the list saved by an earlier process is better than waiting. */
    if (is_first && !atomic_load(&store->bucket.was_reached))
        status =
            zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the object store is unreachable");
    else
        status = list_whole(store, error);
    s3_poll_plan(store, status == ZT_OK);
    listing->was_listed = listing->was_listed || status == ZT_OK;
    if (status == ZT_UNAVAILABLE && !listing->was_listed && s3_listing_has_list(listing))
        status = ZT_OK;
    if (status == ZT_OK && !s3_listing_visit(listing, visit, context))
        status = zt_fail_memory(error, "the list of the bucket");
    return status;
}

size_t s3_misnamed_files(const struct store *base)
{
    return atomic_load(&of(base)->listing->misnamed_files);
}

/* --- one name --- */

static bool is_sought_too_often(struct s3_listing *listing, uint64_t hash, int64_t now_ms)
{
    struct s3_sought *sought = &listing->sought[hash % S3_SOUGHT];

    if (sought->hash == hash && sought->at_ms > 0 && now_ms - sought->at_ms < SOUGHT_AGAIN_MS)
        return true;
    if (now_ms - listing->sought_since_ms >= 1000) {
        listing->sought_since_ms = now_ms;
        listing->sought_count = 0;
    }
    if (listing->sought_count >= SOUGHT_A_SECOND)
        return true;
    listing->sought_count++;
    *sought = (struct s3_sought){hash, now_ms};
    return false;
}

/* Returns true if the key of a file with this name is not too long. */
static bool bucket_has_room(const struct bucket *bucket, struct zt_text name)
{
    return strlen(bucket->prefix) + name.length + strlen(".zt") < BUCKET_KEY_SIZE;
}

bool s3_may_look_up(struct store *base, struct zt_text name)
{
    struct s3_store *store = of(base);
    struct s3_listing *listing = store->listing;
    const uint64_t hash = zt_xxh3(name.bytes, name.length);
    bool too_often;

    if (!model_name_is_valid(name) || !bucket_has_room(&store->bucket, name) ||
        atomic_load(&store->bucket.is_unreachable))
        return false;
    pthread_mutex_lock(&listing->lock);
    too_often = is_sought_too_often(listing, hash, clock_ms());
    pthread_mutex_unlock(&listing->lock);
    return !too_often;
}

static void visit_found(const struct s3_entries *found, store_visit visit, void *context)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct s3_entry *entry = found->items[i];
        const struct file_identity identity =
            bucket_identity(entry->etag, entry->size_bytes, entry->modified_s);

        if (!visit(context, entry->path, &identity))
            return;
    }
}

enum zt_status s3_look_up(struct store *base, struct zt_text name, store_visit visit, void *context,
                          struct zt_error *error)
{
    struct s3_store *store = of(base);
    struct taking taking = {.name = name};
    const uint64_t notes = s3_listing_notes(store->listing);
    char beginning[MODEL_NAME_MAX + 2];
    enum zt_status status;

    if (!model_name_is_valid(name) || !bucket_has_room(&store->bucket, name))
        return ZT_OK;
    memcpy(beginning, name.bytes, name.length);
    strcpy(beginning + name.length, ".");
    status = bucket_list(&store->bucket, beginning, BUCKET_USUAL_TIME, take, &taking, error);
    if (status == ZT_OK && taking.out_of_memory)
        status = zt_fail_memory(error, "a list of the bucket");
    if (status == ZT_OK) {
        s3_entries_sort(&taking.entries);
        settle_disputes(store, &taking.entries);
        for (size_t i = 0; i < taking.entries.count; i++) {
            const struct s3_entry *entry = taking.entries.items[i];

            s3_listing_note_listed(store->listing,
                                   &(struct listed_object){entry->path, entry->etag,
                                                           entry->size_bytes, entry->modified_s},
                                   notes);
        }
        if (!taking.is_partial)
            s3_listing_drop_others(store->listing, name, &taking.entries, notes);
        visit_found(&taking.entries, visit, context);
    }
    s3_entries_free(&taking.entries);
    return status;
}

/* --- versions --- */

void s3_note_version(struct s3_store *store, const char *path, const struct object_version *version)
{
    size_t name_length;
    unsigned rank;

    if (!model_path_split(path, &name_length, &rank))
        return;
    s3_listing_note(store->listing, path, version != NULL ? version->etag : NULL,
                    version != NULL ? version->size_bytes : 0,
                    version != NULL ? version->modified_s : 0);
}

bool s3_known_version(struct s3_store *store, const char *path, struct object_version *out)
{
    return s3_listing_find(store->listing, path, out) == S3_KNOWN;
}

/* --- the report --- */

void s3_report(struct store *base, struct store_report *out_report)
{
    struct s3_store *store = of(base);
    struct store_report report = {
        .is_unreachable = atomic_load(&store->bucket.is_unreachable),
        .was_reached = atomic_load(&store->bucket.was_reached),
    };
    struct remote_load load = {0};

    pthread_mutex_lock(&store->listing->lock);
    report.has_list = store->listing->has_list;
    if (report.has_list)
        report.list_age_s =
            (double)(clock_wall_ns() - store->listing->listed_wall_ns) / (double)CLOCK_NS_PER_S;
    pthread_mutex_unlock(&store->listing->lock);
    cache_room(store->cache, &report.cache_used_bytes, &report.cache_limit_bytes);
    remote_load(store->remote, &load);
    report.requests_running = load.running;
    *out_report = report;
}
