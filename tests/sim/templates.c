/* Templates: texts that are installed once, and jobs that are instances of them, parsed by the real
 * template parser. Expected values come from a graph that was made without the template. When
 * faults are over, instances of one more template run one after another.
 *
 * The place of a task is the worker to which the scheduler sends it. The scheduler counts the tasks
 * that it sends to a cached place (docs/graphs.md). At least as many tasks must go to a place where
 * the same task of the template has been before. */
#include "tests/sim/sim.h"

#include "graph/template/template.h"
#include "graph/loop.h"

#include <stdio.h>

/* Limit of a template's slots plus nodes. A slot is a task in the body of a loop. */
#define KEYS_MAX 4096
#define TEXT_MAX ((size_t)1 << 16)

struct sim_places {
    /* Processes to which a task was sent, a bit for each process. The first index is the task's
     * slot in a loop; outside loops it is the number of slots plus the task's node. */
    uint64_t been[KEYS_MAX][PROCS_MAX / 64];
    uint32_t life;
    /* `first_sent`: number of first attempts that were sent in this instance. `known`: number of
     * those that went where the task had been before. */
    uint32_t first_sent, known;
    uint64_t cached, repaired; /* the scheduler's counters when this instance began */
    /* How many workers had died when this instance began, and when the one before it began. */
    uint64_t deaths, deaths_then;
};

/* ---- texts ----------------------------------------------------------------------------------- */

static const char *op_name(struct sim *s, bool is_wild)
{
    static const enum sim_op plain[] = {OP_SMALL, OP_SMALL, OP_SMALL, OP_MEDIUM, OP_LARGE, OP_REF};
    static const enum sim_op wild[] = {OP_DICE, OP_FLAKY, OP_LONG, OP_BAD, OP_POISON, OP_RARE};
    if (is_wild && sim_chance(s, 40)) return sim_ops[wild[sim_below(s, MR_ARRAY_LEN(wild))]];
    return sim_ops[plain[sim_below(s, MR_ARRAY_LEN(plain))]];
}

static void args_write(struct sim *s, struct mr_buf *b, const uint32_t *in, uint32_t n)
{
    mr_buf_printf(b, "\"args\":[%" PRIu64, sim_below(s, 1u << 30));
    for (uint32_t i = 0; i < n; i++)
        mr_buf_printf(b, ",{\"ref\":\"k%" PRIu32 "\"}", in[i]);
    if (sim_chance(s, 4)) mr_buf_add_text(b, ",\"${a}\"");
    if (sim_chance(s, 8)) mr_buf_add_text(b, ",{\"of\":[\"${t}\",\"${a}\"]}");
    mr_buf_add_text(b, "]");
}

static void tasks_write(struct sim *s, struct mr_buf *b, uint32_t count, bool is_wild)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t in[4], n = 0;
        for (uint32_t k = (uint32_t)sim_below(s, 4); k && i; k--) {
            uint32_t from = sim_chance(s, 2) ? (uint32_t)sim_below(s, i) : i - 1;
            bool is_twice = false;
            for (uint32_t j = 0; j < n; j++)
                is_twice |= in[j] == from;
            if (!is_twice) in[n++] = from;
        }
        const char *op = op_name(s, is_wild);
        mr_buf_printf(b, "%s\"k%" PRIu32 "\":{\"op\":\"%s\",", i ? "," : "", i, op);
        if (mr_str_eq(mr_str(op), MR_STR("flaky"))) mr_buf_add_text(b, "\"retries\":4,");
        if (mr_str_eq(mr_str(op), MR_STR("dice"))) mr_buf_add_text(b, "\"pure\":false,");
        args_write(s, b, in, n);
        mr_buf_add_text(b, "}");
    }
}

/* Adds a loop to a template. A round has as many parts as the parameter `n` says (3 without this
 * parameter) and ends the loop when its condition is true. */
static void loop_write(struct sim *s, struct mr_buf *b, bool has_count)
{
    const char *n = has_count ? "\"${n}\"" : "3";
    mr_buf_printf(b,
        ",\"repeat\":{\"l\":{\"max\":%" PRIu64 ",\"carry\":{\"s\":{\"op\":\"small\",\"args\":"
        "[\"${a}\"]}},\"tasks\":{\"p${i}\":{\"op\":\"%s\",\"args\":[\"${i}\",{\"ref\":\"s\"}],"
        "\"for\":{\"i\":%s}},\"m\":{\"op\":\"%s\",\"args\":[7,{\"each\":{\"ref\":\"p${i}\"},"
        "\"for\":{\"i\":%s}}]},\"u\":{\"op\":\"until\",\"args\":[%" PRIu64
        ",{\"ref\":\"m\"}]}},\"next\":{\"s\":{\"ref\":\"m\"}},\"until\":{\"ref\":\"u\"}}}",
        2 + sim_below(s, 9), op_name(s, false), n, op_name(s, false), n, sim_below(s, 1u << 30));
}

