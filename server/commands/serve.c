/* ztserve serve: starts a server, prints its address, and handles signals until it ends.
 *
 * SIGTERM and SIGINT drain; a second one cuts open connections at once. SIGHUP reloads the
 * configuration and the folder. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
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
#include "config/bucket.h"
#include "config/schema.h"
#include "config/upstreams.h"
#include "config/value.h"
#include "http/wire/listener.h"
#include "serve/confinement.h"
#include "serve/instance.h"
#include "serve/service_manager.h"

#define LINE_SIZE 1024
/* A path and a sentence. */
#define STATUS_SIZE 4608
/* The watchdog hears from the server this often before its time is over. */
#define WATCHDOG_SHARE 4
#define SECOND_SIGNAL  "a second signal arrived"
/* How often to check for the end of loading, closing or draining while waiting for signals. */
#define LOADING_POLL_MS  2
#define CLOSING_POLL_MS  2
#define DRAINING_POLL_MS 20
/* Stopping normally takes as long as one step of a job. A job that hangs in a system call must not
 * keep the process alive longer than this. */
#define CUT_LIMIT_S 10

struct serving {
    int argc;
    char **argv;
    int signals;
    struct service_manager manager;
    struct service_sockets sockets;
    int64_t alive_due_ms; /* when to report to the watchdog again */
    bool stuck;           /* it was not reported, since a loop hangs */
    struct instance *instance;
};

/* --- configuration --- */

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

    if (key->type == CONFIG_TYPE_UPSTREAMS)
        return config_upstreams_differ(a, b);
    if (key->type == CONFIG_TYPE_BOOL)
        return config_value_bool(a, key) != config_value_bool(b, key);
    if (config_type_is_number(key->type))
        return config_value_number(a, key) != config_value_number(b, key);
    left = config_value_text(a, key);
    right = config_value_text(b, key);
    return strcmp(left != NULL ? left : "", right != NULL ? right : "") != 0;
}

static bool is_loopback(const char *address)
{
    struct config_listen parsed;
    struct config_message message;

    return config_listen_parse(address, &parsed, &message) && config_listen_is_loopback(&parsed);
}

/* The key listen becomes the address of the service manager's sockets; of several, one that other
 * machines can reach, because that decides what is allowed. */
static void take_address(const struct service_sockets *sockets, struct config *config)
{
    char address[LISTENER_ADDRESS_SIZE];

    for (unsigned i = 0; i < sockets->count; i++) {
        listener_address_of(sockets->descriptors[i], address);
        if (i == 0 || !is_loopback(address))
            snprintf(config->listen, sizeof(config->listen), "%s", address);
    }
}

static bool load(const struct serving *serving, struct config *out_config,
                 struct config_message *message)
{
    struct config config;

