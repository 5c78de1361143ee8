/* How fast slices are gathered: `bench-slice FILE` makes a tensor of 256 MiB in FILE, which it
 * removes again, and prints for runs of several lengths, each an eighth of its row, the GiB/s of
 * the slice's source, read 1 MiB at a time, those of a plain loop over the mapped file, and their
 * ratio. Best of five, the file in the page cache. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "zt/slice.h"

#define TENSOR_BYTES ((uint64_t)256 << 20)
#define READ_BYTES   ((size_t)1 << 20)
#define ROUNDS       5
/* As in a tensor sharded for eight ranks along its last axis. */
#define PARTS 8

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct zt_source *make_tensor(const char *path)
{
    struct zt_source *source = NULL;
    uint8_t *block = malloc(READ_BYTES);
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (block == NULL || descriptor < 0 || unlink(path) != 0)
        return NULL;
    for (uint64_t at = 0; at < TENSOR_BYTES; at += READ_BYTES) {
        memset(block, (int)(at >> 20), READ_BYTES);
        if (write(descriptor, block, READ_BYTES) != (ssize_t)READ_BYTES)
            return NULL;
    }
    free(block);
    return zt_source_from_descriptor(descriptor, &source, NULL) == ZT_OK ? source : NULL;
}

static double gather_s(const struct zt_slice *slice, struct zt_source *tensor, uint8_t *out)
{
    struct zt_source *source;
    double start;
    double took;

    if (zt_slice_source(slice, tensor, 0, &source, NULL) != ZT_OK)
        exit(1);
    start = now_s();
    for (uint64_t at = 0; at < slice->length; at += READ_BYTES) {
        uint64_t left = slice->length - at;

        if (zt_source_read_at(source, at, out, left < READ_BYTES ? (size_t)left : READ_BYTES,
                              NULL) != ZT_OK)
            exit(1);
    }
    took = now_s() - start;
    zt_source_close(source);
    return took;
}

static double loop_s(const struct zt_slice *slice, const uint8_t *tensor, uint8_t *out)
{
    double start = now_s();
    uint64_t to = 0;

    for (uint64_t i = 0; i < slice->loops[0].count; i++) {
        memcpy(out + to, tensor + slice->offset + i * slice->loops[0].stride_bytes,
               slice->run_bytes);
        to += slice->run_bytes;
        if (to + slice->run_bytes > READ_BYTES)
            to = 0;
    }
    return now_s() - start;
}

static void measure(struct zt_source *source, uint64_t run_bytes, uint8_t *out)
{
    const uint64_t shape[] = {TENSOR_BYTES / run_bytes / PARTS, run_bytes * PARTS};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_U8, ZT_LOGICAL_NONE};
    struct zt_slice slice;
    double gathered = 1e9, looped = 1e9;
    double gib;

    if (zt_slice_shard(&tensor, 3, PARTS, 1, &slice, NULL) != ZT_SLICE_FITS)
        exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        double took = gather_s(&slice, source, out);

        gathered = took < gathered ? took : gathered;
        took = loop_s(&slice, zt_source_map(source), out);
        looped = took < looped ? took : looped;
    }
    gib = (double)slice.length / (1 << 30);
    printf("run %7" PRIu64 "  gathered %6.2f  looped %6.2f  ratio %.2f\n", run_bytes,
           gib / gathered, gib / looped, looped / gathered);
}

int main(int argc, char **argv)
{
    static const uint64_t runs[] = {1, 4, 64, 512, 1024, 4096, 16384, 131072};
    struct zt_source *source = argc == 2 ? make_tensor(argv[1]) : NULL;
    uint8_t *out = malloc(READ_BYTES);

    if (source == NULL || out == NULL) {
        fprintf(stderr, "usage: bench-slice FILE, which must not exist\n");
        return 2;
    }
    memset(out, 0, READ_BYTES);
    zt_source_allow_mapped();
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++)
        measure(source, runs[i], out);
    free(out);
    zt_source_close(source);
    return 0;
}
