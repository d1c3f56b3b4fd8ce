/* The cost of schedules: `sim --schedules FILE`. Each scenario below runs jobs of a fixed shape,
 * without dice, and adds up what the run cost: virtual time, messages, bytes (struct sim_figures).
 * FILE has these figures as they were when it was written. A figure that is larger now fails the
 * test: a change of a core has made schedules slower or more expensive. If that is intended, or if
 * a figure became smaller, write the file again with `sim --schedules`, and the commit shows the
 * difference.
 *
 * The duration of a task is a hash of its job and index, a message takes 110 us, and an object
 * takes 2.5 ms from any store. So a run depends on the cores alone. */
#include "tests/sim/sim.h"

#include "graph/json/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NAMES 6
#define END_MAX (600 * MR_SECOND)
#define LINE_MAX_BYTES 256
#define FIGURES (sizeof(struct sim_figures) / sizeof(uint64_t))

/* What a scenario does beside submitting jobs. */
enum upset { UPSET_NONE, UPSET_DEATH, UPSET_LATE_WORKER };

struct scenario {
    const char *name;
    /* Writes the tasks of one job as members of a JSON object, the last one without a comma. */
    void (*write)(struct mr_buf *b);
    uint32_t jobs;     /* number of equal jobs */
    mr_duration apart; /* time between two submissions */
    bool is_template;  /* the jobs are instances of one template */
    const char *rest;  /* other members of the job, beginning with a comma; may be "" */
    enum upset upset;
    mr_duration upset_after; /* time of the upset after the first submission */
};

/* ---- shapes of jobs ------------------------------------------------------------------------- */

static void wide(struct mr_buf *b)
{
    mr_buf_printf(b, "\"k-${i}\":{\"op\":\"small\",\"args\":[\"${i}\"],\"for\":{\"i\":600}}");
}

static void wide_and_slow(struct mr_buf *b)
{
    mr_buf_printf(b, "\"k-${i}\":{\"op\":\"long\",\"args\":[\"${i}\"],\"for\":{\"i\":40}},"
                     "\"s-${i}\":{\"op\":\"small\",\"args\":[\"${i}\"],\"for\":{\"i\":100}}");
}

/* Writes `count` chains of `links` tasks. */
static void chains_of(struct mr_buf *b, const char *op, uint32_t count, uint32_t links)
{
    for (uint32_t c = 0; c < count; c++) {
        mr_buf_printf(b, "%s\"c%" PRIu32 "-0\":{\"op\":\"%s\",\"args\":[%" PRIu32 "]}",
            c ? "," : "", c, op, c);
        for (uint32_t i = 1; i < links; i++)
            mr_buf_printf(b,
                ",\"c%" PRIu32 "-%" PRIu32 "\":{\"op\":\"%s\",\"args\":[{\"ref\":\"c%" PRIu32
                "-%" PRIu32 "\"}]}",
                c, i, op, c, i - 1);
    }
}

static void chain(struct mr_buf *b)
{
    chains_of(b, "small", 1, 300);
}

static void chains(struct mr_buf *b)
{
    chains_of(b, "medium", 40, 12);
}

static void chains_of_objects(struct mr_buf *b)
{
    chains_of(b, "large", 20, 8);
}

static void tree(struct mr_buf *b)
{
    mr_buf_printf(b, "\"t-0-${i}\":{\"op\":\"large\",\"args\":[\"${i}\"],\"for\":{\"i\":128}}");
    for (uint32_t n = 64, level = 1; n; n /= 2, level++)
        for (uint32_t i = 0; i < n; i++)
            mr_buf_printf(b,
                ",\"t-%" PRIu32 "-%" PRIu32 "\":{\"op\":\"large\",\"args\":[{\"ref\":\"t-%" PRIu32
                "-%" PRIu32 "\"},{\"ref\":\"t-%" PRIu32 "-%" PRIu32 "\"}]}",
                level, i, level - 1, 2 * i, level - 1, 2 * i + 1);
}

static void stencil(struct mr_buf *b)
{
    enum { WIDTH = 16, STEPS = 16 };
    mr_buf_printf(b, "\"s-0-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\"],\"for\":{\"i\":16}}");
    for (uint32_t t = 1; t < STEPS; t++)
        for (uint32_t i = 0; i < WIDTH; i++) {
            mr_buf_printf(b, ",\"s-%" PRIu32 "-%" PRIu32 "\":{\"op\":\"medium\",\"args\":[", t, i);
            for (uint32_t from = i ? i - 1 : 0; from <= MR_MIN(i + 1, WIDTH - 1u); from++)
                mr_buf_printf(b, "{\"ref\":\"s-%" PRIu32 "-%" PRIu32 "\"},", t - 1, from);
            mr_buf_printf(b, "%" PRIu32 "]}", t);
        }
}

