/* Removes kept files that no commit needs any more, in the background. */
#ifndef SERVE_COLLECTION_H
#define SERVE_COLLECTION_H

struct collection;
struct server;

/* Collects at once, after commits, and as commits get too old. Returns NULL if no versions are
 * kept, or after logging why it cannot. */
struct collection *collection_watch(struct server *server);
/* Call it after the workers have ended. Accepts NULL. */
void collection_free(struct collection *collection);

#endif
