/* ztserve diff: which tensors of two models differ, and by how much, as a table or as JSON. The
 * exit status is diff's: 0 equal, 1 different, 2 trouble. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "client/model_source.h"
#include "commands/commands.h"
#include "commands/option_reader.h"
#include "files/tensor_differences.h"
#include "numbers/statistics_json.h"
#include "terminal/plain_text.h"

/* As diff(1). EXIT_BAD: they differ. */
#define EXIT_TROUBLE EXIT_USAGE

#define NAME_MAX_WIDTH 64
#define TYPE_MAX_WIDTH 32
#define KIND_WIDTH     9
/* 255 dimensions of 20 digits and commas, and brackets. */
#define SHAPE_SIZE (255 * 21 + 8)

struct request {
    const char *paths[2]; /* before and after */
    unsigned operands;
    struct tensor_differences *differences;
    const struct tensor_difference *items;
    uint32_t count;
    bool as_json;
    struct reporting reporting;
    uint32_t counts[TENSOR_CHANGES];
    size_t name_width;
};

static const char *const kinds[TENSOR_CHANGES] = {
    [TENSOR_EQUAL] = "equal",       [TENSOR_CHANGED] = "changed", [TENSOR_RETYPED] = "retyped",
    [TENSOR_RESHAPED] = "reshaped", [TENSOR_GONE] = "gone",       [TENSOR_NEW] = "new",
    [TENSOR_UNREAD] = "unread",
};

static struct zt_text name_of(const struct tensor_difference *item)
{
    assert(item->before != NULL || item->after != NULL);
    return zt_object_name(item->after != NULL ? item->after : item->before);
}

/* --- the table --- */

static void print_type(const struct zt_model *model, const struct zt_object *object)
{
    const struct zt_component *component = tensor_component(model, object);
    const char *dtype = component != NULL ? zt_dtype_name(component->dtype) : "-";

    if (object->layout != ZT_LAYOUT_DENSE)
        plain_text_write_short(stdout, object->format, object->format_length, TYPE_MAX_WIDTH);
    else if (component != NULL && component->type != NULL)
        plain_text_write_short(stdout, component->type, component->type_length, TYPE_MAX_WIDTH);
    else
        fputs(dtype, stdout);
}

static void print_shape(const struct zt_model *model, const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(model, object);

    for (unsigned i = 0; i < object->rank; i++)
        printf("%s%" PRIu64, i > 0 ? "," : "[", shape[i]);
    fputs(object->rank > 0 ? "]" : "[]", stdout);
}

static void print_tensor(const struct zt_model *model, const struct zt_object *object)
{
    print_type(model, object);
    putchar(' ');
    print_shape(model, object);
}

/* 100 only if all have changed. */
static double percent_of(const struct zt_difference *numbers)
{
    const double percent = (double)numbers->changed / (double)numbers->count * 100;

    return numbers->changed < numbers->count && percent > 99.9 ? 99.9 : percent;
}

static void print_numbers(const struct zt_difference *numbers)
{
    const uint64_t measured = numbers->count - numbers->unmeasurable;

    assert(numbers->unmeasurable <= numbers->count);
    if (numbers->count == 0)
        return;
    printf("  %.3g %% of elements", percent_of(numbers));
    if (measured > 0)
        printf(", max %.4g, mean %.4g", numbers->max, numbers->sum / (double)measured);
    if (numbers->unmeasurable > 0)
        printf(", %" PRIu64 " not finite", numbers->unmeasurable);
}

static void print_row(const struct request *request, const struct tensor_difference *item)
{
    const struct zt_model *before = tensor_differences_before(request->differences);
    const struct zt_model *after = tensor_differences_after(request->differences);
    const struct zt_text name = name_of(item);
    size_t width;

    printf("%-*s", KIND_WIDTH, kinds[item->change]);
    width = plain_text_write_short(stdout, name.bytes, name.length, NAME_MAX_WIDTH);
    printf("%*s  ", (int)(width < request->name_width ? request->name_width - width : 0), "");
    if (item->before != NULL)
        print_tensor(before, item->before);
    if (item->change == TENSOR_RESHAPED || item->change == TENSOR_RETYPED) {
        fputs(" -> ", stdout);
        print_tensor(after, item->after);
    } else if (item->before == NULL) {
        print_tensor(after, item->after);
    }
    print_numbers(&item->numbers);
    putchar('\n');
}

static void print_summary(const struct request *request)
{
    const char *separator = ": ";

    printf("%" PRIu32 " tensor%s", request->count, request->count == 1 ? "" : "s");
    for (unsigned i = 0; i < TENSOR_CHANGES; i++) {
        if (request->counts[i] == 0)
            continue;
        printf("%s%" PRIu32 " %s", separator, request->counts[i], kinds[i]);
        separator = ", ";
    }
    putchar('\n');
}

static void print_table(struct request *request)
{

    for (uint32_t i = 0; i < request->count; i++) {
        const size_t length = name_of(&request->items[i]).length;

        if (request->items[i].change != TENSOR_EQUAL && length > request->name_width)
            request->name_width = length < NAME_MAX_WIDTH ? length : NAME_MAX_WIDTH;
    }
    for (uint32_t i = 0; i < request->count; i++)
        if (request->items[i].change != TENSOR_EQUAL)
            print_row(request, &request->items[i]);
    print_summary(request);
}

/* --- JSON --- */

