/* Lanes, a thread each: a lane takes requests in order, parses, resolves what the graph names
 * outside itself, packs the graph for the journal, and answers through the shell's inbox. It has
 * its own registry of built-in operators and hears of foreign ones by message. The core thread has
 * another, for small requests; what it cannot answer without waiting, or within its bounds, a
 * thread does. What is large has a lane of its own, so that nobody waits for it: a body that turns
 * out to ask for more than a small job is passed on to that lane. Templates have the third, whose
 * parsed texts belong to its thread. */
#include "services/scheduler/submit/parser.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "graph/bytes/bytes.h"
#include "graph/json/json.h"
#include "host/clock.h"
#include "host/thread.h"
#include "services/scheduler/submit/names.h"
#include "services/scheduler/submit/ops.h"
#include "services/scheduler/submit/stream.h"
#include "services/scheduler/base/journal_link.h"
#include "services/scheduler/submit/pb_columns.h"
#include "services/scheduler/submit/pb_graph.h"
#include "services/scheduler/submit/templates.h"
#include "store/meta/directory.h"
#include "store/meta/journal/journal.h"
#include "store/meta/redis.h"

#include <xxhash.h>

#define WAITING_MAX 1024 /* requests; ops that workers tell of have room beside them */
#define AT_ONCE_BYTES_MAX ((size_t)4096) /* a body that the core thread parses: some 100 us */
#define AT_ONCE_NODES_MAX 64
#define AT_ONCE_ARGS_MAX ((size_t)16384)
#define SMALL_BYTES_MAX ((size_t)64 << 10) /* a job of the lane for small ones: some 10 ms */
#define SMALL_NODES_MAX 4096
#define SMALL_ARGS_MAX ((size_t)1 << 20)
#define STREAMS_MAX 8 /* of which some were; the inbox has room for all of each */

struct piece {
    struct mr_intake_stream *stream;
    struct mr_buf bytes; /* messages, each behind its length */
    bool is_drop;        /* nothing of it: its call is over */
};

struct message { /* one of them */
    struct mr_intake_request *request;
    struct piece *piece;
    char *op;
};

enum { LANE_SMALL, LANE_TEMPLATES, LANE_LARGE, LANES }; /* closed in this order */

struct lane { /* all but the counter, its inbox and `in` is its thread's */
    struct mr_intake *in;
    struct mr_thread *thread;
    struct mr_inbox *inbox;
    struct mr_redis *redis;
    struct mr_directory *directory;
    struct mr_templates *templates; /* of LANE_TEMPLATES */
    struct mr_intake_ops ops;
    uint32_t waiting; /* requests that the core's thread gave it and that are not answered */
};

struct mr_intake {
    struct mr_shell *sh;
    struct mr_allowance *quota;
    struct lane lanes[LANES];
    struct mr_intake_ops core_ops; /* this and what follows is of the core's thread */
    uint32_t streams_open;
    struct piece *drops[STREAMS_MAX]; /* for which the inbox had no room */
    uint32_t drops_count;
};

static void piece_free(struct piece **p)
{
    if (!*p) return;
    mr_buf_fini(&(*p)->bytes);
    mr_release(*p);
    *p = NULL;
}

void mr_intake_request_free(struct mr_intake_request **rp)
{
    struct mr_intake_request *r = *rp;
    *rp = NULL;
    if (!r) return;
    mr_intake_stream_free(&r->stream);
    mr_buf_fini(&r->body);
    mr_allowance_drop(r->quota, &r->hold);
    mr_release(r->request_id);
    mr_release(r->template);
    mr_release(r);
}

void mr_intake_done_free(struct mr_intake_done **dp)
{
    struct mr_intake_done *d = *dp;
    *dp = NULL;
    if (!d) return;
    mr_graph_free(&d->graph);
    mr_buf_fini(&d->graph_bytes);
    for (uint32_t i = 0; i < d->pieces_count; i++)
        mr_journal_record_free(&d->pieces[i]);
    mr_release(d->pieces);
    mr_release(d->resolved);
    for (uint32_t i = 0; i < d->templates_count; i++) {
        mr_release(d->templates[i].name);
        mr_release(d->templates[i].params);
        mr_release(d->templates[i].json);
    }
    mr_release(d->templates);
    mr_release(d);
}

