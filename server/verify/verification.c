/* The known facts about a generation's components: which of them can be checked, counts, failures,
 * and the report. */
#include "verify/verifier_work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"

/* Returns the state that follows from the manifest alone. */
static enum component_state initial_state(const struct zt_model *model,
                                          const struct zt_component *component)
{
    struct zt_digest digest;

    if (component->digest == NULL)
        return COMPONENT_UNDIGESTED;
    if (zt_component_digest(model, component, &digest, NULL) == ZT_UNSUPPORTED)
        return COMPONENT_UNSUPPORTED;
    if (!zt_digest_covers_stored(model) && component->encoding == ZT_ENCODING_UNKNOWN)
        return COMPONENT_UNSUPPORTED;
    return COMPONENT_UNCHECKED;
}

static void free_failure(struct failure *failure)
{
    free(failure->expected);
    free(failure->actual);
    free(failure->rule);
    free(failure->detail);
    free(failure);
}

static void free_verification(struct side_table *table, const struct generation *generation)
{
    struct verification *verification = (struct verification *)table;

    (void)generation;
    assert(verification->checks == NULL && verification->run == NULL && !verification->dirty);
    while (verification->failures != NULL) {
        struct failure *next = verification->failures->next;

        free_failure(verification->failures);
        verification->failures = next;
    }
    while (verification->troubles != NULL) {
        struct trouble *next = verification->troubles->next;

        free(verification->troubles);
        verification->troubles = next;
    }
    pthread_mutex_destroy(&verification->lock);
    free(verification->broken);
    free(verification->shards);
    free(verification);
}

struct verification *verification_attach(struct generation *generation)
{
    const struct zt_model *model = generation->model;
    struct verification *verification = calloc(1, sizeof(*verification));

    if (verification != NULL)
        verification->broken =
            calloc((size_t)model->component_count + 1, sizeof(*verification->broken));
    if (verification == NULL || verification->broken == NULL) {
        free(verification);
        return NULL;
    }
    verification->base.free = free_verification;
    pthread_mutex_init(&verification->lock, NULL);
    for (uint32_t i = 0; i < model->component_count; i++) {
        enum component_state state = initial_state(model, &model->components[i]);

        atomic_store_explicit(&generation->states[i], (unsigned char)state, memory_order_relaxed);
        verification->counts[state]++;
        if (state == COMPONENT_UNCHECKED)
            verification->stated_bytes += model->components[i].length;
    }
    return (struct verification *)generation_attach(generation, SIDE_TABLE_VERDICTS,
                                                    &verification->base);
}

static bool is_verdict(enum component_state state)
{
    return state == COMPONENT_VERIFIED || state == COMPONENT_CORRUPT;
}

void verification_set(struct generation *generation, uint32_t component, enum component_state state)
{
    struct verification *verification = verification_of(generation);
    enum component_state before;
    uint64_t length;

    assert(component < generation->model->component_count);
    before = atomic_load(&generation->states[component]);
    length = generation->model->components[component].length;
    assert(verification->counts[before] > 0);
    verification->counts[before]--;
    verification->counts[state]++;
    if (verification->broken[component]) {
        assert(verification->broken_counts[before] > 0);
        verification->broken_counts[before]--;
        verification->broken_counts[state]++;
    }
    if (is_verdict(before))
        verification->known_bytes -= length;
    if (is_verdict(state))
        verification->known_bytes += length;
    atomic_store(&generation->states[component], (unsigned char)state);
    changes_note();
}

void verification_set_broken(struct generation *generation, uint32_t component, bool broken)
{
    struct verification *verification = verification_of(generation);
    enum component_state state = atomic_load(&generation->states[component]);

    if (verification->broken[component] == broken)
        return;
    verification->broken[component] = broken;
    if (broken)
        verification->broken_counts[state]++;
    else
        verification->broken_counts[state]--;
    assert(verification->broken_counts[state] <= verification->counts[state]);
}

bool verifier_breaks_rule(struct generation *generation, uint32_t component)
{
    struct verification *verification = verification_of(generation);
    bool broken;

    if (verification == NULL)
        return false;
    pthread_mutex_lock(&verification->lock);
    broken = verification->broken[component];
    pthread_mutex_unlock(&verification->lock);
    return broken;
}

uint32_t verification_object_of(const struct zt_model *model, uint32_t component)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        if (component >= object->first_component &&
            component - object->first_component < object->component_count)
            return i;
    }
    return 0;
}

static bool copy_text(const char *text, char **out_copy)
{
    if (text == NULL)
        return true;
    *out_copy = strdup(text);
    return *out_copy != NULL;
}

bool verification_add_failure(struct verification *verification, const struct failure *failure)
{
    struct failure *added;

    if (verification->failure_count >= FAILURES_MAX)
        return false;
    added = calloc(1, sizeof(*added));
    if (added == NULL)
        return false;
    added->object = failure->object;
    added->component = failure->component;
    if (!copy_text(failure->expected, &added->expected) ||
        !copy_text(failure->actual, &added->actual) || !copy_text(failure->rule, &added->rule) ||
        !copy_text(failure->detail, &added->detail)) {
        free_failure(added);
        return false;
    }
    added->next = verification->failures;
    verification->failures = added;
    verification->failure_count++;
    return true;
}

/* Removes the digest failure of a component or, if content is set, the content failure of an
 * object. */
static void remove_failures(struct verification *verification, bool content, uint32_t key)
{
    struct failure **link = &verification->failures;

    while (*link != NULL) {
        struct failure *failure = *link;

        if ((failure->rule != NULL) == content &&
            (content ? failure->object : failure->component) == key) {
            *link = failure->next;
            verification->failure_count--;
            free_failure(failure);
        } else {
            link = &failure->next;
        }
    }
}

