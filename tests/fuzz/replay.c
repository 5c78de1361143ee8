/* Runs a target on files, and on all files of folders, without libFuzzer: every kept input in
 * ordinary test runs. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned long replayed;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    uint8_t *bytes;

    FUZZ_ASSERT(file != NULL && fstat(fileno(file), &facts) == 0);
    /* Exactly as long as the input, so that a sanitizer sees a read past it. */
    bytes = malloc((size_t)facts.st_size + (facts.st_size == 0));
    FUZZ_ASSERT(bytes != NULL);
    FUZZ_ASSERT(fread(bytes, 1, (size_t)facts.st_size, file) == (size_t)facts.st_size);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, (size_t)facts.st_size);
    free(bytes);
    replayed++;
}

static void replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);

        FUZZ_ASSERT(length > 0 && (size_t)length < sizeof(path));
        if (entries[i]->d_name[0] != '.')
            replay_file(path);
        free(entries[i]);
    }
    free(entries);
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        struct stat facts;

        /* A target may have no kept inputs. */
        if (stat(arguments[i], &facts) != 0)
            continue;
        if (S_ISDIR(facts.st_mode))
            replay_folder(arguments[i]);
        else
            replay_file(arguments[i]);
    }
    printf("%lu inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
