/* Replaces the C library's recv. */
/* Its headers would define recv inline, which clang does not let us define again. */
#undef _FORTIFY_SOURCE
#include "http/tap/tap.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

static _Thread_local const struct tap *open_tap;

void tap_open(const struct tap *tap)
{
    open_tap = tap;
}

enum tap_verdict tap_show(int descriptor, bool is_plain, const void *bytes, size_t length)
{
    return open_tap == NULL
               ? TAP_PASS
               : open_tap->received(open_tap->context, descriptor, is_plain, bytes, length);
}

__attribute__((visibility("default"))) ssize_t recv(int descriptor, void *bytes, size_t size,
                                                    int flags)
{
    const ssize_t length = recvfrom(descriptor, bytes, size, flags, NULL, NULL);

    if (length <= 0)
        return length;
    switch (tap_show(descriptor, true, bytes, (size_t)length)) {
    case TAP_PASS:
        return length;
    case TAP_TAKEN:
        errno = EAGAIN;
        return -1;
    case TAP_END:
        break;
    }
    return 0;
}
