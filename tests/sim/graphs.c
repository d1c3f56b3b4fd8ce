/* The jobs of a run: usual shapes of graphs and random ones, the value that each task must have,
 * and the tasks that can or must fail. */
#include "tests/sim/sim.h"

#include "graph/build/builder.h"

#include <stdio.h>

const char *const sim_ops[OPS] = {"small", "medium", "large", "ref", "role", "identity", "until",
    "long", "dice", "flaky", "bad", "poison", "slow", "stubborn", "rare"};

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    for (uint32_t i = 0; i < OPS; i++) {
        if (!mr_str_eq(op, mr_str(sim_ops[i]))) continue;
        *out = (struct mr_graph_op_info){.any_positional = true};
        return true;
    }
    return false;
}

const struct mr_graph_catalogue sim_catalogue = {.find = find_op};

static enum sim_op op_of(struct mr_str name)
{
    for (uint32_t i = 0; i < OPS; i++)
        if (mr_str_eq(name, mr_str(sim_ops[i]))) return (enum sim_op)i;
    return OPS;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    return mr_hash_u64(h * 31 + x + 0x9e3779b97f4a7c15u);
}

uint64_t sim_value(enum sim_op op, struct mr_str args, const uint64_t *in, uint32_t n)
{
    if (op == OP_IDENTITY) return sim_loop_identity(args, in, n);
    uint64_t h = mix(17, op);
    for (size_t i = 0; i < args.n; i++)
        h = mix(h, (unsigned char)args.p[i]);
    for (uint32_t i = 0; i < n; i++)
        h = mix(h, in[i]);
    if (op == OP_UNTIL) return h % 5 == 0;
    /* with the highest bit set, the value always has nine bytes in MessagePack */
    return h | 1ull << 63;
}

uint64_t sim_value_of_pack(struct mr_str pack)
{
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item = {0};
    uint64_t v = 0;
    if (mr_pack_next(&r, &item)) return 0;
    if (item.type == MR_PACK_UINT) return item.u;
    if (item.type == MR_PACK_INT) return (uint64_t)item.i;
    if (item.type == MR_PACK_BYTES && item.bytes.n >= 8) memcpy(&v, item.bytes.p, 8);
    return v;
}

struct draft {
    struct sim *s;
    struct mr_builder *b;
    uint32_t node[512];
    uint32_t n;
    uint32_t spec;
    uint32_t wild; /* pick_op picks an unusual operator with probability 1 / wild; 0: never */
};

static enum sim_op pick_op(struct draft *d)
{
    struct sim *s = d->s;
    if (d->wild && sim_chance(s, d->wild))
        return (enum sim_op)(OP_LONG + sim_below(s, OPS - OP_LONG));
    uint64_t k = sim_below(s, 10);
    return k < 5 ? OP_SMALL : k < 7 ? OP_MEDIUM : k < 9 ? OP_LARGE : OP_REF;
}

static void options(struct draft *d, uint32_t node, enum sim_op op)
{
    static const struct mr_graph_resource gpu = {MR_STR_INIT("gpu"), GPU};
    static const struct mr_str names[] = {
        MR_STR_INIT("w0"), MR_STR_INIT("w1"), MR_STR_INIT("n0"), MR_STR_INIT("w2")};
    struct sim *s = d->s;
    struct mr_task_options o = {.pure = true};
    if (op == OP_FLAKY) {
        o.given |= MR_OPTION_RETRIES;
        o.retries = (uint32_t)sim_below(s, 6);
    }
    if (op == OP_SLOW || op == OP_STUBBORN) {
        o.given |= MR_OPTION_TIMEOUT;
        o.timeout = MR_MS + sim_below(s, 100 * MR_MS);
    }
    if (op == OP_DICE) o.given |= MR_OPTION_PURE, o.pure = false;
    if (s->has_roles && op == OP_POISON && sim_chance(s, 2)) {
        o.given |= MR_OPTION_LONG_RUNNING;
        o.long_running = true;
    }
    /* Roles have no further options, such as resources, so that all of them can always run at
     * once. */
    if (op == OP_ROLE) {
        o.given |= MR_OPTION_RETRIES;
        o.retries = 1000;
        int err = mr_builder_options(d->b, node, &o, NULL);
        mr_assert(!err);
        return;
    }
    if (sim_chance(s, 20)) {
        o.given |= MR_OPTION_PRIORITY;
        o.priority = (int32_t)sim_below(s, 9) - 4;
    }
    if (sim_chance(s, 30)) {
        o.given |= MR_OPTION_RESOURCES;
        o.resources = &gpu;
        o.resources_count = 1;
    } else if (sim_chance(s, 30) && op != OP_RARE) {
        o.given |= MR_OPTION_WORKERS | MR_OPTION_ALLOW_OTHER_WORKERS;
        o.workers = &names[sim_below(s, MR_ARRAY_LEN(names))];
        o.workers_count = 1;
        o.allow_other_workers = sim_chance(s, 2);
        if (mr_str_eq(*o.workers, names[3]) && s->names < 3) o.allow_other_workers = true;
    }
    int err = o.given ? mr_builder_options(d->b, node, &o, NULL) : 0;
    mr_assert(!err);
}

