/* Parses submitted graphs on threads of its own, resolves names, and hands the result to the core
 * thread. Small jobs, templates and large jobs each have a thread, which owns its copy of the
 * catalogue and its own connection to Redis; nothing is shared. Of one thread, answers come in the
 * order of the requests. What is so small that two hand-offs between threads would cost more than
 * parsing it is parsed on the core thread, with that thread's own copy of the catalogue. */
#pragma once

#include "host/limit/allowance.h"
#include "services/scheduler/base/context.h"

enum mr_intake_form {
    MR_INTAKE_JSON,
    MR_INTAKE_GRAPH,
    MR_INTAKE_COLUMNS,
    MR_INTAKE_INSTANTIATE, /* of a template: {"params": {…}}, or nothing */
    MR_INTAKE_INSTALL,     /* this and the next: the answer is no graph, but templates */
    MR_INTAKE_GET,
    MR_INTAKE_LIST,
    MR_INTAKE_DELETE,
};

struct mr_intake_template { /* texts are owned */
    char *name, *params, *json;
    uint64_t installed_ns, nbytes, tasks;
};

struct mr_intake_stream; /* columns or text that were handed over before the end of their call */

/* What a call gathered. Bodies: JSON text; one SubmitGraphRequest; the SubmitColumns messages, each
 * behind its length (u64). But for what was handed over. */
struct mr_intake_request {
    enum mr_intake_form form;
    struct mr_buf body;
    struct mr_intake_stream *stream; /* NULL: nothing was */
    struct mr_allowance *quota;      /* from which what it reads is held */
    struct mr_allowance_hold hold;
    char *request_id; /* from outside the body; NULL: none */
    char *template;   /* its name; NULL: none */
    bool replace;
    uint64_t ticket;
    uint32_t lane; /* the intake's own */
    bool is_early; /* workers of an earlier life, and their ops, may not be back yet */
};

struct mr_intake_done {
    enum mr_intake_form form;
    bool is_of_stream;
    bool is_dropped; /* no request's answer: a call was over before its end */
    bool is_moved;   /* no answer yet: the request waits in the lane for large ones from now on */
    uint32_t lane;
    uint64_t ticket;
    struct mr_graph *graph; /* NULL: error says why */
    struct mr_buf graph_bytes;
    void **pieces; /* or, of a large graph, its bytes as records of the journal, to be given away:
                      each with MR_LEDGER_PIECE_HEAD bytes before them */
    uint32_t pieces_count;
    uint64_t piece_bytes; /* of all */
    mr_graph_hash body_hash;
    uint64_t template; /* which one it is of, 0: none */
    struct mr_sched_resolved *resolved;
    uint32_t resolved_count;
    struct mr_intake_template *templates;
    uint32_t templates_count;
    struct mr_error error;
};

/* For a call that is to be read. */
struct mr_intake_request *mr_intake_request_new(struct mr_intake *in, uint64_t ticket);
/* More of its body. MR_ETOOBIG, or MR_ELIMIT when too much is being read: drop it. */
int mr_intake_read(struct mr_intake *in, struct mr_intake_request *r, struct mr_rpc_call *call,
    struct mr_str bytes, struct mr_error *e);

int mr_intake_open(struct mr_shell *sh, struct mr_error *e);
void mr_intake_close(struct mr_intake **in);

/* The answer to a small request when nothing waits before it, made at once (free the request); else
 * NULL: push it. */
struct mr_intake_done *mr_intake_at_once(struct mr_intake *in, struct mr_intake_request *request);
/* Takes the request; its answer comes as MR_SHELL_PARSED. MR_ELIMIT when too many wait. */
int mr_intake_push(struct mr_intake *in, struct mr_intake_request **request);
/* That answer was taken: one waits less. */
void mr_intake_answered(struct mr_intake *in, const struct mr_intake_done *done);
/* Small requests that wait for their thread: while there are any, none is answered at once. */
uint32_t mr_intake_small_waiting(const struct mr_intake *in);
/* Of a large submission that are handed over together, as one block of at least so many: as such it
 * goes back to the kernel when it is freed (shell/main.c). */
#define MR_INTAKE_PIECE_BYTES ((size_t)256 << 10)
/* More columns, or more of a JSON text, stand in the body: enough of them are handed over at once,
 * if nothing is in the way, so that they are worked on while the next ones come. */
void mr_intake_ahead(struct mr_intake *in, struct mr_intake_request *request);
/* Frees a request that will not be pushed. */
void mr_intake_drop(struct mr_intake *in, struct mr_intake_request **request);
/* Tells of an op that a worker brought, any number of times. */
void mr_intake_add_op(struct mr_intake *in, struct mr_str name);

void mr_intake_request_free(struct mr_intake_request **r);
void mr_intake_done_free(struct mr_intake_done **d);
