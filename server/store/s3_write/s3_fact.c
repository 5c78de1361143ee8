/* Facts: what one replica has found out about a version, so that the others need not. */
#include "store/s3_write/s3_write.h"

enum zt_status s3_write_fact(struct store *base, const struct file_identity *identity,
                             const char *kind, const char *text, size_t length,
                             struct zt_error *error)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_FACT_KEY_SIZE];
    /* Of two replicas that write at the same time, either one's will do. */
    const struct bucket_put put = {
        .key = key, .condition = BUCKET_ALWAYS, .bytes = text, .length = length};

    if (!store->config->writable)
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "this server writes nothing");
    if (!bucket_may_ask(&store->bucket))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the object store is away");
    s3_fact_key(identity, kind, key);
    return bucket_put(&store->bucket, &put, NULL, error);
}
