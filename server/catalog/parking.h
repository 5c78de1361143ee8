/* Parking: a folder may hold more files than a process may open, so the files of models that nobody
 * reads are closed, and opened again when somebody does. */
#ifndef CATALOG_PARKING_H
#define CATALOG_PARKING_H

#include "catalog/catalog_content.h"

/* How many files the catalog may hold open: a share of the process's descriptors. */
size_t parking_most_open(void);

/* How many files a generation holds open now. */
size_t parking_open_files(const struct generation *generation);

/* Closes files that nobody reads if more are open than may be. Takes the index's lock. */
void parking_limit(struct catalog_content *content);

/* Opens the file of a held generation again if it was parked. False if the file is gone or has
 * changed. */
bool parking_open(struct catalog_content *content, struct generation *generation);

#endif
