/* What every unit test may use. */
#include "support.h"

#include <dirent.h>
#include <string.h>
#include <time.h>

#include "zt/attributes.h"

#define PAUSE_MAX_MS 200
#define PATIENCE_MS  120000

void run_in(const char *folder, const char *commands)
{
    char text[1280];

    assert_in_range(snprintf(text, sizeof(text), "cd %s && { %s; }", folder, commands), 1,
                    sizeof(text) - 1);
    assert_int_equal(system(text), 0);
}

unsigned open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(unsigned milliseconds)
{
    assert_in_range(milliseconds, 0, PAUSE_MAX_MS);
    nanosleep(&(struct timespec){.tv_nsec = (long)milliseconds * 1000000}, NULL);
}

int64_t await_until_ms(void)
{
    return now_ms() + PATIENCE_MS;
}

void await_again(int64_t until_ms, const char *condition)
{
    if (now_ms() > until_ms)
        fail_msg("never became true: %s", condition);
    pause_ms(1);
}

void json_quotes(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            *text = '"';
}

struct zt_source *memory_source(const void *bytes, size_t length)
{
    struct zt_source *source = NULL;

    assert_ok(zt_source_from_memory(bytes, length, &source, NULL));
    return source;
}

void assert_text(const char *bytes, size_t length, const char *wanted)
{
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(bytes, wanted, length);
}

static void append_json(void *context, const char *text, size_t length)
{
    strncat(context, text, length);
}

void assert_json(struct zt_text attributes, const char *wanted)
{
    char json[4096] = "";

    assert_ok(zt_attributes_write_json(attributes, append_json, json, NULL));
    assert_string_equal(json, wanted);
}
