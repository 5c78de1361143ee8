/* Widening without a server: `bench-widen FILE [ROUNDS [FOLDER]]` widens each tensor that can be,
 * and prints its name, the shortest time in seconds of the rounds (default 1), and the bytes that
 * it became. In FOLDER the values of each tensor are left in a file of its name. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "zt/widen.h"

/* As much as a worker of the server takes at a time. */
#define WINDOW_BYTES ((uint64_t)1 << 20)

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads a source in windows, into `all` if it is not NULL. */
static enum zt_status read_all(struct zt_source *source, uint8_t *window, uint8_t *all,
                               struct zt_error *error)
{
    const uint64_t size = zt_source_size(source);
    enum zt_status status = ZT_OK;

    for (uint64_t at = 0; status == ZT_OK && at < size; at += WINDOW_BYTES) {
        const uint64_t length = size - at < WINDOW_BYTES ? size - at : WINDOW_BYTES;

        status =
            zt_source_read_at(source, at, all != NULL ? all + at : window, (size_t)length, error);
    }
    return status;
}

/* Writes what a tensor became to a file. */
static enum zt_status save(struct zt_source *source, const char *folder, struct zt_text name,
                           struct zt_error *error)
{
    const size_t size = (size_t)zt_source_size(source);
    uint8_t *all = malloc(size + 1);
    enum zt_status status = read_all(source, NULL, all, error);
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%.*s", folder, (int)name.length, name.bytes);
    file = fopen(path, "wb");
    if (status == ZT_OK && (file == NULL || fwrite(all, 1, size, file) != size))
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot write %s", path);
    if (file != NULL)
        fclose(file);
    free(all);
    return status;
}

static enum zt_status measure(struct zt_source *source, unsigned rounds, double *out_best_s,
                              struct zt_error *error)
{
    uint8_t *window = malloc(WINDOW_BYTES);
    enum zt_status status = ZT_OK;

    *out_best_s = 1e9;
    for (unsigned i = 0; status == ZT_OK && i < rounds; i++) {
        const double start = now_s();
        double took;

        status = read_all(source, window, NULL, error);
        took = now_s() - start;
        *out_best_s = took < *out_best_s ? took : *out_best_s;
    }
    free(window);
    return status;
}

static enum zt_status widen_object(const struct zt_model *model, const struct zt_object *object,
                                   struct zt_source *file, unsigned rounds, const char *folder,
                                   struct zt_error *error)
{
    const struct zt_component *component = zt_object_components(model, object);
    const struct zt_widener *widener = zt_widener_find(object, component);
    const struct zt_text name = zt_object_name(object);
    struct zt_source *widened;
    enum zt_status status;
    double best_s;

    if (widener == NULL || !zt_component_is_plain(component))
        return ZT_OK;
    status = zt_widened_open(widener, file, component->offset, zt_object_elements(model, object),
                             &widened, error);
    if (status != ZT_OK)
        return status;
    status = measure(widened, rounds, &best_s, error);
    if (status == ZT_OK && folder != NULL)
        status = save(widened, folder, name, error);
    if (status == ZT_OK)
        printf("%.*s %.9f %llu\n", (int)name.length, name.bytes, best_s,
               (unsigned long long)zt_source_size(widened));
    zt_source_close(widened);
    return status;
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    struct zt_source *file = NULL;
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    if (argc < 2) {
        fprintf(stderr, "usage: bench-widen FILE [ROUNDS [FOLDER]]\n");
        return 2;
    }
    status = zt_source_open_file(argv[1], &file, &error);
    if (status == ZT_OK)
        status = zt_model_open(file, &model, &error);
    for (uint32_t i = 0; status == ZT_OK && i < model->object_count; i++)
        status = widen_object(model, &model->objects[i], file, rounds, argc > 3 ? argv[3] : NULL,
                              &error);
    if (status != ZT_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    zt_model_free(model);
    zt_source_close(file);
    return status == ZT_OK ? 0 : 1;
}
