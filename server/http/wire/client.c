/* The address is asked of the kernel when somebody wants it: few requests do. */
#include "http/wire/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "http/wire/connections.h"

void request_client(const struct request *request, char out_text[CLIENT_SIZE])
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(address);
    const void *bytes = NULL;

    out_text[0] = '\0';
    if (request->connection == NULL ||
        getpeername(request->connection->descriptor, (struct sockaddr *)&address, &length) != 0)
        return;
    if (address.ss_family == AF_INET)
        bytes = &((const struct sockaddr_in *)(const void *)&address)->sin_addr;
    else if (address.ss_family == AF_INET6)
        bytes = &((const struct sockaddr_in6 *)(const void *)&address)->sin6_addr;
    if (bytes == NULL || inet_ntop(address.ss_family, bytes, out_text, CLIENT_SIZE) == NULL)
        out_text[0] = '\0';
}