/* values of a template's parameters: instances of one text differ in them only */
struct given {
    uint64_t a;
    uint32_t n;
    char t[8];
};

static void params_write(struct mr_buf *b, const struct given *g)
{
    mr_buf_printf(
        b, "\"params\":{\"a\":%" PRIu64 ",\"n\":%" PRIu32 ",\"t\":\"%s\"}", g->a, g->n, g->t);
}

static void text_write(struct mr_buf *b, const struct given *g, struct mr_str rest)
{
    mr_buf_add_text(b, "{");
    params_write(b, g);
    mr_buf_add_str(b, rest);
}

static void rest_write(struct sim *s, struct mr_buf *b, uint32_t number)
{
    mr_buf_add_text(b, ",\"name\":\"of a template\",\"tasks\":{");
    tasks_write(s, b, 4 + (uint32_t)sim_below(s, number ? 60 : 40), number % 3);
    mr_buf_add_text(b, "}");
    if (sim_chance(s, 2)) loop_write(s, b, number == 2);
    mr_buf_add_text(b, "}");
}

static const struct given defaults = {11, 2, "x"};

void sim_templates_install(struct sim *s)
{
    struct mr_buf text;
    if (!s->has_templates) return;
    for (uint32_t i = 0; i < TEMPLATES; i++) {
        struct mr_error e = {0};
        mr_buf_init(&s->template_rest[i], TEXT_MAX);
        rest_write(s, &s->template_rest[i], i);
        mr_buf_init(&text, TEXT_MAX);
        text_write(&text, &defaults, mr_buf_str(&s->template_rest[i]));
        if (mr_json_template_new(mr_buf_str(&text), &s->templates[i], &e))
            sim_fail(s, "the template cannot be read: %s", e.text);
        mr_buf_fini(&text);
    }
    s->places = mr_alloc(sizeof *s->places);
}

void sim_templates_fini(struct sim *s)
{
    for (uint32_t i = 0; i < TEMPLATES && s->has_templates; i++) {
        mr_json_template_free(&s->templates[i]);
        mr_buf_fini(&s->template_rest[i]);
    }
    mr_release(s->places);
}

/* ---- instances ------------------------------------------------------------------------------- */

static void is_same(struct sim *s, const struct mr_graph *a, const struct mr_graph *b)
{
    if (a->nodes_count != b->nodes_count || a->targets_count != b->targets_count)
        sim_fail(s, "an instance has other nodes than its template says");
    for (uint32_t i = 0; i < a->nodes_count; i++)
        if (!mr_str_eq(mr_graph_key(a, i), mr_graph_key(b, i)))
            sim_fail(s, "an instance has other keys than its template says");
}

void sim_template_instance(struct sim *s, struct sim_spec *x, uint32_t number)
{
    struct mr_error e = {0};
    struct mr_buf text;
    struct given g = defaults;
    if (!sim_chance(s, 4)) g.a = sim_below(s, 1u << 20);
    if (sim_chance(s, 2)) (void)snprintf(g.t, sizeof g.t, "%" PRIu64, sim_below(s, 10000));
    if (number == 2 && sim_chance(s, 2)) g.n = 1 + (uint32_t)sim_below(s, 4);
    mr_buf_init(&text, TEXT_MAX);
    mr_buf_add_text(&text, "{");
    params_write(&text, &g);
    mr_buf_add_text(&text, "}");
    int err = mr_json_template_graph(
        s->templates[number], mr_buf_str(&text), &sim_catalogue, &x->graph, &x->template, &e);
    mr_buf_clear(&text);
    text_write(&text, &g, mr_buf_str(&s->template_rest[number]));
    if (!err) err = mr_graph_from_json(mr_buf_str(&text), &sim_catalogue, &x->same, &e);
    if (err) sim_fail(s, "the template makes no graph: %s", e.text);
    mr_buf_fini(&text);
    is_same(s, x->graph, x->same);
    char request[16];
    (void)snprintf(request, sizeof request, "r%" PRIu32, (uint32_t)(x - s->specs));
    x->graph->job.request_id = mr_text_arena_copy(&x->graph->text, mr_str(request));
    x->template = (x->template ^ number) | 1;
    x->number_1 = number + 1;
    s->count.instances++;
}

