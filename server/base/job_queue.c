/* A ring of lines, one for each client that has jobs in the queue. */
#include "base/job_queue.h"

#include <assert.h>

void job_queue_init(struct job_queue *queue)
{
    *queue = (struct job_queue){.length = 0};
    for (size_t i = 0; i < JOB_LINES; i++) {
        queue->lines[i].next = queue->free;
        queue->free = &queue->lines[i];
    }
}

/* --- lines --- */

static struct job_line *line_of(const struct job_queue *queue, uint64_t client)
{
    struct job_line *line = queue->turn;

    if (line == NULL)
        return NULL;
    do {
        if (line->client == client)
            return line;
        line = line->next;
    } while (line != queue->turn);
    return NULL;
}

/* Adds a line to the ring before the line whose turn it is, so that it is the last in this
 * round. */
static struct job_line *open_line(struct job_queue *queue, uint64_t client)
{
    struct job_line *line = queue->free;

    assert(line->length == 0);
    queue->free = line->next;
    line->client = client;
    line->first = NULL;
    line->last = &line->first;
    line->next = queue->turn != NULL ? queue->turn : line;
    line->previous = queue->turn != NULL ? queue->turn->previous : line;
    line->previous->next = line;
    line->next->previous = line;
    if (queue->turn == NULL)
        queue->turn = line;
    return line;
}

static void close_line(struct job_queue *queue, struct job_line *line)
{
    assert(line->length == 0);
    if (queue->turn == line)
        queue->turn = line->next != line ? line->next : NULL;
    line->previous->next = line->next;
    line->next->previous = line->previous;
    line->next = queue->free;
    queue->free = line;
}

/* Returns the line for the client's jobs. */
static struct job_line *line_for(struct job_queue *queue, uint64_t client)
{
    struct job_line *line = line_of(queue, client);

    if (line != NULL)
        return line;
    return queue->free != NULL ? open_line(queue, client) : &queue->lines[client % JOB_LINES];
}

/* Inserts a job. link is the pointer to the job that will follow it. */
static void put_into(struct job_queue *queue, struct job_line *line, struct mail **link,
                     struct job *job)
{
    job->line = line;
    job->mail.next = *link;
    *link = &job->mail;
    if (line->last == link)
        line->last = &job->mail.next;
    line->length++;
    queue->length++;
}

/* Removes a job. link is the pointer to it. */
static struct job *take_from(struct job_queue *queue, struct job_line *line, struct mail **link)
{
    struct job *job = job_of(*link);

    assert(job->line == line && line->length > 0 && queue->length > 0);
    *link = job->mail.next;
    if (line->last == &job->mail.next)
        line->last = link;
    job->line = NULL;
    line->length--;
    queue->length--;
    if (line->length == 0)
        close_line(queue, line);
    return job;
}

/* --- jobs --- */

void job_queue_put(struct job_queue *queue, struct job *job)
{
    struct job_line *line = line_for(queue, job->client);

    assert(*line->last == NULL);
    put_into(queue, line, line->last, job);
}

void job_queue_put_back(struct job_queue *queue, struct job *job)
{
    struct job_line *line = line_for(queue, job->client);

    put_into(queue, line, &line->first, job);
}

struct job *job_queue_take(struct job_queue *queue, job_queue_rule may_run, const void *context)
{
    struct job_line *line = queue->turn;

    if (line == NULL)
        return NULL;
    do {
        /* A shared line may have jobs of several clients. */
        if (may_run(context, job_of(line->first)->client)) {
            queue->turn = line->next;
            return take_from(queue, line, &line->first);
        }
        line = line->next;
    } while (line != queue->turn);
    return NULL;
}

bool job_queue_has(const struct job_queue *queue, const struct job *job)
{
    return job->line >= queue->lines && job->line < queue->lines + JOB_LINES;
}

/* Returns the number of jobs before this one in its line; *out_link is the pointer to it. */
static size_t place_of(const struct job *job, struct mail ***out_link)
{
    struct mail **link = &job->line->first;
    size_t place = 0;

    for (; *link != &job->mail; link = &(*link)->next)
        place++;
    *out_link = link;
    return place;
}

void job_queue_move(struct job_queue *queue, struct job *job, uint64_t client,
                    job_queue_rule may_run, const void *context)
{
    struct mail **link;
    size_t place;

    if (job->line == NULL || job->client == client || !may_run(context, client))
        return;
    place = place_of(job, &link);
    if (may_run(context, job->client) && place <= job_queue_count(queue, client))
        return;
    take_from(queue, job->line, link);
    job->client = client;
    job_queue_put(queue, job);
}

size_t job_queue_count(const struct job_queue *queue, uint64_t client)
{
    const struct job_line *line = line_of(queue, client);

    return line != NULL ? line->length : 0;
}
