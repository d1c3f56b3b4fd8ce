#include "graph/options.h"

#include "base/limits.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "graph/suggest.h"

int mr_option_seconds(const char *what, double seconds, mr_duration *out, struct mr_error *e)
{
    if (!(seconds > 0 && seconds <= MR_OPTION_SECONDS_MAX))
        return mr_fail(e, MR_EINVAL, "%s is %g, but must be above 0 and at most %g seconds", what,
            seconds, MR_OPTION_SECONDS_MAX);
    *out = (mr_duration)(seconds * 1e9);
    if (!*out) *out = 1;
    return MR_OK;
}

int mr_option_amount(struct mr_str what, double amount, uint64_t *micro, struct mr_error *e)
{
    if (!(amount >= 0 && amount <= (double)MR_RESOURCE_AMOUNT_MICRO_MAX / 1e6))
        return mr_fail(e, MR_EINVAL, "resources: \"%.*s\" is %g, but must be 0 to %g",
            MR_SHOWN(what), amount, (double)MR_RESOURCE_AMOUNT_MICRO_MAX / 1e6);
    *micro = (uint64_t)(amount * 1e6 + 0.5);
    return MR_OK;
}

static int check_text(const char *what, struct mr_str s, size_t n_max, struct mr_error *e)
{
    if (mr_utf8_is_key(s, n_max)) return MR_OK;
    return mr_fail(e, MR_EINVAL,
        "%s \"%.*s\" is not 1 to %zu bytes of UTF-8 without control characters", what, MR_SHOWN(s),
        n_max);
}

static int check_priority(int32_t priority, struct mr_error *e)
{
    if (priority >= -MR_PRIORITY_MAX && priority <= MR_PRIORITY_MAX) return MR_OK;
    return mr_fail(e, MR_EINVAL, "priority is %d, but must be -%d to %d", priority, MR_PRIORITY_MAX,
        MR_PRIORITY_MAX);
}

static int check_resources(const struct mr_task_options *o, struct mr_error *e)
{
    if (o->resources_count > MR_RESOURCES_MAX)
        return mr_fail(e, MR_EINVAL, "resources: %u kinds, the limit is %d", o->resources_count,
            MR_RESOURCES_MAX);
    for (uint32_t i = 0; i < o->resources_count; i++) {
        const struct mr_graph_resource *r = &o->resources[i];
        int err = check_text("resource", r->name, MR_LABEL_BYTES_MAX, e);
        if (err) return err;
        if (r->amount_micro > MR_RESOURCE_AMOUNT_MICRO_MAX)
            return mr_fail(
                e, MR_EINVAL, "resources: \"%.*s\" has too large an amount", MR_SHOWN(r->name));
        for (uint32_t j = 0; j < i; j++)
            if (mr_str_eq(o->resources[j].name, r->name))
                return mr_fail(
                    e, MR_EINVAL, "resources: \"%.*s\" is given twice", MR_SHOWN(r->name));
    }
    return MR_OK;
}

int mr_task_options_check(const struct mr_task_options *o, struct mr_error *e)
{
    if (o->given & ~(uint32_t)MR_OPTION_ALL)
        return mr_fail(e, MR_EINVAL, "unknown option bits 0x%x", o->given);
    if (o->retries > MR_RETRIES_MAX)
        return mr_fail(e, MR_EINVAL, "retries is %u, the limit is %d", o->retries, MR_RETRIES_MAX);
    int err = check_priority(o->priority, e);
    if (err) return err;
    if (o->timeout > (mr_duration)(MR_OPTION_SECONDS_MAX * 1e9))
        return mr_fail(e, MR_EINVAL, "timeout_s is above %g", MR_OPTION_SECONDS_MAX);
    if (o->workers_count > MR_OPTION_WORKERS_MAX)
        return mr_fail(e, MR_EINVAL, "workers: %u names, the limit is %d", o->workers_count,
            MR_OPTION_WORKERS_MAX);
    for (uint32_t i = 0; i < o->workers_count; i++) {
        err = check_text("worker", o->workers[i], MR_LABEL_BYTES_MAX, e);
        if (err) return err;
    }
    if (o->persist_name.n) {
        err = check_text("persist name", o->persist_name, MR_KEY_BYTES_MAX, e);
        if (err) return err;
    }
    return check_resources(o, e);
}

