/* Outcomes: filling struct zt_error, and the names of statuses. */
#include "zt/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void zt_error_clear(struct zt_error *error)
{
    error->status = ZT_OK;
    error->os_error = 0;
    error->rule = NULL;
    error->offset = ZT_NO_OFFSET;
    error->message[0] = '\0';
    error->object[0] = '\0';
    error->component[0] = '\0';
    error->object_length = 0;
    error->component_length = 0;
    error->has_object = false;
    error->pause_ms = 0;
}

/* The longest length up to limit that does not split a character. */
static size_t cut_length(const char *bytes, size_t length, size_t limit)
{
    if (length <= limit)
        return length;
    length = limit;
    while (length > 0 && ((unsigned char)bytes[length] & 0xC0) == 0x80)
        length--;
    return length;
}

enum zt_status zt_fail(struct zt_error *error, enum zt_status status, const char *rule,
                       uint64_t offset, const char *format, ...)
{
    va_list arguments;
    char message[2 * sizeof(error->message)];
    int length;
    size_t kept;

    assert(status != ZT_OK);
    if (error == NULL)
        return status;
    va_start(arguments, format);
    /* Format before clearing the error, because an argument may be one of the error's own texts. */
    length = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    zt_error_clear(error);
    error->status = status;
    error->rule = rule;
    error->offset = offset;
    kept = 0;
    if (length > 0) {
        size_t written = (size_t)length < sizeof(message) ? (size_t)length : sizeof(message) - 1;

        kept = cut_length(message, written, sizeof(error->message) - 1);
    }
    assert(kept < sizeof(error->message));
    memcpy(error->message, message, kept);
    error->message[kept] = '\0';
    return status;
}

enum zt_status zt_fail_memory(struct zt_error *error, const char *purpose)
{
    return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for %s", purpose);
}

/* Returns the length that was kept. */
static size_t copy_name(char *target, struct zt_text name)
{
    size_t kept = cut_length(name.bytes, name.length, ZT_ERROR_NAME_MAX);

    if (kept > 0)
        memcpy(target, name.bytes, kept);
    target[kept] = '\0';
    return kept;
}

void zt_error_at(struct zt_error *error, struct zt_text object, struct zt_text component)
{
    if (error == NULL)
        return;
    error->object_length = copy_name(error->object, object);
    error->component_length = copy_name(error->component, component);
    error->has_object = object.bytes != NULL;
}

const char *zt_status_name(enum zt_status status)
{
    static const char *const names[] = {
        [ZT_OK] = "ok",
        [ZT_INVALID] = "invalid",
        [ZT_CORRUPT] = "corrupt",
        [ZT_UNSUPPORTED] = "unsupported",
        [ZT_LIMIT] = "limit",
        [ZT_NOT_FOUND] = "not-found",
        [ZT_ARGUMENT] = "argument",
        [ZT_NO_MEMORY] = "no-memory",
        [ZT_IO] = "io",
        [ZT_DATA_SHARD] = "data-shard",
        [ZT_UNAVAILABLE] = "unavailable",
        [ZT_STALE] = "stale",
    };

    if ((size_t)status >= sizeof(names) / sizeof(names[0]))
        return "unknown";
    return names[status];
}