static uint32_t key(struct draft *d)
{
    char text[16];
    (void)snprintf(text, sizeof text, "j%" PRIu32 "k%" PRIu32, d->spec, d->n);
    mr_assert(d->n < MR_ARRAY_LEN(d->node));
    int err = mr_builder_node(d->b, mr_str(text), &d->node[d->n], NULL);
    mr_assert(!err);
    return d->n++;
}

static uint32_t task_of(struct draft *d, enum sim_op op, const uint32_t *in, uint32_t n)
{
    uint32_t at = key(d);
    int err = mr_builder_task(d->b, d->node[at], mr_str(sim_ops[op]), NULL);
    mr_assert(!err);
    mr_pack_list(mr_builder_args(d->b), n + 1);
    mr_pack_int(mr_builder_args(d->b), (int64_t)sim_below(d->s, 1u << 30));
    for (uint32_t i = 0; i < n; i++)
        (void)mr_builder_input(d->b, d->node[in[i]], NULL);
    err = mr_builder_task_end(d->b, NULL);
    mr_assert(!err);
    options(d, d->node[at], op);
    return at;
}

static uint32_t task(struct draft *d, const uint32_t *in, uint32_t n)
{
    return task_of(d, pick_op(d), in, n);
}

static uint32_t literal(struct draft *d)
{
    uint32_t at = key(d);
    struct mr_buf b;
    mr_buf_init(&b, 64);
    mr_pack_int(&b, (int64_t)sim_below(d->s, 1000));
    int err = mr_builder_literal(d->b, d->node[at], mr_buf_str(&b), NULL);
    mr_assert(!err);
    mr_buf_fini(&b);
    return at;
}

static void chain(struct draft *d, uint32_t n)
{
    uint32_t at = task(d, NULL, 0);
    while (--n)
        at = task(d, &at, 1);
}

static void tree(struct draft *d, uint32_t leaves)
{
    uint32_t level[128];
    for (uint32_t i = 0; i < leaves; i++)
        level[i] = task(d, NULL, 0);
    for (; leaves > 1; leaves = (leaves + 1) / 2)
        for (uint32_t i = 0; i < leaves; i += 2)
            level[i / 2] = i + 1 < leaves ? task(d, &level[i], 2) : level[i];
}

static void map_reduce(struct draft *d, uint32_t n)
{
    uint32_t mapped[16];
    uint32_t x = literal(d);
    for (uint32_t i = 0; i < n; i++)
        mapped[i] = task(d, &x, sim_chance(d->s, 2));
    for (uint32_t i = 0; i < n; i++)
        (void)task(d, mapped, n);
}

static void stencil(struct draft *d, uint32_t width, uint32_t steps)
{
    uint32_t row[2][16];
    for (uint32_t i = 0; i < width; i++)
        row[0][i] = task(d, NULL, 0);
    for (uint32_t t = 1; t < steps; t++)
        for (uint32_t i = 0; i < width; i++) {
            uint32_t from = i ? i - 1 : 0;
            uint32_t to = i + 1 < width ? i + 1 : i;
            row[t % 2][i] = task(d, &row[1 - t % 2][from], to - from + 1);
        }
}

static void diamond(struct draft *d, uint32_t n)
{
    uint32_t at = task(d, NULL, 0);
    while (n--) {
        uint32_t two[2] = {task(d, &at, 1), task(d, &at, 1)};
        at = task(d, two, 2);
    }
}

static void fan_in(struct draft *d, uint32_t n)
{
    uint32_t in[256];
    for (uint32_t i = 0; i < n; i++)
        in[i] = task(d, NULL, 0);
    (void)task(d, in, n);
}

/* Adds `n` roles that end together, maybe more than there are workers, and other tasks beside
 * them. */
