/* The tables of the worker's core. Private to the files of this folder. A table is an array in one
 * arena, a row is known by its number, and NONE is no row. A strand is a list of tasks, its items,
 * that one executor runs back to back; the effect LOOK asks for a report of a running strand
 * (event.h). */
#pragma once

#include "base/arena.h"
#include "base/assert.h"
#include "base/index.h"
#include "base/limits.h"
#include "base/list.h"
#include "services/worker/core/core.h"
#include "services/worker/core/blob_pool.h"
#include "services/worker/core/rows.h"

#define NONE UINT32_MAX
#define JOBS_MAX 65536u
#define NODES_MAX (MR_NODES_MAX * 2u)
#define SESSION_OPS_MAX 65536u
#define STRAND_INPUTS_MAX 1024u
#define SLOT_STRANDS_MAX 2u /* limit of strands at a slot that still have unreported tasks */
#define ANSWERS_MAX (1u << 20)
#define SEND_ROWS_MAX 65536u
/* limit of the bytes of inline values in Register, the worker's first message on a stream */
#define SEND_INLINE_MAX ((size_t)4 << 20)
#define SEND_TEXTS_MAX 256u
/* limit of times of receipt that wait to be sent; each message with tasks has one */
#define RECEIVED_MAX 64u
/* time until a running strand gets its first LOOK; doubled for each further one */
#define LOOK_AFTER (50 * MR_US)

enum value_state { VALUE_NONE, VALUE_PLACED, VALUE_FETCHING, VALUE_HERE };
enum task_state { TASK_FREE, TASK_WAITING, TASK_READY, TASK_GIVEN };

/* One input of one task. The edge stands in the value's list of users as long as the task
 * exists. */
struct edge {
    struct mr_list users;
    uint32_t value;
    uint32_t task;
    bool has; /* the input is there: the task does not wait for it */
    /* last_use: the task's present attempt is the last user of the value; last_again: the task's
     * next attempt, which waits for the end of the present one, is the last user of the value */
    bool last_use, last_again;
};

struct job {
    mr_job_id id; /* 0: the row is free */
    struct mr_list values;
    uint32_t values_count;
    uint32_t next_free;
};

struct value {
    struct mr_list users;  /* edges */
    struct mr_list in_job; /* linked to itself when the row is free */
    uint32_t job;
    uint32_t index;
    uint32_t task;    /* the task that makes the value here, or NONE */
    uint32_t attempt; /* the attempt that made the value here */
    enum value_state state;
    bool made;     /* made here, not received or fetched */
    bool fetched;  /* a FETCH brought and pinned the object */
    bool released; /* no other process needs the value: it is freed after its last user here */
    bool offered;  /* Register offered the value in `holding`, and the answer has not come */
    bool adopted;
    bool used;     /* the last task that uses the value succeeded while `offered` was true */
    bool reported; /* the value's completion was sent in this session, or stands in the outbox */
    bool lost;     /* the value is lost, and the tasks that need it have ended */
    /* true: the row is kept even if no task uses the value. A value that a message brought is fresh
     * until the whole message is applied, because tasks in the message may use the value. */
    bool fresh;
    uint32_t node;
    uint32_t serial;   /* number of the last effect FETCH for the value */
    uint32_t fetch_at; /* position in the queue of fetches, or NONE */
    uint32_t fetch_order;
    int32_t fetch_priority;
    uint32_t next; /* next free row; for a fresh value: next fresh value of the same message */
    uint32_t slot;
    struct mr_blob *blob; /* an inline value; NULL: an object, in the next two members */
    mr_object_id object;
    uint64_t object_bytes;
    mr_time started_ns;
    mr_duration duration_ns;
    mr_duration cpu_ns;
};

/* The start of a blob with the options of a task (TaskExtra). The key, the name and the definition
 * follow in the same blob. */
struct extra {
    mr_duration timeout_ns;
    bool want_object, persist;
    uint32_t key_bytes, name_bytes, definition_bytes;
};

