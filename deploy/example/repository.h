/* The example repository: a folder such as the clients of the Hugging Face Hub download, with a
 * tiny Llama and a tokenizer that has one token per byte. */
#ifndef EXAMPLE_REPOSITORY_H
#define EXAMPLE_REPOSITORY_H

#include <stdbool.h>
#include <stdint.h>

/* The byte tokens are followed by these two. */
#define REPOSITORY_BYTES      256
#define REPOSITORY_BEGIN      256
#define REPOSITORY_END        257
#define REPOSITORY_VOCABULARY 258

/* Writes README.md, config.json, generation_config.json, tokenizer_config.json, tokenizer.json and
 * model.safetensors into an existing folder, each complete or not at all; replaces existing files.
 * False with errno. */
bool repository_write(const char *folder);

struct zt_buffer;

/* Appends model.safetensors to an empty buffer. A Llama with these shapes: */
#define WEIGHTS_HIDDEN    64
#define WEIGHTS_INNER     192
#define WEIGHTS_LAYERS    2
#define WEIGHTS_HEADS     8
#define WEIGHTS_KV_HEADS  4
#define WEIGHTS_POSITIONS 128
void weights_append(struct zt_buffer *file);

/* Appends tokenizer.json to an empty buffer. */
void tokenizer_append(struct zt_buffer *file);

#endif
