/* Inside the worker's core: its tables. Only core*.c include this. Tables are arrays in one arena,
 * rows are known by number, NONE is no row. */
#pragma once

#include "base/arena.h"
#include "base/assert.h"
#include "base/index.h"
#include "base/limits.h"
#include "base/list.h"
#include "services/worker/core/core.h"
#include "services/worker/core/blob_pool.h"

#define NONE UINT32_MAX
#define JOBS_MAX 65536u
#define NODES_MAX (MR_NODES_MAX * 2u)
#define SESSION_OPS_MAX 65536u
#define STRAND_INPUTS_MAX 1024u
#define SLOT_STRANDS_MAX 2u /* of which items may still run */
#define ANSWERS_MAX (1u << 20)
#define SEND_ROWS_MAX 65536u
#define SEND_INLINE_MAX ((size_t)4 << 20) /* of a Register */
#define SEND_TEXTS_MAX 256u
#define LOOK_AFTER (50 * MR_US) /* at a strand, and then after twice as long, each time */

enum value_state { VALUE_NONE, VALUE_PLACED, VALUE_FETCHING, VALUE_HERE };
enum task_state { TASK_FREE, TASK_WAITING, TASK_READY, TASK_GIVEN };

/* One input of one task; on its value's list of users as long as the task exists. */
struct edge {
    struct mr_list users;
    uint32_t value;
    uint32_t task;
    bool has;                  /* the task does not wait for it (any more) */
    bool last_use, last_again; /* of its attempt; of the one that waits for its end */
};

struct job {
    mr_job_id id; /* none: a free row */
    struct mr_list values;
    uint32_t values_count;
    uint32_t next_free;
};

struct value {
    struct mr_list users;  /* edges */
    struct mr_list in_job; /* self-linked when the row is free */
    uint32_t job;
    uint32_t index;
    uint32_t task;    /* makes it here; NONE */
    uint32_t attempt; /* that made it here */
    enum value_state state;
    bool made;     /* here, not brought or fetched */
    bool fetched;  /* by FETCH: pinned */
    bool released; /* no other process needs it: freed with its last user here */
    bool offered;  /* in `holding` of the Register under way */
    bool adopted;
    bool used;     /* for the last time, while that Register is under way */
    bool reported; /* its completion was sent, or will be, in this session */
    bool lost;     /* and the tasks that need it were notified */
    bool fresh;    /* brought by the message being applied: its users may still come */
    uint32_t node;
    uint32_t serial;   /* of the last FETCH */
    uint32_t fetch_at; /* in the queue of fetches; NONE */
    uint32_t fetch_order;
    int32_t fetch_priority;
    uint32_t next; /* free rows; rows a message brought */
    uint32_t slot;
    struct mr_blob *blob; /* inline; else an object: */
    mr_object_id object;
    uint64_t object_bytes;
    mr_time started_ns;
    mr_duration duration_ns;
    mr_duration cpu_ns;
};

struct extra { /* at the start of a blob; its texts follow */
    mr_duration timeout_ns;
    bool want_object, persist;
    uint32_t key_bytes, name_bytes, definition_bytes;
};

struct task {
    enum task_state state;
    uint32_t value; /* its result */
    uint32_t attempt;
    uint32_t again; /* a later attempt that came while this one ran; 0 */
    uint32_t op;
    uint32_t inputs_count;
    uint32_t missing;
    uint32_t uses; /* of its value, if the scheduler knows them all; 0 */
    uint32_t order;
    int32_t priority;
    uint8_t needs; /* class */
    bool of_loop;  /* … and a loop, besides, looks at it */
    bool solo;     /* no strand with others */
    bool cancel, steal;
    bool stopping; /* its flag was set */
    bool mute;     /* its end is not reported */
    bool offered;
    bool kept;
    bool timed_out;
    uint32_t strand, item;     /* when GIVEN */
    uint32_t heap_at;          /* when READY */
    uint32_t mark, mark_count; /* used while a strand is built */
    uint64_t cost_ns;
    struct mr_blob *edges; /* struct edge[inputs_count]; NULL without inputs */
    struct mr_blob *args;
    struct mr_blob *extra;
    struct mr_list all; /* every task, in the order of their coming */
};

struct op {
    uint32_t flags;
    bool measured;
    uint64_t cost_ns;
};

struct need { /* a class of tasks: what one takes while it runs */
    uint64_t micro[MR_RESOURCES_MAX];
    bool is_long, alone;
    uint32_t members; /* tasks of this class */
    uint32_t *heap;
    uint32_t count;
};

