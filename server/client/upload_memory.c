#include "client/upload_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "zt/digest.h"

#define KEPT_S    (7 * 24 * 3600)
#define FOLDER    "ztserve/push"
#define KEY_BYTES 16

/* Makes each folder of a path that ends in one. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
    return access(path, W_OK) == 0;
}

static char *folder_of_state(void)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    int length = -1;

    if (state != NULL && state[0] == '/')
        length = asprintf(&path, "%s/" FOLDER, state);
    else if (home != NULL && home[0] == '/')
        length = asprintf(&path, "%s/.local/state/" FOLDER, home);
    if (length < 0)
        return NULL;
    if (make_folders(path))
        return path;
    free(path);
    return NULL;
}

static void remove_old(const char *folder)
{
    DIR *stream = opendir(folder);
    const time_t oldest = time(NULL) - KEPT_S;
    const struct dirent *entry;
    struct stat file;

    while (stream != NULL && (entry = readdir(stream)) != NULL)
        if (fstatat(dirfd(stream), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(file.st_mode) && file.st_mtime < oldest)
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream != NULL)
        closedir(stream);
}

/* Makes the key of an upload: a digest of everything that identifies it. */
static bool make_key(const char *model_url, const char *file_path, const struct stat *file,
                     char out_key[2 * KEY_BYTES + 1])
{
    struct zt_digest digest;
    char *text = NULL;
    char *real = realpath(file_path, NULL);
    const int length =
        asprintf(&text, "%s\n%s\n%jd %jd %ld %ju", model_url, real != NULL ? real : file_path,
                 (intmax_t)file->st_size, (intmax_t)file->st_mtim.tv_sec, file->st_mtim.tv_nsec,
                 (uintmax_t)file->st_ino);
    const bool made =
        length >= 0 && zt_digest_of(ZT_DIGEST_SHA256, text, (size_t)length, &digest) == ZT_OK;

    if (made)
        zt_hex_write(out_key, digest.bytes, KEY_BYTES);
    free(real);
    if (length >= 0)
        free(text);
    return made;
}

char *upload_memory_path(const char *model_url, const char *file_path, const struct stat *file)
{
    char *folder = folder_of_state();
    char key[2 * KEY_BYTES + 1];
    char *path = NULL;

    if (folder != NULL && make_key(model_url, file_path, file, key)) {
        remove_old(folder);
        if (asprintf(&path, "%s/%s", folder, key) < 0)
            path = NULL;
    }
    free(folder);
    return path;
}

bool upload_memory_read(const char *memory, struct web_address *out_upload)
{
    FILE *file = memory != NULL ? fopen(memory, "re") : NULL;
    char line[WEB_ORIGIN_SIZE + WEB_TARGET_SIZE];
    bool is_read = false;

    if (file == NULL)
        return false;
    if (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        is_read = web_address_read(line, out_upload);
    }
    fclose(file);
    return is_read;
}

void upload_memory_write(const char *memory, const struct web_address *upload)
{
    int descriptor = -1;

    if (memory != NULL)
        descriptor = open(memory, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0)
        return;
    dprintf(descriptor, "%s%s\n", upload->origin, upload->target);
    close(descriptor);
}

void upload_memory_remove(const char *memory)
{
    if (memory != NULL)
        unlink(memory);
}
