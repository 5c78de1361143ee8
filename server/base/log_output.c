/* Each thread buffers its own lines, so that threads share no buffer. */
#include "base/log_output.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static _Thread_local bool gathers;
static _Thread_local size_t waiting_length;
static _Thread_local char waiting[LOG_OUTPUT_SIZE];

static void write_out(const char *bytes, size_t length)
{
    ssize_t written;

    do
        written = write(STDERR_FILENO, bytes, length);
    while (written < 0 && errno == EINTR);
}

void log_gather(void)
{
    gathers = true;
}

void log_flush(void)
{
    if (waiting_length == 0)
        return;
    write_out(waiting, waiting_length);
    waiting_length = 0;
}

void log_output(const char *line, size_t length, bool may_wait)
{
    assert(length > 0 && length <= sizeof(waiting));
    if (!gathers || !may_wait || length > sizeof(waiting) - waiting_length)
        log_flush();
    if (!gathers || !may_wait) {
        write_out(line, length);
        return;
    }
    memcpy(waiting + waiting_length, line, length);
    waiting_length += length;
}
