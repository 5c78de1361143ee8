/* PyTorch's ZIP archives: their entries, found by name, and their bytes. */
#ifndef ZT_FORMATS_PYTORCH_PYTORCH_ARCHIVE_H
#define ZT_FORMATS_PYTORCH_PYTORCH_ARCHIVE_H

#include "coding/inflate_stream.h"
#include "formats/zip.h"

/* No entry of that name. */
#define PYTORCH_NO_ENTRY UINT32_MAX

struct pytorch_archive {
    struct zt_source *source;
    struct zip_directory directory;
    const uint8_t *bytes; /* the directory's, borrowed */
    struct zt_text root;  /* the one folder, with its slash */
    struct pytorch_entry {
        uint64_t data_offset; /* absolute */
        uint32_t record_at;   /* position in the directory */
    } * entries;              /* in the directory's order */
    uint32_t entry_count;
    uint32_t *by_name;
    uint32_t guess;                   /* the place in entries where the next name may be */
    struct zt_inflate_stream *stream; /* made for the first deflated entry */
};

/* Reads all entries and their local headers; source, directory and bytes are set. Rejects entries
 * outside the one folder, names that occur twice, and entries that overlap. Freed with
 * pytorch_archive_close, also on failure. */
enum zt_status pytorch_archive_open(struct pytorch_archive *archive, struct zt_error *error);
void pytorch_archive_close(struct pytorch_archive *archive);
/* The memory that it holds. */
uint64_t pytorch_archive_held_bytes(const struct pytorch_archive *archive);

/* The entry <root>/<folder><key>, or PYTORCH_NO_ENTRY. */
uint32_t pytorch_archive_find(struct pytorch_archive *archive, const char *folder,
                              struct zt_text key);
/* An entry as described by the directory. */
void pytorch_archive_entry(const struct pytorch_archive *archive, uint32_t index,
                           struct zip_entry *out_entry);

/* Reads a whole entry of at most most_bytes into new memory, and checks its CRC-32 unless the field
 * is 0. Freed with free. ZT_INVALID, ZT_IO, ZT_NO_MEMORY. */
enum zt_status pytorch_archive_read(struct pytorch_archive *archive, uint32_t index,
                                    uint64_t most_bytes, uint8_t **out_bytes,
                                    struct zt_error *error);

#endif
