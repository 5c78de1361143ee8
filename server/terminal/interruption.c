/* The handler does only what signal-safety(7) allows, and the signal comes a second time with its
 * default effect. */
#include "terminal/interruption.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_bool has_line;
static const char *_Atomic part;

static void say(const char *text, size_t length)
{
    /* A failure to print it is ignored. */
    if (write(STDERR_FILENO, text, length) < 0)
        return;
}

static void end(int number)
{
    static const char hint[] = "ztserve: interrupted; run the same command again to resume\n";
    const char *path = part;

    if (has_line)
        say("\n", 1);
    if (path != NULL && access(path, F_OK) == 0)
        say(hint, sizeof(hint) - 1);
    raise(number);
}

void interruption_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_RESETHAND | SA_RESTART};
    struct sigaction before;

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

void interruption_note_line(bool is_drawn)
{
    has_line = is_drawn;
}

void interruption_note_part(const char *path)
{
    part = path;
}
