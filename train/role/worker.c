/* train.worker: computes gradients of batches until the session halts. This file opens the data;
 * worker_ps.c and worker_ring.c train. */
#include "train/role/worker.h"

#include "host/clock.h"
#include "host/thread.h"
#include "train/role/rows.h"
#include "train/role/worker_ps.h"
#include "train/role/worker_ring.h"

#include <stdatomic.h>

#define CPUS_MAX 64u

/* bit k: a worker of this process prefers processor env->processor + k */
static _Atomic uint64_t cpus_taken;

static int data_open(struct mr_trainee *t, struct mr_error *e)
{
    struct mr_role *r = &t->r;
    const struct mr_role_plan *p = &r->plan;
    uint64_t inputs = mr_nn_shape_count(&p->model->input);
    uint64_t outputs = mr_nn_shape_count(&p->model->output);
    if (p->queue) {
        const struct mr_queue_feed_spec spec = {.trainer = r->trainer,
            .credential = r->credential,
            .queue = p->queue,
            .inputs = inputs,
            .outputs = outputs,
            .batch = p->batch,
            .keep = p->keep_rest,
            .store = &r->store,
            .is_drawn = &r->is_drawn};
        return mr_queue_feed_open(&spec, &t->queue, e);
    }
    const struct mr_arg *x = mr_role_set(r, "train", "x"), *y = mr_role_set(r, "train", "y");
    if (!x || !y) return mr_fail(e, MR_EINVAL, "data.train: this worker was not given x and y");
    if (r->index >= p->workers)
        return mr_fail(
            e, MR_EINVAL, "worker %u: the document has %u of them", r->index, p->workers);
    struct mr_role_rows rows;
    int err = mr_role_rows_get(r, x, y, &rows, e);
    if (err) return err;
    const struct mr_feed_spec spec = {.inputs = inputs,
        .outputs = outputs,
        .batch = p->batch,
        .worker = r->index,
        .workers = p->workers,
        .ranges = rows.ranges,
        .ranges_count = rows.count,
        .shuffle = p->shuffle,
        .keep = p->keep_rest,
        .seed = p->data_seed};
    err = mr_feed_open(&spec, "data.train", x, y, &r->feed_store, &t->feed, e);
    mr_role_rows_fini(&rows);
    if (err) return err;
    r->is_drawn = r->is_drawn || mr_feed_is_drawn(t->feed);
    struct mr_feed_moved moved = mr_feed_moved(t->feed);
    r->post.counters.moved_parts = moved.parts;
    r->post.counters.moved_bytes = moved.bytes;
    return MR_OK;
}

/* Moves the calling thread, which computes for this worker, to a processor that no other training
 * worker of this process prefers. Otherwise the kernel tends to wake several workers, which start
 * each step at the same time, on one processor. Returns a number for cpu_release; CPUS_MAX: all
 * processors are taken. */
static uint32_t cpu_take(const struct mr_role_env *env)
{
    uint32_t cpu = 0;
    uint64_t taken = atomic_load(&cpus_taken);
    do {
        cpu = taken == UINT64_MAX ? CPUS_MAX : (uint32_t)__builtin_ctzll(~taken);
        /* all processors are taken: this worker has to share one */
        if (cpu == CPUS_MAX) return cpu;
    } while (!atomic_compare_exchange_weak(&cpus_taken, &taken, taken | (uint64_t)1 << cpu));
    mr_thread_cpu_prefer(env->processor + cpu);
    return cpu;
}

static void cpu_release(uint32_t cpu)
{
    if (cpu == CPUS_MAX) return;
    mr_thread_cpu_clear();
    (void)atomic_fetch_and(&cpus_taken, ~((uint64_t)1 << cpu));
}

static int worker_run(struct mr_op_call *call)
{
    struct mr_trainee t = {0};
    struct mr_error e;
    struct mr_error *words = &e;
    e.text[0] = 0;
    const char *socket = "";
    int err = mr_transport_socket(&socket, &e);
    if (err) return mr_role_refuse(call, err, &e);
    err = mr_role_begin(call, &t.r, MR_ROLE_WORKER, socket, NULL);
    if (err) words = NULL;
    if (!err) err = data_open(&t, &e);
    if (!err) err = mr_nn_net_new(t.r.plan.model, t.r.plan.batch, &t.net, &e);
    if (!err) t.steps = t.r.members->m->resume_steps;
    t.lap = mr_clock_now();
    if (!err) {
        uint32_t cpu = cpu_take(t.r.env);
        err = t.r.plan.rule == MR_ROLE_ALLREDUCE ? mr_trainee_reduce(&t, &e)
                                                 : mr_trainee_push(&t, &e);
        cpu_release(cpu);
    }
    mr_feed_close(&t.feed);
    mr_queue_feed_close(&t.queue);
    mr_nn_net_free(&t.net);
    return mr_role_end(&t.r, err, words);
}

static const struct mr_op_param params[] = {
    {"session", MR_TAKES_TEXT, NULL, "Id of the training session."},
    {"index", MR_TAKES_INT, NULL, "Index among the roles of this kind, from 0."},
    {"trainer", MR_TAKES_TEXT, NULL, "Address of the trainer."},
    {"data", MR_TAKES_NIL | MR_TAKES_DICT, "null", "Sets of x and y, by name."},
};

const struct mr_op_desc mr_train_worker_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_BY_REFERENCE | MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "train.worker",
    .summary = "Runs a role of a training session that computes gradients; started by the trainer.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000000,
    .run = worker_run};
