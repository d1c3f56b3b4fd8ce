/* mr-predictor: makes one prediction for the scheduler (services/scheduler/predict). It reads the
 * graph and the spans of a job from Redis and from the trace files, replays the job, and writes to
 * stdout: a byte 0 and a WhatIfResponse without the member `recorded`; or a byte with an error code
 * (base/err_code.h), negated, and its sentence. A prediction takes all of a processor for seconds.
 * So the program gets only the processor time that others leave, and if memory is short, the kernel
 * ends this program first. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "cli/trace/recorded.h"
#include "host/clock.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/os/file.h"
#include "virtual/whatif/whatif.h"

#include <millrace/v1/jobs.pb-c.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOWEST_PRIORITY 19
/* Limit of processor time, if the scheduler is gone and cannot end this process. */
#define CPU_S_MAX 300
/* How long to wait for spans that the scheduler has and has not written yet. */
#define SPANS_TIMEOUT (2 * MR_SECOND)
#define SPANS_LOOK (50 * MR_MS)

struct config {
    const char *redis, *redis_password_file, *dir;
    uint64_t submitted_ns, over_ns, recorded_slots, recorded_processors, spans;
    uint64_t slots, processors;
    const char *bandwidth;
    struct mr_texts free, op_speed;
};

#define AT(field) offsetof(struct config, field)
// clang-format off
static const struct mr_option options[] = {
    MR_OPTION_REDIS(AT(redis)),
    MR_OPTION_REDIS_PASSWORD_FILE(AT(redis_password_file)),
    {.name = "dir", .type = MR_OPTION_TEXT, .value = "DIR", .help = "the scheduler's --dir", .at = AT(dir)},
    {.name = "submitted-ns", .type = MR_OPTION_U64, .value = "NS", .required = true,
        .help = "when the job was submitted, since 1970", .at = AT(submitted_ns)},
    {.name = "over-ns", .type = MR_OPTION_U64, .value = "NS", .required = true,
        .help = "when the job ended, since 1970", .at = AT(over_ns)},
    {.name = "recorded-slots", .type = MR_OPTION_U64, .value = "N", .required = true,
        .help = "slots of the cluster while the job was in it", .at = AT(recorded_slots), .max = 1 << 30},
    {.name = "recorded-processors", .type = MR_OPTION_U64, .value = "N",
        .help = "processors of each node at that time; 0: not known", .at = AT(recorded_processors), .max = 1 << 30},
    {.name = "spans", .type = MR_OPTION_U64, .value = "N",
        .help = "attempts of the job that the scheduler knows", .at = AT(spans)},
    {.name = "slots", .type = MR_OPTION_U64, .value = "N",
        .help = "predict for so many slots (default: as recorded)", .at = AT(slots), .max = 1 << 20},
    {.name = "processors", .type = MR_OPTION_U64, .value = "N",
        .help = "predict for nodes with so many processors (default: as recorded)", .at = AT(processors), .max = 1 << 20},
    {.name = "bandwidth", .type = MR_OPTION_TEXT, .value = "F",
        .help = "predict for a network that is F times as fast", .at = AT(bandwidth)},
    {.name = "free", .type = MR_OPTION_TEXTS, .value = "CLASS",
        .help = "predict without the time of this class; may be repeated", .at = AT(free)},
    {.name = "op-speed", .type = MR_OPTION_TEXTS, .value = "OP=F",
        .help = "predict for an operator that is F times as fast; may be repeated", .at = AT(op_speed)},
};
// clang-format on

static const struct mr_config_spec spec = {.program = "mr-predictor",
    .summary = "Predicts how long a finished job would have taken on another cluster. The "
               "scheduler starts this program; people use `millrace whatif`.",
    .usage = "[flags] JOB",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 1};

static void step_back(void)
{
    const struct rlimit cpu = {CPU_S_MAX, CPU_S_MAX};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) (void)!write(fd, "1000", 4);
    if (fd >= 0) (void)close(fd);
    (void)setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
}

/* ---- input ----------------------------------------------------------------------------------- */

static int history_open(const struct config *k, struct mr_history **out, struct mr_error *e)
{
    struct mr_buf password;
    int err = MR_OK;
    mr_buf_init(&password, 4096);
    if (k->redis_password_file) {
        err = mr_file_read_secret(k->redis_password_file, &password, e);
        mr_buf_add_byte(&password, 0);
    }
    const struct mr_history_config config = {
        .redis = k->redis, .password = password.n ? (const char *)password.p : NULL, .dir = k->dir};
    if (!err) err = mr_history_open(&config, out, e);
    mr_buf_fini(&password);
    return err;
}

/* Reads the job. If spans are missing that the scheduler knows, waits until it has written them.
 * `*missing`: how many were not there in time. */
static int job_read(const struct config *k, const char *id, struct mr_recorded *r,
    uint64_t *missing, struct mr_error *e)
{
    mr_job_id job;
    uint64_t not_recorded = 0;
    struct mr_history *h = NULL;
    if (mr_job_id_parse(mr_str(id), &job))
        return mr_fail(e, MR_EINVAL, "\"%.64s\" is no job id", id);
    int err = history_open(k, &h, e);
    if (!err) err = mr_recorded_graph(r, h, job, e);
    mr_time until = mr_time_after(mr_clock_now(), SPANS_TIMEOUT);
    for (bool more = !err; more;) {
        err = mr_recorded_spans(r, h, job, &not_recorded, e);
        more = (err == MR_ENOENT || (!err && r->spans_count < k->spans)) && mr_clock_now() < until;
        if (more) mr_clock_sleep(SPANS_LOOK);
    }
    mr_history_close(&h);
    *missing = r->spans_count < k->spans ? k->spans - r->spans_count : 0;
    const uint64_t processors = k->recorded_processors ? k->recorded_processors : k->processors;
    const struct mr_recorded_times times = {.slots = (uint32_t)k->recorded_slots,
        .processors = (uint32_t)processors,
        .submitted = k->submitted_ns,
        .over = k->over_ns};
    return err ? err : mr_recorded_finish(r, &times, e);
}

