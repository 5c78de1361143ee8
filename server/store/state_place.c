/* Finds, opens and makes the state folder and the cache. */
#include "store/state_place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/bucket.h"

#define DEFAULT_FOLDER ".ztserve"
#define CACHE_FOLDER   "cache"
#define MIRROR_FOLDER  "mirror"
#define SYSTEM_PLACE   "/var/lib"
/* A bucket's name and the parts of its prefix; longer ones are cut. */
#define BUCKET_FOLDER_SIZE 201
/* Leaves room for everything that is appended. */
#define BASE_MAX (CONFIG_TEXT_SIZE - BUCKET_FOLDER_SIZE - 32)

/* --- a bucket's --- */

/* Returns an absolute path from the environment, except "/"; otherwise NULL. */
static const char *place_in(const char *variable)
{
    const char *path = getenv(variable);

    return path != NULL && path[0] == '/' && path[1] != '\0' && strlen(path) < BASE_MAX ? path
                                                                                        : NULL;
}

/* "models", "models+team+a". Bucket names never contain '+', so names are unique. */
static void name_of_bucket(const char *root, char out_name[BUCKET_FOLDER_SIZE])
{
    struct config_message message;
    struct config_bucket bucket = {.name = "bucket"};
    size_t length;

    assert(config_root_is_bucket(root));
    (void)config_bucket_parse(root, &bucket, &message);
    snprintf(out_name, BUCKET_FOLDER_SIZE, "%s%s%.*s", bucket.name,
             bucket.prefix[0] != '\0' ? "+" : "", BUCKET_FOLDER_SIZE - CONFIG_BUCKET_NAME_SIZE - 2,
             bucket.prefix);
    length = strlen(out_name);
    if (out_name[length - 1] == '/')
        out_name[length - 1] = '\0';
    for (char *slash = out_name; (slash = strchr(slash, '/')) != NULL;)
        *slash = '+';
}

static void state_folder_of_bucket(const char *root, char out_path[STATE_FOLDER_PATH_SIZE])
{
    const char *service = place_in("STATE_DIRECTORY");
    const char *user = place_in("XDG_STATE_HOME");
    const char *home = user == NULL ? place_in("HOME") : NULL;
    const char *base = user != NULL ? user : home != NULL ? home : SYSTEM_PLACE;
    char name[BUCKET_FOLDER_SIZE];

    /* systemd separates several folders by colons. */
    if (service != NULL) {
        snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%.*s", (int)strcspn(service, ":"), service);
        return;
    }
    name_of_bucket(root, name);
    snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%s%s/ztserve/%s", base,
             home != NULL ? "/.local/state" : "", name);
}

/* Makes the folders above one. Failures are ignored: the caller then fails to open the folder and
 * reports that. */
static void make_folders_above(const char *path)
{
    char above[STATE_FOLDER_PATH_SIZE];

    snprintf(above, sizeof(above), "%s", path);
    for (char *slash = strchr(above + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(above, 0700);
        *slash = '/';
    }
}

/* --- both --- */

void state_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE])
{
    static_assert(CONFIG_TEXT_SIZE + sizeof(DEFAULT_FOLDER) + 1 <= STATE_FOLDER_PATH_SIZE,
                  "the path fits");
    if (config->state.dir[0] != '\0')
        snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%s", config->state.dir);
    else if (config_root_is_bucket(config->root))
        state_folder_of_bucket(config->root, out_path);
    else
        snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%s/%s", config->root, DEFAULT_FOLDER);
}

/* Returns -1 with errno unless the folder can be written to. */
static int open_folder(const char *path, int follow)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    int os_error;

    if (folder < 0 && errno == ELOOP)
        errno = ENOTDIR;
    if (folder < 0 || faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return folder;
    os_error = errno;
    close(folder);
    errno = os_error;
    return -1;
}

int state_folder_open(const struct config *config)
{
    /* A link in the root may lead anywhere: every user with write access to the root can make
     * one. */
    const int follow = config->state.dir[0] != '\0' ? 0 : O_NOFOLLOW;
    char path[STATE_FOLDER_PATH_SIZE];

    state_folder_path(config, path);
    if (config->state.dir[0] == '\0' && config_root_is_bucket(config->root))
        make_folders_above(path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    return open_folder(path, follow);
}

void cache_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE])
{
    char state[STATE_FOLDER_PATH_SIZE];

    static_assert(CONFIG_TEXT_SIZE + sizeof(CACHE_FOLDER) + 1 <= STATE_FOLDER_PATH_SIZE,
                  "the path fits");
    if (config->cache.dir[0] != '\0') {
        snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%s", config->cache.dir);
        return;
    }
    state_folder_path(config, state);
    snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%.*s/%s", CONFIG_TEXT_SIZE, state, CACHE_FOLDER);
}

/* Makes a folder in the state folder if is_in_state, else anywhere. */
static bool make_folder(const struct config *config, const char *path, bool is_in_state)
{
    int folder = is_in_state ? state_folder_open(config) : -1;

    if (folder >= 0)
        close(folder);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    folder = open_folder(path, 0);
    if (folder >= 0)
        close(folder);
    return folder >= 0;
}

bool cache_folder_make(const struct config *config)
{
    char path[STATE_FOLDER_PATH_SIZE];

    cache_folder_path(config, path);
    return make_folder(config, path, config->cache.dir[0] == '\0');
}

void mirror_folder_path(const struct config *config, char out_path[STATE_FOLDER_PATH_SIZE])
{
    char above[STATE_FOLDER_PATH_SIZE];

    static_assert(CONFIG_TEXT_SIZE + sizeof(MIRROR_FOLDER) + 1 <= STATE_FOLDER_PATH_SIZE,
                  "the path fits");
    if (config->cache.dir[0] != '\0')
        snprintf(above, sizeof(above), "%s", config->cache.dir);
    else
        state_folder_path(config, above);
    snprintf(out_path, STATE_FOLDER_PATH_SIZE, "%.*s/%s", CONFIG_TEXT_SIZE, above, MIRROR_FOLDER);
}

bool mirror_folder_make(const struct config *config)
{
    char path[STATE_FOLDER_PATH_SIZE];

    if (config->cache.dir[0] != '\0' && mkdir(config->cache.dir, 0700) != 0 && errno != EEXIST)
        return false;
    mirror_folder_path(config, path);
    return make_folder(config, path, config->cache.dir[0] == '\0');
}
