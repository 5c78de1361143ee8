/* Collects the allowed places of a configuration: the root, the state folder, and the folders of
 * the files that SIGHUP reads again; for a bucket and for upstreams, also the cache and the files
 * needed to connect. Folders are allowed instead of the files, because a new version of a file
 * usually replaces it by renaming. */
#include "serve/confinement.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/processors.h"
#include "config/bucket.h"
#include "remote/credentials.h"
#include "remote/remote.h"
#include "sandbox/sandbox.h"
#include "store/s3/s3_store.h"
#include "store/state_place.h"
#include "zt/digest.h"

/* The root, the state folder, the cache, two for each of the files; for a bucket and upstreams,
 * also files for names, certificates and credentials. */
#define PLACES_MAX 128

struct plan {
    struct sandbox_place places[PLACES_MAX];
    char paths[PLACES_MAX][STATE_FOLDER_PATH_SIZE]; /* long enough for the longest */
    size_t count;
};

static bool has(const struct plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->paths[i], path) == 0)
            return true;
    return false;
}

static void add(struct plan *plan, const char *path, enum sandbox_access access, bool named)
{
    assert(plan->count < PLACES_MAX);
    snprintf(plan->paths[plan->count], STATE_FOLDER_PATH_SIZE, "%s", path);
    plan->places[plan->count] = (struct sandbox_place){plan->paths[plan->count], access, named};
    plan->count++;
}

/* Allows the folder of a file, so that a file renamed to its name can be read. For a file in the
 * top folder, which would allow everything, only the file is allowed. */
static void add_folder_of(struct plan *plan, const char *file)
{
    char path[PATH_MAX];
    char folder[PATH_MAX];

    snprintf(path, sizeof(path), "%s", file);
    if (realpath(dirname(path), folder) == NULL)
        return;
    if (strcmp(folder, "/") == 0)
        snprintf(folder, sizeof(folder), "%s", file);
    if (!has(plan, folder))
        add(plan, folder, SANDBOX_FILES, true);
}

/* Allows the folder of a file and, if the file is a symbolic link, the folder of its target. */
static void add_file(struct plan *plan, const char *file)
{
    char target[PATH_MAX];

    if (file == NULL || file[0] == '\0')
        return;
    add_folder_of(plan, file);
    if (realpath(file, target) != NULL)
        add_folder_of(plan, target);
}

/* Decoded components that are too large for memory are stored in the state folder, or in /var/tmp
 * if it cannot be written to (derived/decoded_sink.c). */
static void add_state(struct plan *plan, const struct config *config)
{
    char path[STATE_FOLDER_PATH_SIZE];
    const int folder = state_folder_open(config);
    bool is_in_root;

    if (folder < 0) {
        add(plan, "/var/tmp", SANDBOX_UNNAMED, true);
        return;
    }
    close(folder);
    state_folder_path(config, path);
    is_in_root = config->state.dir[0] == '\0' && !config_root_is_bucket(config->root);
    add(plan, path, SANDBOX_WRITE, !config->writable || !is_in_root);
}

/* The files that SIGHUP reads again: the server's own, then the token files of upstreams. */
#define READ_AGAIN_OWN 7
#define READ_AGAIN     (READ_AGAIN_OWN + CONFIG_UPSTREAMS_MAX)

static void files_of(const struct config *config, const char *config_file,
                     const char *out_files[READ_AGAIN])
{
    const char *const files[READ_AGAIN_OWN] = {
        config_file,     config->auth.tokens,   config->auth.jwks, config->tls.cert,
        config->tls.key, config->tls.client_ca, config->s3.keys};

    memcpy(out_files, files, sizeof(files));
    for (unsigned i = 0; i < CONFIG_UPSTREAMS_MAX; i++)
        out_files[READ_AGAIN_OWN + i] =
            i < config->upstream_count ? config->upstreams[i].token_file : NULL;
}

static void add_credentials(void *plan, const char *file)
{
    add_file(plan, file);
}

/* Allows a file in /etc, but not the folder, which has many other files. If another file replaces
 * it (instead of being written into it), only a restart will use the new one. */
static void add_system_file(void *plan, const char *file)
{
    static const char folder[] = "/etc/";
    const char *name = file + strlen(folder);
    char target[PATH_MAX];

    if (strncmp(file, folder, strlen(folder)) != 0 || strchr(name, '/') != NULL) {
        add_file(plan, file);
        return;
    }
    if (!has(plan, file))
        add(plan, file, SANDBOX_FILES, false);
    /* resolv.conf often leads there. */
    if (realpath(file, target) != NULL && strncmp(target, folder, strlen(folder)) != 0)
        add_folder_of(plan, target);
}