static void gang(struct draft *d, uint32_t n)
{
    while (n--)
        (void)mr_builder_target(d->b, d->node[task_of(d, OP_ROLE, NULL, 0)], NULL);
    for (uint64_t k = sim_below(d->s, 20); k; k--) {
        enum sim_op op = sim_chance(d->s, 3) ? OP_LONG : OP_SMALL;
        (void)mr_builder_target(d->b, d->node[task_of(d, op, NULL, 0)], NULL);
    }
}

static void wild(struct draft *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t in[6];
        uint32_t count = 0;
        for (uint32_t k = (uint32_t)sim_below(d->s, 5); k && i; k--) {
            uint32_t from = (uint32_t)sim_below(d->s, 3)
                                ? (uint32_t)sim_below(d->s, i)
                                : i - 1 - (uint32_t)sim_below(d->s, MR_MIN(i, 4u));
            bool is_twice = false;
            for (uint32_t j = 0; j < count; j++)
                is_twice |= in[j] == from;
            if (!is_twice) in[count++] = from;
        }
        if (sim_chance(d->s, 12))
            (void)literal(d);
        else
            (void)task(d, in, count);
    }
}

static void shape(struct draft *d)
{
    struct sim *s = d->s;
    if (s->has_roles && sim_chance(s, 3)) {
        gang(d, 2 + (uint32_t)sim_below(s, 9));
        return;
    }
    if (s->has_loops && !sim_chance(s, 4)) {
        uint32_t out[2];
        uint32_t n = sim_loop_make(s, d->b, d->spec, out);
        for (uint32_t i = 0; i < n; i++)
            d->node[d->n++] = out[i];
        return;
    }
    switch (sim_below(s, 8)) {
    case 0: chain(d, 1 + (uint32_t)sim_below(s, 120)); break;
    case 1: tree(d, 1 + (uint32_t)sim_below(s, 100)); break;
    case 2: map_reduce(d, 1 + (uint32_t)sim_below(s, 12)); break;
    case 3: stencil(d, 2 + (uint32_t)sim_below(s, 12), 2 + (uint32_t)sim_below(s, 12)); break;
    case 4: diamond(d, 1 + (uint32_t)sim_below(s, 30)); break;
    case 5: fan_in(d, 1 + (uint32_t)sim_below(s, 200)); break;
    default: wild(d, 2 + (uint32_t)sim_below(s, 150)); break;
    }
}

/* Adds keys that other jobs have too, and for each of them a task that uses the key. */
static void share(struct draft *d, bool has_namespace)
{
    uint32_t shared[2 * SHARED_MAX];
    uint32_t n = sim_shared_use(d->s, d->b, has_namespace, shared);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = key(d);
        int err = mr_builder_task(d->b, d->node[at], mr_str(sim_ops[OP_SMALL]), NULL);
        mr_assert(!err);
        mr_pack_list(mr_builder_args(d->b), 2);
        mr_pack_int(mr_builder_args(d->b), (int64_t)sim_below(d->s, 1u << 30));
        (void)mr_builder_input(d->b, shared[i], NULL);
        err = mr_builder_task_end(d->b, NULL);
        mr_assert(!err);
        if (sim_chance(d->s, 3)) (void)mr_builder_target(d->b, shared[i], NULL);
        if (sim_chance(d->s, 2)) (void)mr_builder_target(d->b, d->node[at], NULL);
    }
}

static void wishes(struct sim *s, struct sim_spec *x)
{
    if (sim_chance(s, 8)) x->cancel_after = 1 + sim_below(s, MR_SECOND);
    if (sim_chance(s, 6)) x->forget_after = 1 + sim_below(s, 4 * MR_SECOND);
    x->wants_retry = sim_chance(s, 2);
}

