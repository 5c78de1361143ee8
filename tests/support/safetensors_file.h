/* Safetensors files made from a header's text, whole or broken in one place. */
#ifndef ZT_TEST_SAFETENSORS_FILE_H
#define ZT_TEST_SAFETENSORS_FILE_H

#include "container.h"

/* Makes a file of the header, without padding, and data_length bytes (byte n is n mod 251). Single
 * quotes in the header become double ones; ^ is left out, and its position becomes the container's
 * mark. container starts out cleared; its previous file is freed. */
void safetensors_make(struct container *container, const char *header, size_t data_length);

/* Fails the running test unless a file with that header is rejected with that rule, at the marked
 * position. */
void safetensors_refused(const char *header, size_t data_length, const char *rule);

#endif
