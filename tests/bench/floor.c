/* What the kernel and libmicrohttpd cost without ztserve: answers every request alike, with the
 * fields and the body of two files. `bench-floor HOW STATUS FIELDS BODY`, where HOW is
 *
 *   shared   libmicrohttpd, one response for all requests
 *   each     libmicrohttpd, a response made for each request, as for ranges, which all differ
 *   bare     no HTTP library: what comes in is not looked at
 *
 * The library is driven as in ztserve: one thread, an epoll set around the library's own. Prints
 * its port, and runs until it is killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG           4096
#define CONNECTION_MEMORY (32 * 1024)
#define CONNECTIONS       20000
#define FIELDS            32
#define EVENTS            256
#define HEADER_BYTES      4096

struct floor {
    bool shared;
    unsigned status;
    const char *names[FIELDS];
    const char *values[FIELDS];
    unsigned field_count;
    char *body;
    size_t body_bytes;
    struct MHD_Response *response; /* of all requests, if it is shared */
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *read_file(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long bytes = 0;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (bytes = ftell(file)) < 0)
        fail(path);
    rewind(file);
    text = calloc(1, (size_t)bytes + 1);
    if (text == NULL || fread(text, 1, (size_t)bytes, file) != (size_t)bytes)
        fail(path);
    fclose(file);
    *out_bytes = (size_t)bytes;
    return text;
}

/* Lines of "Name: value". */
static void read_fields(struct floor *floor, const char *path)
{
    size_t bytes;
    char *rest = NULL;

    for (char *line = strtok_r(read_file(path, &bytes), "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char *value = strstr(line, ": ");

        if (value == NULL || floor->field_count == FIELDS) {
            fprintf(stderr, "%s: no field, or too many: %s\n", path, line);
            exit(1);
        }
        *value = '\0';
        floor->names[floor->field_count] = line;
        floor->values[floor->field_count++] = value + 2;
    }
}

static int listen_somewhere(unsigned *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int one = 1;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listening, BACKLOG) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) != 0)
        fail("listen");
    *out_port = ntohs(address.sin_port);
    return listening;
}

static void watch(int set, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) != 0)
        fail("epoll_ctl");
}

/* --- with the library --- */

static struct MHD_Response *make_response(const struct floor *floor)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(floor->body_bytes, floor->body, MHD_RESPMEM_PERSISTENT);

    for (unsigned i = 0; i < floor->field_count; i++)
        if (MHD_add_response_header(response, floor->names[i], floor->values[i]) != MHD_YES)
            fail(floor->names[i]);
    return response;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *target, const char *method, const char *version,
                                  const char *body, size_t *body_bytes, void **request)
{
    static int seen;
    const struct floor *floor = context;
    struct MHD_Response *response = floor->response;
    enum MHD_Result result;

    (void)target;
    (void)method;
    (void)version;
    (void)body;
    (void)body_bytes;
    /* An answer to the first call would end the connection. */
    if (*request == NULL) {
        *request = &seen;
        return MHD_YES;
    }
    if (floor->shared)
        return MHD_queue_response(connection, floor->status, response);
    response = make_response(floor);
    result = MHD_queue_response(connection, floor->status, response);
    MHD_destroy_response(response);
    return result;
}

static void run_library(struct floor *floor, int listening)
{
    const int set = epoll_create1(EPOLL_CLOEXEC);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         on_request, floor, MHD_OPTION_LISTEN_SOCKET, listening,
                         MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_MEMORY_INCREMENT,
                         (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_END);

    if (daemon == NULL || set < 0)
        fail("libmicrohttpd");
    floor->response = make_response(floor);
    watch(set, MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    for (;;) {
        MHD_UNSIGNED_LONG_LONG wait_ms = 0;
        const bool waits = MHD_get_timeout(daemon, &wait_ms) == MHD_YES;
        struct epoll_event event;

        epoll_wait(set, &event, 1, waits ? (int)wait_ms : -1);
        MHD_run(daemon);
    }
}

/* --- without --- */

/* The head of an answer, with a date as the library makes it once a request. */
static size_t write_head(const struct floor *floor, char *head)
{
    const time_t now = time(NULL);
    struct tm parts;
    size_t used = (size_t)snprintf(head, HEADER_BYTES, "HTTP/1.1 %u OK\r\n", floor->status);

    gmtime_r(&now, &parts);
    used += strftime(head + used, HEADER_BYTES - used, "Date: %a, %d %b %Y %T GMT\r\n", &parts);
    for (unsigned i = 0; i < floor->field_count; i++)
        used += (size_t)snprintf(head + used, HEADER_BYTES - used, "%s: %s\r\n", floor->names[i],
                                 floor->values[i]);
    return used + (size_t)snprintf(head + used, HEADER_BYTES - used, "Content-Length: %zu\r\n\r\n",
                                   floor->body_bytes);
}

static void accept_all(int set, int listening)
{
    int one = 1;
    int peer;

    while ((peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        watch(set, peer);
    }
}

/* The head is made once a turn of the loop, though a server could keep it for a second. */
static void answer(const struct floor *floor, int peer, char *head, size_t head_bytes)
{
    char request[HEADER_BYTES];
    struct iovec parts[2] = {{head, head_bytes}, {floor->body, floor->body_bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const ssize_t bytes = recv(peer, request, sizeof(request), 0);

    if (bytes == 0 || (bytes < 0 && errno != EAGAIN))
        close(peer);
    else if (bytes > 0 &&
             sendmsg(peer, &message, MSG_NOSIGNAL) != (ssize_t)(head_bytes + floor->body_bytes))
        close(peer);
}

static void run_bare(const struct floor *floor, int listening)
{
    const int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS];
    char head[HEADER_BYTES];

    watch(set, listening);
    for (;;) {
        const int count = epoll_wait(set, events, EVENTS, -1);
        const size_t head_bytes = write_head(floor, head);

        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listening)
                accept_all(set, listening);
            else
                answer(floor, events[i].data.fd, head, head_bytes);
    }
}

int main(int argc, char **argv)
{
    static struct floor floor;
    unsigned port;
    int listening;

    if (argc != 5) {
        fprintf(stderr, "usage: bench-floor shared|each|bare STATUS FIELDS BODY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    floor.shared = strcmp(argv[1], "shared") == 0;
    floor.status = (unsigned)atoi(argv[2]);
    read_fields(&floor, argv[3]);
    floor.body = read_file(argv[4], &floor.body_bytes);
    listening = listen_somewhere(&port);
    printf("%u\n", port);
    fflush(stdout);
    if (strcmp(argv[1], "bare") == 0)
        run_bare(&floor, listening);
    else
        run_library(&floor, listening);
    return 0;
}