/* ---- one request --------------------------------------------------------------------------- */

static int add_message(struct mr_builder *b, struct mr_str body, struct mr_error *e)
{
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, (size_t)4 << 30);
    const void *m = mr_pb_unpack(&millrace__v1__submit_graph_request__descriptor, body, &arena, e);
    int err = m ? mr_pb_graph_add(b, m, e) : MR_EFORMAT;
    mr_pb_arena_fini(&arena);
    return err;
}

static int parse_json(struct mr_buf *body, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    struct mr_graph_parallel parallel;
    bool is_parallel = mr_intake_parallel_open(body->n, &parallel);
    int err = mr_graph_from_json_buf(body, catalogue, is_parallel ? &parallel : NULL, out, e);
    mr_intake_parallel_close(&parallel);
    return err;
}

/* Within `limits`, or NULL: within those of any job; then a body of JSON is used up. */
static int parse(struct mr_intake_ops *o, struct mr_intake_request *r,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e)
{
    const struct mr_graph_catalogue catalogue = mr_intake_ops_catalogue(&o);
    o->has_missed = false;
    struct mr_str body = mr_buf_str(&r->body);
    if (r->form == MR_INTAKE_JSON && limits)
        return mr_graph_from_json_within(body, &catalogue, limits, out, e);
    if (r->stream) return mr_intake_stream_end(r->stream, &catalogue, out, e);
    if (r->form == MR_INTAKE_JSON) return parse_json(&r->body, &catalogue, out, e);
    struct mr_builder *b = mr_builder_new();
    int err =
        r->form == MR_INTAKE_GRAPH ? add_message(b, body, e) : mr_pb_columns_add(b, &r->body, 1, e);
    if (err) {
        mr_builder_free(&b);
        return err;
    }
    struct mr_graph_parallel parallel;
    if (mr_intake_parallel_open(body.n, &parallel)) mr_builder_lend_parallel(b, &parallel);
    err = mr_graph_build(&b, &catalogue, out, e);
    mr_intake_parallel_close(&parallel);
    return err;
}

static struct mr_intake_done *done_new(const struct mr_intake_request *r)
{
    struct mr_intake_done *d = mr_alloc(sizeof *d);
    d->ticket = r->ticket;
    d->form = r->form;
    d->lane = r->lane;
    mr_buf_init(&d->graph_bytes, (size_t)8 << 30);
    if (r->stream) {
        d->body_hash = mr_intake_stream_hash(r->stream);
    } else {
        XXH128_hash_t h = XXH3_128bits(r->body.p, r->body.n);
        d->body_hash = (mr_graph_hash){h.high64, h.low64};
    }
    if (r->template) d->body_hash.hi ^= XXH3_64bits(r->template, strlen(r->template));
    return d;
}

static void done_failed(struct mr_intake_done *d, int err)
{
    mr_graph_free(&d->graph);
    if (!d->error.code) (void)mr_fail(&d->error, err, "%s", mr_err_words(err));
}

/* An unknown op may be one that a worker, who is on its way back, brings in a moment. */
static int done_early(const struct mr_intake_ops *o, const struct mr_intake_request *r,
    struct mr_intake_done *d, int err)
{
    if (!err || !r->is_early || !o->has_missed) return err;
    const struct mr_error why = d->error;
    return mr_fail(&d->error, MR_EAWAY,
        "the scheduler has just started and waits for its workers; try again: %s", why.text);
}

static void keep_request_id(struct mr_intake_done *d, const struct mr_intake_request *r)
{
    if (r->request_id)
        d->graph->job.request_id = mr_pool_copy(&d->graph->text, mr_str(r->request_id));
}