static int check_labels(const struct mr_job_options *o, struct mr_error *e)
{
    if (o->labels_count > MR_LABELS_MAX)
        return mr_fail(
            e, MR_EINVAL, "labels: %u of them, the limit is %d", o->labels_count, MR_LABELS_MAX);
    for (uint32_t i = 0; i < o->labels_count; i++) {
        const struct mr_graph_label *l = &o->labels[i];
        int err = check_text("label", l->name, MR_LABEL_BYTES_MAX, e);
        if (!err && l->value.n) err = check_text("label value", l->value, MR_LABEL_BYTES_MAX, e);
        if (err) return err;
        for (uint32_t j = 0; j < i; j++)
            if (mr_str_eq(o->labels[j].name, l->name))
                return mr_fail(e, MR_EINVAL, "labels: \"%.*s\" is given twice", MR_SHOWN(l->name));
    }
    return MR_OK;
}

int mr_job_options_check(const struct mr_job_options *o, struct mr_error *e)
{
    const struct {
        const char *what;
        struct mr_str text;
    } texts[] = {{"name", o->name}, {"namespace", o->name_space}, {"request_id", o->request_id}};
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
        if (!texts[i].text.n) continue;
        int err = check_text(texts[i].what, texts[i].text, MR_KEY_BYTES_MAX, e);
        if (err) return err;
    }
    if (o->deadline > (mr_duration)(MR_OPTION_SECONDS_MAX * 1e9))
        return mr_fail(e, MR_EINVAL, "deadline_s is above %g", MR_OPTION_SECONDS_MAX);
    if (o->on_error != MR_ON_ERROR_STOP && o->on_error != MR_ON_ERROR_CONTINUE)
        return mr_fail(e, MR_EINVAL, "on_error is neither \"stop\" nor \"continue\"");
    if (o->params.n > MR_LITERAL_BYTES_MAX)
        return mr_fail(e, MR_ELIMIT, "params: %zu bytes packed, the limit is %zu", o->params.n,
            MR_LITERAL_BYTES_MAX);
    int err = check_priority(o->priority, e);
    if (err) return err;
    return check_labels(o, e);
}

void mr_task_options_copy(
    struct mr_text_arena *p, const struct mr_task_options *o, struct mr_task_options *out)
{
    *out = *o;
    out->persist_name = mr_text_arena_copy(p, o->persist_name);
    struct mr_str *workers = mr_text_arena_take(p, o->workers_count * sizeof *workers);
    for (uint32_t i = 0; i < o->workers_count; i++)
        workers[i] = mr_text_arena_copy(p, o->workers[i]);
    out->workers = workers;
    struct mr_graph_resource *resources =
        mr_text_arena_take(p, o->resources_count * sizeof *resources);
    for (uint32_t i = 0; i < o->resources_count; i++)
        resources[i] = (struct mr_graph_resource){
            mr_text_arena_copy(p, o->resources[i].name), o->resources[i].amount_micro};
    out->resources = resources;
}

void mr_job_options_copy(
    struct mr_text_arena *p, const struct mr_job_options *o, struct mr_job_options *out)
{
    *out = *o;
    out->name = mr_text_arena_copy(p, o->name);
    out->name_space = mr_text_arena_copy(p, o->name_space);
    out->request_id = mr_text_arena_copy(p, o->request_id);
    out->params = mr_text_arena_copy(p, o->params);
    struct mr_graph_label *labels = mr_text_arena_take(p, o->labels_count * sizeof *labels);
    for (uint32_t i = 0; i < o->labels_count; i++)
        labels[i] = (struct mr_graph_label){
            mr_text_arena_copy(p, o->labels[i].name), mr_text_arena_copy(p, o->labels[i].value)};
    out->labels = labels;
}
