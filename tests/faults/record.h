/* The order of calls, written to the file that the environment variable ZT_RECORD names. One line a
 * call, its columns separated by tabs: call, "device:inode" of the file or folder, path. No
 * function here changes errno. */
#ifndef TESTS_FAULTS_RECORD_H
#define TESTS_FAULTS_RECORD_H

#include <stddef.h>

/* A call on an open file or folder that has succeeded. */
void record_descriptor(const char *call, int descriptor);

/* A call that gave, changed or removed a name in a folder. After an unlink there is no file any
 * more, and its column is "-". */
void record_name(const char *call, int folder, const char *name);

/* An HTTP answer that is about to be sent, if these bytes begin one: "answer", its status, "-". */
void record_answer(const void *bytes, size_t length);

#endif