    if (!settings_load(serving->argc, serving->argv, &config, message))
        return false;
    if (serving->sockets.count > 0) {
        if (serving->instance == NULL)
            take_address(&serving->sockets, &config);
        else
            snprintf(config.listen, sizeof(config.listen), "%s",
                     instance_config(serving->instance)->listen);
        if (!config_validate(&config, message))
            return false;
    }
    *out_config = config;
    return true;
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

static const char *scheme_of(const struct config *config)
{
    return config->tls.cert[0] != '\0' ? "https" : "http";
}

static void note_configuration(bool in_force)
{
    metric_set(METRIC_RELOAD_IN_FORCE, in_force);
    if (in_force)
        metric_set(METRIC_RELOAD_TIME, clock_wall_ns() / CLOCK_NS_PER_S);
}

static void report(const struct serving *serving, enum service_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const struct serving *serving, enum service_state state, const char *format, ...)
{
    char status[STATUS_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(status, sizeof(status), format, arguments);
    va_end(arguments);
    service_manager_report(&serving->manager, state, status);
}

static void report_serving(const struct serving *serving)
{
    const struct config *config = instance_config(serving->instance);

    report(serving, SERVICE_READY, "serving %s on %s://%s", config->root, scheme_of(config),
           instance_address(serving->instance));
}

/* A file outside of the known folders looks as if the user might not read it. */
static void explain_refusal(const struct serving *serving, const struct config *config)
{
    const char *file = confinement_forbidden(config, settings_file(serving->argc, serving->argv));

    if (file != NULL)
        log_write(LOG_LEVEL_WARN,
                  "%s is outside the folders that the sandbox allowed at startup: restart the "
                  "server to read it",
                  file);
}

static void reload(const struct serving *serving)
{
    struct config config = *instance_config(serving->instance);
    struct config_message message;

    report(serving, SERVICE_RELOADING, "reloading the configuration");
    instance_refresh(serving->instance);
    if (!load(serving, &config, &message) ||
        !instance_reload(serving->instance, &config, message.text, sizeof(message.text))) {
        log_write(LOG_LEVEL_ERROR, "the configuration is unchanged: %s", message.text);
        explain_refusal(serving, &config);
        note_configuration(false);
        metric_add(METRIC_RELOADS_FAILED, 1);
        report(serving, SERVICE_READY, "the configuration is unchanged: %s", message.text);
        return;
    }
    note_configuration(true);
    metric_add(METRIC_RELOADS_DONE, 1);
    configure_log(&config);
    warn_of_pending(instance_config(serving->instance), &config);
    log_write(LOG_LEVEL_INFO, "reloaded the configuration and the folder");
    report_serving(serving);
}

/* --- waiting --- */

/* Reports to the watchdog as long as every loop turns. Returns when to come again, in milliseconds;
 * -1: never. */
static int keep_alive(struct serving *serving)
{
    const int64_t now_ms = clock_ms();

    if (serving->manager.watchdog_ms == 0 || serving->instance == NULL)
        return -1;
    if (now_ms < serving->alive_due_ms)
        return (int)(serving->alive_due_ms - now_ms);
    serving->alive_due_ms = now_ms + serving->manager.watchdog_ms / WATCHDOG_SHARE;
    if (instance_is_turning(serving->instance)) {
        service_manager_report(&serving->manager, SERVICE_ALIVE, NULL);
        serving->stuck = false;
    } else if (!serving->stuck) {
        serving->stuck = true;
        log_write(LOG_LEVEL_ERROR, "an event loop hangs; the service manager will restart the "
                                   "server unless it recovers");
    }
    return (int)(serving->manager.watchdog_ms / WATCHDOG_SHARE);
}

/* Waits for a signal and handles SIGHUP. Returns the signal if it ends the server; 0 after SIGHUP
 * or timeout_ms, or earlier. */
static int wait_for_end(struct serving *serving, int timeout_ms)
{
    const int alive_ms = keep_alive(serving);
    int number;

    if (alive_ms >= 0 && (timeout_ms < 0 || alive_ms < timeout_ms))
        timeout_ms = alive_ms;
    number = signals_wait(serving->signals, timeout_ms);
    if (number == SIGHUP) {
        reload(serving);
        return 0;
    }
    return number;
}

static void log_empty(const struct config *config, const char *address, size_t misnamed_files)
{
    char names[64] = "";

    if (misnamed_files > 0) {
        snprintf(names, sizeof(names),
                 misnamed_files == 1 ? " (%zu file is not served because of its name)"
                                     : " (%zu files are not served because of their names)",
                 misnamed_files);
    }
    if (!config->writable) {
        log_write(LOG_LEVEL_INFO, "%s contains no models yet%s: put files into it%s", config->root,
                  names, config->upstream_count > 0 ? ", or request a model of the upstream" : "");
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
    /* Before the log says where to put files. */
    const bool is_empty =
        !instance_has_models(serving->instance) && !instance_is_stranded(serving->instance);
    const size_t misnamed_files = instance_misnamed_files(serving->instance);

    printf("ztserve: serving %s on %s://%s\n", config->root, scheme_of(config), address);
    fflush(stdout);
    report_serving(serving);
    if (is_empty)
        log_empty(config, address, misnamed_files);
}

/* What follows the count in "1 request is", "2 requests are". */
static const char *requests_are(unsigned count)
{
    return count == 1 ? "request is" : "requests are";
}

/* Keeps listening for drain_delay_s, while /readyz says that the server is leaving. Returns the
 * reason to end the wait early, or NULL. */
static const char *leave(struct serving *serving)
{
    const int64_t delay_s = instance_config(serving->instance)->drain_delay_s;
    const int64_t end_ms = clock_ms() + delay_s * 1000;

    instance_leave(serving->instance);
    if (delay_s > 0)
        log_write(LOG_LEVEL_INFO,
                  "shutting down: still listening for %" PRId64 " s (drain_delay_s)", delay_s);
    for (int64_t now_ms = clock_ms(); now_ms < end_ms; now_ms = clock_ms())
        if (wait_for_end(serving, (int)(end_ms - now_ms)) != 0)
            return SECOND_SIGNAL;
    return NULL;
}

/* Tells the service manager how long the end may take. */
static void report_stopping(const struct serving *serving)
{
    const struct config *config = instance_config(serving->instance);

    report(serving, SERVICE_STOPPING, "waiting for open requests");
    service_manager_extend(&serving->manager,
                           (unsigned)(config->drain_delay_s + config->drain_s) + CUT_LIMIT_S);
}

/* Waits for a moment of the time until end_ms. Returns why that must be the last one, or NULL. */
static const char *wait_on(struct serving *serving, int poll_ms, int64_t end_ms)
{
    if (wait_for_end(serving, poll_ms) != 0)
        return SECOND_SIGNAL;
    return clock_ms() >= end_ms ? "drain_s has passed" : NULL;
}

/* Waits up to drain_s for open requests, and for those on their way on idle connections, or until a
 * second signal. */
static void drain(struct serving *serving)
{
    const int64_t limit_ms = instance_config(serving->instance)->drain_s * 1000;
    const char *reason;
    int64_t end_ms;
    unsigned open;
    unsigned left;

    report_stopping(serving);
    reason = leave(serving);
    end_ms = clock_ms() + limit_ms;
    instance_drain(serving->instance);
    while (reason == NULL && !instance_is_drained(serving->instance))
        reason = wait_on(serving, CLOSING_POLL_MS, end_ms);
    open = instance_active(serving->instance);
    log_write(LOG_LEVEL_INFO, "draining: %u %s open", open, requests_are(open));
    while (reason == NULL && instance_connections() > 0)
        reason = wait_on(serving, DRAINING_POLL_MS, end_ms);
    left = instance_active(serving->instance);
    if (left > 0) {
        log_write(LOG_LEVEL_WARN, "%u %s cut: %s", left, requests_are(left),
                  reason != NULL ? reason : "arrived during the shutdown");
    }
}

/* Says at the start what would make every upload fail. */
static void warn_if_not_writable(const struct config *config)
{
    /* A bucket says itself how uploads are published. */
    if (config->writable && !config_root_is_bucket(config->root) && access(config->root, W_OK) != 0)
        log_write(LOG_LEVEL_WARN, "uploads will fail: %s is not writable", config->root);
}

static int run(struct serving *serving, const struct config *config)
{
    char error[LINE_SIZE];
    bool misconfigured;
    int ended = 0;

    note_configuration(true);
    serving->instance = instance_start(config, settings_file(serving->argc, serving->argv),
                                       &serving->sockets, error, sizeof(error), &misconfigured);
    if (serving->instance == NULL) {
        command_complain("%s", error);
        return misconfigured ? EXIT_USAGE : EXIT_BAD;
    }
    /* A store that is away may be so for long: /readyz says when it was reached. */
    while (ended == 0 && !instance_is_loaded(serving->instance) &&
           !instance_is_stranded(serving->instance))
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

/* The service manager's sockets are part of the configuration. */
static bool prepare(struct serving *serving, struct config *out_config,
                    struct config_message *message)
{
    return service_manager_open(&serving->manager, message->text, sizeof(message->text)) &&
           service_sockets_take(&serving->sockets, message->text, sizeof(message->text)) &&
           load(serving, out_config, message);
}

int command_serve(int argc, char **argv)
{
    struct config config;
    struct config_message message;
    struct serving serving = {.argc = argc, .argv = argv};
    int status;

    if (!prepare(&serving, &config, &message)) {
        command_complain("%s", message.text);
        service_manager_close(&serving.manager);
        return EXIT_USAGE;
    }
    if (config.root[0] == '\0')
        return command_usage("serve needs a folder or a bucket: serve DIR (or --root DIR), or "
                             "serve s3://bucket/prefix");
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
    service_manager_close(&serving.manager);
    return status;
}