static void shuffle(struct mr_buf *b)
{
    mr_buf_printf(b,
        "\"m-${i}\":{\"op\":\"large\",\"args\":[\"${i}\"],\"for\":{\"i\":16}},"
        "\"r-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\",{\"each\":{\"ref\":\"m-${j}\"},"
        "\"for\":{\"j\":16}}],\"for\":{\"i\":16}}");
}

static void broadcast(struct mr_buf *b)
{
    mr_buf_printf(b, "\"x\":{\"op\":\"large\",\"args\":[1]},"
                     "\"k-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\",{\"ref\":\"x\"}],"
                     "\"for\":{\"i\":300}}");
}

static void fan_in(struct mr_buf *b)
{
    mr_buf_printf(b, "\"k-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\"],\"for\":{\"i\":300}},"
                     "\"sum\":{\"op\":\"small\",\"args\":{\"each\":{\"ref\":\"k-${i}\"},"
                     "\"for\":{\"i\":300}}}");
}

static void diamonds(struct mr_buf *b)
{
    mr_buf_printf(b, "\"d-0\":{\"op\":\"small\",\"args\":[0]}");
    for (uint32_t i = 1; i <= 40; i++)
        mr_buf_printf(b,
            ",\"a-%" PRIu32 "\":{\"op\":\"small\",\"args\":[1,{\"ref\":\"d-%" PRIu32 "\"}]},"
            "\"b-%" PRIu32 "\":{\"op\":\"medium\",\"args\":[2,{\"ref\":\"d-%" PRIu32 "\"}]},"
            "\"d-%" PRIu32 "\":{\"op\":\"small\",\"args\":[{\"ref\":\"a-%" PRIu32
            "\"},{\"ref\":\"b-%" PRIu32 "\"}]}",
            i, i - 1, i, i - 1, i, i, i);
}

/* Writes tasks whose objects have more bytes than the workers may prefetch and hold at once. */
static void objects(struct mr_buf *b)
{
    mr_buf_printf(b,
        "\"x-${i}\":{\"op\":\"large\",\"args\":[\"${i}\"],\"for\":{\"i\":200}},"
        "\"y-${i}\":{\"op\":\"large\",\"args\":[{\"ref\":\"x-${i}\"}],\"for\":{\"i\":200}},"
        "\"z\":{\"op\":\"small\",\"args\":{\"each\":{\"ref\":\"y-${i}\"},\"for\":{\"i\":200}}}");
}

/* Writes tasks of which some need a resource that half of the workers have, some may run on one
 * node only, some prefer one worker, and some have a priority. */
static void restricted(struct mr_buf *b)
{
    mr_buf_printf(b,
        "\"g-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\"],\"resources\":{\"gpu\":1},"
        "\"for\":{\"i\":60}},"
        "\"n-${i}\":{\"op\":\"large\",\"args\":[\"${i}\"],\"workers\":\"n0\",\"for\":{\"i\":40}},"
        "\"p-${i}\":{\"op\":\"medium\",\"args\":[\"${i}\",{\"ref\":\"g-${i}\"}],\"workers\":\"w1\","
        "\"allow_other_workers\":true,\"for\":{\"i\":60}},"
        "\"k-${i}\":{\"op\":\"small\",\"args\":[\"${i}\"],\"priority\":1,\"for\":{\"i\":100}}");
}

static void loop(struct mr_buf *b)
{
    mr_buf_printf(b, "\"X-${i}\":{\"op\":\"large\",\"args\":[\"${i}\"],\"for\":{\"i\":8}},"
                     "\"start\":{\"value\":1}");
}

static void small(struct mr_buf *b)
{
    mr_buf_printf(b, "\"k-${i}\":{\"op\":\"small\",\"args\":[\"${i}\"],\"for\":{\"i\":6}},"
                     "\"sum\":{\"op\":\"small\",\"args\":{\"each\":{\"ref\":\"k-${i}\"},"
                     "\"for\":{\"i\":6}}}");
}

#define ROUNDS                                                                                     \
    ",\"repeat\":{\"fit\":{\"max\":12,\"carry\":{\"s\":{\"ref\":\"start\"}},\"tasks\":{"           \
    "\"p-${i}\":{\"op\":\"medium\",\"args\":[{\"ref\":\"X-${i}\"},{\"ref\":\"s\"}],"               \
    "\"for\":{\"i\":8}},"                                                                          \
    "\"n\":{\"op\":\"small\",\"args\":{\"each\":{\"ref\":\"p-${i}\"},\"for\":{\"i\":8}}}},"        \
    "\"next\":{\"s\":{\"ref\":\"n\"}}}}"

