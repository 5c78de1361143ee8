/* The least that an upload can cost which is hashed and kept: receives the body of a PUT, hashes
 * and writes it piece by piece, and answers. No other HTTP, no validation, no sync, one connection
 * at a time. `bench-receive FILE` prints its port, and runs until it is killed. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Larger pieces have left the processor's second cache when they are hashed or written. */
#define PIECE_BYTES ((size_t)256 << 10)
#define HEAD_BYTES  4096

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int listen_somewhere(unsigned *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) != 0)
        fail("listen");
    *out_port = ntohs(address.sin_port);
    return listening;
}

/* Reads the head of a request, byte by byte, so that no byte of the body is taken. Returns the
 * body's length. */
static uint64_t read_head(int peer)
{
    char head[HEAD_BYTES] = "";
    const char *field;

    for (size_t at = 0; strstr(head, "\r\n\r\n") == NULL; at++)
        if (at + 1 >= sizeof(head) || recv(peer, head + at, 1, 0) != 1)
            fail("head");
    field = strcasestr(head, "\r\nContent-Length:");
    return field != NULL ? strtoull(field + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

static void take_body(int peer, uint64_t length, int file, uint8_t *piece)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();

    if (hash == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
        fail("hash");
    for (uint64_t at = 0; at < length;) {
        const size_t wanted = length - at < PIECE_BYTES ? (size_t)(length - at) : PIECE_BYTES;

        if (recv(peer, piece, wanted, MSG_WAITALL) != (ssize_t)wanted ||
            EVP_DigestUpdate(hash, piece, wanted) != 1 ||
            pwrite(file, piece, wanted, (off_t)at) != (ssize_t)wanted)
            fail("body");
        at += wanted;
    }
    EVP_MD_CTX_free(hash);
}

int main(int argc, char **argv)
{
    static const char answer[] = "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n";
    static uint8_t piece[PIECE_BYTES];
    unsigned port;
    int listening;

    if (argc != 2) {
        fputs("usage: bench-receive FILE\n", stderr);
        return 2;
    }
    listening = listen_somewhere(&port);
    printf("%u\n", port);
    fflush(stdout);
    for (;;) {
        const int peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        const int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (peer < 0 || file < 0)
            fail(argv[1]);
        take_body(peer, read_head(peer), file, piece);
        if (send(peer, answer, sizeof(answer) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(answer) - 1)
            fail("answer");
        close(file);
        close(peer);
    }
}
