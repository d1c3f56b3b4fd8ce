/* The largest state that Cluster.Live can send has at most 64 KiB as JSON: all lists are full, and
 * all texts and numbers are as long as they can be. */
#include "gateway/json/json_out.h"
#include "services/scheduler/core/running.h"
#include "services/scheduler/live/alarm.h"
#include "services/scheduler/live/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define STATE_BYTES_MAX ((size_t)64 << 10)
#define MOST UINT64_MAX
#define MANY UINT32_MAX

static char text[MR_LIVE_TEXT_BYTES];
static char subject[MR_ALARM_SUBJECT_BYTES], sentence[MR_ALARM_TEXT_BYTES];

static Millrace__V1__LiveSlots slots = MILLRACE__V1__LIVE_SLOTS__INIT;
static Millrace__V1__LiveJob job = MILLRACE__V1__LIVE_JOB__INIT;
static Millrace__V1__LiveOp op = MILLRACE__V1__LIVE_OP__INIT;
static Millrace__V1__LiveService service = MILLRACE__V1__LIVE_SERVICE__INIT;
static Millrace__V1__LiveWorker worker = MILLRACE__V1__LIVE_WORKER__INIT;
static Millrace__V1__LiveAlarm alarm_row = MILLRACE__V1__LIVE_ALARM__INIT;
static Millrace__V1__LiveMemory memory = MILLRACE__V1__LIVE_MEMORY__INIT;

static Millrace__V1__LiveSlots *all_slots[MR_LIVE_OPS_MAX + 1 + MR_SCHED_IDLES];
static Millrace__V1__LiveJob *all_jobs[MR_LIVE_JOBS_MAX];
static Millrace__V1__LiveOp *all_ops[MR_LIVE_JOB_OPS_MAX];
static Millrace__V1__LiveService *all_services[MR_LIVE_SERVICES_MAX];
static Millrace__V1__LiveWorker *all_workers[MR_LIVE_WORKERS_MAX];
static Millrace__V1__LiveAlarm *all_alarms[MR_ALARMS_MAX];

static void fill_rows(void)
{
    static char class[] = "restricted", kind[] = "objectstore", health[] = "silent";
    static char state[] = "connected", id[] = "jzzzzzzz-4294967295", alarm_kind[] = "worker_silent";
    memset(text, 'x', sizeof text - 1);
    memset(subject, 'x', sizeof subject - 1);
    memset(sentence, 'x', sizeof sentence - 1);
    slots =
        (Millrace__V1__LiveSlots){.base = slots.base, .class_ = class, .op = text, .slots = MANY};
    op = (Millrace__V1__LiveOp){.base = op.base, .op = text, .tasks = MANY, .ended = MANY};
    job = (Millrace__V1__LiveJob){.base = job.base,
        .id = id,
        .name = text,
        .state = MILLRACE__V1__JOB_STATE__JOB_CANCELLED,
        .created_ns = MOST,
        .tasks = MANY,
        .ended = MANY,
        .failed = MANY,
        .sent = MANY,
        .ready = MANY,
        .n_ops = MR_LIVE_JOB_OPS_MAX,
        .ops = all_ops,
        .ops_more = MANY};
    service = (Millrace__V1__LiveService){.base = service.base,
        .kind = kind,
        .name = text,
        .health = health,
        .memory_bytes = MOST,
        .cpu_milli = MANY,
        .received_per_s = MOST,
        .sent_per_s = MOST};
    worker = (Millrace__V1__LiveWorker){.base = worker.base,
        .name = text,
        .node = text,
        .state = state,
        .slots = MANY,
        .busy = MANY,
        .queued = MANY,
        .memory_bytes = MOST,
        .memory_used_bytes = MOST,
        .cpu_milli = MANY,
        .received_per_s = MOST,
        .sent_per_s = MOST};
    alarm_row = (Millrace__V1__LiveAlarm){
        .base = alarm_row.base, .kind = alarm_kind, .subject = subject, .text = sentence};
    memory = (Millrace__V1__LiveMemory){memory.base, MOST, MOST, MOST, MOST, MOST, MOST};
}

#define FILL(rows, row)                                                                            \
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)                                                \
    (rows)[i] = &(row)

static void the_largest_state_fits(void **unused)
{
    (void)unused;
    static char scheduler[] = "0123456789abcdef";
    fill_rows();
    FILL(all_slots, slots);
    FILL(all_jobs, job);
    FILL(all_ops, op);
    FILL(all_services, service);
    FILL(all_workers, worker);
    FILL(all_alarms, alarm_row);
    Millrace__V1__LiveState m = MILLRACE__V1__LIVE_STATE__INIT;
    m = (Millrace__V1__LiveState){.base = m.base,
        .time_ns = MOST,
        .scheduler = scheduler,
        .epoch = MANY,
        .slots = MANY,
        .n_doing = MR_ARRAY_LEN(all_slots),
        .doing = all_slots,
        .tasks_per_s = 123456.78901234567,
        .tasks_done = MOST,
        .tasks_ready = MOST,
        .jobs_running = MOST,
        .n_jobs = MR_ARRAY_LEN(all_jobs),
        .jobs = all_jobs,
        .jobs_more = MOST,
        .memory = &memory,
        .n_services = MR_ARRAY_LEN(all_services),
        .services = all_services,
        .services_more = MANY,
        .workers_connected = MANY,
        .workers_silent = MANY,
        .workers_retiring = MANY,
        .n_workers = MR_ARRAY_LEN(all_workers),
        .workers = all_workers,
        .workers_more = MANY,
        .n_alarms = MR_ARRAY_LEN(all_alarms),
        .alarms = all_alarms,
        .alarms_more = MANY};
    struct mr_buf json;
    mr_buf_init(&json, (size_t)1 << 20);
    assert_int_equal(mr_json_from_message(&m.base, &json), MR_OK);
    assert_int_equal(mr_buf_status(&json), MR_OK);
    assert_true(json.n + sizeof "data: \n\n" <= STATE_BYTES_MAX);
    mr_buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_state_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
