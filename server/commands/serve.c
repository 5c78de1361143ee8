/* ztserve serve: starts a server, prints its address, and handles signals until it ends.
 *
 * SIGTERM and SIGINT drain; a second one cuts open connections at once. SIGHUP reloads the
 * configuration and the folder. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "config/schema.h"
#include "config/value.h"
#include "serve/instance.h"

#define LINE_SIZE 1024
/* How often to check for the end of loading or draining while waiting for signals. */
#define LOADING_POLL_MS  2
#define DRAINING_POLL_MS 20
/* Requests that are on their way when the signal arrives are still answered. */
#define DRAIN_GRACE_MS 250
/* Stopping normally takes as long as one step of a job. A job that hangs in a system call must not
 * keep the process alive longer than this. */
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

/* Warns about changed keys that take effect only after a restart. */
static void warn_of_pending(const struct config *in_force, const struct config *wanted)
{
    for (size_t i = 0; i < config_keys_count; i++) {
        const struct config_key *key = &config_keys[i];

        if (!key->reloads && values_differ(key, in_force, wanted)) {
            log_write(LOG_LEVEL_WARN,
                      "%s was changed; the change takes effect when the server is restarted",
                      key->name);
        }
    }
}

static void note_configuration(bool in_force)
{
    metric_set(METRIC_RELOAD_IN_FORCE, in_force);
    if (in_force)
        metric_set(METRIC_RELOAD_TIME, clock_wall_ns() / CLOCK_NS_PER_S);
}

static void reload(const struct serving *serving)
{
    struct config config;
    struct config_message message;

    instance_refresh(serving->instance);
    if (!settings_load(serving->argc, serving->argv, &config, &message) ||
        !instance_reload(serving->instance, &config, message.text, sizeof(message.text))) {
        log_write(LOG_LEVEL_ERROR, "the configuration is unchanged: %s", message.text);
        metric_add(METRIC_RELOADS_FAILED, 1);
        note_configuration(false);
        return;
    }
    metric_add(METRIC_RELOADS_DONE, 1);
    note_configuration(true);
    configure_log(&config);
    warn_of_pending(instance_config(serving->instance), &config);
    log_write(LOG_LEVEL_INFO, "reloaded the configuration and the folder");
}

/* Waits for a signal and handles SIGHUP. Returns the signal if it ends the server; 0 after SIGHUP
 * or timeout_ms. */
static int wait_for_end(const struct serving *serving, int timeout_ms)
{
    int number = signals_wait(serving->signals, timeout_ms);

    if (number == SIGHUP) {
        reload(serving);
        return 0;
    }
    return number;
}

static const char *scheme_of(const struct config *config)
{
    return config->tls.cert[0] != '\0' ? "https" : "http";
}

static void log_empty(const struct config *config, const char *address, size_t misfits)
{
    char names[64] = "";

    if (misfits > 0) {
        snprintf(names, sizeof(names),
                 misfits == 1 ? " (%zu file is not served because of its name)"
                              : " (%zu files are not served because of their names)",
                 misfits);
    }
    if (!config->writable) {
        log_write(LOG_LEVEL_INFO, "%s contains no models yet%s: put files into it", config->root,
                  names);
        return;
    }
    log_write(LOG_LEVEL_INFO,
              "%s contains no models yet%s: put files into it, or upload one: curl -T model.zt "
              "%s://%s/v1/models/model",
              config->root, names, scheme_of(config), address);
}

static void announce(const struct serving *serving)
{
    const struct config *config = instance_config(serving->instance);
    const char *address = instance_address(serving->instance);

    printf("ztserve: serving %s on %s://%s\n", config->root, scheme_of(config), address);
    fflush(stdout);
    if (!instance_has_models(serving->instance))
        log_empty(config, address, instance_misfits(serving->instance));
}

/* What follows the count in "1 request is", "2 requests are". */
static const char *requests_are(unsigned count)
{
    return count == 1 ? "request is" : "requests are";
}

/* Waits up to drain_s for open requests to end, or for a second signal. */
static void drain(const struct serving *serving)
{
    int64_t begun_ms = clock_ms();
    int64_t limit_ms = instance_config(serving->instance)->drain_s * 1000;
    const char *reason = NULL;
    unsigned open;
    unsigned left;

    instance_drain(serving->instance);
    open = instance_active(serving->instance);
    log_write(LOG_LEVEL_INFO, "draining: %u %s open", open, requests_are(open));
    while (reason == NULL &&
           (instance_active(serving->instance) > 0 || clock_ms() - begun_ms < DRAIN_GRACE_MS))
        if (wait_for_end(serving, DRAINING_POLL_MS) != 0)
            reason = "a second signal arrived";
        else if (clock_ms() - begun_ms >= limit_ms)
            reason = "drain_s has passed";
    left = instance_active(serving->instance);
    if (left > 0) {
        log_write(LOG_LEVEL_WARN, "%u %s cut: %s", left, requests_are(left),
                  reason != NULL ? reason : "arrived during the shutdown");
    }
}

/* Says at the start what would make every upload fail. */
static void warn_if_not_writable(const struct config *config)
{
    if (config->writable && access(config->root, W_OK) != 0)
        log_write(LOG_LEVEL_WARN, "uploads will fail: %s is not writable", config->root);
}

static int run(struct serving *serving, const struct config *config)
{
    char error[LINE_SIZE];
    int ended = 0;

    note_configuration(true);
    serving->instance =
        instance_start(config, settings_file(serving->argc, serving->argv), error, sizeof(error));
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
        return command_usage("serve needs a folder: --root DIR");
    configure_log(&config);
    raise_descriptor_limit();
    warn_if_not_writable(&config);
    serving.signals = signals_open();
    if (serving.signals < 0) {
        command_complain("cannot handle signals");
        return EXIT_BAD;
    }
    status = run(&serving, &config);
    close(serving.signals);
    return status;
}
