/* The readers: one file a format. Each is told the whole file's size and its first and last bytes,
 * and fills a model. */
#ifndef ZT_FORMATS_FORMATS_H
#define ZT_FORMATS_FORMATS_H

#include "zt/model.h"

enum zt_status zt01_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error);
/* 1.0 (no tail magic), 1.1 and 1.2. */
enum zt_status zt1_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
enum zt_status zt2_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
/* The specification's layout, and those that magnetron's releases wrote. */
enum zt_status mag_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
enum zt_status safetensors_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error);
/* Versions 2 and 3. */
enum zt_status gguf_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error);
enum zt_status npy_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
enum zt_status npz_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);

#endif
