#include "api/revisions/revision_entry.h"

#include <stdio.h>
#include <string.h>

#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"
#include "http/fields/uri.h"
#include "http/revisions/revision.h"

#define NS_PER_MS 1000000

void revision_write_text(struct json *json, const char *key, const char *text)
{
    json_key_string(json, key);
    if (text != NULL && text[0] != '\0')
        json_put_string(json, text);
    else
        json_put_null(json);
}

static void write_refs(struct json *json, const char *key, const struct revision_entry *entry,
                       const char *commit, bool are_tags)
{
    json_key_string(json, key);
    json_array_begin(json);
    for (size_t i = 0; i < entry->ref_count; i++)
        if (entry->refs[i].is_tag == are_tags && strcmp(entry->refs[i].commit, commit) == 0)
            json_put_string(json, entry->refs[i].name);
    json_array_end(json);
}

static void write_href(struct json *json, const char *base_path, const char *name)
{
    struct href href;

    href_begin(&href, base_path);
    href_model(&href, zt_text_from(name));
    json_key_string(json, "href");
    json_put_string(json, href.failed ? "" : href.text);
    json->failed = json->failed || href.failed;
    href_free(&href);
}

bool revision_shows_notes(const struct request *request, const struct history_repo *repo)
{
    const struct zt_text name = zt_text_from(repo->name);

    return repo->is_root_model ? authorize_sees(request, name)
                               : authorize_sees_whole_folder(request, name);
}

void revision_entry_write(struct json *json, const struct revision_entry *entry,
                          const struct history_commit *commit)
{
    char name[MODEL_PATH_SIZE];

    json_object_begin(json);
    revision_write_text(json, "commit", commit->id);
    revision_write_text(json, "parent", commit->parent);
    json_key_string(json, "time");
    manifest_write_time(json, commit->time_ms * NS_PER_MS);
    revision_write_text(json, "branch", commit->branch);
    revision_write_text(json, "client", entry->shows_notes ? commit->client : NULL);
    revision_write_text(json, "title", entry->shows_notes ? commit->title : NULL);
    revision_write_text(json, "message", entry->shows_notes ? commit->message : NULL);
    write_refs(json, "tags", entry, commit->id, true);
    write_refs(json, "branches", entry, commit->id, false);
    if (revision_store_name(entry->repo, commit->id, entry->model, name))
        write_href(json, entry->base_path, name);
    json_object_end(json);
}

void revision_entry_write_mirrored(struct json *json, const char *base_path,
                                   const struct store_revision *revision, struct zt_text name,
                                   struct zt_text branch)
{
    static const char *const unknown[] = {"parent", "time"};

    json_object_begin(json);
    revision_write_text(json, "commit", revision->commit);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        revision_write_text(json, unknown[i], NULL);
    json_key_string(json, "branch");
    json_text(json, branch);
    revision_write_text(json, "client", NULL);
    revision_write_text(json, "title", NULL);
    revision_write_text(json, "message", NULL);
    json_key_string(json, "tags");
    json_array_begin(json);
    json_array_end(json);
    json_key_string(json, "branches");
    json_array_begin(json);
    if (revision->is_current)
        json_text(json, branch);
    json_array_end(json);
    write_href(json, base_path, name.bytes);
    json_object_end(json);
}
