/* What goes to a parser thread and what comes back: the request of one call, and its result. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "host/limit/allowance.h"
#include "services/scheduler/core/state/event.h"

enum mr_parser_form { /* what the body is; a request of the last three has no body */
    MR_PARSER_JSON,
    MR_PARSER_GRAPH,
    MR_PARSER_COLUMNS,
    MR_PARSER_INSTANTIATE, /* parameters of a template, {"params": {…}}, or nothing */
    MR_PARSER_INSTALL,     /* from here on the result has templates and no graph */
    MR_PARSER_GET,
    MR_PARSER_LIST,
    MR_PARSER_DELETE,
};

struct mr_parser_template { /* owns its texts */
    char *name, *params, *json;
    uint64_t installed_ns, nbytes, tasks;
};

struct mr_parser_stream; /* stream.h: the part of a body that was handed over before its end */

/* What a call has received. The body is JSON text, one SubmitGraphRequest, or SubmitColumns
 * messages, each after its length (u64). It lacks the part that `stream` has. */
struct mr_parser_request {
    enum mr_parser_form form;
    struct mr_buf body;
    struct mr_parser_stream *stream; /* NULL: no part of the body was handed over */
    /* limits the bytes of all bodies; `hold` is the share of this body */
    struct mr_allowance *quota;
    struct mr_allowance_hold hold;
    char *request_id; /* sent besides the body; NULL: none */
    char *template;   /* the template's name; NULL: none */
    bool replace;
    uint64_t ticket;
    uint32_t queue; /* set by parser.c */
    /* some workers have not registered their operators again since the scheduler's restart */
    bool is_recovering;
};

struct mr_parser_result {
    enum mr_parser_form form;
    /* True: the request's `stream` was not NULL. With this result the stream is no longer open. */
    bool has_stream;
    bool is_dropped; /* no request came: the call ended before its body was complete */
    bool is_moved;   /* the answer comes later: the request moved to the queue for large jobs */
    uint32_t queue;  /* the queue that the request was counted in */
    uint64_t ticket;
    struct mr_graph *graph; /* NULL: there is none, and `error` says why */
    struct mr_buf graph_bytes;
    /* Used instead of `graph_bytes` for a large graph: journal records, each with one piece of the
     * graph's bytes. The first MR_SCHED_PIECE_HEAD_BYTES bytes of a record are left free for its
     * head. mr_journal_link_give takes the records. */
    void **pieces;
    uint32_t pieces_count;
    uint64_t piece_bytes; /* sum of the bytes of all pieces */
    mr_graph_hash body_hash;
    /* number for the template's text and the graph's shape (templates.h); 0: no template was
     * used */
    uint64_t template;
    struct mr_sched_resolved *resolved;
    uint32_t resolved_count;
    struct mr_parser_template *templates;
    uint32_t templates_count;
    struct mr_error error;
};

void mr_parser_request_free(struct mr_parser_request **r);

struct mr_parser_result *mr_parser_result_new(const struct mr_parser_request *r);
/* Turns the result into one with an error and no graph. The error is `err`, unless the result has
 * an error already. */
void mr_parser_result_fail(struct mr_parser_result *d, int err);
void mr_parser_result_free(struct mr_parser_result **d);
