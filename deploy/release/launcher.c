/*
 * The program `ztserve` of the tarball: starts the server with the libraries and the dynamic linker
 * that came with it, from ../lib/ztserve next to the folder of this program. Linked statically, so
 * it needs nothing of the machine, not even /proc. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Linker, its options, and the program, which come before the arguments of the program. */
#define OWN_WORDS 5

/* Cuts the last name off a path. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash != NULL)
        *slash = '\0';
}

/* Writes the folder that holds bin/ztserve; fails with errno. */
static bool find_folder(char folder[static PATH_MAX])
{
    /* The path given to execve; links to this program are resolved. */
    if (realpath((const char *)getauxval(AT_EXECFN), folder) == NULL)
        return false;
    cut_name(folder);
    cut_name(folder);
    return true;
}

/* Runs the program in `libraries`; returns only if that fails, with errno. */
static void run(char *libraries, int count, char **arguments)
{
    /* The machine's own list of libraries may name others of the same name. */
    static char without_list[] = "--inhibit-cache", with_path[] = "--library-path";
    char linker[PATH_MAX], program[PATH_MAX];
    char **words = calloc((size_t)count + OWN_WORDS, sizeof(*words));

    if (words == NULL)
        return;
    if (snprintf(linker, sizeof(linker), "%s/ld.so", libraries) < PATH_MAX &&
        snprintf(program, sizeof(program), "%s/ztserve", libraries) < PATH_MAX) {
        words[0] = linker;
        words[1] = without_list;
        words[2] = with_path;
        words[3] = libraries;
        words[4] = program;
        for (int i = 1; i < count; i++)
            words[OWN_WORDS - 1 + i] = arguments[i];
        execv(linker, words);
    } else {
        errno = ENAMETOOLONG;
    }
    free(words);
}

int main(int count, char **arguments)
{
    char folder[PATH_MAX], libraries[2 * PATH_MAX];

    if (find_folder(folder)) {
        snprintf(libraries, sizeof(libraries), "%s/lib/ztserve", folder);
        run(libraries, count, arguments);
    }
    fprintf(stderr, "ztserve: cannot start the program in its folder lib/ztserve: %s\n",
            strerror(errno));
    return 1;
}