/* The scheduler has checked all texts. The scheduler does not know how many workers ran tasks, and
 * of which operators tasks have run. */
static int change_of(const struct config *k, const struct mr_whatif_job *j,
    struct mr_whatif_change *out, double *speed, struct mr_error *e)
{
    *out = (struct mr_whatif_change){.slots = (uint32_t)k->slots,
        .processors = (uint32_t)k->processors,
        .bandwidth = k->bandwidth ? strtod(k->bandwidth, NULL) : 0,
        .op_speed = speed};
    if (k->slots > (uint64_t)j->workers_count * MR_SLOTS_MAX)
        return mr_fail(e, MR_EINVAL, "slots: at most %u are possible for each of the %u workers",
            MR_SLOTS_MAX, j->workers_count);
    for (size_t i = 0; i < k->free.count; i++)
        out->free |= mr_whatif_free_of(mr_str(k->free.items[i]));
    for (size_t i = 0; i < k->op_speed.count; i++) {
        const char *text = k->op_speed.items[i], *equal = strrchr(text, '=');
        struct mr_str name = mr_str_of(text, equal ? (size_t)(equal - text) : strlen(text));
        uint32_t op = 0;
        while (op < j->ops_count && !mr_str_eq(j->ops[op], name))
            op++;
        if (op == j->ops_count || !equal)
            return mr_fail(e, MR_EINVAL, "op_speed: no task with the operator \"%.*s\" has run",
                (int)MR_MIN(name.n, (size_t)64), name.p);
        speed[op] = strtod(equal + 1, NULL);
    }
    return MR_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

struct outcome { /* a message, with memory for its maps */
    Millrace__V1__WhatIfOutcome m;
    Millrace__V1__WhatIfOutcome__ClassesEntry classes[MR_ACCOUNT_CLASSES];
    Millrace__V1__WhatIfOutcome__ClassesEntry *classes_at[MR_ACCOUNT_CLASSES];
    Millrace__V1__WhatIfOutcome__CriticalPathEntry path[MR_ACCOUNT_CLASSES];
    Millrace__V1__WhatIfOutcome__CriticalPathEntry *path_at[MR_ACCOUNT_CLASSES];
};

static Millrace__V1__WhatIfOutcome *outcome_out(const struct mr_whatif_result *r, struct outcome *o)
{
    millrace__v1__what_if_outcome__init(&o->m);
    o->m.wall_ns = r->wall_ns;
    o->m.slots = r->slots;
    o->m.chain_ns = r->chain_ns;
    o->m.n_classes = o->m.n_critical_path = MR_ACCOUNT_CLASSES;
    o->m.classes = o->classes_at;
    o->m.critical_path = o->path_at;
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        char *name = mr_unconst(mr_account_class_name((enum mr_account_class)i));
        o->classes_at[i] = &o->classes[i];
        o->path_at[i] = &o->path[i];
        millrace__v1__what_if_outcome__classes_entry__init(&o->classes[i]);
        millrace__v1__what_if_outcome__critical_path_entry__init(&o->path[i]);
        o->classes[i].key = o->path[i].key = name;
        o->classes[i].value = r->sums.ns[i];
        o->path[i].value = r->path.ns[i];
    }
    return &o->m;
}

/* Returns the exit status: 1 if the answer could not be written. */
static int answer(int err, const struct mr_error *e, Millrace__V1__WhatIfResponse *m)
{
    unsigned char head = (unsigned char)-err;
    size_t n = err ? strlen(e->text) : millrace__v1__what_if_response__get_packed_size(m);
    uint8_t *bytes = mr_alloc_array(n + 1, 1);
    if (err)
        memcpy(bytes, e->text, n);
    else
        (void)millrace__v1__what_if_response__pack(m, bytes);
    bool is_written = fwrite(&head, 1, 1, stdout) == 1 && fwrite(bytes, 1, n, stdout) == n;
    mr_release(bytes);
    return is_written && !fflush(stdout) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_recorded r;
    struct mr_whatif_change change;
    struct mr_whatif_costs costs;
    struct mr_whatif_result same = {0}, predicted = {0};
    uint64_t missing = 0;
    step_back();
    mr_config_load(&spec, argc, argv, &k, &rest);
    mr_recorded_init(&r);
    int err = job_read(&k, rest.items[0], &r, &missing, &e);
    double *speed = mr_alloc_array(MR_MAX(r.job.ops_count, 1u), sizeof *speed);
    if (!err) err = change_of(&k, &r.job, &change, speed, &e);
    if (!err) err = mr_whatif_calibrate(&r.job, &costs, &same, &e);
    if (!err) err = mr_whatif_replay(&r.job, &costs, &change, &predicted, &e);
    Millrace__V1__WhatIfResponse m = MILLRACE__V1__WHAT_IF_RESPONSE__INIT;
    struct outcome outcomes[2];
    m.replayed = outcome_out(&same, &outcomes[0]);
    m.predicted = outcome_out(&predicted, &outcomes[1]);
    m.not_recorded = missing;
    m.restricted = r.restricted;
    int status = answer(err, &e, &m);
    mr_release(speed);
    mr_recorded_fini(&r);
    mr_texts_fini(&rest);
    mr_config_fini(&spec, &k);
    return status;
}
