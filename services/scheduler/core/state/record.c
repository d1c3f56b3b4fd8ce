/* Writes the payloads of journal records; job/replay.c reads them. Fields are little-endian,
 * without gaps. A text is a u32 length and its bytes. An object is its id, u64 maker and u64
 * number. A failure is i32 code, u32 attempts, and five texts: operator, message, arguments,
 * worker, output. Sizes are in bytes. The layouts:
 *
 *   EPOCH        u64 incarnation of a scheduler, u32 epoch
 *   GRAPH        u64 job, u64 offset, bytes of mr_graph_to_bytes
 *   ACCEPTED     u64 job, u64 size of the graph, u64 created, u64 parent, hash of the body (two
 *                u64), u32 n, n x (u32 index, object, u64 size, u64 store)
 *   VALUES       u64 job, then rows: u32 index, u32 attempt (its highest bit: the value contains
 *                the ids of those inputs that are objects), u32 size. If this size is not 0, the
 *                bytes of the value follow. If it is 0: object, u64 size, u64 store
 *   ERRED        u64 job, u32 index, failure
 *   LOOP         u64 job, u32 loop, u32 number of rounds that are known not to be the last, u32
 *                the last round (2^32-1: it is not known)
 *   JOB_STATE    u64 job, u32 state (its highest bit: the job was retried), u64 started, u64
 *                finished, u32 number of tasks that failed because a task that they need failed,
 *                u32 1 if a failure follows, as u32 index and failure; u64 time of all connected
 *                slots together while the job ran, and u64 time that the job ran, both in
 *                microseconds
 *   FORGOTTEN    u64 job, u64 time
 *   WORKER       u64 incarnation, text name
 *   WORKER_LOST  u64 incarnation
 *   STORE        u64 incarnation, text node
 *
 * All other times are nanoseconds since 1970. A store is given by its incarnation, the number of
 * its process; 0: unknown. */
#include "services/scheduler/core/state/record.h"

#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

/* the journal gets at most this many bytes of a failed task's output: the last ones */
#define LOG_KEPT ((size_t)16384)

static void put_u32(struct mr_buf *b, uint32_t v)
{
    mr_buf_add(b, &v, sizeof v);
}

static void put_u64(struct mr_buf *b, uint64_t v)
{
    mr_buf_add(b, &v, sizeof v);
}

static void put_text(struct mr_buf *b, const char *text, size_t max)
{
    size_t n = text ? strlen(text) : 0, keep = MR_MIN(n, max);
    put_u32(b, (uint32_t)keep);
    if (keep) mr_buf_add(b, text + (n - keep), keep);
}

void mr_sched__record_job(const struct job *j, const struct mr_sched_resolved *r, uint32_t n,
    uint64_t graph_bytes, struct mr_buf *out)
{
    put_u64(out, j->id);
    put_u64(out, graph_bytes);
    put_u64(out, j->created_wall);
    put_u64(out, j->parent);
    put_u64(out, j->body_hash.hi);
    put_u64(out, j->body_hash.lo);
    put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        put_u32(out, r[i].index);
        put_u64(out, r[i].object.maker);
        put_u64(out, r[i].object.number);
        put_u64(out, r[i].bytes);
        put_u64(out, r[i].store);
    }
}

void mr_sched__record_value(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct value *v = &s->values[s->tasks[task].value];
    uint32_t refers = s->tasks[task].refs ? RECORD_REFERS : 0;
    uint32_t head[3] = {index_of(s, task), v->attempt | refers};
    if (v->kind != V_OBJECT) head[2] = (uint32_t)v->bytes;
    mr_buf_add(out, head, sizeof head);
    if (v->kind == V_OBJECT) {
        put_u64(out, v->object.maker);
        put_u64(out, v->object.number);
        put_u64(out, v->bytes);
        put_u64(out, v->store ? s->stores[v->store].incarnation : 0);
        return;
    }
    if (v->kind == V_AWAY)
        mr_buf_add_str(out, s->passing);
    else
        mr_sched__value_append(&s->blocks, v, out);
}

void mr_sched__record_loop(const struct job *j, uint32_t loop, struct mr_buf *out)
{
    put_u64(out, j->id);
    put_u32(out, loop);
    put_u32(out, j->loops[loop].at);
    put_u32(out, j->loops[loop].stop);
}

static void put_failure(const struct mr_sched *s, const struct failure *st, struct mr_buf *out)
{
    struct mr_str op = st->op ? s->ops[st->op].name : (struct mr_str){0};
    put_u32(out, (uint32_t)st->code);
    put_u32(out, st->attempts);
    put_u32(out, (uint32_t)op.n);
    mr_buf_add_str(out, op);
    put_text(out, st->message, SIZE_MAX);
    put_text(out, st->arguments, SIZE_MAX);
    put_text(out, st->worker, SIZE_MAX);
    put_text(out, st->log, LOG_KEPT);
}

void mr_sched__record_erred(
    const struct mr_sched *s, uint32_t task, const struct failure *st, struct mr_buf *out)
{
    put_u64(out, job_of(s, task)->id);
    put_u32(out, index_of(s, task));
    put_failure(s, st, out);
}

void mr_sched__record_state(const struct mr_sched *s, const struct job *j, struct mr_buf *out)
{
    put_u64(out, j->id);
    put_u32(out, j->state | (j->flags & J_RETRIED ? RECORD_RETRIED : 0));
    put_u64(out, j->started_wall);
    put_u64(out, j->finished_wall);
    put_u32(out, j->fallen);
    put_u32(out, j->has_failure);
    if (j->has_failure) {
        put_u32(out, j->failure.task == NONE ? NONE : j->failure.task - j->base);
        put_failure(s, &j->failure, out);
    }
    put_u64(out, j->slots_us);
    put_u64(out, j->ran_us);
}
