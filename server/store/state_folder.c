/* Finding, making and opening the state folder. */
#include "store/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_NAME ".ztserve"

int state_folder_open(const struct config *config)
{
    char path[CONFIG_TEXT_SIZE + sizeof(DEFAULT_NAME) + 1];
    int folder;
    int kept;

    if (config->state.dir[0] != '\0')
        snprintf(path, sizeof(path), "%s", config->state.dir);
    else
        snprintf(path, sizeof(path), "%s/%s", config->root, DEFAULT_NAME);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return folder;
    kept = errno;
    close(folder);
    errno = kept;
    return -1;
}