struct slot {
    struct mr_strand *strands[SLOT_STRANDS_MAX];
    uint32_t count;
    uint32_t held; /* by its executor: these, and those that were cut away behind what runs */
};

struct outrow { /* a completion to be sent */
    mr_job_id job;
    uint32_t index, attempt, slot;
    uint8_t outcome;
    struct mr_blob *blob;
    mr_object_id object;
    uint64_t object_bytes;
    mr_time started_ns;
    mr_duration duration_ns, cpu_ns;
    struct mr_blob *failure; /* struct failure and its texts */
};

struct failure {
    int code;
    uint32_t message_bytes, arguments_bytes, log_bytes;
};

struct missing_row {
    mr_job_id job;
    uint32_t index, attempt, input;
    struct mr_blob *why;
};

struct columns { /* of one SEND */
    struct mr_ws_run *runs;
    uint32_t *index, *attempt, *inline_bytes, *slot;
    uint8_t *outcome;
    unsigned char *inlined;
    uint64_t *maker, *number, *object_bytes, *started, *duration, *cpu;
    struct mr_ws_failure *failures;
    struct mr_blob **texts; /* of the failures */
    size_t inlined_bytes, inlined_max, texts_bytes;
    uint32_t runs_count, count, objects_count, failures_count;
    bool any_not_ok;
};

struct refs {
    struct mr_ws_run *runs;
    uint32_t *index, *attempt;
    uint32_t runs_count, count, room;
};

enum link_state { LINK_DOWN, LINK_OPENING, LINK_OPEN, LINK_ASKED, LINK_REGISTERED };

struct mr_worker {
    struct mr_worker_config config;
    struct mr_arena arena;
    struct mr_worker__blob_pool pool;
    mr_time now;
    struct mr_worker_effects *fx;

    struct mr_index job_index, value_index;
    struct job *jobs;
    struct value *values;
    struct task *tasks;
    uint32_t job_last; /* found last: rows of a message mostly share their job */
    uint32_t jobs_high, jobs_free, values_high, values_free, values_count, brought;
    uint32_t tasks_high, tasks_free, tasks_count, ready_count, given_count;
    struct mr_list tasks_all;
    uint64_t queue_cost_ns, held_bytes;

    struct op *ops;
    struct mr_index op_index;
    uint32_t *session_ops, *session_nodes;
    uint32_t session_ops_count, session_nodes_count;
    struct mr_ws_node *nodes;
    uint32_t nodes_count;
    uint64_t resources[MR_RESOURCES_MAX], resources_free[MR_RESOURCES_MAX];
    struct mr_str resource_names[MR_RESOURCES_MAX];
    struct need needs[MR_WORKER_CLASSES_MAX];
    uint32_t needs_count, alone_running, running_strands;

    uint32_t *fetch_heap;
    uint32_t fetch_count, fetching_count, serial;
    uint64_t fetched_bytes; /* under way or here */

    struct slot *slots;
    uint32_t slots_count; /* with those of long-running tasks */
    struct mr_strand *strands;
    uint32_t *strands_free;
    uint32_t strands_high, strands_free_count, mark;

    struct outrow *outbox;
    uint32_t out_head, out_count;
    bool out_urgent;   /* another process may wait for one of them */
    mr_time out_until; /* otherwise they may wait, together, until then */
    struct refs given, started, unknown, left, queued, running;
    struct missing_row *missing;
    uint32_t missing_count, missing_sent;
    uint32_t missing_old; /* of them there were so many when the stream was opened */
    struct columns columns;
    struct mr_ws_missing *missing_out;
    uint64_t *running_ns;
    struct mr_ws_up up;
    struct mr_ws_register reg;
    struct mr_ws_heartbeat heartbeat;

    enum link_state link;
    uint64_t incarnation, scheduler;
    uint32_t epoch, attempts; /* epoch: the scheduler's; none before it had a higher one */
    mr_duration heartbeat_ns;
    mr_duration idle_beat_ns; /* longer than that while there is nothing to report */
    mr_time balance_at;       /* not before */
    mr_time look_at;          /* an idle slot may find something to do then */
    mr_duration handoff_ns; /* from giving a strand to an idle slot until it starts, as measured */
    mr_time heartbeat_at, down_since, idle_since;
    uint64_t sequence, memory_used, tasks_started, tasks_done;
    bool draining, leaving_sent, hung_up, lethal, overflow, more, no_room, starved, may_send,
        has_spilled;
};