static void write_tensor(struct json *json, const char *key, const struct zt_model *model,
                         const struct zt_object *object)
{
    const struct zt_component *component;
    const uint64_t *shape;

    if (object == NULL)
        return;
    component = tensor_component(model, object);
    shape = zt_object_shape(model, object);
    json_object_member(json, key);
    json_key_string(json, "format");
    json_text(json, (struct zt_text){object->format, object->format_length});
    json_key_string(json, "dtype");
    if (component != NULL)
        json_put_string(json, zt_dtype_name(component->dtype));
    else
        json_put_null(json);
    json_array_member(json, "shape");
    for (unsigned i = 0; i < object->rank; i++)
        json_uint(json, shape[i]);
    json_array_end(json);
    json_object_end(json);
}

static void write_numbers(struct json *json, const struct zt_difference *numbers)
{
    const uint64_t measured = numbers->count - numbers->unmeasurable;

    if (numbers->count == 0)
        return;
    json_uint_member(json, "elements", numbers->count);
    json_uint_member(json, "changed_elements", numbers->changed);
    json_uint_member(json, "not_finite", numbers->unmeasurable);
    json_key_string(json, "max");
    number_write(json, measured > 0 ? numbers->max : NAN);
    json_key_string(json, "mean");
    number_write(json, measured > 0 ? numbers->sum / (double)measured : NAN);
}

static void write_item(const struct request *request, struct json *json,
                       const struct tensor_difference *item)
{
    json_key(json, name_of(item));
    json_object_begin(json);
    json_string_member(json, "change", kinds[item->change]);
    write_tensor(json, "before", tensor_differences_before(request->differences), item->before);
    write_tensor(json, "after", tensor_differences_after(request->differences), item->after);
    write_numbers(json, &item->numbers);
    json_object_end(json);
}

static int print_json(const struct request *request)
{
    struct json json;
    int result = EXIT_DONE;

    json_init(&json, false);
    json_object_begin(&json);
    for (unsigned i = 0; i < TENSOR_CHANGES; i++)
        json_uint_member(&json, kinds[i], request->counts[i]);
    json_object_member(&json, "tensors");
    for (uint32_t i = 0; i < request->count; i++)
        if (request->items[i].change != TENSOR_EQUAL)
            write_item(request, &json, &request->items[i]);
    json_object_end(&json);
    json_object_end(&json);
    if (json.failed) {
        command_complain("out of memory");
        result = EXIT_TROUBLE;
    } else {
        fwrite(json.text, 1, json.length, stdout);
    }
    json_free(&json);
    return result;
}

/* --- the whole --- */

static int trouble(const char *path, const struct zt_error *error)
{
    failure_complain(path, error);
    return EXIT_TROUBLE;
}

/* Complains about each tensor that could not be compared. */
static int judge(struct request *request)
{
    int result = EXIT_DONE;

    for (uint32_t i = 0; i < request->count; i++) {
        const struct tensor_difference *item = &request->items[i];
        struct zt_error error;

        request->counts[item->change]++;
        if (item->change != TENSOR_EQUAL && result == EXIT_DONE)
            result = EXIT_BAD;
        if (item->change != TENSOR_UNREAD)
            continue;
        zt_fail_memory(&error, "comparing");
        if (item->error != NULL)
            error = *item->error;
        zt_error_at(&error, name_of(item), (struct zt_text){"", 0});
        result = trouble(request->paths[1], &error);
    }
    return result;
}

static int show(struct request *request)
{
    const int result = judge(request);

    if (request->as_json && print_json(request) != EXIT_DONE)
        return EXIT_TROUBLE;
    if (!request->as_json && !request->reporting.is_quiet)
        print_table(request);
    return command_finish(result) == result ? result : EXIT_TROUBLE;
}

static uint64_t work_of(const struct zt_model *model)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < model->component_count; i++)
        bytes += model->components[i].length;
    return bytes;
}

static int compare(struct request *request)
{
    struct progress_line line;
    const char *path = NULL;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    assert(request->operands == 2);
    if (tensor_differences_open(request->paths, &request->differences, &path, &error) != ZT_OK)
        return trouble(path, &error);
    progress_line_start(&line, reporting_progress(&request->reporting), "comparing",
                        work_of(tensor_differences_after(request->differences)));
    line.name = request->paths[1];
    status = tensor_differences_find(request->differences, &line, &error);
    progress_line_end(&line);
    if (status != ZT_OK)
        return trouble(request->paths[1], &error);
    request->items = tensor_differences_all(request->differences, &request->count);
    return show(request);
}

static int take_operand(struct request *request, const char *path)
{
    if (request->operands == 2)
        return command_usage("diff takes two files or URLs");
    request->paths[request->operands++] = path;
    return operand_check(path);
}

int command_diff(int argc, char **argv)
{
    struct option_reader reader = option_reader_of(argc, argv);
    struct request request = {.operands = 0};
    enum option_found found;
    int result = EXIT_DONE;

    while (result == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_OPERAND)
            result = take_operand(&request, reader.value);
        else if (option_reader_is(&reader, "--json"))
            request.as_json = true;
        else if (!server_option_take(model_source_options(), &reader))
            reporting_take(&request.reporting, &reader);
    if (result != EXIT_DONE || server_options_check(model_source_options()) != EXIT_DONE)
        return EXIT_USAGE;
    if (request.operands < 2)
        return command_usage("diff needs two files or URLs");
    zt_source_allow_mapped();
    result = compare(&request);
    tensor_differences_free(request.differences);
    return result;
}
