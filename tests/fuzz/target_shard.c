/* Shards of xet: a list of files that lie one behind the other inside the bytes, or a failure. */
#include "fuzz.h"

#include <stdlib.h>

#include "hub/xet/shard.h"

static void read_terms(struct xet_shard *shard, const struct xet_shard_file *file)
{
    for (uint32_t i = 0; i < file->term_count; i++) {
        struct xet_shard_term term;
        struct zt_error error;
        const enum zt_status status = xet_shard_term_read(shard, file, i, &term, &error);

        FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID);
        FUZZ_ASSERT(status != ZT_OK || term.first < term.end);
    }
}

static void read_files(struct xet_shard *shard, size_t length)
{
    struct xet_shard_file file = {.next = 0};
    uint64_t record = 0;

    for (;;) {
        struct zt_error error;
        const enum zt_status status = xet_shard_file_read(shard, record, &file, &error);

        FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID);
        if (status != ZT_OK || file.is_end)
            return;
        FUZZ_ASSERT(file.next > record);
        FUZZ_ASSERT(file.next < length / XET_SHARD_RECORD_BYTES);
        read_terms(shard, &file);
        record = file.next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct xet_shard *shard = malloc(sizeof(*shard));
    struct zt_source *source;
    struct zt_error error;
    enum zt_status status;

    FUZZ_ASSERT(shard != NULL);
    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    status = xet_shard_open(shard, source, 0, length, &error);
    FUZZ_ASSERT(status == ZT_OK || status == ZT_INVALID);
    if (status == ZT_OK)
        read_files(shard, length);
    zt_source_close(source);
    free(shard);
    return 0;
}