static char *copy_text(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

static void add_template(void *ctx, const struct mr_template_info *x)
{
    struct mr_intake_done *d = ctx;
    size_t old = d->templates_count * sizeof *d->templates;
    d->templates = mr_grow(d->templates, old, old + sizeof *d->templates);
    d->templates[d->templates_count++] = (struct mr_intake_template){.name = copy_text(x->name),
        .params = copy_text(x->params),
        .json = copy_text(x->json),
        .installed_ns = x->installed_ns,
        .nbytes = x->nbytes,
        .tasks = x->tasks};
}

/* What is asked of templates, but for a job. */
static struct mr_intake_done *handle_template(struct lane *in, const struct mr_intake_request *r)
{
    struct mr_intake_ops *o = &in->ops;
    const struct mr_graph_catalogue catalogue = mr_intake_ops_catalogue(&o);
    struct mr_intake_done *d = done_new(r);
    struct mr_str name = mr_str(r->template);
    struct mr_template_info info = {0};
    int err = MR_OK;
    o->has_missed = false;
    if (r->form == MR_INTAKE_LIST) {
        err = mr_templates_list(in->templates, add_template, d, &d->error);
    } else if (r->form == MR_INTAKE_DELETE) {
        err = mr_templates_delete(in->templates, name, &d->error);
    } else if (r->form == MR_INTAKE_GET) {
        err = mr_templates_get(in->templates, name, &catalogue, &info, &d->error);
    } else {
        err = mr_templates_install(
            in->templates, name, mr_buf_str(&r->body), r->replace, &catalogue, &info, &d->error);
        err = done_early(o, r, d, err);
        info.json = (struct mr_str){0};
    }
    if (!err && info.name.n) add_template(d, &info);
    if (err) done_failed(d, err);
    return d;
}

static int parse_template(
    struct lane *in, const struct mr_intake_request *r, struct mr_intake_done *d)
{
    struct mr_intake_ops *o = &in->ops;
    const struct mr_graph_catalogue catalogue = mr_intake_ops_catalogue(&o);
    o->has_missed = false;
    return mr_templates_graph(in->templates, mr_str(r->template), mr_buf_str(&r->body), &catalogue,
        &d->graph, &d->template, &d->error);
}

/* Room for the next piece. From here on the bytes are only passed on; in pieces, each is freed when
 * the journal has it. */
static unsigned char *next_piece(void *ctx, size_t n, uint64_t total)
{
    struct mr_intake_done *d = ctx;
    if (total <= MR_CHUNK_BYTES) return mr_buf_extend(&d->graph_bytes, n);
    if (!d->pieces) d->pieces = mr_alloc_array(total / MR_CHUNK_BYTES + 1, sizeof *d->pieces);
    char *piece = mr_journal_record_new(MR_LEDGER_PIECE_HEAD + n);
    d->pieces[d->pieces_count++] = piece;
    d->piece_bytes = total;
    return (unsigned char *)piece + MR_LEDGER_PIECE_HEAD;
}

static int write_graph(struct mr_intake_done *d)
{
    uint64_t total = 0;
    const struct mr_graph_pieces to = {next_piece, d, MR_CHUNK_BYTES, d->graph_bytes.bytes_max};
    return mr_graph_to_pieces(d->graph, &to, &total, &d->error);
}

/* More of a stream; which ops are missing is asked when all of it is there. */
static void feed(struct lane *in, struct mr_intake_stream *stream, struct mr_buf *bytes)
{
    struct mr_intake_ops *o = &in->ops;
    const struct mr_graph_catalogue catalogue = mr_intake_ops_catalogue(&o);
    mr_intake_stream_feed(stream, &catalogue, bytes);
}

/* Of what was parsed, all that else is to be done. */
static void finish(
    struct lane *in, const struct mr_intake_request *r, struct mr_intake_done *d, int err)
{
    err = done_early(&in->ops, r, d, err);
    if (err == MR_ELIMIT)
        err = d->error.code = MR_EINVAL; /* trying again will not make it smaller */
    if (!err) {
        keep_request_id(d, r);
        err = mr_intake_names_resolve(in->directory, d, &d->error);
    }
    if (!err) err = write_graph(d);
    if (err) done_failed(d, err);
}

static struct mr_intake_done *handle(struct lane *in, struct mr_intake_request *r)
{
    if (r->form >= MR_INTAKE_INSTALL) return handle_template(in, r);
    bool is_of_stream = r->stream != NULL;
    if (r->form == MR_INTAKE_COLUMNS && !r->stream) r->stream = mr_intake_stream_new(false);
    if (r->stream && r->body.n) feed(in, r->stream, &r->body);
    struct mr_intake_done *d = done_new(r);
    d->is_of_stream = is_of_stream;
    int err = r->form == MR_INTAKE_INSTANTIATE ? parse_template(in, r, d)
                                               : parse(&in->ops, r, NULL, &d->graph, &d->error);
    finish(in, r, d, err);
    return d;
}

/* Loops of a typed message, which make much of little. */
static bool has_repeat(struct mr_str body)
{
    enum { F_REPEAT = 8 }; /* jobs.proto */
    struct mr_protowire_reader r = mr_protowire_read(body);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == F_REPEAT) return true;
    return false;
}

