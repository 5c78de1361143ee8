/* ztserve healthcheck: one GET to a server, for images and service managers that have no curl.
 *
 * Over TLS the certificate is not checked on loopback addresses: it is for the server's public
 * name, and the answer is only its status. */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands/commands.h"
#include "commands/option_reader.h"
#include "commands/settings.h"
#include "http/tls/tls_client.h"

/* The longest that a check takes, as docker and Kubernetes expect it. */
#define TIMEOUT_S 5

#define URL_SIZE  1024
#define HOST_SIZE 300
/* Enough for the line of the status. */
#define ANSWER_SIZE 4096
#define ERROR_SIZE  512
/* Longer ones do not fit into the request. */
#define TOKEN_MOST 8192
/* Of a status: "200". */
#define STATUS_DIGITS 3

/* What to ask. */
struct check {
    bool tls;
    bool is_default;      /* the server of the configuration */
    char host[HOST_SIZE]; /* without brackets */
    char port[8];
    char authority[HOST_SIZE]; /* "[::1]:8080", or a name that the server accepts as Host */
    char path[URL_SIZE];
    char url[2 * URL_SIZE]; /* for messages */
    const char *ca_file;    /* NULL: the system's */
    const char *token;      /* NULL: none */
};

/* The line that the alarm prints, since a signal handler can print nothing else. */
static char timeout_line[2 * URL_SIZE + 64];

static void on_alarm(int number)
{
    ssize_t written = write(STDERR_FILENO, timeout_line, strlen(timeout_line));

    (void)number;
    (void)written;
    _exit(EXIT_BAD);
}

static void set_alarm(const struct check *check)
{
    snprintf(timeout_line, sizeof(timeout_line), "ztserve: %s: no answer within %d s\n", check->url,
             TIMEOUT_S);
    signal(SIGALRM, on_alarm);
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
}

/* --- what to ask --- */

/* Parses "host", "host:port" or "[address]:port". */
static bool parse_authority(const char *text, struct check *check)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *host = end != NULL ? text + 1 : text;
    const char *rest = end != NULL ? end + 1 : text + strcspn(text, ":");
    const size_t length = (size_t)((end != NULL ? end : rest) - host);
    const size_t digits = rest[0] == ':' ? strspn(rest + 1, "0123456789") : 0;

    if (length == 0 || length >= sizeof(check->host) || strlen(text) >= sizeof(check->authority))
        return false;
    if (rest[0] != '\0' && (digits == 0 || digits > 5 || rest[1 + digits] != '\0'))
        return false;
    snprintf(check->host, sizeof(check->host), "%.*s", (int)length, host);
    if (rest[0] == ':')
        snprintf(check->port, sizeof(check->port), "%.5s", rest + 1);
    else
        snprintf(check->port, sizeof(check->port), "%s", check->tls ? "443" : "80");
    snprintf(check->authority, sizeof(check->authority), "%s", text);
    return true;
}

