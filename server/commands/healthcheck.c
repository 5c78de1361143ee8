/* ztserve healthcheck: one GET to a server, for images and service managers that have no curl.
 *
 * Over TLS the certificate is not checked on loopback addresses: it is for the server's public
 * name, and the answer is only its status. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/settings.h"
#include "remote/probe.h"

/* The longest that a check takes, as docker and Kubernetes expect it. */
#define TIMEOUT_S 5

#define URL_MOST   1023
#define TOKEN_MOST 8192

/* A server that listens on every address is asked on the loopback one. */
static const char *reachable(const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

/* The server that the configuration describes. host_field: room for the name to ask it by. */
static bool from_configuration(const char *file, const char *path, struct probe *probe,
                               char host_field[CONFIG_TEXT_SIZE], struct config_message *message)
{
    struct config config;
    struct config_listen listen;
    const char *position;
    const char *host;
    const char *name;
    size_t length;
    char url[PROBE_URL_SIZE];

    if (!settings_load_base(file, &config, message) ||
        !config_listen_parse(config.listen, &listen, message))
        return false;
    if (listen.port == 0) {
        snprintf(message->text, sizeof(message->text),
                 "the configuration lets the server take any free port: give a URL");
        return false;
    }
    host = reachable(listen.host);
    snprintf(url, sizeof(url), strchr(host, ':') != NULL ? "%s://[%s]:%u%s" : "%s://%s:%u%s",
             config.tls.cert[0] != '\0' ? "https" : "http", host, (unsigned)listen.port, path);
    if (!probe_url_parse(probe, url, path)) {
        snprintf(message->text, sizeof(message->text), "\"%.300s\" is not the address of a server",
                 url);
        return false;
    }
    probe->is_loopback = true;
    /* The first of the names that the server accepts. */
    position = config.hosts;
    name = config_list_next(&position, &length);
    if (name != NULL) {
        snprintf(host_field, CONFIG_TEXT_SIZE, "%.*s", (int)length, name);
        probe->host_field = host_field;
    }
    return true;
}

static int run(struct probe *probe)
{
    char text[PROBE_TEXT_SIZE];

    probe->any_certificate = probe->is_loopback && probe->ca_file == NULL;
    probe->timeout_s = TIMEOUT_S;
    if (probe_run(probe, text) && strncmp(text, "200", 3) == 0) {
        printf("%s: %s\n", probe->url, text);
        return command_finish(EXIT_DONE);
    }
    command_complain("%s: %s", probe->url, text);
    return EXIT_BAD;
}

/* --- arguments --- */

/* Returns true if no character ends a request line or a field. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7F)
            return false;
    return true;
}

struct given {
    const char *url;
    const char *file;
    bool ready;
    struct client_options options;
};

/* Returns EXIT_DONE, or the status of a usage error. */
static int take_arguments(int argc, char **argv, struct given *given)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;

    while ((found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (option_reader_is(&reader, "--ready"))
            given->ready = true;
        else if (option_reader_is(&reader, "--config"))
            given->file = reader.value;
        else if (found == OPTION_NAMED) /* --quiet and --progress mean nothing here */
            (void)server_option_take(&given->options, &reader);
        else if (given->url != NULL)
            return command_usage("healthcheck takes one URL");
        else
            given->url = reader.value;
    return server_options_check(&given->options);
}

/* Only the token in the file: the token in the environment is for other servers. */
static int take_token(struct given *given, struct probe *probe)
{
    struct zt_error error;

    probe->ca_file = given->options.ca_file;
    if (given->options.token_file == NULL)
        return EXIT_DONE;
    if (client_options_finish(&given->options, &error) != ZT_OK)
        return command_usage("--token-file %s", error.message);
    if (strlen(given->options.token) > TOKEN_MOST || !is_plain(given->options.token))
        return command_usage("--token-file %s: this is not a token", given->options.token_file);
    probe->token = given->options.token;
    return EXIT_DONE;
}

int command_healthcheck(int argc, char **argv)
{
    struct given given = {.options = CLIENT_OPTIONS_DEFAULT};
    struct probe probe = {.url = ""};
    char host_field[CONFIG_TEXT_SIZE];
    struct config_message message;
    int result;
    const int status = take_arguments(argc, argv, &given);
    const char *path = given.ready ? "/readyz" : "/healthz";

    if (status != EXIT_DONE)
        return status;
    if (given.url == NULL) {
        if (!from_configuration(given.file, path, &probe, host_field, &message)) {
            command_complain("%s", message.text);
            return EXIT_USAGE;
        }
    } else if (!is_plain(given.url) || strlen(given.url) > URL_MOST ||
               !probe_url_parse(&probe, given.url, path)) {
        return url_refuse(given.url);
    }
    result = take_token(&given, &probe);
    if (result == EXIT_DONE)
        result = run(&probe);
    client_options_free(&given.options);
    return result;
}