void verification_note_digest(struct generation *generation, uint32_t component,
                              const char *expected, const char *actual)
{
    struct failure failure = {.component = component};

    remove_failures(verification_of(generation), false, component);
    if (expected == NULL)
        return;
    failure.object = verification_object_of(generation->model, component);
    failure.expected = strdup(expected);
    failure.actual = actual[0] != '\0' ? strdup(actual) : NULL;
    (void)verification_add_failure(verification_of(generation), &failure);
    free(failure.expected);
    free(failure.actual);
}

void verification_note_content(struct generation *generation, uint32_t object, uint32_t component,
                               const char *rule, const char *detail)
{
    struct failure failure = {.object = object, .component = component};
    const struct zt_object *of = &generation->model->objects[object];

    remove_failures(verification_of(generation), true, object);
    for (uint32_t i = 0; i < of->component_count; i++)
        verification_set_broken(generation, of->first_component + i,
                                rule != NULL && of->first_component + i == component);
    if (rule == NULL)
        return;
    failure.rule = strdup(rule);
    failure.detail = strdup(detail);
    (void)verification_add_failure(verification_of(generation), &failure);
    free(failure.rule);
    free(failure.detail);
}

/* --- the report --- */

/* Returns the number of components in this state whose content breaks no rule. */
static uint32_t sound_count(const struct verification *verification, enum component_state state)
{
    return verification->counts[state] - verification->broken_counts[state];
}

static uint32_t failed_count(const struct verification *verification)
{
    uint32_t failed = sound_count(verification, COMPONENT_CORRUPT);

    for (int state = 0; state < COMPONENT_STATES; state++)
        failed += verification->broken_counts[state];
    return failed;
}

static const char *state_word(const struct verification *verification)
{
    if (verification->run != NULL)
        return "running";
    if (failed_count(verification) > 0 || verification->failures != NULL)
        return "failed";
    if (verification->counts[COMPONENT_UNCHECKED] + verification->counts[COMPONENT_CHECKING] > 0)
        return "unverified";
    return "verified";
}

static uint64_t hashed_bytes(const struct verification *verification)
{
    uint64_t hashed = verification->known_bytes;

    if (verification->run != NULL)
        hashed = verifier_run_bytes(verification->run);
    else
        for (const struct check *check = verification->checks; check != NULL; check = check->next)
            hashed += atomic_load(&check->hashed_bytes);
    return hashed < verification->stated_bytes ? hashed : verification->stated_bytes;
}

static void write_text(struct json *json, const char *key, const char *text)
{
    json_key_string(json, key);
    if (text != NULL)
        json_put_string(json, text);
    else
        json_put_null(json);
}

static void write_failure(struct json *json, const struct zt_model *model,
                          const struct failure *failure)
{
    assert(model != NULL);
    json_object_begin(json);
    json_key_string(json, "object");
    json_text(json, zt_object_name(&model->objects[failure->object]));
    json_key_string(json, "component");
    if (failure->component != NO_COMPONENT)
        json_text(json, zt_component_name(&model->components[failure->component]));
    else
        json_put_null(json);
    write_text(json, "expected", failure->expected);
    write_text(json, "actual", failure->actual);
    if (failure->rule != NULL) {
        write_text(json, "rule", failure->rule);
        write_text(json, "detail", failure->detail);
    }
    json_object_end(json);
}

static void write_counts(struct json *json, const struct verification *verification, uint32_t total)
{
    json_object_member(json, "components");
    json_uint_member(json, "total", total);
    json_uint_member(json, "verified", sound_count(verification, COMPONENT_VERIFIED));
    json_uint_member(json, "failed", failed_count(verification));
    json_uint_member(json, "unsupported", sound_count(verification, COMPONENT_UNSUPPORTED));
    json_uint_member(json, "undigested", sound_count(verification, COMPONENT_UNDIGESTED));
    json_object_end(json);
    json_object_member(json, "bytes");
    json_uint_member(json, "total", verification->stated_bytes);
    json_uint_member(json, "hashed", hashed_bytes(verification));
    json_object_end(json);
}

void verifier_tally(const struct generation *generation, struct verifier_tally *tally)
{
    struct verification *verification = verification_of(generation);

    if (verification == NULL)
        return;
    pthread_mutex_lock(&verification->lock);
    tally->unchecked += sound_count(verification, COMPONENT_UNCHECKED) +
                        sound_count(verification, COMPONENT_CHECKING);
    tally->verified += sound_count(verification, COMPONENT_VERIFIED);
    tally->undigested += sound_count(verification, COMPONENT_UNDIGESTED);
    tally->unsupported += sound_count(verification, COMPONENT_UNSUPPORTED);
    tally->failed += failed_count(verification);
    pthread_mutex_unlock(&verification->lock);
}

void verifier_report(struct generation *generation, struct json *json)
{
    static const struct verification nothing = {.counts = {0}};
    struct verification *verification = verification_of(generation);
    const struct verification *known = verification != NULL ? verification : &nothing;

    if (verification != NULL)
        pthread_mutex_lock(&verification->lock);
    json_object_begin(json);
    write_text(json, "state", verification != NULL ? state_word(known) : "unverified");
    write_counts(json, known, generation->model != NULL ? generation->model->component_count : 0);
    json_array_member(json, "failures");
    for (const struct failure *failure = known->failures; failure != NULL; failure = failure->next)
        write_failure(json, generation->model, failure);
    json_array_end(json);
    json_object_end(json);
    if (verification != NULL)
        pthread_mutex_unlock(&verification->lock);
}
