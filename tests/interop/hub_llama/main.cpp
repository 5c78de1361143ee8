// What llama-server does for `-hf REPO` before it loads anything, with llama.cpp's own downloader, by the environment's
// HF_ENDPOINT and HF_HOME. Prints where the model is; status 1 if there is none.

#include "common.h"
#include "download.h"

#include <cstdio>
#include <cstdlib>

int main(int count, char ** arguments) {
    if (count != 2) {
        return 2;
    }
    common_params_model model;
    model.hf_repo = arguments[1];
    common_download_opts options;
    if (const char * token = getenv("HF_TOKEN")) {
        options.bearer_token = token;
    }
    const auto plan = common_download_get_hf_plan(model, options);
    std::vector<common_download_task> tasks;
    for (const auto & file : plan.model_files) {
        tasks.emplace_back(file, options);
    }
    common_download_run_tasks(tasks);
    for (const auto & file : plan.model_files) {
        hf_cache::finalize_file(file);
    }
    if (plan.primary.path.empty()) {
        fprintf(stderr, "no model\n");
        return 1;
    }
    printf("%s\n", hf_cache::finalize_file(plan.primary).c_str());
    return 0;
}

// The two functions of the rest of llama.cpp that the downloader's files name.

extern "C" void ggml_abort(const char * file, int line, const char *, ...) {
    fprintf(stderr, "%s:%d\n", file, line);
    abort();
}

const char * llama_build_info(void) {
    return "test";
}