/* Allows the files needed to connect to a bucket. */
static void add_s3_client(struct plan *plan, const struct config *config)
{
    remote_files(s3_ca_file(config), add_system_file, plan);
    credentials_files(add_credentials, plan);
}

/* Allows the bucket's cache, and the files needed to connect to it. */
static void add_bucket(struct plan *plan, const struct config *config)
{
    char folder[STATE_FOLDER_PATH_SIZE];

    cache_folder_path(config, folder);
    if (cache_folder_make(config))
        add(plan, folder, SANDBOX_WRITE, config->cache.dir[0] != '\0');
    add_s3_client(plan, config);
}

/* Allows the folder of mirrored files, and the files needed to connect to upstreams. Opening
 * the mirror reports that the folder is missing. */
static void add_mirror(struct plan *plan, const struct config *config)
{
    char folder[STATE_FOLDER_PATH_SIZE];

    mirror_folder_path(config, folder);
    if (mirror_folder_make(config))
        add(plan, folder, SANDBOX_WRITE, config->cache.dir[0] != '\0');
    for (unsigned i = 0; i < config->upstream_count; i++) {
        const char *ca = config->upstreams[i].ca;

        remote_files(ca[0] != '\0' ? ca : NULL, add_system_file, plan);
        if (config->upstreams[i].kind == CONFIG_UPSTREAM_S3)
            add_s3_client(plan, config);
    }
}

static void add_places(struct plan *plan, const struct config *config, const char *config_file)
{
    const char *read_again[READ_AGAIN];

    files_of(config, config_file, read_again);
    if (config_root_is_bucket(config->root))
        add_bucket(plan, config);
    else
        add(plan, config->root, config->writable ? SANDBOX_WRITE : SANDBOX_READ, true);
    add_state(plan, config);
    if (config->upstream_count > 0)
        add_mirror(plan, config);
    for (size_t i = 0; i < READ_AGAIN; i++)
        add_file(plan, read_again[i]);
    /* The boot id, by which uploads recognise a restart of the system. */
    add(plan, "/proc/sys/kernel/random", SANDBOX_FILES, false);
}

/* access only checks the user's permissions; Landlock decides when a file is opened. */
static bool is_forbidden(const char *path)
{
    int file;

    if (path == NULL || path[0] == '\0' || access(path, R_OK) != 0)
        return false;
    file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return errno == EACCES;
    close(file);
    return false;
}

const char *confinement_forbidden(const struct config *config, const char *config_file)
{
    const char *read_again[READ_AGAIN];

    files_of(config, config_file, read_again);
    for (size_t i = 0; i < READ_AGAIN; i++)
        if (is_forbidden(read_again[i]))
            return read_again[i];
    return NULL;
}

/* Whether the server connects to other machines. */
static bool asks_others(const struct config *config)
{
    return config_root_is_bucket(config->root) || config->upstream_count > 0;
}

/* Uses the libraries once, because they read their own files on first use. */
static void use_libraries(const struct config *config)
{
    struct zt_hasher *hasher;
    struct zt_error error;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) == ZT_OK)
        zt_hasher_free(hasher);
    (void)processors_count();
    tzset();
    /* A failure will recur when the bucket or the upstream is connected to. */
    if (asks_others(config))
        (void)remote_prepare(&error);
}

void confinement_renew(const struct config *config)
{
    bool has_secrets =
        config->auth.tokens[0] != '\0' || config->tls.key[0] != '\0' || config->s3.keys[0] != '\0';

    for (unsigned i = 0; i < config->upstream_count; i++)
        has_secrets = has_secrets || config->upstreams[i].token_file[0] != '\0';
    if (config->sandbox && has_secrets)
        sandbox_hide_memory();
}

void confinement_begin(const struct config *config, const char *config_file)
{
    struct plan *plan;
    struct sandbox_report *report;

    if (!config->sandbox) {
        log_write(LOG_LEVEL_INFO, "not confined: the key sandbox is false");
        return;
    }
    plan = calloc(1, sizeof(*plan));
    report = calloc(1, sizeof(*report));
    if (plan != NULL && report != NULL) {
        use_libraries(config);
        add_places(plan, config, config_file);
        confinement_renew(config);
        sandbox_enter(plan->places, plan->count, asks_others(config), report);
        log_write(report->complete ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "confined: %s", report->text);
    } else {
        log_write(LOG_LEVEL_WARN, "not confined: out of memory");
    }
    free(plan);
    free(report);
}
