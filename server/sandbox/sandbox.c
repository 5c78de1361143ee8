/* What is put in force, in an order in which each step is still possible, and the words for it. */
#include "sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "sandbox/landlock.h"
#include "sandbox/system_calls.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#if !defined(IS_SANITIZED) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define IS_SANITIZED true
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

__attribute__((format(printf, 2, 3))) static void say(struct sandbox_report *report,
                                                      const char *format, ...)
{
    const size_t length = strlen(report->text);
    va_list arguments;

    assert(length < sizeof(report->text));
    va_start(arguments, format);
    vsnprintf(report->text + length, sizeof(report->text) - length, format, arguments);
    va_end(arguments);
}

/* Begins the next item of the report. */
static void begin_item(struct sandbox_report *report)
{
    if (report->text[0] != '\0')
        say(report, ", ");
}

static void say_missing(struct sandbox_report *report, const char *what, int os_error)
{
    begin_item(report);
    say(report, "no %s (%s)", what,
        os_error == ENOTSUP ? "this kernel's is too old" : strerrordesc_np(os_error));
    report->complete = false;
}

/* "reads /srv/models, writes /var/lib/ztserve" */
static void say_places(struct sandbox_report *report, const struct sandbox_place *places,
                       size_t count)
{
    static const char *const verbs[] = {
        [SANDBOX_READ] = "reads",
        [SANDBOX_FILES] = "reads",
        [SANDBOX_WRITE] = "writes",
        [SANDBOX_UNNAMED] = "unnamed files in",
    };
    const char *separator = "";

    for (size_t i = 0; i < count; i++) {
        if (!places[i].named)
            continue;
        say(report, "%s%s %s", separator, verbs[places[i].access], places[i].path);
        separator = ", ";
    }
}

static void restrict_files(const struct sandbox_place *places, size_t count, bool connects,
                           struct sandbox_report *report)
{
    const int version = landlock_confine(places, count, connects);

    if (version < 0) {
        say_missing(report, "Landlock", errno);
        return;
    }
    begin_item(report);
    say(report, "Landlock ABI %d (", version);
    say_places(report, places, count);
    say(report, ")");
}

static void restrict_calls(bool connects, struct sandbox_report *report)
{
    const int os_error = system_calls_confine(connects);

    if (os_error != 0) {
        say_missing(report, "filter of system calls", os_error);
        return;
    }
    begin_item(report);
    say(report, "system calls filtered");
    if (connects)
        say(report, " (connections to other services are possible)");
}

void sandbox_enter(const struct sandbox_place *places, size_t count, bool connects,
                   struct sandbox_report *out_report)
{
    *out_report = (struct sandbox_report){.complete = true};
    if (IS_SANITIZED) {
        say(out_report, "nothing, because the program is built with a sanitizer");
        return;
    }
    /* Unprivileged processes may do the rest only after this. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        say_missing(out_report, "end of new privileges", errno);
        return;
    }
    say(out_report, "no new privileges");
    restrict_files(places, count, connects, out_report);
    restrict_calls(connects, out_report);
}

void sandbox_hide_memory(void)
{
    /* The leak check of the address sanitizer attaches to the process. */
    if (!IS_SANITIZED)
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
