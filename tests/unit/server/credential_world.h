/* What tests of credentials share: an environment of their own, and a remote that answers from a
 * list. */
#ifndef CREDENTIAL_WORLD_H
#define CREDENTIAL_WORLD_H

#include "tests.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "remote/credentials.h"
#include "remote/remote.h"

/* --- a remote that answers from a list --- */

#define ANSWERS 16

struct reply {
    const char
        *request;    /* how the request has to begin: "GET http://host/path?query name: value" */
    unsigned status; /* 0: no answer; 1: never ends */
    const char *text;
};

static struct {
    pthread_mutex_t lock;
    struct reply replies[ANSWERS];
    unsigned count;
    unsigned used;
    char requests[ANSWERS][4096];
    uint64_t times_ms[ANSWERS];
    struct remote_exchange *hanging;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

void remote_exchange_init(struct remote_exchange *exchange)
{
    *exchange = (struct remote_exchange){.body_descriptor = -1};
}

void remote_exchange_free(struct remote_exchange *exchange)
{
    free(exchange->answer);
    exchange->answer = NULL;
}

static inline void describe(const struct remote_exchange *exchange, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s %s%s%s%s", exchange->method, exchange->origin,
                                   exchange->path, exchange->query == NULL ? "" : "?",
                                   exchange->query == NULL ? "" : exchange->query);

    for (unsigned i = 0; i < exchange->field_count; i++)
        used += (size_t)snprintf(out + used, size - used, " %s: %s", exchange->fields[i].name,
                                 exchange->fields[i].value);
    if (exchange->body == REMOTE_BODY_MEMORY)
        snprintf(out + used, size - used, " %.*s", (int)exchange->body_length,
                 (const char *)exchange->body_bytes);
}

static inline void answer(struct remote_exchange *exchange, const struct reply *reply)
{
    exchange->status = ZT_OK;
    exchange->head.status = reply->status;
    exchange->answer_length = strlen(reply->text);
    exchange->answer = strdup(reply->text);
    assert_non_null(exchange->answer);
}

static inline void refuse_connection(struct remote_exchange *exchange)
{
    exchange->status =
        zt_fail(&exchange->error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "no connection");
    exchange->failure = REMOTE_FAILURE_CONNECT;
}

void remote_begin(struct remote *remote, struct remote_exchange *exchange)
{
    const struct reply *reply = NULL;
    bool hangs;

    (void)remote;
    pthread_mutex_lock(&world.lock);
    if (world.used < ANSWERS) {
        describe(exchange, world.requests[world.used], sizeof(world.requests[0]));
        world.times_ms[world.used] = exchange->time_ms;
    }
    if (world.used < world.count)
        reply = &world.replies[world.used];
    world.used++;
    hangs = reply != NULL && reply->status == 1;
    if (hangs)
        world.hanging = exchange;
    pthread_mutex_unlock(&world.lock);
    if (hangs)
        return;
    if (reply == NULL || reply->status == 0)
        refuse_connection(exchange);
    else
        answer(exchange, reply);
    exchange->done(exchange);
}

/* As remote_stop ends what is on its way. */
static inline void end_hanging(void)
{
    if (world.hanging == NULL)
        return;
    refuse_connection(world.hanging);
    world.hanging->done(world.hanging);
    world.hanging = NULL;
}

static inline unsigned asked(void)
{
    unsigned count;

    pthread_mutex_lock(&world.lock);
    count = world.used;
    pthread_mutex_unlock(&world.lock);
    return count;
}

static inline void play(const struct reply *replies, unsigned count)
{
    assert_true(count <= ANSWERS);
    memcpy(world.replies, replies, count * sizeof(replies[0]));
    world.count = count;
}

#define PLAY(...)                             \
    play((const struct reply[]){__VA_ARGS__}, \
         sizeof((const struct reply[]){__VA_ARGS__}) / sizeof(struct reply))

/* All requests were made, and no others. */
static inline void assert_played(void)
{
    assert_int_equal(world.used, world.count);
    for (unsigned i = 0; i < world.count; i++)
        assert_string_equal(world.requests[i], world.replies[i].request);
}

