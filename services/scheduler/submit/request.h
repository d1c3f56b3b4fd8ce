/* What goes to a parser thread and what comes back: the request of one call, and its result. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "host/limit/allowance.h"
#include "services/scheduler/core/state/event.h"

enum mr_parser_form { /* what the body is; for the last three there is none */
    MR_PARSER_JSON,
    MR_PARSER_GRAPH,
    MR_PARSER_COLUMNS,
    MR_PARSER_INSTANTIATE, /* of a template: {"params": {…}}, or nothing */
    MR_PARSER_INSTALL,     /* from here on the result has templates instead of a graph */
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
 * messages, each behind its length (u64); without the part that `stream` has. */
struct mr_parser_request {
    enum mr_parser_form form;
    struct mr_buf body;
    struct mr_parser_stream *stream; /* NULL: nothing was handed over */
    struct mr_allowance *quota; /* bounds the bytes of all bodies; `hold` is this one's share */
    struct mr_allowance_hold hold;
    char *request_id; /* given beside the body; NULL: none */
    char *template;   /* the template's name; NULL: none */
    bool replace;
    uint64_t ticket;
    uint32_t queue;     /* set by parser.c */
    bool is_recovering; /* workers, and the operators they bring, may not have returned yet */
};

struct mr_parser_result {
    enum mr_parser_form form;
    bool has_stream; /* the request had a stream, which is free again */
    bool is_dropped; /* answers no request: the call of a stream ended before its body */
    bool is_moved;   /* answers nothing yet: the request moved to the queue for large ones */
    uint32_t queue;  /* the queue that the request was counted in */
    uint64_t ticket;
    struct mr_graph *graph; /* NULL: `error` says why */
    struct mr_buf graph_bytes;
    /* Or, of a large graph, its bytes as journal records to be given away, each with
     * MR_SCHED_PIECE_HEAD_BYTES bytes before the piece. */
    void **pieces;
    uint32_t pieces_count;
    uint64_t piece_bytes; /* of all pieces */
    mr_graph_hash body_hash;
    uint64_t template; /* number of the template and shape; 0: of no template */
    struct mr_sched_resolved *resolved;
    uint32_t resolved_count;
    struct mr_parser_template *templates;
    uint32_t templates_count;
    struct mr_error error;
};

void mr_parser_request_free(struct mr_parser_request **r);

struct mr_parser_result *mr_parser_result_new(const struct mr_parser_request *r);
/* No graph but an error: `err`, unless the result says more already. */
void mr_parser_result_fail(struct mr_parser_result *d, int err);
void mr_parser_result_free(struct mr_parser_result **d);
