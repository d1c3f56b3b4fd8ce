/* One HTTP request, on the thread of its connection. What its parts share; for server.c, check.c,
 * answer.c, stream.c, login.c and static.c only. */
#pragma once

#include "gateway/server/accept.h"
#include "gateway/http/bind.h"
#include "gateway/bridge/bridge.h"
#include "gateway/http/collect.h"
#include "gateway/server/server.h"
#include "gateway/http/range.h"
#include "gateway/server/framing_filter.h"
#include "host/limit/attempts.h"
#include "host/flag.h"
#include "rpc/util/pb.h"

#include <microhttpd.h>

#define MR_CHUNK_GATHER_BYTES ((size_t)256 << 10) /* pieces of uploads are joined up to this */
#define MR_HEADERS_TIMEOUT (15 * MR_SECOND)
#define MR_BODY_TIMEOUT (60 * MR_SECOND) /* for a whole JSON body, or each piece of an upload */
#define MR_KEEP_ALIVE_TIMEOUT (75 * MR_SECOND)

struct mr_http {
    struct mr_http_options options;
    struct MHD_Daemon *daemon;
    char **hosts;
    size_t hosts_count;
    struct mr_acceptor *acceptor;
    struct mr_quota *quota;       /* connections by address */
    struct mr_attempts *attempts; /* wrong tokens by address */
    int listen_fd;                /* until the acceptor has it */
    bool is_lent;                 /* the listening socket was handed to us */
    int dashboard_fd;             /* -1: none */
    int port;
    struct mr_flag quiescing;
    struct mr_counter *requests[6]; /* by class of status; [0] what had none */
    struct mr_gauge *connections;
    struct mr_gauge *fresh; /* connections of which no request has been answered */
};

/* Of one connection, while it is open. */
struct mr_socket {
    struct mr_request *unbegun;       /* its target is there, its headers are not */
    char key[MR_QUOTA_KEY_BYTES_MAX]; /* of its client's address */
    size_t key_n;
    struct mr_checked checked; /* what it sends */
    uint64_t begun;            /* requests */
    bool is_new;               /* no request of it has been answered yet */
};

enum mr_shape { /* how the answer is written */
    MR_SHAPE_JSON,
    MR_SHAPE_EVENTS,
    MR_SHAPE_LINES,
    MR_SHAPE_COLLECTED,
    MR_SHAPE_RAW,
    MR_SHAPE_HEALTH,
    MR_SHAPE_METRICS,
    MR_SHAPE_OPENAPI,
    MR_SHAPE_FILE,
    MR_SHAPE_LOGIN,
    MR_SHAPE_LOGOUT,
};

struct mr_request {
    struct mr_http *http;
    struct MHD_Connection *connection;
    char *target;
    struct mr_uri uri;
    struct mr_uri_text text;
    struct mr_match match; /* route NULL: one of the gateway's own */
    enum mr_http_verb verb;
    enum mr_shape shape;
    struct mr_token_holder user; /* name "": not known yet */
    unsigned allow;              /* verbs, for 405 */
    bool is_head;                /* a GET whose body is not wanted */
    bool has_range;              /* of a GET; `range` is what is wanted */
    struct mr_range range;
    bool is_piece;    /* of an object: the query names the bytes, and they are all of the answer */
    bool may_be_kept; /* by a cache that asks whether it is still so */
    bool began;
    bool answered;
    unsigned status;

    struct mr_error error; /* code MR_OK: none */
    uint64_t ordinal;      /* among those of its connection, from 1 */
    unsigned refused;      /* the status of a request that breaks HTTP's rules; 0: it does not */

    struct mr_str content_type;
    struct mr_buf body; /* of JSON, or the piece being gathered */
    uint64_t body_bytes;
    struct mr_allowance_hold hold; /* for what of it is in memory */
    uint32_t chunks_out;           /* CHUNKs that were not TAKEN */

    struct mr_exchange *x;
    bool is_started;
    bool is_passed_on;    /* the whole body */
    bool is_over;         /* END was taken */
    bool is_open;         /* a stream may be answered though nothing has come */
    struct mr_reply held; /* taken from the queue, not yet used */
    bool has_held;

    /* The answer of a stream, written by its content reader. */
    struct mr_buf out;
    size_t out_at;
    struct mr_pb_arena arena;
    struct mr_collect collect;
    struct mr_rpc_message *raw_message;
    struct mr_str raw; /* rest of it */
    uint64_t raw_skip; /* bytes that are not wanted, before the first one that is */
    bool is_finished;
    bool is_broken;
};

/* check.c: everything that can be said before the body. Errors are in r->error. */
void mr_request_check(struct mr_request *r, const char *method);
uint64_t mr_request_body_bytes_max(const struct mr_route *route);
/* The start of the call, with what there is of the body. */
void mr_request_start(struct mr_request *r, bool more);

/* server.c */
bool mr_request_next(struct mr_request *r, struct mr_reply *reply); /* false: nothing is there */
void mr_request_use(struct mr_request *r);                          /* gives a CREDIT */
void mr_request_sleep(struct mr_request *r);                        /* until something is there */

/* answer.c */
enum MHD_Result mr_answer_error(struct mr_request *r);
enum MHD_Result mr_answer(struct mr_request *r); /* the exchange has something to answer with */
/* The error, with this status and one more header. */
enum MHD_Result mr_answer_refused(
    struct mr_request *r, unsigned status, const char *header, const char *value);
enum MHD_Result mr_answer_openapi(struct mr_request *r);
/* With its headers; NULL: it stays as it is. */
struct MHD_Response *mr_answer_gzip(struct mr_str bytes);
enum MHD_Result mr_answer_queue(
    struct mr_request *r, unsigned status, const char *type, struct MHD_Response **response);

/* raw_answer.c: r->raw_message is the first piece. */
enum MHD_Result mr_answer_raw(struct mr_request *r);

/* stream.c: the content reader of every stream. */
ssize_t mr_stream_read(void *request, uint64_t at, char *to, size_t bytes_max);
/* A piece of a raw answer comes next; its bytes are r->raw, and are not copied but into MHD's own
 * buffer. */
void mr_stream_take_raw(struct mr_request *r, struct mr_rpc_message **message);

/* static.c */
enum MHD_Result mr_static_answer(struct mr_request *r);