/* NULL: it asks for more than a small job has, so the next lane reads it. */
static struct mr_intake_done *handle_small(struct lane *in, struct mr_intake_request *r)
{
    static const struct mr_json_limits limits = {
        SMALL_NODES_MAX, SMALL_ARGS_MAX, SMALL_BYTES_MAX, NULL};
    if (r->form == MR_INTAKE_GRAPH && has_repeat(mr_buf_str(&r->body))) return NULL;
    if (r->form != MR_INTAKE_JSON) return handle(in, r);
    struct mr_intake_done *d = done_new(r);
    int err = parse(&in->ops, r, &limits, &d->graph, &d->error);
    if (err == MR_ELIMIT) {
        mr_intake_done_free(&d);
        return NULL;
    }
    finish(in, r, d, err);
    return d;
}

/* Few bytes can ask for much only by a loop, and a loop has one of these words in it, or an escape.
 */
static bool may_be_large(const struct mr_intake_request *r)
{
    if (r->body.n > AT_ONCE_BYTES_MAX) return true;
    return r->form == MR_INTAKE_JSON &&
           (memchr(r->body.p, '\\', r->body.n) || memmem(r->body.p, r->body.n, "\"for\"", 5) ||
               memmem(r->body.p, r->body.n, "\"repeat\"", 8));
}

static bool names_outside(const struct mr_graph *g)
{
    return g->option_of || memchr(g->kind, MR_NODE_NAME, g->nodes_count) ||
           memchr(g->kind, MR_NODE_OBJECT, g->nodes_count);
}

struct mr_intake_done *mr_intake_at_once(struct mr_intake *in, struct mr_intake_request *r)
{
    static const struct mr_json_limits limits = {
        AT_ONCE_NODES_MAX, AT_ONCE_ARGS_MAX, AT_ONCE_BYTES_MAX, NULL};
    if (in->lanes[LANE_SMALL].waiting || !r->body.n || r->stream || r->template || may_be_large(r))
        return NULL;
    struct mr_intake_done *d = done_new(r);
    int err = parse(&in->core_ops, r, &limits, &d->graph, &d->error);
    err = done_early(&in->core_ops, r, d, err);
    if (err == MR_ELIMIT || (!err && names_outside(d->graph))) {
        mr_intake_done_free(&d);
        return NULL;
    }
    if (!err) {
        keep_request_id(d, r);
        err = write_graph(d);
    }
    if (err) done_failed(d, err);
    return d;
}

static void answer(struct lane *in, struct mr_intake_done *d)
{
    const struct mr_shell_message out = {.kind = MR_SHELL_PARSED, .p = d};
    if (mr_inbox_push_wait(in->in->sh->inbox, &out, mr_clock_now() + 60 * MR_SECOND))
        mr_intake_done_free(&d);
}

static void take_piece(struct lane *in, struct piece *p)
{
    if (p->is_drop) {
        struct mr_intake_done *d = mr_alloc(sizeof *d);
        d->is_of_stream = d->is_dropped = true;
        mr_intake_stream_free(&p->stream);
        answer(in, d);
    } else {
        feed(in, p->stream, &p->bytes);
    }
    piece_free(&p);
}

/* To the lane for large ones. The core's thread is told first, so it counts the request there
 * before its answer comes. */
