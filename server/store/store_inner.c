#include "store/store_inner.h"

#include <assert.h>

static struct store *inner_of(const struct store *store)
{
    assert(store->inner != NULL);
    return store->inner;
}

/* --- files --- */

static enum zt_status list(struct store *store, store_visit visit, void *context,
                           struct zt_error *error)
{
    return inner_of(store)->ops->list(inner_of(store), visit, context, error);
}

static enum zt_status publish(struct store *store, struct staged_file *file, const char *path,
                              const struct store_expected *expected, struct zt_error *error)
{
    return inner_of(store)->ops->publish(inner_of(store), file, path, expected, error);
}

static enum zt_status may_publish(struct store *store, const char *path,
                                  const struct store_leaving *leaving, struct zt_error *error)
{
    return inner_of(store)->ops->may_publish(inner_of(store), path, leaving, error);
}

static void find_links(struct store *store, const char *folder, struct store_links *out_links)
{
    inner_of(store)->ops->find_links(inner_of(store), folder, out_links);
}

static enum zt_status make_folder(struct store *store, const char *path, struct zt_error *error)
{
    return inner_of(store)->ops->make_folder(inner_of(store), path, error);
}

static enum zt_status exclude(struct store *store, const char *name, int64_t by_ms, int *out_lock,
                              struct zt_error *error)
{
    return inner_of(store)->ops->exclude(inner_of(store), name, by_ms, out_lock, error);
}

static enum zt_status remove_file(struct store *store, const char *path,
                                  const struct store_expected *expected, struct zt_error *error)
{
    return inner_of(store)->ops->remove(inner_of(store), path, expected, error);
}

static enum zt_status settle(struct store *store, const char *path, struct zt_error *error)
{
    return inner_of(store)->ops->settle(inner_of(store), path, error);
}

static void remove_emptied(struct store *store, const char *path, size_t kept_length)
{
    inner_of(store)->ops->remove_emptied(inner_of(store), path, kept_length);
}

static size_t misnamed_files(const struct store *store)
{
    return inner_of(store)->ops->misnamed_files(inner_of(store));
}

static int watch(struct store *store)
{
    return inner_of(store)->ops->watch(inner_of(store));
}

static bool changed(struct store *store)
{
    return inner_of(store)->ops->changed(inner_of(store));
}

static bool is_changing(struct store *store)
{
    return inner_of(store)->ops->is_changing(inner_of(store));
}

static bool reports(const struct store *store)
{
    return inner_of(store)->ops->reports(inner_of(store));
}

static enum zt_status list_changes(struct store *store, store_visit visit, void *context,
                                   bool *out_whole, struct zt_error *error)
{
    return inner_of(store)->ops->list_changes(inner_of(store), visit, context, out_whole, error);
}

static const struct store_ops inner_ops = {
    .list = list,
    .publish = publish,
    .may_publish = may_publish,
    .find_links = find_links,
    .make_folder = make_folder,
    .exclude = exclude,
    .remove = remove_file,
    .settle = settle,
    .remove_emptied = remove_emptied,
    .misnamed_files = misnamed_files,
    .watch = watch,
    .changed = changed,
    .is_changing = is_changing,
    .reports = reports,
    .list_changes = list_changes,
};

/* As a macro, because the members have different types. */
#define FILL(member)                                        \
    (ops->member = inner->ops->member == NULL ? NULL        \
                   : ops->member != NULL      ? ops->member \
                                              : inner_ops.member)

void store_inner_ops(const struct store *inner, struct store_ops *ops)
{
    FILL(list);
    FILL(publish);
    FILL(may_publish);
    FILL(find_links);
    FILL(make_folder);
    FILL(exclude);
    FILL(remove);
    FILL(settle);
    FILL(remove_emptied);
    FILL(misnamed_files);
    FILL(watch);
    FILL(changed);
    FILL(is_changing);
    FILL(reports);
    FILL(list_changes);
}

/* --- claims --- */

static enum zt_status prepare(struct store *store, struct staged_file *file, const char *path,
                              const uint8_t sha256[32], struct zt_error *error)
{
    return inner_of(store)->claims->prepare(inner_of(store), file, path, sha256, error);
}

static enum zt_status claim(struct store *store, struct zt_text name, int64_t by_ms,
                            struct store_claim **out_claim, struct zt_error *error)
{
    return inner_of(store)->claims->claim(inner_of(store), name, by_ms, out_claim, error);
}

static const char *refusal(const struct store *store)
{
    return inner_of(store)->claims->refusal(inner_of(store));
}

static enum zt_status read_fact(struct store *store, const struct file_identity *identity,
                                const char *kind, char **out_text, size_t *out_length,
                                struct zt_error *error)
{
    return inner_of(store)->claims->read_fact(inner_of(store), identity, kind, out_text, out_length,
                                              error);
}

static enum zt_status write_fact(struct store *store, const struct file_identity *identity,
                                 const char *kind, const char *text, size_t length,
                                 struct zt_error *error)
{
    return inner_of(store)->claims->write_fact(inner_of(store), identity, kind, text, length,
                                               error);
}

static enum zt_status find_sha256(struct store *store, const char *path,
                                  const struct file_identity *identity, uint8_t out_sha256[32],
                                  struct zt_error *error)
{
    return inner_of(store)->claims->find_sha256(inner_of(store), path, identity, out_sha256, error);
}

void store_inner_claims(const struct store *inner, struct store_claim_ops *out_claims)
{
    assert(inner->claims != NULL);
    *out_claims = (struct store_claim_ops){.prepare = prepare,
                                           .claim = claim,
                                           .release = inner->claims->release,
                                           .refusal = refusal,
                                           .read_fact = read_fact,
                                           .write_fact = write_fact,
                                           .find_sha256 = find_sha256};
}

/* --- shared files --- */

static enum zt_status find_shared(struct store *store, struct store_shared_file *file,
                                  struct zt_error *error)
{
    return inner_of(store)->shared->find(inner_of(store), file, error);
}

static void fetch_shared(struct store *store, const struct store_shared_file *file,
                         struct cache_fetch *fetch, store_shared_done done, void *context)
{
    inner_of(store)->shared->fetch(inner_of(store), file, fetch, done, context);
}

static enum zt_status keep_shared(struct store *store, const struct store_shared_file *file,
                                  int descriptor, struct zt_error *error)
{
    return inner_of(store)->shared->keep(inner_of(store), file, descriptor, error);
}

const struct store_shared_ops store_inner_shared = {
    .find = find_shared, .fetch = fetch_shared, .keep = keep_shared};
