/* The least that a cold read can cost which keeps the bytes: fetches ranges of an object over a few
 * kept connections on one thread, and writes what comes into one sparse file. Nothing is hashed,
 * compared or sent on. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANGE_BYTES ((uint64_t)8 << 20)
/* Received and written at a time: what stays in the processor's cache, and what the page cache has
 * warm memory for (server/disk/disk_file.h). */
#define PIECE_BYTES ((size_t)256 << 10)
#define HEAD_BYTES  4096
#define CONNECTIONS 64

struct peer {
    int socket;
    uint64_t at; /* of the next byte, in the object */
    uint64_t left;
    size_t head_length; /* 0 once the head is over */
    bool is_in_head;
    char head[HEAD_BYTES];
};

struct object {
    struct sockaddr_in address;
    const char *path;
    uint64_t length;
    uint64_t asked; /* up to here */
    uint64_t written;
    int file;
    int epoll;
};

static char piece[PIECE_BYTES];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Asks for the next range, if there is one. */
static void ask(struct object *object, struct peer *peer)
{
    const uint64_t left = object->length - object->asked;
    char request[1024];
    int length;

    if (left == 0)
        return;
    peer->at = object->asked;
    peer->left = left < RANGE_BYTES ? left : RANGE_BYTES;
    peer->head_length = 0;
    peer->is_in_head = true;
    object->asked += peer->left;
    length = snprintf(request, sizeof(request),
                      "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nRange: bytes=%llu-%llu\r\n\r\n",
                      object->path, ntohs(object->address.sin_port), (unsigned long long)peer->at,
                      (unsigned long long)(peer->at + peer->left - 1));
    if (length >= (int)sizeof(request) ||
        send(peer->socket, request, (size_t)length, MSG_NOSIGNAL) != length)
        fail("send");
}

static void keep(struct object *object, struct peer *peer, const char *bytes, size_t length)
{
    if (length > peer->left ||
        pwrite(object->file, bytes, length, (off_t)peer->at) != (ssize_t)length)
        fail("body");
    peer->at += length;
    peer->left -= length;
    object->written += length;
    if (peer->left == 0)
        ask(object, peer);
}

static void take_head(struct object *object, struct peer *peer, const char *bytes, size_t length)
{
    const size_t room = HEAD_BYTES - 1 - peer->head_length;
    const size_t taken = length < room ? length : room;
    const size_t before = peer->head_length;
    const char *end;
    size_t used;

    memcpy(peer->head + before, bytes, taken);
    peer->head_length += taken;
    peer->head[peer->head_length] = '\0';
    end = strstr(peer->head, "\r\n\r\n");
    if (end == NULL && taken < length)
        fail("head");
    if (end == NULL)
        return;
    if (strncmp(peer->head, "HTTP/1.1 206", 12) != 0) {
        fprintf(stderr, "unexpected answer: %.40s\n", peer->head);
        exit(1);
    }
    peer->is_in_head = false;
    used = (size_t)(end + 4 - peer->head) - before;
    if (length > used)
        keep(object, peer, bytes + used, length - used);
}

static void receive(struct object *object, struct peer *peer)
{
    const ssize_t length = recv(peer->socket, piece, sizeof(piece), MSG_DONTWAIT);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0)
        fail("recv");
    if (peer->is_in_head)
        take_head(object, peer, piece, (size_t)length);
    else
        keep(object, peer, piece, (size_t)length);
}

static void connect_peer(struct object *object, struct peer *peer)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

    peer->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->socket < 0 ||
        connect(peer->socket, (struct sockaddr *)&object->address, sizeof(object->address)) != 0 ||
        epoll_ctl(object->epoll, EPOLL_CTL_ADD, peer->socket, &event) != 0)
        fail("connect");
    ask(object, peer);
}

int main(int argc, char **argv)
{
    static struct peer peers[CONNECTIONS];
    struct object object = {.address = {.sin_family = AF_INET}};
    struct epoll_event events[CONNECTIONS];
    int count = argc == 6 ? atoi(argv[4]) : 0;

    if (count < 1 || count > CONNECTIONS) {
        fputs("usage: bench-fetch PORT PATH LENGTH CONNECTIONS FILE\n", stderr);
        return 2;
    }
    object.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    object.address.sin_port = htons((uint16_t)atoi(argv[1]));
    object.path = argv[2];
    object.length = strtoull(argv[3], NULL, 10);
    object.epoll = epoll_create1(EPOLL_CLOEXEC);
    object.file = open(argv[5], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (object.file < 0 || ftruncate(object.file, (off_t)object.length) != 0)
        fail(argv[5]);
    for (int i = 0; i < count; i++)
        connect_peer(&object, &peers[i]);
    while (object.written < object.length) {
        const int ready = epoll_wait(object.epoll, events, CONNECTIONS, -1);

        for (int i = 0; i < ready; i++)
            receive(&object, events[i].data.ptr);
    }
    return 0;
}