static const struct scenario scenarios[] = {
    {.name = "wide", .write = wide, .jobs = 1},
    {.name = "wide-unfused", .write = wide, .jobs = 1, .rest = ",\"fuse\":false"},
    {.name = "wide-and-slow", .write = wide_and_slow, .jobs = 1},
    {.name = "chain", .write = chain, .jobs = 1},
    {.name = "chains", .write = chains, .jobs = 1},
    {.name = "chains-unfused", .write = chains, .jobs = 1, .rest = ",\"fuse\":false"},
    {.name = "chains-of-objects", .write = chains_of_objects, .jobs = 1},
    {.name = "tree", .write = tree, .jobs = 1},
    {.name = "stencil", .write = stencil, .jobs = 1},
    {.name = "shuffle", .write = shuffle, .jobs = 1},
    {.name = "broadcast", .write = broadcast, .jobs = 1},
    {.name = "fan-in", .write = fan_in, .jobs = 1},
    {.name = "diamonds", .write = diamonds, .jobs = 1},
    {.name = "objects", .write = objects, .jobs = 1},
    {.name = "restricted", .write = restricted, .jobs = 2, .apart = 2 * MR_MS},
    {.name = "loop", .write = loop, .jobs = 1, .rest = ROUNDS},
    {.name = "small-jobs", .write = small, .jobs = 15, .apart = 3 * MR_MS},
    {.name = "shared-workers", .write = chains, .jobs = 4, .apart = MR_MS},
    {.name = "template", .write = tree, .jobs = 6, .apart = 100 * MR_MS, .is_template = true},
    {.name = "template-of-loops",
        .write = loop,
        .jobs = 6,
        .apart = 60 * MR_MS,
        .is_template = true,
        .rest = ROUNDS},
    {.name = "template-late-worker",
        .write = chains,
        .jobs = 8,
        .apart = 25 * MR_MS,
        .is_template = true,
        .upset = UPSET_LATE_WORKER,
        .upset_after = 60 * MR_MS},
    {.name = "death", .write = tree, .jobs = 2, .upset = UPSET_DEATH, .upset_after = 20 * MR_MS},
    {.name = "late-worker",
        .write = objects,
        .jobs = 1,
        .upset = UPSET_LATE_WORKER,
        .upset_after = 10 * MR_MS},
};

/* ---- a run ---------------------------------------------------------------------------------- */

mr_duration sim_schedules_duration(struct sim *s, const struct mr_strand_item *item)
{
    const struct sim_job *j = sim_job_of(s, item->job.v);
    uint64_t h = mr_hash_u64((uint64_t)j->spec << 32 | item->index);
    if (item->op == OP_LONG) return 20 * MR_MS + h % (80 * MR_MS);
    if (item->op == OP_LARGE) return 500 * MR_US + h % (3 * MR_MS);
    if (item->op == OP_MEDIUM) return 100 * MR_US + h % (500 * MR_US);
    return 5 * MR_US + h % (200 * MR_US);
}

static void add_job(struct sim *s, const struct scenario *c, uint32_t number)
{
    struct sim_spec *x = &s->specs[number];
    struct mr_error e = {0};
    struct mr_buf text;
    char request[16];
    mr_buf_init(&text, 1 << 20);
    mr_buf_printf(&text, "{\"tasks\":{");
    c->write(&text);
    mr_buf_printf(&text, "}%s}", c->rest ? c->rest : "");
    int err = mr_graph_from_json(mr_buf_str(&text), &sim_catalogue, &x->graph, &e);
    if (err) sim_fail(s, "scenario %s makes no graph: %s", c->name, e.text);
    mr_buf_fini(&text);
    (void)snprintf(request, sizeof request, "r%" PRIu32, number);
    x->graph->job.request_id = mr_text_arena_copy(&x->graph->text, mr_str(request));
    x->waits = UINT32_MAX; /* the submission is never put off to wait for a parent task */
    x->template = c->is_template ? 1 : 0;
    sim_push(s, number * c->apart, (struct mr_virtual_event){.kind = EV_SUBMIT, .a = number});
}

/* Runs until every job has ended, and takes the figures at the end of the last one. */
static void finish_jobs(struct sim *s, const struct scenario *c, mr_time begin)
{
    mr_time end[SPECS_MAX] = {0};
    uint32_t ended = 0;
    struct mr_sched_job_info info;
    while (ended < c->jobs) {
        if (s->now > begin + END_MAX) sim_fail(s, "scenario %s has not ended", c->name);
        (void)sim_run(s, s->now + 5 * MR_US, false);
        for (uint32_t i = 0; i < c->jobs; i++) {
            const struct sim_spec *x = &s->specs[i];
            if (end[i] || !x->is_accepted || !mr_sched_job(s->sched, (mr_job_id){x->id}, &info) ||
                info.state < MR_JOB_DONE)
                continue;
            if (info.state != MR_JOB_DONE) sim_fail(s, "job %" PRIu32 " is not done", i);
            end[i] = s->now;
            s->figures.jobs_ns += s->now - begin - i * c->apart;
            ended++;
        }
    }
    s->figures.end_ns = s->now - begin;
}

