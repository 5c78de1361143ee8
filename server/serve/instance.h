/* A running server as one thing: its parts started in order, drained, and stopped in reverse. */
#ifndef SERVE_INSTANCE_H
#define SERVE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

struct instance;

/* Opens the root, takes the address, starts workers and loops and begins the first scan. The
 * configuration is copied. NULL with one clear line in error. */
struct instance *instance_start(const struct config *config, char *error, size_t error_size);

/* "127.0.0.1:8080", with the port that was taken. */
const char *instance_address(const struct instance *instance);

/* What it was started with. */
const struct config *instance_config(const struct instance *instance);

/* Whether the first scan is done, and whether it (or a later one) found a model. */
bool instance_is_loaded(const struct instance *instance);
bool instance_has_models(const struct instance *instance);

/* How many files there are whose names do not fit. */
size_t instance_misfits(const struct instance *instance);

/* Looks for new, changed and removed files. */
void instance_refresh(struct instance *instance);

/* The listening sockets close; what is open is finished. */
void instance_drain(struct instance *instance);

/* Requests begun and not finished. */
unsigned instance_active(const struct instance *instance);

/* Cuts what is still open, ends all threads, frees. Takes NULL, and an instance that was not
 * started whole. */
void instance_stop(struct instance *instance);

#endif
