/* The files of the example repository. The numbers in config.json are those that the weights are
 * made with. */
#include "repository.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output.h"

static const char readme[] =
    "---\n"
    "license: mit\n"
    "library_name: transformers\n"
    "pipeline_tag: text-generation\n"
    "---\n"
    "\n"
    "# acme/tiny\n"
    "\n"
    "A Llama with two layers and made-up weights, for trying out ztserve. Each byte is a token.\n"
    "Start it with `tiny`, and it says `tiny model` for ever.\n";

static const char generation_config[] = "{\n"
                                        "  \"bos_token_id\": 256,\n"
                                        "  \"eos_token_id\": 257,\n"
                                        "  \"pad_token_id\": 257,\n"
                                        "  \"do_sample\": false,\n"
                                        "  \"max_new_tokens\": 6\n"
                                        "}\n";

static const char tokenizer_config[] = "{\n"
                                       "  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
                                       "  \"bos_token\": \"<s>\",\n"
                                       "  \"eos_token\": \"</s>\",\n"
                                       "  \"pad_token\": \"</s>\",\n"
                                       "  \"clean_up_tokenization_spaces\": false,\n"
                                       "  \"model_max_length\": 128\n"
                                       "}\n";

static_assert(REPOSITORY_BEGIN == 256 && REPOSITORY_END == 257 && WEIGHTS_POSITIONS == 128,
              "the texts above name these");

static void put(struct zt_buffer *file, const char *text)
{
    zt_buffer_append(file, text, strlen(text));
}

static void put_number(struct zt_buffer *file, const char *key, unsigned value)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "  \"%s\": %u,\n", key, value);

    assert(length > 0 && (size_t)length < sizeof(line));
    put(file, line);
}

static void config_append(struct zt_buffer *file)
{
    assert(file->length == 0);
    put(file, "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n");
    put_number(file, "vocab_size", REPOSITORY_VOCABULARY);
    put_number(file, "hidden_size", WEIGHTS_HIDDEN);
    put_number(file, "intermediate_size", WEIGHTS_INNER);
    put_number(file, "num_hidden_layers", WEIGHTS_LAYERS);
    put_number(file, "num_attention_heads", WEIGHTS_HEADS);
    put_number(file, "num_key_value_heads", WEIGHTS_KV_HEADS);
    put_number(file, "max_position_embeddings", WEIGHTS_POSITIONS);
    put_number(file, "bos_token_id", REPOSITORY_BEGIN);
    put_number(file, "eos_token_id", REPOSITORY_END);
    put_number(file, "pad_token_id", REPOSITORY_END);
    put(file, "  \"hidden_act\": \"silu\",\n  \"rms_norm_eps\": 1e-05,\n"
              "  \"rope_theta\": 10000.0,\n  \"tie_word_embeddings\": false,\n"
              "  \"torch_dtype\": \"float32\"\n}\n");
}

static const struct file {
    const char *name;
    const char *text; /* NULL if the function appends it */
    void (*append)(struct zt_buffer *file);
} files[] = {
    {"README.md", readme, NULL},
    {"config.json", NULL, config_append},
    {"generation_config.json", generation_config, NULL},
    {"tokenizer_config.json", tokenizer_config, NULL},
    {"tokenizer.json", NULL, tokenizer_append},
    {"model.safetensors", NULL, weights_append},
};

static bool write_file(const char *folder, const struct file *made)
{
    size_t size = strlen(folder) + strlen(made->name) + 2;
    char *path = malloc(size);
    struct zt_buffer file = {0};
    bool written;

    if (path == NULL)
        return false;
    snprintf(path, size, "%s/%s", folder, made->name);
    if (made->text != NULL)
        put(&file, made->text);
    else
        made->append(&file);
    assert(file.failed || file.length > 0);
    written = output_publish(&file, path);
    zt_buffer_free(&file);
    free(path);
    return written;
}

bool repository_write(const char *folder)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (!write_file(folder, &files[i]))
            return false;
    return true;
}
