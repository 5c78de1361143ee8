/* Parking: a folder may hold more files than a process may open, so the files of models that nobody
 * reads are closed, and opened again when somebody does. Those that were asked for since the last
 * look stay open if there are others. */
#ifndef CATALOG_PARKING_H
#define CATALOG_PARKING_H

#include "catalog/catalog_content.h"

void parking_init(struct catalog_content *content);
void parking_clear(struct catalog_content *content);

/* How many files the generations of the index hold open. */
size_t parking_count(struct catalog_content *content);

/* Whether an error says that the process, or the system, has no descriptors, which says nothing
 * about the file. */
bool parking_is_out_of_files(const struct zt_error *error);

/* A generation has come into the index, or is no longer in it. It is retired before it leaves. */
void parking_enter(struct catalog_content *content, struct generation *generation);
void parking_leave(struct catalog_content *content, struct generation *generation);

/* Parks a generation that is not in the index yet. False if somebody reads it. */
bool parking_close_new(struct generation *generation);

/* Closes files that nobody reads if more are open than may be. Takes the index's lock. */
void parking_limit(struct catalog_content *content);

/* Closes half of the files that nobody reads: the process has no descriptors left. */
void parking_make_room(struct catalog_content *content);

/* Opens the file of a held generation again if it was parked. False if the file is gone or has
 * changed, or if there are no descriptors. */
bool parking_open(struct catalog_content *content, struct generation *generation);

/* The same for one of many readers, who must wait and ask again (false) while too many files are
 * being read. */
bool parking_open_in_turn(struct catalog_content *content, struct generation *generation);

#endif
