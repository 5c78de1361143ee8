/* ztserve serve: starts a server, says where it is, and obeys signals until it ends.
 *
 * SIGTERM and SIGINT drain, a second one cuts at once; SIGHUP reads the configuration and the
 * folder again. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "config/schema.h"
#include "config/value.h"
#include "serve/instance.h"

#define LINE_SIZE 1024
/* How often the end of something is looked for while signals are waited for. */
#define LOADING_POLL_MS  2
#define DRAINING_POLL_MS 20
/* What is on its way to an open connection when the signal comes is answered still. */
#define DRAIN_GRACE_MS 250
/* Cutting takes no longer than a step of some job; a job that hangs in the system must not keep the
 * process. */
#define CUT_LIMIT_S 10

struct serving {
    int argc;
    char **argv;
    int signals;
    struct instance *instance;
};

/* The server needs a descriptor for each connection and each open file. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            log_write(LOG_LEVEL_WARN, "the limit on open files could not be raised");
    }
}

static void configure_log(const struct config *config)
{
    log_configure((enum log_level)config->log.level, (enum log_format)config->log.format);
}

static bool values_differ(const struct config_key *key, const struct config *a,
                          const struct config *b)
{
    const char *left;
    const char *right;

    if (key->type == CONFIG_TYPE_BOOL)
        return config_value_bool(a, key) != config_value_bool(b, key);
    if (config_type_is_number(key->type))
        return config_value_number(a, key) != config_value_number(b, key);
    left = config_value_text(a, key);
    right = config_value_text(b, key);
    return strcmp(left != NULL ? left : "", right != NULL ? right : "") != 0;
}

/* Says which keys have a value that only a new start can put in force. */
static void tell_what_waits(const struct config *in_force, const struct config *wanted)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        const struct config_key *key = &config_keys[i];

        if (strncmp(key->name, "log.", 4) != 0 && values_differ(key, in_force, wanted)) {
            log_write(LOG_LEVEL_WARN,
                      "%s was changed: that takes effect when the server is started anew",
                      key->name);
        }
    }
}

static void reload(const struct serving *serving)
{
    struct config config;
    struct config_message message;

    instance_refresh(serving->instance);
    if (!settings_load(serving->argc, serving->argv, &config, &message)) {
        log_write(LOG_LEVEL_ERROR, "the configuration stays as it was: %s", message.text);
        return;
    }
    configure_log(&config);
    tell_what_waits(instance_config(serving->instance), &config);
    log_write(LOG_LEVEL_INFO, "configuration and folder are read again");
}

/* The next signal that ends the server, or 0 after timeout_ms; SIGHUP is obeyed on the way. */
static int wait_for_end(const struct serving *serving, int timeout_ms)
{
    int number = signals_wait(serving->signals, timeout_ms);

    if (number == SIGHUP) {
        reload(serving);
        return 0;
    }
    return number;
}

static void tell_empty(const struct config *config, const char *address, size_t misfits)
{
    char names[64] = "";

    if (misfits > 0) {
        snprintf(names, sizeof(names),
                 misfits == 1 ? " (%zu file has a name that does not fit)"
                              : " (%zu files have names that do not fit)",
                 misfits);
    }
    log_write(LOG_LEVEL_INFO, "%s holds no models yet%s: put files into it%s%s%s", config->root,
              names, config->writable ? ", or upload one: curl -T model.zt http://" : "",
              config->writable ? address : "", config->writable ? "/v1/models/model" : "");
}

static void announce(const struct serving *serving)
{
    const struct config *config = instance_config(serving->instance);
    const char *address = instance_address(serving->instance);

    printf("ztserve: serving %s on http://%s\n", config->root, address);
    fflush(stdout);
    if (!instance_has_models(serving->instance))
        tell_empty(config, address, instance_misfits(serving->instance));
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* "1 request is", "2 requests are" */
static const char *requests_are(unsigned count)
{
    return count == 1 ? "request is" : "requests are";
}

/* Open requests may end within drain_s, unless a second signal comes. */
static void drain(const struct serving *serving)
{
    int64_t begun = now_ms();
    int64_t limit_ms = instance_config(serving->instance)->drain_s * 1000;
    const char *reason = NULL;
    unsigned open;
    unsigned left;

    instance_drain(serving->instance);
    open = instance_active(serving->instance);
    log_write(LOG_LEVEL_INFO, "draining: %u %s open", open, requests_are(open));
    while (reason == NULL &&
           (instance_active(serving->instance) > 0 || now_ms() - begun < DRAIN_GRACE_MS))
        if (wait_for_end(serving, DRAINING_POLL_MS) != 0)
            reason = "a second signal came";
        else if (now_ms() - begun >= limit_ms)
            reason = "the time to drain is over";
    left = instance_active(serving->instance);
    if (left > 0) {
        log_write(LOG_LEVEL_WARN, "%u %s cut: %s", left, requests_are(left),
                  reason != NULL ? reason : "they came too late");
    }
}

/* Uploads would fail one by one where this can be said at once. */
static void warn_if_not_writable(const struct config *config)
{
    if (config->writable && access(config->root, W_OK) != 0)
        log_write(LOG_LEVEL_WARN, "uploads will fail: %s cannot be written", config->root);
}

static int run(struct serving *serving, const struct config *config)
{
    char error[LINE_SIZE];
    int ended = 0;

    serving->instance = instance_start(config, error, sizeof(error));
    if (serving->instance == NULL) {
        command_complain("%s", error);
        return EXIT_BAD;
    }
    while (ended == 0 && !instance_is_loaded(serving->instance))
        ended = wait_for_end(serving, LOADING_POLL_MS);
    if (ended == 0)
        announce(serving);
    while (ended == 0)
        ended = wait_for_end(serving, -1);
    drain(serving);
    signals_end_after(CUT_LIMIT_S);
    instance_stop(serving->instance);
    return EXIT_DONE;
}

int command_serve(int argc, char **argv)
{
    struct config config;
    struct config_message message;
    struct serving serving = {.argc = argc, .argv = argv};
    int status;

    if (!settings_load(argc, argv, &config, &message)) {
        command_complain("%s", message.text);
        return EXIT_USAGE;
    }
    if (config.root[0] == '\0')
        return command_refuse("serve needs the folder to serve: --root DIR");
    configure_log(&config);
    raise_descriptor_limit();
    warn_if_not_writable(&config);
    serving.signals = signals_open();
    if (serving.signals < 0) {
        command_complain("cannot take signals");
        return EXIT_BAD;
    }
    status = run(&serving, &config);
    close(serving.signals);
    return status;
}
