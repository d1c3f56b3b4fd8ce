/* Measures pictures of a timeline (services/scheduler/tiles).
 *     bench_tiles REDIS DIR JOB                   the trace of a job that ran
 *     bench_tiles REDIS DIR feed SPANS [SLOTS]    a trace that this program makes
 *
 * REDIS is "unix:PATH" or "HOST:PORT", and DIR is the directory of the trace files. `feed` passes
 * made-up spans to the scheduler's trace writer; Redis must be empty. The program prints
 * the bytes of spans and sheets, and the time of the first picture. Then it prints the times of
 * pictures of random windows at each scale. A picture has 64 rows of 1,024 pixels. With `feed`, the
 * program first prints the processor time of encoding spans and making sheets. */
#include "base/alloc.h"
#include "base/rng.h"
#include "host/clock.h"
#include "services/scheduler/telemetry/trace_sheets.h"
#include "services/scheduler/telemetry/trace_writer.h"
#include "services/scheduler/tiles/offline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 100u
#define WIDTH 1024u
#define ROWS 64u
#define WORKER_SLOTS 8u
#define OPS 12u
#define BATCH 4096u
#define ALONE 4000000u /* spans that are encoded without a writer */

/* ---- made-up spans --------------------------------------------------------------------------- */

struct maker {
    struct mr_rng rng;
    uint32_t slots;
    uint64_t made;
    struct mr_sched_span *next; /* by slot: its next span */
    uint32_t *heap;             /* slots by the end of their next span */
};

static void span_next(struct maker *m, uint32_t slot)
{
    struct mr_sched_span *s = &m->next[slot];
    uint64_t r = mr_rng_next(&m->rng);
    mr_time free = s->accounted;
    uint64_t ran = 2000 + (r & 0xffff) / 3;
    if (!(r >> 16 & 0xffff)) ran *= 5000; /* one in 65,536 is long */
    s->ready = s->sent = free + 300;
    s->received = s->sent + 2000;
    s->started = s->finished + 500 + (r >> 32 & 1023);
    s->finished = s->started + ran;
    s->accounted = s->finished + 3000;
    s->cpu_ns = ran - (r >> 42 & 255);
    /* operators come in phases; one task in 16 has a random operator */
    s->op = 1 + (uint32_t)((r >> 50 & 15) ? m->made / 1000000 % OPS : r >> 54 & 7);
}