/* Returns another unfinished job of the same template, or else the job itself. */
uint64_t sim_template_other(struct sim *s, uint64_t job)
{
    const struct sim_job *j = sim_job_of(s, job);
    if (!j || !s->specs[j->spec].template) return job;
    for (uint32_t i = 0; i < s->jobs_count; i++) {
        const struct sim_job *k = &s->jobs[i];
        if (k != j && !k->final && s->specs[k->spec].template == s->specs[j->spec].template)
            return k->id;
    }
    return job;
}

/* ---- where they run -------------------------------------------------------------------------- */

/* Called for each task that the scheduler sends: notes where tasks of the last template go. */
void sim_template_sent(
    struct sim *s, uint32_t session, uint64_t job, uint32_t index, uint32_t attempt)
{
    struct sim_job *j = s->has_templates ? sim_job_of(s, job) : NULL;
    if (!j || s->specs[j->spec].number_1 != TEMPLATES) return;
    const struct mr_graph *g = s->specs[j->spec].graph;
    struct sim_places *p = s->places;
    uint32_t slot = g->slot_of ? g->slot_of[index] : MR_NODE_NONE;
    uint32_t key = slot == MR_NODE_NONE ? g->slots_count + index : slot;
    uint32_t proc = s->sessions[session].proc;
    if (p->life != s->life) *p = (struct sim_places){.life = s->life};
    if (key >= KEYS_MAX) return;
    uint64_t *been = &p->been[key][proc / 64], bit = (uint64_t)1 << proc % 64;
    p->first_sent += attempt == 1;
    p->known += attempt == 1 && *been & bit;
    if (s->trace)
        sim_say(s, "    place %" PRIu32 " of job %" PRIx64 ": w%" PRIu32 "%s", key, job,
            s->procs[proc].name, *been & bit ? ", as before" : "");
    *been |= bit;
}

/* Submits one more instance of the last template, while nothing else runs. `round` numbers these
 * instances from 0, for the log. */
void sim_template_again(struct sim *s, uint32_t round)
{
    struct sim_spec *x = &s->specs[s->specs_count];
    struct mr_sched_totals t;
    mr_assert(s->specs_count < MR_ARRAY_LEN(s->specs));
    sim_template_instance(s, x, TEMPLATES - 1);
    x->waits = UINT32_MAX;
    mr_sched_totals(s->sched, &t);
    if (s->places->life != s->life) *s->places = (struct sim_places){.life = s->life};
    s->places->first_sent = s->places->known = 0;
    s->places->deaths_then = s->places->deaths;
    s->places->deaths = s->count.deaths;
    s->places->cached = t.placed_cached;
    s->places->repaired = t.placed_repaired;
    sim_say(s, "instance %" PRIu32 " of those after the faults", round);
    sim_push(s, 0, (struct mr_virtual_event){.kind = EV_SUBMIT, .a = s->specs_count++});
}

/* Checks the places of an instance that is done. The second instance finds all workers as the first
 * one left them. Before the third one a worker died, so some places are repaired (chosen anew)
 * once. */
void sim_template_placed(struct sim *s, uint32_t round)
{
    struct mr_sched_totals t;
    const struct sim_places *p = s->places;
    mr_sched_totals(s->sched, &t);
    uint64_t cached = t.placed_cached - p->cached, repaired = t.placed_repaired - p->repaired;
    sim_say(s,
        "cached %" PRIu64 ", repaired %" PRIu64 " of %" PRIu32 " sent, %" PRIu32
        " to where they were before",
        cached, repaired, p->first_sent, p->known);
    if (cached > p->known)
        sim_fail(s,
            "I33: %" PRIu64 " places are cached, and %" PRIu32 " tasks went where they were",
            cached, p->known);
    bool is_changed = round == 0 || p->deaths_then != s->count.deaths;
    if (!is_changed && repaired)
        sim_fail(s, "%" PRIu64 " places are repaired, and no worker went", repaired);
    if (round && p->first_sent >= 4 && !cached && !repaired)
        sim_fail(s, "of %" PRIu32 " tasks of an instance none has a cached place", p->first_sent);
}
