/* A load client for the benchmarks: one thread, a fixed number of kept connections, one request
 * after another on each, 256 KiB a read. Prints "requests bytes seconds errors". A general tool
 * reads 8 KiB at a time and would measure itself on large answers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES   (256 * 1024)
#define HEADER_BYTES 8192
#define MAX_EVENTS   256

struct peer {
    int socket;
    uint64_t remaining_bytes; /* of the body being read */
    bool in_body;
    size_t header_length;
    char header[HEADER_BYTES];
};

struct load {
    struct sockaddr_in address;
    char request[2048];
    size_t request_length;
    int epoll;
    uint64_t requests;
    uint64_t bytes;
    uint64_t errors;
    char *buffer;
};

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void send_request(struct load *load, struct peer *peer)
{
    peer->in_body = false;
    peer->header_length = 0;
    if (send(peer->socket, load->request, load->request_length, MSG_NOSIGNAL) !=
        (ssize_t)load->request_length)
        load->errors++;
}

static void connect_peer(struct load *load, struct peer *peer)
{
    int one = 1;
    struct epoll_event event;

    peer->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->socket < 0 ||
        connect(peer->socket, (struct sockaddr *)&load->address, sizeof(load->address)) != 0) {
        perror("connect");
        exit(1);
    }
    setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(peer->socket, F_SETFL, O_NONBLOCK);
    event = (struct epoll_event){.events = EPOLLIN, .data.ptr = peer};
    epoll_ctl(load->epoll, EPOLL_CTL_ADD, peer->socket, &event);
    send_request(load, peer);
}

static void finish_request(struct load *load, struct peer *peer)
{
    load->requests++;
    send_request(load, peer);
}

/* Takes what belongs to the body; the answers are not pipelined, so nothing follows it. */
static void take_body(struct load *load, struct peer *peer, size_t length)
{
    load->bytes += length;
    peer->remaining_bytes -= length < peer->remaining_bytes ? length : peer->remaining_bytes;
    if (peer->remaining_bytes == 0)
        finish_request(load, peer);
}

static void take_header(struct load *load, struct peer *peer, const char *bytes, size_t length)
{
    size_t room = HEADER_BYTES - 1 - peer->header_length;
    size_t taken = length < room ? length : room;
    char *end;
    size_t body;
    const char *field;

    memcpy(peer->header + peer->header_length, bytes, taken);
    peer->header_length += taken;
    peer->header[peer->header_length] = '\0';
    end = strstr(peer->header, "\r\n\r\n");
    if (end == NULL)
        return;
    body = peer->header_length - (size_t)(end + 4 - peer->header) + (length - taken);
    field = strcasestr(peer->header, "\r\nContent-Length:");
    if (peer->header[9] != '2' || field == NULL) {
        load->errors++;
        fprintf(stderr, "unexpected answer: %.40s\n", peer->header);
        exit(1);
    }
    peer->remaining_bytes = strtoull(field + 17, NULL, 10);
    peer->in_body = true;
    take_body(load, peer, body);
}

static void read_peer(struct load *load, struct peer *peer)
{
    ssize_t length = recv(peer->socket, load->buffer, READ_BYTES, 0);

    if (length > 0 && peer->in_body) {
        take_body(load, peer, (size_t)length);
    } else if (length > 0) {
        take_header(load, peer, load->buffer, (size_t)length);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        load->errors++;
        close(peer->socket);
        connect_peer(load, peer);
    }
}

static void run(struct load *load, double seconds, double *out_elapsed)
{
    struct epoll_event events[MAX_EVENTS];
    double start = now_seconds();
    double now = start;

    while (now - start < seconds) {
        int count = epoll_wait(load->epoll, events, MAX_EVENTS, 100);

        for (int i = 0; i < count; i++)
            read_peer(load, events[i].data.ptr);
        now = now_seconds();
    }
    *out_elapsed = now - start;
}

int main(int argc, char **argv)
{
    struct load load;
    int connections;
    struct peer *peers;
    double elapsed;

    if (argc < 5) {
        fprintf(stderr, "usage: load PORT CONNECTIONS SECONDS PATH [HEADER]\n");
        return 2;
    }
    load = (struct load){.epoll = epoll_create1(EPOLL_CLOEXEC), .buffer = malloc(READ_BYTES)};
    load.address.sin_family = AF_INET;
    load.address.sin_port = htons((uint16_t)atoi(argv[1]));
    load.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load.request_length = (size_t)snprintf(load.request, sizeof(load.request),
                                           "GET %s HTTP/1.1\r\nHost: bench\r\n%s%s\r\n", argv[4],
                                           argc > 5 ? argv[5] : "", argc > 5 ? "\r\n" : "");
    connections = atoi(argv[2]);
    peers = calloc((size_t)connections, sizeof(*peers));
    if (peers == NULL || load.buffer == NULL)
        return 1;
    for (int i = 0; i < connections; i++)
        connect_peer(&load, &peers[i]);
    elapsed = 0;
    run(&load, atof(argv[3]), &elapsed);
    printf("%llu %llu %.6f %llu\n", (unsigned long long)load.requests,
           (unsigned long long)load.bytes, elapsed, (unsigned long long)load.errors);
    return 0;
}