struct task {
    enum task_state state;
    uint32_t value; /* the row of its result */
    uint32_t attempt;
    uint32_t again; /* a later attempt, which came while this one ran; 0: none */
    uint32_t op;
    uint32_t inputs_count;
    uint32_t missing;
    uint32_t uses; /* number of users of the value, if all are known; 0: unknown */
    uint32_t order;
    int32_t priority;
    uint8_t needs; /* what the task needs to run: a row of `needs` in struct mr_worker */
    bool of_loop;  /* a loop reads the value too, as its condition */
    bool solo;     /* runs in a strand of its own */
    bool cancel, steal;
    bool stopping; /* the cancel flag of its item was set */
    bool mute;     /* the end of the task is not reported */
    bool offered;
    bool kept;
    bool timed_out;
    uint32_t strand, item;     /* the strand and the item, when GIVEN */
    uint32_t heap_at;          /* position in the heap of ready tasks, when READY */
    uint32_t mark, mark_count; /* used while a strand is built */
    uint64_t cost_ns;
    /* when its last input came from another process, after the task itself had come; 0: never */
    mr_time inputs_at;
    struct mr_blob *edges; /* struct edge[inputs_count]; NULL without inputs */
    struct mr_blob *args;
    struct mr_blob *extra;
    struct mr_list all; /* the list of all tasks, in the order in which they came */
};

struct op {
    uint32_t flags;
    bool measured;
    uint64_t cost_ns;
};

struct need { /* a class of tasks: what each of them takes while it runs */
    uint64_t micro[MR_RESOURCES_MAX];
    bool is_long, alone;
    uint32_t members; /* number of tasks of this class */
    uint32_t *heap;
    uint32_t count;
};

struct slot {
    struct mr_strand *strands[SLOT_STRANDS_MAX];
    uint32_t count;
    /* number of strands that the executor has: those in `strands`, and empty ones in its inbox,
     * from which a cut took all tasks before the executor came to them */
    uint32_t held;
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
    uint32_t job_last; /* the job found last: rows of a message mostly share their job */
    uint32_t jobs_high, jobs_free, values_high, values_free, values_count, brought;
    uint32_t tasks_high, tasks_free, tasks_count, ready_count, given_count;
    struct mr_list tasks_all;
    uint64_t queue_cost_ns, held_bytes;

    struct op *ops;
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
    uint64_t fetched_bytes; /* of fetches under way and of fetched objects */

    struct slot *slots;
    uint32_t slots_count; /* rows of `slots`: the slots, then places for long-running tasks */
    struct mr_strand *strands;
    uint32_t *strands_free;
    uint32_t strands_high, strands_free_count, mark;

    struct outrow *outbox;
    struct outparts *out_parts; /* beside the outbox; set for rows with has_parts */
    uint32_t out_head, out_count;
    bool out_urgent;   /* the outbox is sent at once: another process may need one of its rows */
    mr_time out_until; /* an outbox that is not urgent may wait until then */
    struct refs given, started, unknown, left, queued, running;
    struct missing_row *missing;
    uint32_t missing_count, missing_sent;
    uint32_t missing_old; /* number of rows of `missing` when the stream was opened */
    struct columns columns;
    struct mr_ws_missing *missing_out;
    uint64_t *running_ns;
    struct mr_ws_up up;
    struct mr_ws_register reg;
    struct mr_ws_heartbeat heartbeat;

    /* Times at which messages with tasks came, until they are reported. Each stream counts these
     * messages from 0; received[0] is for the message with the number received_first. */
    mr_time received[RECEIVED_MAX], received_out[RECEIVED_MAX];
    uint32_t received_count;
    uint64_t received_first;

    enum link_state link;
    uint64_t incarnation, scheduler;
    /* epoch: the highest that a scheduler sent; attempts: tries to connect since registration */
    uint32_t epoch, attempts;
    mr_duration heartbeat_ns;
    mr_duration idle_beat_ns; /* added to heartbeat_ns while there is nothing to report */
    mr_time balance_at;       /* earliest time to look again for work to move between slots */
    mr_time look_at;          /* time of the next LOOK at a running strand, while a slot is idle */
    /* measured time from giving a strand to an idle slot until its first item starts */
    mr_duration handoff_ns;
    mr_time heartbeat_at, idle_since;
    uint64_t sequence, memory_used, tasks_started, tasks_done;
    mr_duration cpu_ns; /* of the process, as the last event TURN said */
    uint64_t received_bytes, sent_bytes;
    bool draining, leaving_sent, hung_up, lethal, overflow, more, no_room, starved, may_send,
        has_spilled;
};
