/* One HTTP request, on the HTTP thread of its connection. Private to gateway/server. */
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

#define MR_CHUNK_GATHER_BYTES                                                                      \
    ((size_t)256 << 10) /* uploads are passed on in pieces of this size                            \
                         */
#define MR_HEADERS_TIMEOUT (15 * MR_SECOND)
#define MR_BODY_TIMEOUT (60 * MR_SECOND) /* for a whole JSON body, or each piece of an upload */
#define MR_KEEP_ALIVE_TIMEOUT (75 * MR_SECOND)
#define MR_HTTP_CONNECTION_BYTES (128 << 10) /* a connection's headers and read buffer */

struct mr_http {
    struct mr_http_options options;
    struct MHD_Daemon *daemon;
    char **hosts; /* allowed in the header Host */
    size_t hosts_count;
    struct mr_acceptor *acceptor;
    struct mr_quota *quota;       /* connections by client address */
    struct mr_attempts *attempts; /* wrong tokens by client address */
    int listen_fd;                /* -1: the acceptor owns it */
    bool is_inherited;            /* the listening socket came from the parent process */
    int dashboard_fd;             /* -1: none */
    int port;
    struct mr_flag quiescing;
    struct mr_counter *requests[6]; /* by class of status (2: 2xx); [0]: not answered */
    struct mr_gauge *connections;
    struct mr_gauge *unanswered; /* connections of which no request has been answered */
};

/* A connection, while it is open. */
struct mr_socket {
    struct mr_request *unbegun;       /* the request line has come, the headers have not */
    char key[MR_QUOTA_KEY_BYTES_MAX]; /* of the client's address, for the quota */
    size_t key_n;
    struct mr_framing_filter filter;
    uint64_t begun; /* requests */
    bool is_new;    /* no request has been answered yet */
};

enum mr_answer_kind {
    MR_ANSWER_JSON,      /* one message */
    MR_ANSWER_EVENTS,    /* a stream of messages as server-sent events */
    MR_ANSWER_LINES,     /* the same as one JSON object a line */
    MR_ANSWER_COLLECTED, /* the same as one JSON object (http/collect.h) */
    MR_ANSWER_RAW,       /* bytes that the service chooses */
    MR_ANSWER_HEALTH,
    MR_ANSWER_METRICS,
    MR_ANSWER_OPENAPI,
    MR_ANSWER_FILE,
    MR_ANSWER_LOGIN,
    MR_ANSWER_LOGOUT,
};

/*  TARGET ──headers──▶ BODY ──▶ STARTED ──▶ SENT
 *
 * A request that is refused, or that needs no service, is answered from BODY. An upload stays in
 * STARTED until its end; the body of any other request is complete when the exchange starts. */
enum mr_request_phase {
    MR_REQUEST_TARGET,  /* the request line has come */
    MR_REQUEST_BODY,    /* the headers are checked, and the body may come */
    MR_REQUEST_STARTED, /* the bridge owns the exchange */
    MR_REQUEST_SENT,    /* the bridge has the whole request */
};

struct mr_request {
    struct mr_http *http;
    struct MHD_Connection *connection;
    enum mr_request_phase phase;
    char *target;
    struct mr_uri uri;
    struct mr_uri_text text;
    struct mr_match match; /* route NULL: a path of the gateway's own */
    enum mr_http_verb verb;
    enum mr_answer_kind answer_kind;
    struct mr_token_holder user; /* name "": not known yet */
    unsigned allow;              /* 405: the verbs that the path has, as bits */
    bool is_head;                /* a GET whose body is not wanted */
    bool has_range;              /* a GET for `range` only */
    struct mr_range range;
    bool is_piece;    /* the query names bytes of an object, and these are the whole answer */
    bool may_be_kept; /* by a cache that revalidates it */
    bool answered;
    unsigned status;

    struct mr_error error; /* code MR_OK: none */
    uint64_t ordinal;      /* among the requests of the connection, from 1 */
    unsigned refused;      /* the status of a request that breaks HTTP's rules; 0: it does not */

    struct mr_str content_type;
    struct mr_buf body; /* a JSON body, or the next piece of an upload */
    uint64_t body_bytes;
    struct mr_allowance_hold hold; /* for the part of the body that is in memory */
    uint32_t chunks_out;           /* CHUNKs without TAKEN */

    struct mr_exchange *x;
    bool is_over;         /* END was taken */
    bool is_open;         /* OPENED was taken: the stream may be answered without a message */
    struct mr_reply held; /* taken from the queue, not yet used */
    bool has_held;

    /* The answer of a stream, written by its content reader. */
    struct mr_buf out;
    size_t out_at;
    struct mr_pb_arena arena;
    struct mr_collect collect;
    struct mr_rpc_message *raw_message;
    struct mr_str raw; /* the part of raw_message that has not been sent */
    uint64_t raw_skip; /* bytes to drop before the first one that is wanted */
    bool is_finished;  /* all bytes have been given to libmicrohttpd */
    bool is_broken;    /* the connection is closed, so that the client sees a broken answer */
};

/* check.c: all checks that need no body. An error is left in r->error. */
void mr_request_check(struct mr_request *r, const char *method);
uint64_t mr_request_body_bytes_max(const struct mr_route *route);
/* Starts the exchange with the part of the body that has come. `more`: CHUNKs follow. */
void mr_request_start(struct mr_request *r, bool more);

/* server.c */
struct MHD_Daemon *mr_daemon_start(struct mr_http *h, struct mr_error *e); /* NULL: an error */
void mr_request_move(struct mr_request *r, enum mr_request_phase to);
bool mr_request_next(struct mr_request *r, struct mr_reply *reply); /* false: the queue is empty */
void mr_request_use(struct mr_request *r);                          /* posts a CREDIT */
void mr_request_sleep(struct mr_request *r); /* suspends the connection until a reply comes */

/* answer.c */
enum MHD_Result mr_answer_error(struct mr_request *r);
enum MHD_Result mr_answer(struct mr_request *r); /* when a reply, END or OPENED is there */
/* Answers with r->error, this status and one more header. */
enum MHD_Result mr_answer_refused(
    struct mr_request *r, unsigned status, const char *header, const char *value);
enum MHD_Result mr_answer_openapi(struct mr_request *r);
/* A response with compressed bytes and Content-Encoding; NULL: compression does not pay. */
struct MHD_Response *mr_answer_gzip(struct mr_str bytes);
enum MHD_Result mr_answer_queue(
    struct mr_request *r, unsigned status, const char *type, struct MHD_Response **response);

/* raw_answer.c: starts the answer when r->raw_message is its first piece. */
enum MHD_Result mr_answer_raw(struct mr_request *r);

/* stream.c: the content reader of every stream. */
ssize_t mr_stream_read(void *request, uint64_t at, char *to, size_t bytes_max);
/* Makes `message` the next piece of a raw answer. Its bytes are copied once, into libmicrohttpd's
 * buffer. */
void mr_stream_take_raw(struct mr_request *r, struct mr_rpc_message **message);

/* static.c */
enum MHD_Result mr_static_answer(struct mr_request *r);
