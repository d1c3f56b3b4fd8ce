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

/* Uploads are passed on to the service in pieces of this size. */
#define MR_CHUNK_GATHER_BYTES ((size_t)256 << 10)
#define MR_HEADERS_TIMEOUT (15 * MR_SECOND)
/* Time in which a client has to send a whole JSON body, or each piece of an upload. */
#define MR_BODY_TIMEOUT (60 * MR_SECOND)
#define MR_KEEP_ALIVE_TIMEOUT (75 * MR_SECOND)
/* Bytes of memory for the headers and the read buffer of a connection. */
#define MR_HTTP_CONNECTION_BYTES (128 << 10)

struct mr_http {
    struct mr_http_options options;
    struct MHD_Daemon *daemon;
    char **hosts; /* names that the header Host may have */
    size_t hosts_count;
    struct mr_acceptor *acceptor;
    struct mr_quota *quota;       /* counts connections by client address */
    struct mr_attempts *attempts; /* counts wrong tokens by client address */
    int listen_fd;                /* -1: the acceptor owns the descriptor */
    bool is_inherited;            /* true: the parent process passed the listening socket */
    int dashboard_fd;             /* -1: none */
    int port;
    struct mr_flag quiescing;
    /* By class of the status (2: 2xx); [0]: requests that were not answered. */
    struct mr_counter *requests[6];
    struct mr_gauge *connections;
    /* Number of connections of which no request has been answered. */
    struct mr_gauge *unanswered;
};

/* A connection, while it is open. */
struct mr_socket {
    /* A request whose request line has come, but not its headers. */
    struct mr_request *unbegun;
    /* Key of the client's address for the quota. */
    char key[MR_QUOTA_KEY_BYTES_MAX];
    size_t key_n;
    struct mr_framing_filter filter;
    uint64_t begun; /* number of requests whose headers have come */
    bool is_new;    /* true: no request of the connection has been answered yet */
};

enum mr_answer_kind {
    MR_ANSWER_JSON,      /* one message */
    MR_ANSWER_EVENTS,    /* a stream of messages, as server-sent events */
    MR_ANSWER_LINES,     /* a stream of messages, as one JSON object a line */
    MR_ANSWER_COLLECTED, /* a stream of messages, as one JSON object (http/collect.h) */
    MR_ANSWER_RAW,       /* the bytes inside messages of type google.api.HttpBody */
    MR_ANSWER_HEALTH,
    MR_ANSWER_METRICS,
    MR_ANSWER_OPENAPI,
    MR_ANSWER_FILE,
    MR_ANSWER_LOGIN,
    MR_ANSWER_LOGOUT,
};

