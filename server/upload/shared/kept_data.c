#include "upload/shared/kept_data.h"

#include <assert.h>

#include "base/server.h"
#include "store/staging.h"

#define CLOSED (-1)

void kept_data_init(struct kept_data *data, struct kept_upload *upload, const char *name)
{
    data->upload = upload;
    data->name = name;
    pthread_mutex_init(&data->lock, NULL);
}

void kept_data_destroy(struct kept_data *data)
{
    staged_file_close(data->file);
    pthread_mutex_destroy(&data->lock);
}

bool kept_data_begin(struct kept_data *data, uint64_t expected_bytes, struct failure *failure)
{
    struct staging *staging = data->upload->server->store->staging;
    const char *id = data->upload->entry.id;
    struct zt_error error;

    assert(data->file == NULL && atomic_load(&data->users) == 0);
    if (staging_folder_make(staging, id, &error) != ZT_OK)
        return failure_of_store(failure, &error);
    if (staging_folder_create(staging, id, data->name, expected_bytes, &data->file, &error) !=
        ZT_OK) {
        (void)staging_folder_drop(staging, id, NULL);
        return failure_of_store(failure, &error);
    }
    atomic_store(&data->users, 1);
    return true;
}

/* The lock must be held. */
static bool open_file(struct kept_data *data, struct failure *failure)
{
    const struct kept_upload *upload = data->upload;
    struct zt_error error;

    return data->file != NULL ||
           staging_folder_open(upload->server->store->staging, upload->entry.id, data->name,
                               &data->file, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}

bool kept_data_enter(struct kept_data *data, struct failure *failure)
{
    bool is_open;

    pthread_mutex_lock(&data->lock);
    is_open = !kept_data_is_closed(data) && open_file(data, failure);
    if (is_open)
        atomic_fetch_add(&data->users, 1);
    pthread_mutex_unlock(&data->lock);
    return is_open;
}

void kept_data_leave(struct kept_data *data)
{
    int before;

    pthread_mutex_lock(&data->lock);
    before = atomic_fetch_sub(&data->users, 1);
    assert(before > 0 && data->file != NULL);
    if (before == 1 && atomic_load(&data->has_failed_write)) {
        staged_file_return_space(data->file, UINT64_MAX);
    } else if (before == 1) {
        staged_file_close(data->file);
        data->file = NULL;
    }
    pthread_mutex_unlock(&data->lock);
}

bool kept_data_close(struct kept_data *data)
{
    bool is_mine;

    pthread_mutex_lock(&data->lock);
    is_mine = atomic_load(&data->users) == 0;
    if (is_mine)
        atomic_store(&data->users, CLOSED);
    pthread_mutex_unlock(&data->lock);
    return is_mine;
}

bool kept_data_is_closed(const struct kept_data *data)
{
    return atomic_load(&data->users) == CLOSED;
}

bool kept_data_enter_closed(struct kept_data *data, struct failure *failure)
{
    bool is_open;

    assert(kept_data_is_closed(data));
    pthread_mutex_lock(&data->lock);
    is_open = open_file(data, failure);
    pthread_mutex_unlock(&data->lock);
    return is_open;
}

void kept_data_reopen(struct kept_data *data)
{
    assert(kept_data_is_closed(data));
    atomic_store(&data->users, 0);
}

void kept_data_end(struct kept_data *data)
{
    pthread_mutex_lock(&data->lock);
    assert(atomic_load(&data->users) == CLOSED || atomic_load(&data->users) == 1);
    atomic_store(&data->users, CLOSED);
    staged_file_close(data->file);
    data->file = NULL;
    pthread_mutex_unlock(&data->lock);
}

bool kept_data_write(struct kept_data *data, uint64_t offset, const void *bytes, size_t length,
                     struct failure *failure)
{
    struct zt_error error;

    assert(data->file != NULL);
    if (staged_file_write_at(data->file, offset, bytes, length, &error) != ZT_OK) {
        if (error.status != ZT_LIMIT)
            atomic_store(&data->has_failed_write, true);
        return failure_of_store(failure, &error);
    }
    kept_upload_touch(data->upload);
    return true;
}

bool kept_data_take_space(struct kept_data *data, uint64_t bytes, struct failure *failure)
{
    struct zt_error error;

    return staged_file_take_space(data->file, bytes, &error) == ZT_OK ||
           failure_of_store(failure, &error);
}
