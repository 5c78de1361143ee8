/* Chooses a source and keeps its credentials fresh: one thread checks whether they are about to
 * expire, were refused, or were rewritten. Users take a copy. */
#include "remote/credentials.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "remote/credential_sources.h"

/* Credentials are renewed so long before they expire; short-lived ones halfway. */
#define RENEW_BEFORE_S 300
/* The longest pause after a failure. */
#define AGAIN_MOST_MS 60000
/* The same if there may be no credentials. */
#define SEEK_MOST_MS 600000

const struct credentials_pace credentials_usual_pace = {.check_interval_ms = 2000,
                                                        .again_ms = 5000,
                                                        .just_renewed_ms = 5000,
                                                        .refusal_every_ms = 60000};

/* In the order in which they are asked. */
static const struct source {
    const char *name;
    credential_fetch *fetch;
    bool is_renewed;
} sources[] = {
    {"environment", credential_from_environment, false},
    {"profile", credential_from_profile, true},
    {"web identity", credential_from_web_identity, true},
    {"container", credential_from_container, true},
    {"instance", credential_from_instance, true},
};

static const struct source anonymous = {"anonymous", NULL, false};

/* A machine that has just started may not have its metadata service yet. So the program does not
 * stay anonymous if a service may appear. */
static const struct source *const late = &sources[sizeof(sources) / sizeof(sources[0]) - 1];

/* Identifies a version of the file. */
struct file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

struct credentials {
    const struct credentials_pace *pace;
    struct credential_settings settings;
    struct credential_calls *calls;
    pthread_t thread;
    bool has_thread;
    bool is_ended;            /* the owner's: the thread was joined */
    struct file_version file; /* the thread's */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    /* Under the lock. */
    const struct source *source;
    bool is_sought; /* there are none: the late source is asked again and again */
    bool is_stopping;
    bool is_refused; /* to be renewed at once */
    bool is_failing;
    bool has_credential;
    struct credential credential;
    int64_t renew_at_s; /* wall clock; 0: not */
    int64_t renewed_ms;
    int64_t refused_ms; /* 0: never */
    int64_t again_ms;   /* after a failure, not before */
    int64_t pause_ms;
};

static int64_t now_s(void)
{
    return clock_wall_ns() / CLOCK_NS_PER_S;
}

/* --- taking --- */

static int64_t renewal_of(int64_t expires_s)
{
    const int64_t left_s = expires_s - now_s();

    if (expires_s == 0)
        return 0;
    if (left_s < 2 * RENEW_BEFORE_S)
        return now_s() + (left_s > 2 ? left_s / 2 : 1);
    return expires_s - RENEW_BEFORE_S;
}

/* Under the lock. */
static void take(struct credentials *credentials, const struct credential *credential)
{
    credentials->credential = *credential;
    credentials->has_credential = true;
    credentials->renew_at_s = renewal_of(credential->expires_s);
    credentials->renewed_ms = clock_ms();
    credentials->is_refused = false;
    credentials->again_ms = 0;
    credentials->pause_ms = credentials->pace->again_ms;
}

/* --- the thread --- */

static bool is_profile(const struct credentials *credentials)
{
    return credentials->source->fetch == credential_from_profile;
}

