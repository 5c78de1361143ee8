/* Replaces the C library's recv. */
#include "http/tap/tap.h"

#include <sys/socket.h>
#include <sys/types.h>

static _Thread_local const struct tap *open_tap;

void tap_open(const struct tap *tap)
{
    open_tap = tap;
}

bool tap_show(int descriptor, bool is_plain, const void *bytes, size_t length)
{
    return open_tap == NULL ||
           open_tap->received(open_tap->context, descriptor, is_plain, bytes, length);
}

__attribute__((visibility("default"))) ssize_t recv(int descriptor, void *bytes, size_t size,
                                                    int flags)
{
    const ssize_t length = recvfrom(descriptor, bytes, size, flags, NULL, NULL);

    return length > 0 && !tap_show(descriptor, true, bytes, (size_t)length) ? 0 : length;
}
