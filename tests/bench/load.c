/* The client of the benchmarks: one thread, a fixed number of kept connections, one request after
 * another on each (never two at once), 256 KiB a read. A general tool reads 8 KiB at a time and
 * would measure itself on large answers. With TLS it offers one cipher suite and version 1.3 only,
 * so that every server uses the same; it trusts every certificate. Prints one line of JSON; usage
 * below. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES   (256 * 1024)
#define HEADER_BYTES 4096
#define MAX_EVENTS   256
#define MAX_PIDS     16
/* The histogram of times has 64 buckets between a power of two of nanoseconds and the next, so
 * that a percentile is off by less than 1.6 %. */
#define STEP_BITS 6
#define STEPS     (1 << STEP_BITS)
#define BUCKETS   (64 * STEPS)

#define TURN_FIELD  "X-Turn: 0000000000\r\n"
#define TURN_DIGITS 10

static const char usage[] =
    "usage: bench-load [--address A] --port P [--seconds S] [--warm S] [--requests N]\n"
    "                  [--connections N] [--pid PID]... [--kernel PID]... [--tls SUITE]\n"
    "                  [--discard 1] [--vary 1] [--header FIELD]... --get PATH\n"
    "With --vary, a number in a field makes each request differ from all others.\n"
    "Ends after S seconds, on SIGTERM, or after N answers (then without --warm). What comes in "
    "the\n"
    "first S seconds of --warm is not counted. The processor time of each PID is taken for the "
    "same\n"
    "span; that of --kernel PIDs, threads of the kernel that work for both sides, is kept apart.\n"
    "--discard has the kernel throw away the bodies: the client does not copy them.\n";

struct peer {
    int socket;
    SSL *tls;                 /* NULL: no TLS */
    uint64_t remaining_bytes; /* of the body being read */
    uint64_t sent_ns;
    bool in_body;
    size_t header_length;
    char header[HEADER_BYTES];
};

/* Clocks of processes that are watched. */
struct clocks {
    clockid_t clocks[MAX_PIDS];
    int count;
};

/* When a measurement began, or how long it took: nanoseconds of each clock. */
struct reading {
    uint64_t elapsed;
    uint64_t servers;
    uint64_t kernel;
    uint64_t client;
};

struct load {
    struct peer *peers;
    struct sockaddr_in address;
    int connections;
    char path[1024];
    char fields[1024];
    char request[2560];
    size_t request_length;
    bool varies;
    char *turn; /* the number in the request that makes it differ from the others; NULL: none */
    uint64_t turns;
    struct clocks servers;
    struct clocks kernel;
    SSL_CTX *tls;
    int body_flags; /* of recv */
    double seconds;
    double warm_seconds;
    uint64_t stop_after; /* so many requests; 0: do not */
    int epoll;
    uint64_t requests;
    uint64_t bytes;
    uint64_t errors;
    uint64_t times[BUCKETS];
    char buffer[READ_BYTES];
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t watched_ns(const struct clocks *watched)
{
    uint64_t total = 0;

    for (int i = 0; i < watched->count; i++)
        total += clock_ns(watched->clocks[i]);
    return total;
}

static struct reading read_clocks(const struct load *load)
{
    return (struct reading){
        .elapsed = now_ns(),
        .servers = watched_ns(&load->servers),
        .kernel = watched_ns(&load->kernel),
        .client = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
    };
}

/* --- times --- */

static size_t bucket_of(uint64_t ns)
{
    int power = 63 - __builtin_clzll(ns | STEPS);

    return (size_t)(power - STEP_BITS) * STEPS + (ns >> (power - STEP_BITS));
}

/* The middle of a bucket. */
static double bucket_ns(size_t bucket)
{
    size_t power = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;
    double low = (double)(bucket - power * STEPS);

    return (low + 0.5) * (double)((uint64_t)1 << power);
}

static double percentile_us(const struct load *load, double part)
{
    uint64_t total = 0;
    double wanted;

    for (size_t i = 0; i < BUCKETS; i++)
        total += load->times[i];
    wanted = (double)total * part;
    total = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        total += load->times[i];
        if ((double)total >= wanted && total > 0)
            return bucket_ns(i) / 1000;
    }
    return 0;
}

/* --- exchanges --- */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void fail_tls(const char *what)
{
    fprintf(stderr, "%s: TLS failed\n", what);
    exit(1);
}

static void vary_request(struct load *load)
{
    uint64_t left = load->turns++;

    for (int i = TURN_DIGITS; i-- > 0; left /= 10)
        load->turn[i] = (char)('0' + left % 10);
}

static void send_request(struct load *load, struct peer *peer)
{
    ssize_t sent;

    if (load->varies)
        vary_request(load);
    peer->in_body = false;
    peer->header_length = 0;
    peer->sent_ns = now_ns();
    if (peer->tls != NULL)
        sent = SSL_write(peer->tls, load->request, (int)load->request_length);
    else
        sent = send(peer->socket, load->request, load->request_length, MSG_NOSIGNAL);
    if (sent != (ssize_t)load->request_length)
        fail("send");
}

