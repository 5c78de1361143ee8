/* The pieces of the Hub's answers that several of them have. */
#ifndef HUB_HUB_JSON_H
#define HUB_HUB_JSON_H

#include "base/json_write.h"
#include "hub/version.h"

/* What the one commit that is told of is called. */
#define HUB_COMMIT_TITLE "What is there now"

/* "2026-11-24T09:30:00.000Z", and NUL: the one form that all clients read. */
#define HUB_DATE_SIZE 32
void hub_date(int64_t time_ns, char out_text[HUB_DATE_SIZE]);

void hub_json_string(struct json *json, const char *key, const char *value);
void hub_json_flag(struct json *json, const char *key, bool value);

/* "lfs": {…}, of a file whose SHA-256 is known; nothing of another. */
void hub_json_lfs(struct json *json, const struct hub_file *file);

/* An entry of a tree: a file; commit: NULL, or that of "lastCommit", with the date of the file. */
void hub_json_file(struct json *json, const struct hub_file *file, const char *commit);
/* A folder: the files from first on that are below it. */
void hub_json_folder(struct json *json, const struct hub_version *version, size_t first,
                     size_t path_length, const char *commit);

/* The members of a repository's description that need no listing of it. */
void hub_json_repo(struct json *json, struct zt_text name, int64_t modified_ns);

/* "tags": […], the formats of its tensor files (repo_index.h). */
void hub_json_tags(struct json *json, unsigned tags);

#endif