/* Characters that would end the request line, or a field. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7F)
            return false;
    return true;
}

static bool parse_url(const char *url, const char *default_path, struct check *check)
{
    static const char http[] = "http://";
    static const char https[] = "https://";
    char authority[HOST_SIZE];
    const char *at;
    size_t length;

    check->tls = strncmp(url, https, strlen(https)) == 0;
    if (!is_plain(url) || strlen(url) >= URL_SIZE ||
        (!check->tls && strncmp(url, http, strlen(http)) != 0))
        return false;
    at = url + strlen(check->tls ? https : http);
    length = strcspn(at, "/?#");
    if (length >= sizeof(authority))
        return false;
    snprintf(authority, sizeof(authority), "%.*s", (int)length, at);
    at += length;
    snprintf(check->path, sizeof(check->path), "%s",
             at[0] == '\0' || strcmp(at, "/") == 0 ? default_path : at);
    return check->path[0] == '/' && parse_authority(authority, check);
}

/* A server that listens on every address is asked on the loopback one. */
static const char *reachable(const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

/* The server that the configuration describes. */
static bool from_configuration(const char *file, const char *path, struct check *check,
                               struct config_message *message)
{
    struct config config;
    struct config_listen listen;
    const char *position;
    const char *host;
    const char *name;
    size_t length;

    if (!settings_load_base(file, &config, message) ||
        !config_listen_parse(config.listen, &listen, message))
        return false;
    if (listen.port == 0) {
        snprintf(message->text, sizeof(message->text),
                 "the configuration lets the server take any free port: give a URL");
        return false;
    }
    host = reachable(listen.host);
    check->is_default = true;
    check->tls = config.tls.cert[0] != '\0';
    snprintf(check->path, sizeof(check->path), "%s", path);
    snprintf(check->host, sizeof(check->host), "%s", host);
    snprintf(check->port, sizeof(check->port), "%u", (unsigned)listen.port);
    snprintf(check->authority, sizeof(check->authority),
             strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, (unsigned)listen.port);
    snprintf(check->url, sizeof(check->url), "%s://%s%s", check->tls ? "https" : "http",
             check->authority, check->path);
    /* The first of the names that the server accepts, if it does not accept any. */
    position = config.hosts;
    name = config_list_next(&position, &length);
    if (name != NULL && length < sizeof(check->authority))
        snprintf(check->authority, sizeof(check->authority), "%.*s", (int)length, name);
    return true;
}

/* --- asking --- */

static int connect_to(const struct check *check, char *error)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int descriptor = -1;
    const int status = getaddrinfo(check->host, check->port, &hints, &found);

    if (status != 0) {
        snprintf(error, ERROR_SIZE, "%s", gai_strerror(status));
        return -1;
    }
    for (const struct addrinfo *one = found; one != NULL && descriptor < 0; one = one->ai_next) {
        descriptor = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (descriptor >= 0 && connect(descriptor, one->ai_addr, one->ai_addrlen) != 0) {
            snprintf(error, ERROR_SIZE, "%s", strerrordesc_np(errno));
            close(descriptor);
            descriptor = -1;
        }
    }
    freeaddrinfo(found);
    return descriptor;
}

static bool send_request(int descriptor, struct tls_client *tls, const struct check *check)
{
    char text[URL_SIZE + HOST_SIZE + TOKEN_MOST + 160];
    const bool has_token = check->token != NULL;
    const int length =
        snprintf(text, sizeof(text),
                 "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: ztserve-healthcheck\r\n"
                 "%s%s%sConnection: close\r\n\r\n",
                 check->path, check->authority, has_token ? "Authorization: Bearer " : "",
                 has_token ? check->token : "", has_token ? "\r\n" : "");

    assert(length > 0 && (size_t)length < sizeof(text));
    return tls != NULL ? tls_client_send(tls, text, (size_t)length)
                       : send(descriptor, text, (size_t)length, 0) == length;
}

/* Receives until there is a whole line. */
static bool receive_line(int descriptor, struct tls_client *tls, char answer[ANSWER_SIZE])
{
    size_t length = 0;

    while (length + 1 < ANSWER_SIZE) {
        char *at = answer + length;
        const size_t room = ANSWER_SIZE - 1 - length;
        const ssize_t received =
            tls != NULL ? tls_client_receive(tls, at, room) : recv(descriptor, at, room, 0);

        if (received <= 0)
            return false;
        length += (size_t)received;
        answer[length] = '\0';
        at = strstr(answer, "\r\n");
        if (at != NULL) {
            *at = '\0';
            return true;
        }
    }
    return false;
}

/* "HTTP/1.1 200 OK" (RFC 9112 section 4): the status and the text behind it; NULL if the line is
 * something else. A missing space behind the status is let pass, as many servers leave it out. */