static struct sim_figures run(const struct scenario *c)
{
    struct sim *s = mr_alloc(sizeof *s);
    sim_current = s;
    s->seed = 4; /* this seed makes objects of 4 to 204 KB (exec.c) */
    s->is_steady = s->calm = true;
    s->check_every = 1000;
    sim_configure(s);
    s->config.inline_blocks = 16384;
    s->config.unacked_bytes_max = 1 << 20;
    s->now = MR_SECOND;
    s->names = NAMES;
    s->nodes = 3;
    s->specs_count = c->jobs;
    memset(s->proc_of, 0xff, sizeof s->proc_of);
    for (uint32_t i = 0; i < s->nodes; i++)
        sim_push(s, 0, (struct mr_virtual_event){.kind = EV_STORE_START, .a = i});
    bool is_late = c->upset == UPSET_LATE_WORKER;
    for (uint32_t i = is_late; i < s->names; i++)
        sim_push(s, MR_MS, (struct mr_virtual_event){.kind = EV_PROC_START, .a = i});
    sim_push(s, 0, (struct mr_virtual_event){.kind = EV_STORES});
    sim_sched_start(s);
    (void)sim_run(s, s->now + MR_SECOND, false); /* the workers are ready */
    mr_time begin = s->now;
    s->figures = (struct sim_figures){0};
    for (uint32_t i = 0; i < c->jobs; i++)
        add_job(s, c, i);
    sim_specs_expect(s);
    if (c->upset != UPSET_NONE) (void)sim_run(s, begin + c->upset_after, false);
    if (c->upset == UPSET_DEATH) sim_proc_kill(s, s->proc_of[1]);
    if (is_late) sim_push(s, 0, (struct mr_virtual_event){.kind = EV_PROC_START, .a = 0});
    finish_jobs(s, c, begin);
    struct sim_figures figures = s->figures;
    sim_tear_down(s);
    sim_current = NULL;
    mr_release(s);
    return figures;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const char *const names[FIGURES] = {"end_ns", "jobs_ns", "starts", "messages", "wire_bytes",
    "journal_bytes", "stored_bytes", "moved_bytes"};

static void print(const struct scenario *c, const uint64_t *figures)
{
    (void)printf("%s", c->name);
    for (size_t i = 0; i < FIGURES; i++)
        (void)printf(" %" PRIu64, figures[i]);
    (void)printf("\n");
}

/* Reads the figures of a scenario from its line of the file. False: the file has no such line. */
static bool read_line(FILE *f, const struct scenario *c, uint64_t *out)
{
    char line[LINE_MAX_BYTES];
    size_t n = strlen(c->name);
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, c->name, n) != 0 || line[n] != ' ') continue;
        char *at = line + n;
        for (size_t i = 0; i < FIGURES; i++)
            out[i] = strtoull(at, &at, 10);
        return true;
    }
    return false;
}

/* Returns how many figures of the scenario are larger than the file's. */
static uint32_t compare(const struct scenario *c, const uint64_t *figures, const uint64_t *before)
{
    uint32_t worse = 0;
    for (size_t i = 0; i < FIGURES; i++) {
        if (figures[i] == before[i]) continue;
        bool is_worse = figures[i] > before[i];
        worse += is_worse;
        (void)printf("%s: %s was %" PRIu64 " and is %" PRIu64 "%s\n", c->name, names[i], before[i],
            figures[i], is_worse ? ": WORSE" : "");
    }
    return worse;
}

/* With a path, compares the figures with those of the file, and returns 1 if one is larger, 2 if
 * the file cannot be opened, else 0. Without a path, prints the contents of a new file. */
int sim_schedules(const char *path)
{
    FILE *f = path ? fopen(path, "re") : NULL;
    uint32_t worse = 0;
    if (path && !f) {
        (void)fprintf(stderr, "sim: cannot open \"%s\": %s\n", path, strerror(errno));
        return 2;
    }
    if (!f) {
        (void)printf("# scenario");
        for (size_t i = 0; i < FIGURES; i++)
            (void)printf(" %s", names[i]);
        (void)printf("\n");
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(scenarios); i++) {
        struct sim_figures figures = run(&scenarios[i]);
        uint64_t before[FIGURES];
        if (!f) {
            print(&scenarios[i], (const uint64_t *)&figures);
        } else if (read_line(f, &scenarios[i], before)) {
            worse += compare(&scenarios[i], (const uint64_t *)&figures, before);
        } else {
            (void)printf("%s has no line in \"%s\"\n", scenarios[i].name, path);
            worse++;
        }
    }
    if (f) (void)fclose(f);
    return worse ? 1 : 0;
}