void sim_spec_make(struct sim *s, uint32_t spec)
{
    struct sim_spec *x = &s->specs[spec];
    if (s->has_templates && !sim_chance(s, 4)) {
        sim_template_instance(s, x, (uint32_t)sim_below(s, TEMPLATES - 1));
        wishes(s, x);
        return;
    }
    struct draft d = {.s = s, .b = mr_builder_new(), .spec = spec};
    bool has_namespace = s->shared_count && sim_chance(s, 2);
    char name[16];
    char request[16];
    if (sim_chance(s, 3)) d.wild = 10 + (uint32_t)sim_below(s, 100);
    shape(&d);
    share(&d, has_namespace);
    if (sim_chance(s, 2))
        for (uint64_t k = 1 + sim_below(s, 5); k; k--)
            (void)mr_builder_target(d.b, d.node[sim_below(s, d.n)], NULL);
    (void)snprintf(name, sizeof name, "m%" PRIu32, spec);
    (void)snprintf(request, sizeof request, "r%" PRIu32, spec);
    struct mr_job_options o = {.name = mr_str(name),
        .request_id = mr_str(request),
        .name_space = has_namespace ? MR_STR("ours") : MR_STR(""),
        .priority = sim_chance(s, 3) ? (int32_t)sim_below(s, 5) - 2 : 0,
        .deadline = sim_chance(s, 20) ? 100 * MR_MS + sim_below(s, 20 * MR_SECOND) : 0,
        .on_error = sim_chance(s, 3) ? MR_ON_ERROR_CONTINUE : MR_ON_ERROR_STOP,
        .unfused = sim_chance(s, 10)};
    struct mr_error e = {0};
    int err = mr_builder_job(d.b, &o, &e);
    if (!err) err = mr_graph_build(&d.b, &sim_catalogue, &x->graph, &e);
    if (err) sim_fail(s, "the graph cannot be built: %s", e.text);
    wishes(s, x);
}

static void expect(struct sim *s, const struct mr_graph *g, uint32_t i, struct sim_task *task)
{
    uint64_t in[512];
    uint32_t n;
    const uint32_t *inputs = mr_graph_inputs(g, i, &n);
    struct sim_task *t = &task[i];
    if (g->kind[i] == MR_NODE_LITERAL) {
        t->expect = sim_value_of_pack(mr_graph_args(g, i));
        return;
    }
    uint32_t shared = sim_shared_of(s, mr_graph_key(g, i));
    if (g->kind[i] == MR_NODE_ALIAS) {
        t->expect = s->shared[shared].value;
        t->fate = t->own = FATE_MAY; /* the job that defines the key may fail or be cancelled */
        return;
    }
    if (sim_loop_expect(g, i, task)) return;
    enum sim_op op = op_of(mr_graph_op(g, i));
    mr_assert(op != OPS && n <= MR_ARRAY_LEN(in));
    for (uint32_t k = 0; k < n; k++) {
        in[k] = task[inputs[k]].expect;
        t->fate = MR_MAX(t->fate, task[inputs[k]].fate);
        t->is_tainted |= task[inputs[k]].is_tainted;
    }
    t->expect = sim_value(op, mr_graph_args(g, i), in, n);
    t->is_tainted |= op == OP_DICE;
    if (op == OP_FLAKY) t->own = FATE_MAY;
    if (op >= OP_BAD && op <= OP_STUBBORN) t->own = FATE_MUST;
    t->fate = MR_MAX(t->fate, t->own);
    if (shared != NONE && !s->shared[shared].is_odd) s->shared[shared].value = t->expect;
}

static struct sim_task *expect_all(struct sim *s, const struct sim_spec *x)
{
    const struct mr_graph *g = x->same ? x->same : x->graph;
    struct sim_task *task = mr_alloc_array(g->nodes_count, sizeof *task);
    for (uint32_t i = 0; i < g->nodes_count; i++)
        expect(s, g, i, task);
    for (uint32_t i = 0; i < g->targets_count; i++)
        task[g->targets[i]].is_target = true;
    return task;
}

/* Computes the value of every shared key, before any job refers to it. */
void sim_specs_expect(struct sim *s)
{
    for (uint32_t i = 0; i < s->specs_count; i++) {
        struct sim_task *task = expect_all(s, &s->specs[i]);
        mr_release(task);
    }
}

struct sim_job *sim_job_of(struct sim *s, uint64_t id)
{
    struct mr_sched_job_info info;
    for (uint32_t i = 0; i < s->jobs_count; i++)
        if (s->jobs[i].id == id) return &s->jobs[i];
    if (!s->sched || !mr_sched_job(s->sched, (mr_job_id){id}, &info)) return NULL;
    if (s->jobs_count == MR_ARRAY_LEN(s->jobs)) sim_fail(s, "more jobs than were submitted");
    struct mr_str name = info.graph->job.request_id;
    struct sim_job *j = &s->jobs[s->jobs_count++];
    *j = (struct sim_job){.id = id, .spec = (uint32_t)(name.p[1] - '0')};
    if (name.n > 2) j->spec = j->spec * 10 + (uint32_t)(name.p[2] - '0');
    j->task = expect_all(s, &s->specs[j->spec]);
    return j;
}