/* --- the environment --- */

static char folder[] = "/tmp/test_credentials.XXXXXX";
static char home[sizeof(folder)];
static struct credentials *credentials;
static struct zt_error error;

static inline void clear_environment(void)
{
    extern char **environ;
    char name[256];

    for (char **at = environ; *at != NULL;) {
        const size_t length = strcspn(*at, "=");

        if (strncmp(*at, "AWS_", 4) != 0 || length >= sizeof(name)) {
            at++;
            continue;
        }
        memcpy(name, *at, length);
        name[length] = '\0';
        unsetenv(name);
        at = environ;
    }
}

static inline const char *put_file(const char *name, const char *text)
{
    static char path[512];
    char next[sizeof(path) + 8];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", home, name);
    snprintf(next, sizeof(next), "%s.next", path);
    file = fopen(next, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(next, path), 0);
    return path;
}

static inline int begin(void **state)
{
    char path[512];

    (void)state;
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    clear_environment();
    strcpy(home, folder);
    if (mkdtemp(home) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/.aws", home);
    if (mkdir(path, 0700) != 0)
        return -1;
    setenv("HOME", home, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    credentials = NULL;
    world.count = 0;
    world.used = 0;
    zt_error_clear(&error);
    return 0;
}

static inline int end(void **state)
{
    char command[512];

    (void)state;
    credentials_free(credentials);
    end_hanging();
    snprintf(command, sizeof(command), "rm -r %s", home);
    return system(command);
}

/* A server's, but a hundred times as fast. */
static const struct credentials_pace quick = {
    .check_interval_ms = 20, .again_ms = 50, .just_renewed_ms = 1000, .refusal_every_ms = 6000};

static inline enum zt_status find(void)
{
    return credentials_find(NULL, "eu-west-1", &quick, &credentials, &error);
}

static inline void assert_has(const char *source, const char *key, const char *secret,
                              const char *token)
{
    struct credential credential;

    assert_string_equal(credentials_source(credentials), source);
    assert_true(credentials_get(credentials, &credential));
    assert_string_equal(credential.key, key);
    assert_string_equal(credential.secret, secret);
    assert_string_equal(credential.token, token);
}

static inline void assert_found(const char *source, const char *key, const char *secret,
                                const char *token)
{
    assert_ok(find());
    assert_has(source, key, secret, token);
}

static inline void assert_refused(const char *message)
{
    assert_int_equal(find(), ZT_ARGUMENT);
    assert_null(credentials);
    assert_string_equal(error.message, message);
}

/* Waits until the key is another. */
static inline void assert_becomes(const char *key)
{
    struct credential credential = {.key = ""};

    AWAIT(credentials_get(credentials, &credential) && strcmp(credential.key, key) == 0);
}

/* "2026-…Z", so many seconds from now; texts of two calls may be in use. */
static inline const char *in_seconds(int seconds)
{
    static char texts[2][40];
    static unsigned next;
    char *text = texts[next++ % 2];
    const time_t at = time(NULL) + seconds;
    struct tm date;

    gmtime_r(&at, &date);
    strftime(text, sizeof(texts[0]), "%Y-%m-%dT%H:%M:%SZ", &date);
    return text;
}

/* --- web identity, the source of most --- */

#define FORM                                                                            \
    " content-type: application/x-www-form-urlencoded Action=AssumeRoleWithWebIdentity" \
    "&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName="

static inline void set_web_identity(const char *token)
{
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", put_file("token", token), 1);
}

static inline const char *assumed(const char *key, const char *expiration)
{
    static char texts[4][1024];
    static unsigned next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof(texts[0]),
             "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/"
             "\"><AssumeRoleWithWebIdentityResult><AssumedRoleUser><Arn>x</Arn></AssumedRoleUser>"
             "<Credentials><AccessKeyId>%s</AccessKeyId>\n<SecretAccessKey>s&amp;</SecretAccessKey>"
             "<SessionToken> t== </SessionToken><Expiration>%s</Expiration></Credentials>"
             "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
             key, expiration);
    return text;
}

#endif