static void pass_on(struct lane *in, struct mr_intake_request *r)
{
    struct mr_intake_done *moved = mr_alloc(sizeof *moved);
    moved->lane = LANE_SMALL;
    moved->is_moved = true;
    answer(in, moved);
    r->lane = LANE_LARGE;
    const struct message m = {.request = r};
    if (!mr_inbox_push(in->in->lanes[LANE_LARGE].inbox, &m)) return;
    struct mr_intake_done *d = done_new(r);
    done_failed(
        d, mr_fail(&d->error, MR_EAWAY, "too many large submissions are waiting: try again"));
    mr_intake_request_free(&r);
    answer(in, d);
}

static void take_request(struct lane *in, struct mr_intake_request *r)
{
    bool is_small = in == &in->in->lanes[LANE_SMALL];
    struct mr_intake_done *d = is_small ? handle_small(in, r) : handle(in, r);
    if (!d) {
        pass_on(in, r);
        return;
    }
    mr_intake_request_free(&r);
    answer(in, d);
}

static void run(void *ctx)
{
    struct lane *in = ctx;
    for (;;) {
        struct message m;
        if (!mr_inbox_wait(in->inbox, MR_NEVER, &m, 1)) {
            if (mr_inbox_is_closed(in->inbox)) return;
            continue;
        }
        if (m.op) mr_intake_ops_add(&in->ops, m.op);
        if (m.piece) take_piece(in, m.piece);
        if (m.request) take_request(in, m.request);
    }
}

static int lane_open(struct mr_intake *in, uint32_t lane, const char *name, struct mr_error *e)
{
    struct lane *l = &in->lanes[lane];
    const struct mr_redis_config link = {
        .address = in->sh->options.redis, .password = in->sh->options.redis_password};
    l->in = in;
    l->inbox = mr_inbox_new(2 * WAITING_MAX + MR_FOREIGN_OPS_MAX, sizeof(struct message));
    mr_intake_ops_init(&l->ops);
    int err = mr_redis_open(&link, &l->redis, e);
    if (err) return err;
    l->directory = mr_directory_new(l->redis, NULL);
    if (lane == LANE_TEMPLATES) l->templates = mr_templates_new(l->redis);
    l->thread = mr_thread_start(name, run, l);
    return MR_OK;
}

static void lane_close(struct lane *l)
{
    if (!l->in) return;
    mr_inbox_close(l->inbox);
    mr_thread_join(&l->thread);
    struct message m;
    while (mr_inbox_take(l->inbox, &m, 1)) {
        mr_intake_request_free(&m.request);
        if (m.piece && m.piece->is_drop) mr_intake_stream_free(&m.piece->stream);
        piece_free(&m.piece);
        mr_release(m.op);
    }
    mr_inbox_free(&l->inbox);
    mr_templates_free(&l->templates);
    mr_redis_close(&l->redis);
    mr_directory_free(&l->directory);
    mr_intake_ops_fini(&l->ops);
}

int mr_intake_open(struct mr_shell *sh, struct mr_error *e)
{
    static const char *const names[LANES] = {"intake", "templates", "intake-large"};
    struct mr_intake *in = mr_alloc(sizeof *in);
    sh->intake = in;
    in->sh = sh;
    in->quota = mr_allowance_new(sh->options.reading_bytes, SMALL_BYTES_MAX);
    mr_intake_ops_init(&in->core_ops);
    int err = MR_OK;
    for (uint32_t i = LANES; i-- > 0 && !err;) /* the large one first: others pass on to it */
        err = lane_open(in, i, names[i], e);
    return err;
}

void mr_intake_close(struct mr_intake **inp)
{
    struct mr_intake *in = *inp;
    *inp = NULL;
    if (!in) return;
    for (uint32_t i = 0; i < LANES; i++)
        lane_close(&in->lanes[i]);
    for (uint32_t i = 0; i < in->drops_count; i++) {
        mr_intake_stream_free(&in->drops[i]->stream);
        piece_free(&in->drops[i]);
    }
    mr_intake_ops_fini(&in->core_ops);
    mr_allowance_free(&in->quota);
    mr_release(in);
}

struct mr_intake_request *mr_intake_request_new(struct mr_intake *in, uint64_t ticket)
{
    struct mr_intake_request *r = mr_alloc(sizeof *r);
    r->ticket = ticket;
    r->quota = in->quota;
    mr_buf_init(&r->body, MR_JOB_BODY_BYTES_MAX);
    return r;
}

