/* fuzz-seeds FOLDER: writes the seeds of every fuzz target, each into the folder named after its
 * target. */
#include "seeds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* With and without compression. */
#define CONVERT_TARGETS 14

static const char *folder;

static void make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
}

static void put_file(const char *target, const char *name, const void *bytes, size_t length)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, target);
    make_folder(path);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static bool is_container(const char *target)
{
    static const char *const containers[] = {"zt01",        "zt1",  "zt2", "mag",
                                             "safetensors", "gguf", "npy", "npz"};

    for (size_t i = 0; i < sizeof(containers) / sizeof(*containers); i++)
        if (strcmp(containers[i], target) == 0)
            return true;
    return false;
}

/* Each container is also a seed of target_convert.c, to another format. */
void seed_put(const char *target, const char *name, const void *bytes, size_t length)
{
    static char convert_to;
    char convert_name[256];
    char *input;

    put_file(target, name, bytes, length);
    if (!is_container(target))
        return;
    input = malloc(length + 1);
    if (input == NULL)
        exit(1);
    input[0] = convert_to++ % CONVERT_TARGETS;
    memcpy(input + 1, bytes, length);
    snprintf(convert_name, sizeof(convert_name), "%s-%s", target, name);
    put_file("convert", convert_name, input, length + 1);
    free(input);
}

void seed_put_text(const char *target, const char *name, const char *text)
{
    seed_put(target, name, text, strlen(text));
}

/* Makes the folder and its parents. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        make_folder(path);
        *slash = '/';
    }
    make_folder(path);
}

int main(int count, char **arguments)
{
    if (count != 2 || arguments[1][0] == '\0') {
        fputs("usage: fuzz-seeds FOLDER\n", stderr);
        return 2;
    }
    make_folders(arguments[1]);
    folder = arguments[1];
    seeds_zt();
    seeds_mag();
    seeds_neighbours();
    seeds_decoder();
    seeds_texts();
    seeds_pytorch();
    seeds_onnx();
    seeds_xet();
    seeds_s3();
    return 0;
}
