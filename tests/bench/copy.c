/* The yardstick of slices: `bench-copy FILE OFFSET STRIDE RUN ROWS` maps FILE and answers every
 * request, one connection at a time, with ROWS runs of RUN bytes, of which each begins STRIDE bytes
 * after the one before: a plain loop that copies into a buffer and sends it. Prints its port. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)

struct slice {
    const char *first;
    uint64_t stride;
    uint64_t run;
    uint64_t rows;
};

static int send_all(int socket, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int send_slice(int socket, const struct slice *slice, char *buffer)
{
    size_t used;

    used = (size_t)snprintf(buffer, BUFFER_BYTES,
                            "HTTP/1.1 200 OK\r\nContent-Length: %" PRIu64 "\r\n\r\n",
                            slice->run * slice->rows);
    for (uint64_t row = 0; row < slice->rows; row++) {
        if (used + slice->run > BUFFER_BYTES) {
            if (send_all(socket, buffer, used) != 0)
                return -1;
            used = 0;
        }
        memcpy(buffer + used, slice->first + row * slice->stride, slice->run);
        used += slice->run;
    }
    return send_all(socket, buffer, used);
}

/* Until the client leaves. A request comes in one piece, as the client of the benchmarks sends. */
static void serve(int socket, const struct slice *slice, char *buffer)
{
    char request[4096];

    while (recv(socket, request, sizeof(request), 0) > 0)
        if (send_slice(socket, slice, buffer) != 0)
            break;
    close(socket);
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv)
{
    struct slice slice;
    struct stat status;
    char *buffer = malloc(BUFFER_BYTES);
    int file = argc == 6 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    void *map;
    int listener;

    if (file < 0 || buffer == NULL || fstat(file, &status) != 0) {
        fprintf(stderr, "usage: bench-copy FILE OFFSET STRIDE RUN ROWS\n");
        return 2;
    }
    map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        return 1;
    slice.first = (const char *)map + strtoull(argv[2], NULL, 10);
    slice.stride = strtoull(argv[3], NULL, 10);
    slice.run = strtoull(argv[4], NULL, 10);
    slice.rows = strtoull(argv[5], NULL, 10);
    if ((uint64_t)(slice.first - (const char *)map) + slice.stride * (slice.rows - 1) + slice.run >
            (uint64_t)status.st_size ||
        slice.run > BUFFER_BYTES / 2)
        return 2;
    listener = listen_anywhere();
    while (listener >= 0) {
        int socket = accept(listener, NULL, NULL);

        if (socket >= 0)
            serve(socket, &slice, buffer);
    }
    return 1;
}