int mr_intake_read(struct mr_intake *in, struct mr_intake_request *r, struct mr_rpc_call *call,
    struct mr_str bytes, struct mr_error *e)
{
    struct mr_str user = {0}; /* asked for only by what is large */
    if (!r->hold.counted && r->hold.bytes + bytes.n > SMALL_BYTES_MAX)
        user = mr_rpc_auth_caller(in->sh->auth, call);
    int err = mr_allowance_add(r->quota, &r->hold, user, bytes.n, e);
    if (err) return err;
    mr_buf_add_str(&r->body, bytes);
    if (!mr_buf_status(&r->body)) return MR_OK;
    return mr_fail(e, MR_ETOOBIG, "the graph is larger than %zu bytes", MR_JOB_BODY_BYTES_MAX);
}

static uint32_t lane_for(const struct mr_intake_request *r)
{
    if (r->form >= MR_INTAKE_INSTANTIATE) return LANE_TEMPLATES;
    return r->stream || r->body.n > SMALL_BYTES_MAX ? LANE_LARGE : LANE_SMALL;
}

int mr_intake_push(struct mr_intake *in, struct mr_intake_request **request)
{
    const struct message m = {.request = *request};
    uint32_t lane = (*request)->lane = lane_for(*request);
    struct lane *l = &in->lanes[lane];
    int err = l->waiting < WAITING_MAX ? mr_inbox_push(l->inbox, &m) : MR_ELIMIT;
    if (err) return err;
    l->waiting++;
    *request = NULL;
    return MR_OK;
}

void mr_intake_answered(struct mr_intake *in, const struct mr_intake_done *d)
{
    struct lane *l = &in->lanes[d->lane];
    if (d->is_of_stream) in->streams_open--;
    if (!d->is_dropped && l->waiting) l->waiting--;
    if (d->is_moved) in->lanes[LANE_LARGE].waiting++;
}

uint32_t mr_intake_small_waiting(const struct mr_intake *in)
{
    return in->lanes[LANE_SMALL].waiting;
}

static int push_piece(struct mr_intake *in, struct piece *p)
{
    const struct message m = {.piece = p};
    return mr_inbox_push(in->lanes[LANE_LARGE].inbox, &m);
}

void mr_intake_ahead(struct mr_intake *in, struct mr_intake_request *r)
{
    if (r->body.n < MR_INTAKE_PIECE_BYTES || mr_buf_status(&r->body)) return;
    while (in->drops_count && !push_piece(in, in->drops[in->drops_count - 1]))
        in->drops_count--;
    if (!r->stream) {
        if (in->streams_open == STREAMS_MAX) return;
        in->streams_open++;
        r->stream = mr_intake_stream_new(r->form == MR_INTAKE_JSON);
    }
    struct piece *p = mr_alloc(sizeof *p);
    p->stream = r->stream;
    p->bytes = r->body;
    if (push_piece(in, p)) { /* later, or with the request */
        mr_release(p);
        return;
    }
    size_t n = r->body.n;
    mr_buf_init(&r->body, r->body.bytes_max - n);
    mr_buf_reserve(&r->body, n); /* as a rule the next one is as long */
}

void mr_intake_drop(struct mr_intake *in, struct mr_intake_request **request)
{
    struct mr_intake_request *r = *request;
    if (r && r->stream) {
        struct piece *p = mr_alloc(sizeof *p);
        p->is_drop = true;
        p->stream = MR_STEAL(r->stream);
        if (push_piece(in, p)) in->drops[in->drops_count++] = p; /* one for each that is open */
    }
    mr_intake_request_free(request);
}

void mr_intake_add_op(struct mr_intake *in, struct mr_str name)
{
    char *copy = mr_alloc(name.n + 1);
    memcpy(copy, name.p, name.n);
    for (uint32_t i = 0; i < LANES; i++) {
        const struct message m = {.op = mr_copy_text(copy)};
        if (mr_inbox_push(in->lanes[i].inbox, &m)) mr_release(m.op); /* its worker tells again */
    }
    mr_intake_ops_add(&in->core_ops, copy);
}
