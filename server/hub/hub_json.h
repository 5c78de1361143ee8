/* Parts that several of the Hub's responses share. */
#ifndef HUB_HUB_JSON_H
#define HUB_HUB_JSON_H

#include "base/json_write.h"
#include "hub/version.h"

/* The title of the only commit. */
#define HUB_COMMIT_TITLE "Current files"

/* "2026-11-24T09:30:00.000Z" and NUL: the only form that all clients read. */
#define HUB_DATE_SIZE 40
void hub_date(int64_t time_ns, char out_text[HUB_DATE_SIZE]);

void hub_json_flag(struct json *json, const char *key, bool value);

/* Writes "lfs": {…} if the file's SHA-256 is known. */
void hub_json_lfs(struct json *json, const struct hub_file *file);

/* Writes an entry of a tree: a file. commit is NULL, or the commit in "lastCommit", with the file's
 * date. */
void hub_json_file(struct json *json, const struct hub_file *file, const char *commit);
/* Writes a folder; its files begin at index first. */
void hub_json_folder(struct json *json, const struct hub_version *version, size_t first,
                     size_t path_length, const char *commit);

/* Writes the members of a repository's description that do not need its listing. */
void hub_json_repo(struct json *json, struct zt_text name, int64_t modified_ns);

/* Writes "tags": […], the formats of its tensor files (repo_index.h). */
void hub_json_tags(struct json *json, unsigned tags);

#endif