static const char *status_of(const char *line)
{
    static const char digits[] = "0123456789";
    static const char version[] = "HTTP/1.";
    const char *status = line + strlen(version) + 2;

    if (strncmp(line, version, strlen(version)) != 0 || strspn(status - 2, digits) != 1 ||
        status[-1] != ' ' || strspn(status, digits) != STATUS_DIGITS)
        return NULL;
    if (status[STATUS_DIGITS] != '\0' && status[STATUS_DIGITS] != ' ')
        return NULL;
    for (const char *at = status; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            return NULL;
    return status;
}

static bool exchange(int descriptor, const struct check *check, char *out_status, char *error)
{
    const bool on_loopback = check->is_default || strcmp(check->host, "localhost") == 0 ||
                             strncmp(check->host, "127.", 4) == 0 ||
                             strcmp(check->host, "::1") == 0;
    struct tls_client *tls = NULL;
    char answer[ANSWER_SIZE];
    const char *status = NULL;

    if (check->tls) {
        tls =
            tls_client_open(descriptor, on_loopback && check->ca_file == NULL ? NULL : check->host,
                            check->ca_file, error, ERROR_SIZE);
        if (tls == NULL)
            return false;
    }
    if (send_request(descriptor, tls, check) && receive_line(descriptor, tls, answer))
        status = status_of(answer);
    if (status != NULL)
        snprintf(out_status, ANSWER_SIZE, "%s", status);
    else
        snprintf(error, ERROR_SIZE, "the answer is not HTTP, or incomplete");
    tls_client_close(tls);
    return status != NULL;
}

static int run(const struct check *check)
{
    char error[ERROR_SIZE] = "";
    char status[ANSWER_SIZE];
    bool answered = false;
    int descriptor;

    set_alarm(check);
    descriptor = connect_to(check, error);
    if (descriptor >= 0) {
        answered = exchange(descriptor, check, status, error);
        close(descriptor);
    }
    alarm(0);
    if (answered && strncmp(status, "200", 3) == 0) {
        printf("%s: %s\n", check->url, status);
        return command_finish(EXIT_DONE);
    }
    command_complain("%s: %s", check->url, answered ? status : error);
    return EXIT_BAD;
}

/* --- arguments --- */

struct given {
    const char *url;
    const char *file;
    bool ready;
    struct client_settings settings;
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
            (void)server_option_take(&given->settings, &reader);
        else if (given->url != NULL)
            return command_usage("healthcheck takes one URL");
        else
            given->url = reader.value;
    return server_options_check(&given->settings);
}

/* The token of the file alone: that of the environment is for other servers. */
static int take_token(struct given *given, struct check *check)
{
    struct client_options options;
    struct zt_error error;

    check->ca_file = given->settings.ca_file;
    if (given->settings.token_file == NULL)
        return EXIT_DONE;
    if (client_settings_finish(&given->settings, &options, &error) != ZT_OK)
        return command_usage("--token-file %s", error.message);
    if (strlen(options.token) > TOKEN_MOST || !is_plain(options.token))
        return command_usage("--token-file %s: this is no token", given->settings.token_file);
    check->token = options.token;
    return EXIT_DONE;
}

int command_healthcheck(int argc, char **argv)
{
    struct given given = {.settings = CLIENT_SETTINGS_DEFAULT};
    struct check check = {.tls = false};
    struct config_message message;
    int result;
    const int status = take_arguments(argc, argv, &given);
    const char *path = given.ready ? "/readyz" : "/healthz";

    if (status != EXIT_DONE)
        return status;
    if (given.url == NULL) {
        if (!from_configuration(given.file, path, &check, &message)) {
            command_complain("%s", message.text);
            return EXIT_USAGE;
        }
    } else if (!parse_url(given.url, path, &check)) {
        return command_usage("\"%s\" is not a URL of http or https", given.url);
    } else {
        snprintf(check.url, sizeof(check.url), "%s://%s%s", check.tls ? "https" : "http",
                 check.authority, check.path);
    }
    result = take_token(&given, &check);
    if (result == EXIT_DONE)
        result = run(&check);
    client_settings_free(&given.settings);
    return result;
}
