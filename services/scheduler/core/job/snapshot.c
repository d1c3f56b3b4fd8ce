/* Snapshots compact the journal, as in Raft. A snapshot is the whole durable state as journal
 * records. Records that are older than the snapshot can be trimmed. job/replay.c reads the records
 * of a snapshot; state/record.c describes their layouts. */
#include "services/scheduler/core/job/snapshot.h"

#include "base/assert.h"
#include "graph/bytes/bytes.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/record.h"

#include <string.h>

static void put_record(
    struct mr_buf *out, enum mr_sched_record type, struct mr_str a, struct mr_str b)
{
    const struct mr_sched_record_head head = {.type = type, .bytes = (uint32_t)(a.n + b.n)};
    uint64_t pad = 0;
    mr_buf_add(out, &head, sizeof head);
    mr_buf_add_str(out, a);
    mr_buf_add_str(out, b);
    mr_buf_add(out, &pad, (size_t)(mr_align_up(head.bytes, 8) - head.bytes));
}

/* True: the value existed before the job ran. */
static bool is_resolved(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (!is_done(t) || t->value >= LITERAL) return false;
    const struct value *v = &s->values[t->value];
    return v->kind == V_OBJECT && (t->flags & T_FIXED || (v->worker == NONE && !v->attempt));
}

static void snapshot_graph(const struct mr_sched *s, const struct job *j, struct mr_buf *out)
{
    struct mr_buf graph;
    struct mr_buf payload;
    struct mr_buf resolved;
    mr_buf_init(&graph, MR_JOB_BODY_BYTES_MAX * 4);
    mr_buf_init(&payload, (size_t)1 << 32);
    mr_buf_init(&resolved, (size_t)1 << 32);
    int err = mr_graph_to_bytes(j->graph, &graph, NULL);
    mr_assert(!err);
    for (uint64_t at = 0; at < graph.n; at += MR_CHUNK_BYTES) {
        const uint64_t head[2] = {j->id, at};
        put_record(out, MR_RECORD_GRAPH, mr_str_of(head, sizeof head),
            mr_str_of(graph.p + at, MR_MIN(MR_CHUNK_BYTES, graph.n - (size_t)at)));
    }
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        if (!is_resolved(s, j->base + i)) continue;
        const struct value *v = &s->values[s->tasks[j->base + i].value];
        const struct mr_sched_resolved row = {.index = i,
            .object = v->object,
            .bytes = v->bytes,
            .store = v->store ? s->stores[v->store].incarnation : 0};
        mr_buf_add(&resolved, &row, sizeof row);
    }
    mr_sched__record_job(j, (const void *)resolved.p,
        (uint32_t)(resolved.n / sizeof(struct mr_sched_resolved)), graph.n, &payload);
    put_record(out, MR_RECORD_ACCEPTED, mr_buf_str(&payload), (struct mr_str){0});
    mr_buf_fini(&graph);
    mr_buf_fini(&payload);
    mr_buf_fini(&resolved);
}

static bool is_part(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (!(j->flags & J_REFERS) || !mr_sched__is_object(s, task)) return false;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_done(&s->tasks[j->base + d[i]]) && s->tasks[j->base + d[i]].refs) return true;
    return false;
}

static void snapshot_tasks(const struct mr_sched *s, const struct job *j, struct mr_buf *out)
{
    struct mr_buf rows;
    struct mr_buf failure;
    mr_buf_init(&rows, (size_t)1 << 32);
    mr_buf_init(&failure, (size_t)1 << 24);
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        const struct task *t = &s->tasks[j->base + i];
        const struct failure *st = mr_sched__failure(s, j->base + i);
        if (st && t->state == MR_TASK_ERRED) {
            mr_buf_clear(&failure);
            mr_sched__record_erred(s, j->base + i, st, &failure);
            put_record(out, MR_RECORD_ERRED, mr_buf_str(&failure), (struct mr_str){0});
        }
        bool is_kept = is_done(t) && t->value < LITERAL && !is_resolved(s, j->base + i);
        is_kept = is_kept && (t->flags & (T_TARGET | T_IMPURE) || is_part(s, j->base + i));
        if (is_kept && s->values[t->value].kind != V_AWAY)
            mr_sched__record_value(s, j->base + i, &rows);
        if (rows.n > MR_CHUNK_BYTES || (rows.n && i + 1 == j->graph->nodes_count)) {
            put_record(out, MR_RECORD_VALUES, mr_str_of(&j->id, sizeof j->id), mr_buf_str(&rows));
            mr_buf_clear(&rows);
        }
    }
    mr_buf_fini(&rows);
    mr_buf_fini(&failure);
}

void mr_sched_snapshot(const struct mr_sched *s, struct mr_buf *out)
{
    struct mr_buf payload;
    mr_buf_init(&payload, (size_t)1 << 24);
    for (uint32_t i = 0; i < MR_MIN(s->writers.count, WRITERS_MAX); i++)
        put_record(out, MR_RECORD_EPOCH, mr_str_of(&s->writers.id[i], sizeof s->writers.id[i]),
            mr_str_of(&s->config.epoch, sizeof s->config.epoch));
    for (uint32_t i = 1; i <= s->store_list.count; i++) {
        const struct store *st = &s->stores[i];
        uint32_t n = (uint32_t)strlen(st->node);
        if (!st->is_alive || !n) continue;
        mr_buf_clear(&payload);
        mr_buf_add(&payload, &st->incarnation, sizeof st->incarnation);
        mr_buf_add(&payload, &n, sizeof n);
        mr_buf_add(&payload, st->node, n);
        put_record(out, MR_RECORD_STORE, mr_buf_str(&payload), (struct mr_str){0});
    }
    for (uint32_t i = s->job_list.oldest; i != NONE; i = s->jobs[i].newer) {
        const struct job *j = &s->jobs[i];
        snapshot_graph(s, j, out);
        snapshot_tasks(s, j, out);
        if (j->state == MR_JOB_PENDING) continue;
        mr_buf_clear(&payload);
        mr_sched__record_state(s, j, &payload);
        put_record(out, MR_RECORD_JOB_STATE, mr_buf_str(&payload), (struct mr_str){0});
        for (uint32_t k = 0; k < j->graph->loops_count; k++) {
            mr_buf_clear(&payload);
            mr_sched__record_loop(j, k, &payload);
            put_record(out, MR_RECORD_LOOP, mr_buf_str(&payload), (struct mr_str){0});
        }
    }
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        const struct worker *w = &s->workers[i];
        if (w->state == W_FREE) continue;
        uint32_t n = (uint32_t)strlen(w->facts->name);
        mr_buf_clear(&payload);
        mr_buf_add(&payload, &w->incarnation, sizeof w->incarnation);
        mr_buf_add(&payload, &n, sizeof n);
        mr_buf_add(&payload, w->facts->name, n);
        put_record(out, MR_RECORD_WORKER, mr_buf_str(&payload), (struct mr_str){0});
    }
    uint64_t kept = MR_MIN(s->job_list.forgotten_count, (uint64_t)FORGOTTEN_MAX);
    for (uint64_t i = s->job_list.forgotten_count - kept; i < s->job_list.forgotten_count; i++)
        put_record(out, MR_RECORD_FORGOTTEN,
            mr_str_of(&s->job_list.forgotten[i % FORGOTTEN_MAX], sizeof(struct forgotten)),
            (struct mr_str){0});
    mr_buf_fini(&payload);
}