static struct file_version version_of(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return (struct file_version){.size = -1};
    return (struct file_version){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

static bool is_same_version(const struct file_version *a, const struct file_version *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

/* A file that is written at this moment is read once more when it is finished, because its version
 * is taken before. */
static bool file_changed(struct credentials *credentials)
{
    struct file_version version;

    if (!is_profile(credentials) || credentials->settings.profile_file == NULL)
        return false;
    version = version_of(credentials->settings.profile_file);
    if (is_same_version(&version, &credentials->file))
        return false;
    credentials->file = version;
    return true;
}

/* Under the lock. */
static bool is_due(const struct credentials *credentials)
{
    if (credentials->again_ms != 0 && !(credentials->is_sought && credentials->is_refused))
        return clock_ms() >= credentials->again_ms;
    if (credentials->is_refused)
        return true;
    return credentials->renew_at_s != 0 && now_s() >= credentials->renew_at_s;
}

/* Under the lock: the next time, and a longer pause after it. */
static void pause_longer(struct credentials *credentials)
{
    const int64_t most_ms = credentials->is_sought ? SEEK_MOST_MS : AGAIN_MOST_MS;

    credentials->again_ms = clock_ms() + credentials->pause_ms;
    if (credentials->pause_ms < most_ms)
        credentials->pause_ms *= 2;
}

/* Under the lock. */
static void note_failure(struct credentials *credentials, const struct zt_error *error)
{
    assert(lock_is_held(&credentials->lock));
    if (!credentials->is_failing)
        log_write(LOG_LEVEL_WARN, "credentials (%s) could not be renewed, retrying: %s",
                  credentials->source->name, error->message);
    credentials->is_failing = true;
    pause_longer(credentials);
}

/* Asks the late source while there are no credentials. */
static void seek(struct credentials *credentials)
{
    struct credential credential;
    struct zt_error error;
    const enum zt_status status =
        late->fetch(&credentials->settings, credentials->calls, &credential, &error);

    pthread_mutex_lock(&credentials->lock);
    assert(credentials->is_sought);
    credentials->is_refused = false;
    if (status == ZT_OK) {
        take(credentials, &credential);
        credentials->source = late;
        credentials->is_sought = false;
        log_write(LOG_LEVEL_INFO, "credentials (%s) were found: requests are signed from now on",
                  late->name);
    } else {
        pause_longer(credentials);
    }
    pthread_mutex_unlock(&credentials->lock);
    explicit_bzero(&credential, sizeof(credential));
}

static void renew(struct credentials *credentials)
{
    struct credential credential;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status =
        credentials->source->fetch(&credentials->settings, credentials->calls, &credential, &error);
    pthread_mutex_lock(&credentials->lock);
    if (status == ZT_OK) {
        take(credentials, &credential);
        explicit_bzero(&credential, sizeof(credential));
        log_write(credentials->is_failing ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
                  "credentials (%s) renewed", credentials->source->name);
        credentials->is_failing = false;
    } else if (!credentials->is_stopping) {
        if (status == ZT_NOT_FOUND && error.message[0] == '\0')
            zt_fail(&error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there are no longer any");
        note_failure(credentials, &error);
    }
    pthread_mutex_unlock(&credentials->lock);
}

/* Waits until it is worth looking again. False: the end. */
static bool wait_a_while(struct credentials *credentials)
{
    const int64_t at_ns = clock_ns() + credentials->pace->check_interval_ms * CLOCK_NS_PER_MS;
    const struct timespec deadline = {at_ns / CLOCK_NS_PER_S, at_ns % CLOCK_NS_PER_S};
    bool goes_on;

    pthread_mutex_lock(&credentials->lock);
    while (!credentials->is_stopping && !is_due(credentials))
        if (pthread_cond_timedwait(&credentials->woken, &credentials->lock, &deadline) != 0)
            break;
    goes_on = !credentials->is_stopping;
    pthread_mutex_unlock(&credentials->lock);
    return goes_on;
}

static void *keep_fresh(void *argument)
{
    struct credentials *credentials = argument;

    while (wait_a_while(credentials)) {
        bool due = file_changed(credentials);
        bool is_sought;

        pthread_mutex_lock(&credentials->lock);
        due = due || is_due(credentials);
        is_sought = credentials->is_sought;
        pthread_mutex_unlock(&credentials->lock);
        if (due && is_sought)
            seek(credentials);
        else if (due)
            renew(credentials);
    }
    return NULL;
}

/* --- beginning and end --- */

/* Asks the sources one after another. */
static enum zt_status choose(struct credentials *credentials, struct zt_error *error)
{
    struct credential credential = {.expires_s = 0};
    enum zt_status status = ZT_NOT_FOUND;

    credentials->source = &anonymous;
    if (credentials->settings.profile_file != NULL)
        credentials->file = version_of(credentials->settings.profile_file);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && status == ZT_NOT_FOUND; i++) {
        status = sources[i].fetch(&credentials->settings, credentials->calls, &credential, error);
        if (status != ZT_NOT_FOUND)
            credentials->source = &sources[i];
    }
    credentials->is_sought =
        status == ZT_NOT_FOUND && credentials->settings.instance.origin[0] != '\0';
    if (status == ZT_NOT_FOUND)
        status = ZT_OK;
    if (status == ZT_OK)
        take(credentials, &credential);
    explicit_bzero(&credential, sizeof(credential));
    return status;
}

static struct credentials *credentials_new(struct remote *remote,
                                           const struct credentials_pace *pace)
{
    struct credentials *credentials = calloc(1, sizeof(*credentials));
    pthread_condattr_t attributes;

    if (credentials == NULL)
        return NULL;
    credentials->pace = pace;
    credentials->calls = credential_calls_new(remote);
    if (credentials->calls == NULL) {
        free(credentials);
        return NULL;
    }
    credentials->pause_ms = credentials->pace->again_ms;
    pthread_mutex_init(&credentials->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&credentials->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    return credentials;
}

/* status: of the first credential. A service that is away is asked again soon. */
static enum zt_status begin_renewing(struct credentials *credentials, enum zt_status status,
                                     struct zt_error *error)
{
    int failure;

    assert(!credentials->has_thread);
    if (!credentials->source->is_renewed && !credentials->is_sought)
        return status;
    if (credentials->is_sought) {
        log_write(LOG_LEVEL_INFO, "no credentials were found: requests are not signed; the "
                                  "instance's metadata service will be asked again");
        pause_longer(credentials);
    } else if (status != ZT_OK) {
        credentials->is_failing = true;
        credentials->again_ms = clock_ms() + credentials->pause_ms;
    }
    failure = thread_start(&credentials->thread, "credentials", keep_fresh, credentials);
    credentials->has_thread = failure == 0;
    if (failure != 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "no thread for credentials: %s",
                       strerrordesc_np(failure));
    return status;
}

enum zt_status credentials_find(struct remote *remote, const char *region,
                                const struct credentials_pace *pace,
                                struct credentials **out_credentials, struct zt_error *error)
{
    struct credentials *credentials = credentials_new(remote, pace);
    enum zt_status status;

    if (credentials == NULL)
        return zt_fail_memory(error, "credentials");
    status = credential_settings_read(region, &credentials->settings, error);
    if (status == ZT_OK)
        status = choose(credentials, error);
    if (status == ZT_OK || status == ZT_UNAVAILABLE)
        status = begin_renewing(credentials, status, error);
    if (status == ZT_OK || status == ZT_UNAVAILABLE)
        *out_credentials = credentials;
    else
        credentials_free(credentials);
    return status;
}

void credentials_stop(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    pthread_mutex_lock(&credentials->lock);
    credentials->is_stopping = true;
    pthread_cond_signal(&credentials->woken);
    pthread_mutex_unlock(&credentials->lock);
    credential_calls_stop(credentials->calls);
    if (credentials->has_thread && !credentials->is_ended)
        pthread_join(credentials->thread, NULL);
    credentials->is_ended = true;
}

void credentials_free(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    credentials_stop(credentials);
    assert(credentials->is_stopping && credentials->is_ended);
    credential_calls_free(credentials->calls);
    credential_settings_free(&credentials->settings);
    pthread_cond_destroy(&credentials->woken);
    pthread_mutex_destroy(&credentials->lock);
    explicit_bzero(credentials, sizeof(*credentials));
    free(credentials);
}

/* --- use --- */

bool credentials_get(struct credentials *credentials, struct credential *out_credential)
{
    bool is_good;

    pthread_mutex_lock(&credentials->lock);
    is_good = credentials->has_credential && (credentials->credential.expires_s == 0 ||
                                              now_s() < credentials->credential.expires_s);
    if (is_good)
        *out_credential = credentials->credential;
    pthread_mutex_unlock(&credentials->lock);
    return is_good;
}

/* Under the lock. */
static bool note_refusal(struct credentials *credentials)
{
    const int64_t now_ms = clock_ms();

    assert(lock_is_held(&credentials->lock));
    if (credentials->is_refused)
        return true;
    if (now_ms - credentials->renewed_ms < credentials->pace->just_renewed_ms &&
        !credentials->is_sought)
        return true;
    /* Only the file's owner can change what is in it, and that is seen by itself. */
    if (is_profile(credentials))
        return false;
    if (credentials->refused_ms != 0 &&
        now_ms - credentials->refused_ms < credentials->pace->refusal_every_ms)
        return false;
    credentials->refused_ms = now_ms;
    credentials->is_refused = true;
    pthread_cond_signal(&credentials->woken);
    return true;
}

bool credentials_refused(struct credentials *credentials)
{
    bool has_others;

    if (!credentials->has_thread)
        return false;
    pthread_mutex_lock(&credentials->lock);
    has_others = note_refusal(credentials);
    pthread_mutex_unlock(&credentials->lock);
    return has_others;
}

const char *credentials_source(struct credentials *credentials)
{
    const char *name;

    pthread_mutex_lock(&credentials->lock);
    name = credentials->source->name;
    pthread_mutex_unlock(&credentials->lock);
    return name;
}

void credentials_files(void (*visit)(void *context, const char *path), void *context)
{
    static const char *const variables[] = {"AWS_WEB_IDENTITY_TOKEN_FILE",
                                            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"};
    char path[PATH_MAX];
    bool is_named;

    if (credential_profile_path(path, sizeof(path), &is_named))
        visit(context, path);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (credential_variable(variables[i]) != NULL)
            visit(context, credential_variable(variables[i]));
}
