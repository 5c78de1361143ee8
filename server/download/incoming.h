/* One version of a file on a server on its way into the part file of a pull. It arrives by several
 * requests for ranges at once, each for a run of pieces; or as one stream, a single piece, if the
 * server has no ranges or does not identify the version.
 *
 * A broken request for a range resumes where it broke, until some tries in a row made no progress;
 * a broken stream begins again. A journal remembers the pieces, so that an interrupted pull resumes
 * too. Sources over the file wait for missing pieces, so that ordinary code can check the file
 * while it arrives. */
#ifndef DOWNLOAD_INCOMING_H
#define DOWNLOAD_INCOMING_H

#include "client/web_file.h"
#include "download/download.h"
#include "download/part_file.h"

struct incoming;

/* Begins with the pieces that an earlier pull of this version has left, and with bytes of local
 * files, which it copies. Everything is borrowed; the part file is open. ZT_LIMIT if the disk has
 * no room for the rest; ZT_IO; otherwise fails as client_open does. */
enum zt_status incoming_open(const struct download *download, const struct web_file *web,
                             const struct part_file *file, struct copied_bytes *copied,
                             struct incoming **out_incoming, struct zt_error *error);
/* Interrupts all requests. The sources are closed. */
void incoming_close(struct incoming *incoming);

/* Opens a source over the file. is_wanted: pieces that its reads wait for are fetched
 * next. Only one source of each kind may be open. */
struct zt_source *incoming_source(struct incoming *incoming, bool is_wanted);

/* Runs the requests and writes the journal until the file is complete and the sources are closed,
 * or until something failed. */
void incoming_run(struct incoming *incoming);

/* Ends the run and all reads, including waiting ones, with the first error passed here. */
void incoming_fail(struct incoming *incoming, const struct zt_error *error);

/* Returns the first failure; the file's size, and how much of it came from an earlier pull and from
 * local files.
 * ZT_STALE: the server has another version now. */
enum zt_status incoming_outcome(struct incoming *incoming, struct download_result *result,
                                struct zt_error *error);

#endif
