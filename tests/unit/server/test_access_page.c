/* docs/access.md names every route that needs no client, and no other. */
#include "tests.h"

#include "http/exchange/router.h"

#define BEGINNING "every request must come from a known client, except"
#define END       "All others return 401"
#define SIZE      128

/* The list of the page; freed by the caller. */
static char *read_list(void)
{
    FILE *file = fopen(ZT_SOURCE_DIR "/docs/access.md", "r");
    char *page = calloc(1, 1 << 20);
    char *list;
    char *end;

    assert_non_null(file);
    assert_non_null(page);
    assert_true(fread(page, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    list = strstr(page, BEGINNING);
    assert_non_null(list);
    end = strstr(list, END);
    assert_non_null(end);
    *end = '\0';
    list = strdup(list);
    free(page);
    return list;
}

/* A pattern as the page writes it: {path...} is {path}. */
static void shown(const char *pattern, char out_text[SIZE])
{
    const char *dots = strstr(pattern, "...}");
    const int length = dots != NULL ? (int)(dots - pattern) : (int)strlen(pattern);

    snprintf(out_text, SIZE, "`%.*s%s`", length, pattern, dots != NULL ? dots + 3 : "");
}

TEST(the_page_names_every_route_without_a_client)
{
    char *list = read_list();

    for (size_t i = 0; i < route_count; i++) {
        char text[SIZE];

        shown(routes[i].pattern, text);
        if ((routes[i].audience != AUDIENCE_CLIENTS) != (strstr(list, text) != NULL))
            fail_msg("%s", text);
    }
    free(list);
}

TEST(the_page_names_only_routes)
{
    char *list = read_list();
    char *rest = list;
    size_t count = 0;

    for (char *at; (at = strstr(rest, "`/")) != NULL;) {
        char *end = strchr(at + 1, '`');
        char text[SIZE] = "";
        size_t i = 0;

        assert_non_null(end);
        for (; i < route_count; i++) {
            shown(routes[i].pattern, text);
            if (strncmp(text, at, (size_t)(end - at) + 1) == 0 &&
                strlen(text) == (size_t)(end - at) + 1)
                break;
        }
        if (i == route_count)
            fail_msg("%.*s", (int)(end - at) + 1, at);
        rest = end + 1;
        count++;
    }
    assert_true(count > 5);
    free(list);
}