/* One suite, and a buffer for many records: without it, each would take two calls of recv. */
static void use_tls(struct load *load, const char *suite)
{
    load->tls = SSL_CTX_new(TLS_client_method());
    if (load->tls == NULL || SSL_CTX_set_min_proto_version(load->tls, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(load->tls, suite) != 1)
        fail_tls(suite);
    SSL_CTX_set_verify(load->tls, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_read_ahead(load->tls, 1);
    SSL_CTX_set_default_read_buffer_len(load->tls, READ_BYTES);
}

static void begin_tls(struct load *load, struct peer *peer)
{
    SSL_free(peer->tls);
    peer->tls = SSL_new(load->tls);
    if (peer->tls == NULL || SSL_set_fd(peer->tls, peer->socket) != 1 ||
        SSL_connect(peer->tls) != 1)
        fail_tls("connect");
}

static void connect_peer(struct load *load, struct peer *peer)
{
    int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

    peer->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->socket < 0 ||
        connect(peer->socket, (struct sockaddr *)&load->address, sizeof(load->address)) != 0)
        fail("connect");
    setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (load->tls != NULL)
        begin_tls(load, peer);
    if (fcntl(peer->socket, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(load->epoll, EPOLL_CTL_ADD, peer->socket, &event) != 0)
        fail("epoll_ctl");
}

static bool has_all(const struct load *load)
{
    return load->stop_after != 0 && load->requests >= load->stop_after;
}

static void finish_request(struct load *load, struct peer *peer)
{
    load->requests++;
    load->times[bucket_of(now_ns() - peer->sent_ns)]++;
    if (!has_all(load))
        send_request(load, peer);
}

/* The answers are not pipelined, so nothing may follow the body. */
static void take_body(struct load *load, struct peer *peer, size_t length)
{
    if (length > peer->remaining_bytes) {
        fprintf(stderr, "%s: more bytes than Content-Length says\n", load->path);
        exit(1);
    }
    load->bytes += length;
    peer->remaining_bytes -= length;
    if (peer->remaining_bytes == 0)
        finish_request(load, peer);
}

/* The length of the body by the answer's header, which ends with a null byte. */
static uint64_t body_length(const struct load *load, const struct peer *peer)
{
    const char *field = strcasestr(peer->header, "\r\nContent-Length:");
    bool unchanged = strncmp(peer->header + 9, "304", 3) == 0;

    if ((peer->header[9] != '2' && !unchanged) || (field == NULL && !unchanged)) {
        fprintf(stderr, "%s: unexpected answer: %.40s\n", load->path, peer->header);
        exit(1);
    }
    return unchanged ? 0 : strtoull(field + 17, NULL, 10);
}

static void take_header(struct load *load, struct peer *peer, const char *bytes, size_t length)
{
    size_t room = HEADER_BYTES - 1 - peer->header_length;
    size_t taken = length < room ? length : room;
    const char *end;

    memcpy(peer->header + peer->header_length, bytes, taken);
    peer->header_length += taken;
    peer->header[peer->header_length] = '\0';
    end = memmem(peer->header, peer->header_length, "\r\n\r\n", 4);
    if (end == NULL && taken < length) {
        fprintf(stderr, "%s: a header of more than %d bytes\n", load->path, HEADER_BYTES);
        exit(1);
    }
    if (end == NULL)
        return;
    peer->remaining_bytes = body_length(load, peer);
    peer->in_body = true;
    take_body(load, peer,
              peer->header_length - (size_t)(end + 4 - peer->header) + (length - taken));
}

static void take(struct load *load, struct peer *peer, size_t length)
{
    if (peer->in_body)
        take_body(load, peer, length);
    else
        take_header(load, peer, load->buffer, length);
}

static void reconnect(struct load *load, struct peer *peer)
{
    load->errors++;
    close(peer->socket);
    connect_peer(load, peer);
    send_request(load, peer);
}

/* All that has arrived: nothing would report bytes that the library has taken from the socket. */
static void read_tls_peer(struct load *load, struct peer *peer)
{
    int length;

    while ((length = SSL_read(peer->tls, load->buffer, READ_BYTES)) > 0) {
        take(load, peer, (size_t)length);
        if (has_all(load))
            return;
    }
    if (SSL_get_error(peer->tls, length) != SSL_ERROR_WANT_READ)
        reconnect(load, peer);
}

static void read_peer(struct load *load, struct peer *peer)
{
    const int flags = peer->in_body ? load->body_flags : 0;
    const ssize_t length = recv(peer->socket, load->buffer, READ_BYTES, flags);

    if (length > 0)
        take(load, peer, (size_t)length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        reconnect(load, peer);
}

/* Until so many seconds after start. */
static void run(struct load *load, uint64_t start, double seconds)
{
    struct epoll_event events[MAX_EVENTS];
    uint64_t now = start;

    while (!ended && (double)(now - start) < seconds * 1e9 && !has_all(load)) {
        int count = epoll_wait(load->epoll, events, MAX_EVENTS, 100);

        for (int i = 0; i < count; i++)
            (load->tls != NULL ? read_tls_peer : read_peer)(load, events[i].data.ptr);
        now = now_ns();
    }
}

static void invalidate(struct load *load)
{
    memset(load->times, 0, sizeof(load->times));
    load->requests = 0;
    load->bytes = 0;
}

/* --- arguments --- */

static void add_pid(struct clocks *watched, int pid)
{
    if (watched->count == MAX_PIDS ||
        clock_getcpuclockid(pid, &watched->clocks[watched->count]) != 0) {
        fprintf(stderr, "no processor time of process %d\n", pid);
        exit(1);
    }
    watched->count++;
}

/* False if there is no such option. */
static bool take_option(struct load *load, const char *name, const char *value)
{
    size_t used = strlen(load->fields);

    if (strcmp(name, "--get") == 0)
        snprintf(load->path, sizeof(load->path), "%s", value);
    else if (strcmp(name, "--header") == 0)
        snprintf(load->fields + used, sizeof(load->fields) - used, "%s\r\n", value);
    else if (strcmp(name, "--address") == 0)
        load->address.sin_addr.s_addr = inet_addr(value);
    else if (strcmp(name, "--port") == 0)
        load->address.sin_port = htons((uint16_t)atoi(value));
    else if (strcmp(name, "--connections") == 0)
        load->connections = atoi(value);
    else if (strcmp(name, "--seconds") == 0)
        load->seconds = atof(value);
    else if (strcmp(name, "--warm") == 0)
        load->warm_seconds = atof(value);
    else if (strcmp(name, "--requests") == 0)
        load->stop_after = strtoull(value, NULL, 10);
    else if (strcmp(name, "--pid") == 0)
        add_pid(&load->servers, atoi(value));
    else if (strcmp(name, "--kernel") == 0)
        add_pid(&load->kernel, atoi(value));
    else if (strcmp(name, "--tls") == 0)
        use_tls(load, value);
    else if (strcmp(name, "--vary") == 0)
        load->varies = true;
    else if (strcmp(name, "--discard") == 0)
        load->body_flags = atoi(value) != 0 ? MSG_TRUNC : 0;
    else
        return false;
    return true;
}

static bool take_arguments(struct load *load, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !take_option(load, argv[i], argv[i + 1]))
            return false;
    load->request_length = (size_t)snprintf(
        load->request, sizeof(load->request), "GET %s HTTP/1.1\r\nHost: bench\r\n%s%s\r\n",
        load->path, load->fields, load->varies ? TURN_FIELD : "");
    if (load->varies)
        load->turn = load->request + load->request_length - TURN_DIGITS - strlen("\r\n\r\n");
    return load->path[0] != '\0' && load->address.sin_port != 0 && load->connections > 0;
}

/* As many connections as the kernel lets this process have. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void open_connections(struct load *load)
{
    struct peer *peers = calloc((size_t)load->connections, sizeof(*peers));

    if (peers == NULL)
        fail("connections");
    load->peers = peers;
    for (int i = 0; i < load->connections; i++) {
        connect_peer(load, &peers[i]);
        send_request(load, &peers[i]);
    }
}

static void print_results(const struct load *load, const struct reading *start)
{
    const struct reading end = read_clocks(load);

    printf("{\"seconds\": %.6f, \"requests\": %llu, \"bytes\": %llu, \"errors\": %llu, ",
           (double)(end.elapsed - start->elapsed) / 1e9, (unsigned long long)load->requests,
           (unsigned long long)load->bytes, (unsigned long long)load->errors);
    printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"server_seconds\": %.6f, "
           "\"kernel_seconds\": %.6f, \"client_seconds\": %.6f}\n",
           percentile_us(load, 0.5), percentile_us(load, 0.99),
           (double)(end.servers - start->servers) / 1e9, (double)(end.kernel - start->kernel) / 1e9,
           (double)(end.client - start->client) / 1e9);
}

int main(int argc, char **argv)
{
    static struct load load = {.connections = 1, .seconds = 1e9};
    struct reading start;

    load.address.sin_family = AF_INET;
    load.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!take_arguments(&load, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    signal(SIGTERM, end);
    signal(SIGPIPE, SIG_IGN); /* the library writes without MSG_NOSIGNAL */
    raise_limit();
    start = read_clocks(&load);
    open_connections(&load);
    if (load.warm_seconds > 0) {
        run(&load, start.elapsed, load.warm_seconds);
        invalidate(&load);
        start = read_clocks(&load);
    }
    run(&load, start.elapsed, load.seconds);
    print_results(&load, &start);
    return 0;
}
