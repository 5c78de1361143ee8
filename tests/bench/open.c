/* Time and memory of opening a file: `bench-open FILE [TIMES]` prints the shortest time in ms,
 * the objects, and the bytes of memory beyond the manifest's own for each object, at the peak and
 * once open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zt/model.h"

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A line of /proc/self/status ("VmRSS:"), in bytes. */
static double status_bytes(const char *name)
{
    char line[256];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (status != NULL && fgets(line, sizeof(line), status) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name), NULL);
    if (status != NULL)
        fclose(status);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    struct zt_source *source = NULL;
    struct zt_model *model = NULL;
    struct zt_error error;
    double before;
    double best_ms, peak, held;
    double manifest;

    if (argc < 2 || zt_source_open_file(argv[1], &source, &error) != ZT_OK) {
        fprintf(stderr, "usage: bench-open FILE [TIMES]\n");
        return 2;
    }
    before = status_bytes("VmRSS:");
    best_ms = 1e9;
    peak = 0;
    held = 0;
    for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 5); i++) {
        double start;
        double took;

        zt_model_free(model);
        start = now_ms();
        if (zt_model_open(source, &model, &error) != ZT_OK) {
            fprintf(stderr, "%s: %s\n", argv[1], error.message);
            return 1;
        }
        took = now_ms() - start;
        best_ms = took < best_ms ? took : best_ms;
        if (i == 0) {
            peak = status_bytes("VmHWM:") - before;
            held = status_bytes("VmRSS:") - before;
        }
    }
    manifest = (double)model->manifest_length;
    printf("%.1f %u %.0f %.0f\n", best_ms, model->object_count,
           (peak - manifest) / model->object_count, (held - manifest) / model->object_count);
    zt_model_free(model);
    zt_source_close(source);
    return 0;
}
