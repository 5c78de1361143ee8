/* The formats that are read and not written, for messages. */
#ifndef CONVERSION_READ_ONLY_FORMAT_H
#define CONVERSION_READ_ONLY_FORMAT_H

/* The name of the format, such as "GGUF", if text is its word ("gguf") or ends in one of its
 * extensions ("model.Q4.gguf"), in any case; NULL for every other text. */
const char *read_only_format(const char *text);

#endif