static void heap_down(struct maker *m)
{
    uint32_t at = 0, top = m->heap[0];
    for (uint32_t child; (child = 2 * at + 1) < m->slots; at = child) {
        if (child + 1 < m->slots &&
            m->next[m->heap[child + 1]].finished < m->next[m->heap[child]].finished)
            child++;
        if (m->next[m->heap[child]].finished >= m->next[top].finished) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = top;
}

static void maker_init(struct maker *m, uint32_t slots)
{
    *m = (struct maker){.slots = slots};
    mr_rng_init(&m->rng, 1);
    m->next = mr_alloc_array(slots, sizeof *m->next);
    m->heap = mr_alloc_array(slots, sizeof *m->heap);
    for (uint32_t i = 0; i < slots; i++) {
        m->next[i] = (struct mr_sched_span){.job = mr_job_id_make(0x1000000, 1),
            .attempt = 1,
            .worker = i / WORKER_SLOTS,
            .slot = i % WORKER_SLOTS,
            .finished = MR_SECOND + i,
            .accounted = MR_SECOND + i};
        m->heap[i] = i;
        span_next(m, i);
    }
    for (uint32_t i = 0; i < slots; i++)
        for (uint32_t k = i;
             k && m->next[m->heap[(k - 1) / 2]].finished > m->next[m->heap[k]].finished;
             k = (k - 1) / 2) {
            uint32_t t = m->heap[k];
            m->heap[k] = m->heap[(k - 1) / 2];
            m->heap[(k - 1) / 2] = t;
        }
}

static struct mr_sched_span maker_take(struct maker *m)
{
    struct mr_sched_span s = m->next[m->heap[0]];
    s.index = s.last_input = (uint32_t)m->made++;
    span_next(m, m->heap[0]);
    heap_down(m);
    return s;
}

static void maker_fini(struct maker *m)
{
    mr_release(m->next);
    mr_release(m->heap);
}

/* ---- the writer ------------------------------------------------------------------------------ */

static double cpu_s(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void push(struct mr_trace_writer *w, struct mr_trace_message m)
{
    if (mr_inbox_push_wait(mr_trace_writer_inbox(w), &m, MR_NEVER)) abort();
}

static void feed(const char *redis, const char *dir, uint64_t spans, uint32_t slots, mr_job_id job)
{
    struct mr_trace_writer *w = NULL;
    struct mr_error e;
    MR_AUTO(mr_free_ptr) char *files = mr_format("%s/trace", dir);
    const struct mr_trace_log_config config = {.address = redis,
        .dir = files,
        .epoch = 1,
        .incarnation = 1,
        .job_bytes_max = (uint64_t)64 << 20,
        .bytes_max = (uint64_t)256 << 20,
        .file_bytes_max = (uint64_t)64 << 30,
        .jobs = &job,
        .jobs_count = 1};
    struct maker m;
    uint64_t given = 0;
    if (mr_trace_writer_open(&config, NULL, &w, &e)) {
        (void)fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    maker_init(&m, slots);
    for (uint32_t i = 0; i < slots; i += WORKER_SLOTS)
        push(w, (struct mr_trace_message){.kind = MR_TRACE_WORKER,
                    .a = i / WORKER_SLOTS,
                    .p = mr_format("worker-%u", i / WORKER_SLOTS)});
    for (uint32_t i = 1; i <= OPS + 1; i++)
        push(w, (struct mr_trace_message){
                    .kind = MR_TRACE_OP, .a = i, .p = mr_format("bench.op%u", i)});
    mr_time began = mr_clock_now();
    for (uint64_t at = 0; at < spans; at += BATCH) {
        struct mr_buf *b = mr_alloc(sizeof *b);
        mr_buf_init(b, SIZE_MAX / 2);
        for (uint64_t i = at; i < spans && i < at + BATCH; i++) {
            struct mr_sched_span s = maker_take(&m);
            mr_buf_add(b, &s, sizeof s);
        }
        given += b->n;
        push(w, (struct mr_trace_message){
                    .kind = MR_TRACE_SPANS, .p = b, .a = UINT64_C(1700000000000000000)});
        while (given - mr_trace_writer_bytes_taken(w) > (uint64_t)16 << 20)
            (void)usleep(1000);
        struct mr_buf *spent = NULL;
        while (mr_inbox_take(mr_trace_writer_spent(w), &spent, 1)) {
            mr_buf_fini(spent);
            mr_release(spent);
        }
    }
    push(w, (struct mr_trace_message){.kind = MR_TRACE_ENDED, .job = job});
    mr_trace_writer_close(&w);
    maker_fini(&m);
    (void)printf(
        "%" PRIu64 " spans written in %.1f s\n", spans, (double)(mr_clock_now() - began) * 1e-9);
}

static struct mr_str some_name(const void *ctx, uint64_t number)
{
    (void)ctx;
    (void)number;
    return MR_STR("bench.op");
}

/* Encodes spans without a writer, with or without sheets. Returns the ns of processor time that a
 * span takes. */
static double alone(uint32_t slots, bool with_sheets, uint64_t *bytes)
{
    struct maker m;
    struct mr_trace_sheets sheets;
    struct mr_trace_collected c = {0};
    struct mr_trace_encoder *e = mr_trace_encoder_new();
    const struct mr_trace_sheet_of of = {
        .encoder = e, .spans = &c, .worker = some_name, .op = some_name};
    mr_trace_sheets_init(&sheets);
    maker_init(&m, slots);
    mr_trace_encoder_begin(e, (mr_job_id){1});
    double began = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < ALONE; i++) {
        struct mr_sched_span in = maker_take(&m);
        const struct mr_trace_span s = {.index = in.index,
            .last_input = in.index,
            .attempt = 1,
            .slot = in.slot,
            .op_id = in.op,
            .worker_id = in.worker,
            .op = MR_STR("bench.op"),
            .worker = MR_STR("worker"),
            .ready = in.ready,
            .sent = in.sent,
            .received = in.received,
            .started = in.started,
            .finished = in.finished,
            .accounted = in.accounted,
            .cpu_ns = in.cpu_ns};
        if (mr_trace_encoder_add(e, &s)) abort();
        if (with_sheets) mr_trace_collect(&c, e, &s);
        if (mr_trace_encoder_bytes(e) < ((size_t)64 << 10)) continue;
        (void)mr_trace_encoder_end(e);
        if (with_sheets) *bytes += mr_trace_sheets_make(&sheets, &of).n;
        c.count = 0;
        mr_trace_encoder_begin(e, (mr_job_id){1});
    }
    double took = cpu_s(CLOCK_THREAD_CPUTIME_ID) - began;
    mr_trace_encoder_free(&e);
    mr_trace_sheets_fini(&sheets);
    mr_trace_collected_fini(&c);
    maker_fini(&m);
    return took * 1e9 / ALONE;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static uint64_t rss(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*s %lu", &pages) != 1) pages = 0;
    if (f) (void)fclose(f);
    return (uint64_t)pages * 4096;
}

static double draw_cpu; /* processor time of the last picture, in ms, of all threads */

static double draw(struct mr_job_tiles *t, struct mr_history *h, struct mr_job_tiles_ask ask,
    struct mr_job_tiles_picture *out)
{
    double cpu = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    mr_time began = mr_clock_now();
    ask.width = WIDTH;
    ask.rows = ROWS;
    struct mr_error e;
    int err = mr_job_tiles_offline(t, h, &ask, out, &e);
    if (err) {
        (void)fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    draw_cpu = (cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e3;
    return (double)(mr_clock_now() - began) * 1e-6;
}

/* Draws random windows of 1/scale of the job. */
static void scale_run(struct mr_job_tiles *t, struct mr_history *h,
    const struct mr_job_tiles_picture *all, uint64_t scale, double *took, double *cpu)
{
    struct mr_rng rng;
    uint64_t whole = all->until_ns - all->from_ns, window = MR_MAX(whole / scale, WIDTH), runs = 0;
    mr_rng_init(&rng, scale);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct mr_job_tiles_picture p;
        uint64_t from = all->from_ns + mr_rng_below(&rng, whole - window + 1);
        took[i] =
            draw(t, h, (struct mr_job_tiles_ask){.from_ns = from, .until_ns = from + window}, &p);
        cpu[i] = draw_cpu;
        for (uint32_t k = 0; k < p.rows_count; k++)
            runs += p.rows[k].runs_count;
        mr_job_tiles_picture_fini(&p);
    }
    double sorted[ROUNDS], sorted_cpu[ROUNDS];
    memcpy(sorted, took, sizeof sorted);
    memcpy(sorted_cpu, cpu, sizeof sorted_cpu);
    qsort(sorted, ROUNDS, sizeof *sorted, by_time);
    qsort(sorted_cpu, ROUNDS, sizeof *sorted_cpu, by_time);
    (void)printf("  1/%-8" PRIu64 " p50 %6.1f ms  p95 %6.1f ms  max %6.1f ms  processor p50 %6.1f "
                 "p95 %6.1f ms  %5.1f runs a row\n",
        scale, sorted[ROUNDS / 2], sorted[ROUNDS * 95 / 100], sorted[ROUNDS - 1],
        sorted_cpu[ROUNDS / 2], sorted_cpu[ROUNDS * 95 / 100], (double)runs / ROUNDS / ROWS);
}

static void sizes(const struct mr_trace_source *source, const struct mr_trace_view *view)
{
    struct mr_trace_cursor *c = mr_trace_cursor_open(source, view, view->job);
    struct mr_trace_entry e;
    uint64_t blocks = 0, sheets = 0, count = 0;
    while (mr_trace_cursor_entry(c, &e)) {
        *(e.is_sheet ? &sheets : &blocks) += e.is_in_file ? e.file_bytes : e.bytes.n;
        count += !e.is_sheet;
    }
    mr_trace_cursor_close(&c);
    (void)printf("%" PRIu64 " spans in %" PRIu64
                 " blocks: %.2f bytes a span; sheets: %.3f bytes a span\n",
        view->spans, count, (double)blocks / (double)view->spans,
        (double)sheets / (double)view->spans);
}

static void pictures(const char *redis, const char *dir, mr_job_id job)
{
    const struct mr_history_config config = {.redis = redis, .dir = dir};
    struct mr_history *h = NULL;
    struct mr_trace_view view;
    struct mr_error e;
    double all_took[24 * ROUNDS], all_cpu[24 * ROUNDS];
    size_t scales = 0;
    if (mr_history_open(&config, &h, &e)) {
        (void)fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    const struct mr_trace_source source = mr_history_source(h);
    if (mr_trace_view_load(&source, job, &view)) {
        (void)fprintf(stderr, "there is no trace of the job\n");
        exit(1);
    }
    sizes(&source, &view);
    struct mr_job_tiles *t = mr_job_tiles_new(job, NULL);
    struct mr_job_tiles_picture all;
    uint64_t before = rss();
    double first = draw(t, h, (struct mr_job_tiles_ask){0}, &all);
    (void)printf(
        "first picture %.0f ms (processor %.0f ms), memory %.0f MiB, %u slots, the job took %.1f s\n",
        first, draw_cpu, (double)(rss() - before) / 1048576, all.rows_all,
        (double)(all.until_ns - all.from_ns) * 1e-9);
    for (uint64_t scale = 1; scale <= UINT64_C(1) << 20; scale *= 2, scales++)
        scale_run(t, h, &all, scale, &all_took[ROUNDS * scales], &all_cpu[ROUNDS * scales]);
    qsort(all_took, ROUNDS * scales, sizeof *all_took, by_time);
    qsort(all_cpu, ROUNDS * scales, sizeof *all_cpu, by_time);
    size_t n = ROUNDS * scales;
    (void)printf(
        "all scales p50 %.1f ms  p95 %.1f ms  p99 %.1f ms  max %.1f ms; processor p50 %.1f "
        "p95 %.1f p99 %.1f ms; memory %.0f MiB\n",
        all_took[n / 2], all_took[n * 95 / 100], all_took[n * 99 / 100], all_took[n - 1],
        all_cpu[n / 2], all_cpu[n * 95 / 100], all_cpu[n * 99 / 100],
        (double)(rss() - before) / 1048576);
    mr_job_tiles_picture_fini(&all);
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
    mr_history_close(&h);
}

int main(int argc, char **argv)
{
    mr_job_id job = mr_job_id_make(0x1000000, 1);
    if (argc < 4) {
        (void)fprintf(stderr, "usage: bench_tiles REDIS DIR (JOB | feed SPANS [SLOTS])\n");
        return 2;
    }
    if (strcmp(argv[3], "feed") == 0) {
        uint64_t spans = argc > 4 ? strtoull(argv[4], NULL, 10) : 10000000, bytes = 0;
        uint32_t slots = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 64;
        double without = alone(slots, false, &bytes), with = alone(slots, true, &bytes);
        (void)printf(
            "a span is encoded in %.1f ns, and with sheets in %.1f ns, of which this "
            "program's random numbers are a part; sheets alone %.1f ns, %.3f bytes a span\n",
            without, with, with - without, (double)bytes / ALONE);
        feed(argv[1], argv[2], spans, slots, job);
    } else if (mr_job_id_parse(mr_str(argv[3]), &job)) {
        (void)fprintf(stderr, "bench_tiles: \"%s\" is no job id\n", argv[3]);
        return 2;
    }
    pictures(argv[1], argv[2], job);
    return 0;
}
