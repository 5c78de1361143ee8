/* Memory that runs out while a file is opened and verified: the n-th allocation fails, for every n.
 * Nothing may leak, and no file may be judged differently than with enough memory. replay.c runs it
 * on the seeds of every reader.
 *
 * Not under sanitizers, which replace the allocator too. */
#include "fuzz.h"

#include "allocation.h"
#include "zt/shards.h"
#include "zt/verify.h"

/* More allocations than any of the files takes. */
#define CALLS_MAX 5000

#ifndef ZT_SANITIZED
/* Mixes one more finding into a hash of them. */
static void find(uint64_t *findings, unsigned finding)
{
    *findings = *findings * 31 + finding;
}

/* OpenSSL keeps blocks of its own when its caches cannot grow. */
static bool is_sha256(const struct zt_model *model, const struct zt_component *part)
{
    struct zt_digest digest;

    return zt_component_digest(model, part, &digest, NULL) == ZT_OK &&
           digest.algorithm == ZT_DIGEST_SHA256;
}

static enum zt_status check_parts(const struct zt_model *model, struct zt_source *source,
                                  uint64_t *findings)
{
    struct zt_component_check check;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; status == ZT_OK && i < model->component_count; i++) {
        const struct zt_component *part = &model->components[i];

        if (part->shard != 0 || is_sha256(model, part))
            continue;
        status = zt_component_check(model, part, source, NULL, &check, NULL);
        if (status == ZT_OK)
            find(findings, check.verdict);
    }
    return status;
}

static enum zt_status check_objects(const struct zt_model *model, struct zt_source *source,
                                    uint64_t *findings)
{
    const struct zt_files files = {source, NULL};
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; status != ZT_NO_MEMORY && i < model->object_count; i++) {
        status = zt_object_check(model, &model->objects[i], &files, NULL);
        find(findings, status);
    }
    return status == ZT_NO_MEMORY ? status : ZT_OK;
}

static enum zt_status open_and_verify(const uint8_t *bytes, size_t length, uint64_t *out_findings)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    enum zt_status status = zt_source_from_memory(bytes, length, &source, NULL);

    *out_findings = 0;
    if (status == ZT_OK)
        status = zt_model_open(source, &model, NULL);
    FUZZ_ASSERT((status == ZT_OK) == (model != NULL));
    if (status == ZT_OK)
        status = check_parts(model, source, out_findings);
    if (status == ZT_OK)
        status = check_objects(model, source, out_findings);
    if (status == ZT_OK && model->format == ZT_FORMAT_ZT2) {
        status = zt_canonical_check(model, source, NULL);
        find(out_findings, status);
    }
    zt_model_free(model);
    zt_source_close(source);
    return status;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
#ifdef ZT_SANITIZED
    (void)bytes, (void)length;
#else
    uint64_t whole;
    enum zt_status unhindered = open_and_verify(bytes, length, &whole);
    bool met = true;

    for (long n = 0; met; n++) {
        uint64_t findings;
        enum zt_status status = ZT_OK;
        long before = 0;

        FUZZ_ASSERT(n < CALLS_MAX);
        /* Each failure twice: libraries keep what they allocate on first use. */
        for (int turn = 0; turn < 2; turn++) {
            before = allocation_outstanding();
            allocation_fail(n);
            status = open_and_verify(bytes, length, &findings);
            met = allocation_end();
        }
        FUZZ_ASSERT(allocation_outstanding() == before);
        /* A library may manage without an allocation; the answer must then be the right one. */
        FUZZ_ASSERT(status == ZT_NO_MEMORY || (status == unhindered && findings == whole));
        FUZZ_ASSERT(met || status == unhindered);
    }
#endif
    return 0;
}