/*  TARGET ──headers──▶ BODY ──▶ STARTED ──▶ SENT
 *
 * A request that needs no service, or is refused before its exchange starts, is answered in phase
 * BODY. An upload stays in STARTED until its end; the body of any other request is complete when
 * the exchange starts. */
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
    /* Route NULL: the path is one of the gateway's own. */
    struct mr_match match;
    enum mr_http_verb verb;
    enum mr_answer_kind answer_kind;
    struct mr_token_holder user; /* name "": the user is not known yet */
    /* For the status 405: bits of the verbs that the path has. */
    unsigned allow;
    bool is_head;   /* a HEAD request: a GET without the body of the answer */
    bool has_range; /* true: only the bytes `range` are wanted */
    struct mr_range range;
    /* True: the query asks for some bytes of an object (offset, bytes_max). These bytes are the
     * whole answer. */
    bool is_piece;
    bool may_be_kept; /* true: a cache may keep the answer and revalidate it */
    bool answered;
    unsigned status;

    struct mr_error error; /* code MR_OK: there is no error */
    /* Number of the request on its connection, from 1. */
    uint64_t ordinal;
    /* The status for a request that breaks the rules of HTTP; 0: it follows them. */
    unsigned refused;

    struct mr_str content_type;
    struct mr_buf body; /* a JSON body, or the next piece of an upload */
    uint64_t body_bytes;
    /* Counts the memory of the part of the body that is in memory. */
    struct mr_allowance_hold hold;
    uint32_t chunks_out; /* CHUNKs that were posted and are not TAKEN yet */

    struct mr_exchange *x;
    bool is_over; /* true: END was taken from x->replies */
    /* True: OPENED was taken from x->replies, so the answer of a stream may begin before the first
     * message has come. */
    bool is_open;
    struct mr_reply held; /* a reply that was taken from x->replies and is not used yet */
    bool has_held;

    /* The bytes of the answer. libmicrohttpd fetches the bytes of a stream by its callback
     * mr_stream_read, which makes them from the replies. */
    struct mr_buf out;
    size_t out_at;
    struct mr_pb_arena arena;
    struct mr_collect collect;
    struct mr_rpc_message *raw_message;
    struct mr_str raw; /* the part of raw_message that has not been sent */
    /* Bytes to drop before the first byte that is wanted. */
    uint64_t raw_skip;
    bool is_finished; /* true: nothing will be appended to `out` any more */
    /* True: the connection will be closed, so that the client sees a broken answer. */
    bool is_broken;
};

/* In check.c: makes all checks that need no body. An error is left in r->error. */
void mr_request_check(struct mr_request *r, const char *method);
uint64_t mr_request_body_bytes_max(const struct mr_route *route);
/* Puts the part of the body that has come into the first message to the service, and starts the
 * exchange. `more`: CHUNKs with the rest of the body follow (exchange.h). If the body cannot be
 * used, the exchange is not started, and r->error has the error. */
void mr_request_start(struct mr_request *r, bool more);

/* server.c */
/* NULL: an error, which is in `e` */
struct MHD_Daemon *mr_daemon_start(struct mr_http *h, struct mr_error *e);
void mr_request_move(struct mr_request *r, enum mr_request_phase to);
/* Takes the next MESSAGE, HEARTBEAT or END from r->x->replies. False: there is none now. */
bool mr_request_next(struct mr_request *r, struct mr_reply *reply);
/* Posts a CREDIT to the bridge: a MESSAGE or HEARTBEAT was used, so the bridge may send another. */
void mr_request_use(struct mr_request *r);
void mr_request_sleep(struct mr_request *r); /* suspends the connection until a reply comes */

/* answer.c */
enum MHD_Result mr_answer_error(struct mr_request *r);
/* To be called when a MESSAGE, END or OPENED was taken from r->x->replies. */
enum MHD_Result mr_answer(struct mr_request *r);
/* Answers with r->error, with this status and with one more header. */
enum MHD_Result mr_answer_refused(
    struct mr_request *r, unsigned status, const char *header, const char *value);
enum MHD_Result mr_answer_openapi(struct mr_request *r);
/* Makes a response with compressed bytes and the header Content-Encoding. NULL: the bytes are too
 * few or too many, or would not become fewer. */
struct MHD_Response *mr_answer_gzip(struct mr_str bytes);
enum MHD_Result mr_answer_queue(
    struct mr_request *r, unsigned status, const char *type, struct MHD_Response **response);

/* In raw_answer.c: starts an answer whose bytes a service chooses. r->raw_message is the first
 * piece of the answer. */
enum MHD_Result mr_answer_raw(struct mr_request *r);

/* In stream.c: the callback by which libmicrohttpd fetches the bytes of every stream. */
ssize_t mr_stream_read(void *request, uint64_t at, char *to, size_t bytes_max);
/* Makes `message` the next piece of a raw answer. Its bytes are copied once, into libmicrohttpd's
 * buffer. */
void mr_stream_take_raw(struct mr_request *r, struct mr_rpc_message **message);

/* static.c */
enum MHD_Result mr_static_answer(struct mr_request *r);
