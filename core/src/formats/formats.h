/* The readers, one for each format.
 *
 * A reader locates the manifest, reads it into a model under construction, and checks the finished
 * model. The steps in between are the same for every format: zt_reader_open begins a model,
 * finishes or abandons it, and checks that components do not overlap. */
#ifndef ZT_FORMATS_FORMATS_H
#define ZT_FORMATS_FORMATS_H

#include "model/model_build.h"

struct zt_manifest_place {
    uint64_t offset; /* absolute */
    uint64_t length; /* at most 1 GiB; may be 0 */
};

struct zt_reader {
    enum zt_format format;
    const char *name; /* zt_model.format_name */
    /* The rule for two objects, or two components of one object, with the same name. */
    const char *duplicate_rule;
    /* The rule for components that overlap. NULL if check detects overlap or the format excludes
     * it. */
    const char *overlap_rule;
    /* Whether components must not overlap the manifest either. */
    bool covers_manifest;
    /* Nothing but the objects' names points into the manifest once it has been read: the names are
     * kept, and the rest is freed. */
    bool keeps_only_names;
    /* Finds the manifest. Reserves no memory for lengths that the file declares. */
    enum zt_status (*locate)(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error);
    /* Adds the manifest's contents to the model. The builder holds the manifest's bytes. */
    enum zt_status (*read)(void *state, struct zt_builder *builder, struct zt_error *error);
    /* Checks the rules that need the whole model, before overlap is checked; may be NULL. */
    enum zt_status (*check)(void *state, struct zt_model *model, struct zt_error *error);
};

/* Opens a file of the reader's format. state is passed to the reader's functions and used only
 * during this call. */
enum zt_status zt_reader_open(const struct zt_reader *reader, void *state, struct zt_source *source,
                              struct zt_model **out_model, struct zt_error *error);

enum zt_status zt01_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error);
/* 1.0 (no tail magic), 1.1 and 1.2. */
enum zt_status zt1_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
enum zt_status zt2_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
/* The specification's layout, and those that releases of magnetron wrote. */
enum zt_status mag_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
enum zt_status safetensors_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error);
/* Versions 2 and 3. */
enum zt_status gguf_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error);
enum zt_status npy_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
/* An archive of NumPy arrays; a PyTorch archive is handed on. */
enum zt_status npz_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error);
/* PyTorch since 1.6, and TorchScript. */
enum zt_status pytorch_zip_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error);
/* PyTorch from 0.1.10 to 1.5, and later on demand: stacked pickles. */
enum zt_status pytorch_legacy_open(struct zt_source *source, struct zt_model **out_model,
                                   struct zt_error *error);
enum zt_status onnx_open(struct zt_source *source, struct zt_model **out_model,
                         struct zt_error *error);

enum onnx_likeness {
    ONNX_NOT,
    ONNX_BEGINNING, /* begins as all writers begin a message, and ends before the graph */
    ONNX_MESSAGE,   /* whole, or cut off or damaged from the graph on */
};

/* Reports how much the content looks like ONNX. A message has no magic, so ONNX is looked for last.
 * ZT_IO, ZT_NO_MEMORY. */
enum zt_status onnx_detect(struct zt_source *source, enum onnx_likeness *out_likeness,
                           struct zt_error *error);

#endif
