#include "services/scheduler/submit/parse.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "graph/bytes/bytes.h"
#include "graph/json/json.h"
#include "rpc/util/pb.h"
#include "services/scheduler/core/state/effect.h"
#include "services/scheduler/submit/names.h"
#include "services/scheduler/submit/pb_columns.h"
#include "services/scheduler/submit/pb_graph.h"
#include "services/scheduler/submit/stream.h"
#include "services/scheduler/submit/templates.h"
#include "store/meta/journal/journal.h"

#define TINY_BYTES_MAX ((size_t)4096)
#define TINY_NODES_MAX 64
#define TINY_ARGS_MAX ((size_t)16384)
#define SMALL_NODES_MAX 4096
#define SMALL_ARGS_MAX ((size_t)1 << 20)

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
    bool is_parallel = mr_parser_parallel_open(body->n, &parallel);
    int err = mr_graph_from_json_buf(body, catalogue, is_parallel ? &parallel : NULL, out, e);
    mr_parser_parallel_close(&parallel);
    return err;
}

/* Parses the body to a graph. A JSON body that exceeds `limits` fails with MR_ELIMIT; `limits` does
 * not apply to other bodies. NULL: only the limits of all jobs apply, and a JSON body is freed. */
static int parse(struct mr_parser_ops *o, struct mr_parser_request *r,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e)
{
    const struct mr_graph_catalogue catalogue = mr_parser_ops_catalogue(&o);
    o->has_missed = false;
    struct mr_str body = mr_buf_str(&r->body);
    if (r->form == MR_PARSER_JSON && limits)
        return mr_graph_from_json_within(body, &catalogue, limits, out, e);
    if (r->stream) return mr_parser_stream_end(r->stream, &catalogue, out, e);
    if (r->form == MR_PARSER_JSON) return parse_json(&r->body, &catalogue, out, e);
    struct mr_builder *b = mr_builder_new();
    int err =
        r->form == MR_PARSER_GRAPH ? add_message(b, body, e) : mr_pb_columns_add(b, &r->body, 1, e);
    if (err) {
        mr_builder_free(&b);
        return err;
    }
    struct mr_graph_parallel parallel;
    if (mr_parser_parallel_open(body.n, &parallel)) mr_builder_set_parallel(b, &parallel);
    err = mr_graph_build(&b, &catalogue, out, e);
    mr_parser_parallel_close(&parallel);
    return err;
}

/* Replaces an error about an unknown operator after a restart: the operator may belong to a worker
 * that has not registered again. The client is told to try again. */
static int check_missed_op(const struct mr_parser_ops *o, const struct mr_parser_request *r,
    struct mr_parser_result *d, int err)
{
    if (!err || !r->is_recovering || !o->has_missed) return err;
    const struct mr_error why = d->error;
    return mr_fail(&d->error, MR_EAWAY,
        "the scheduler has just started and waits for its workers; try again: %s", why.text);
}

static void keep_request_id(struct mr_parser_result *d, const struct mr_parser_request *r)
{
    if (r->request_id)
        d->graph->job.request_id = mr_text_arena_copy(&d->graph->text, mr_str(r->request_id));
}

static char *copy_text(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

static void add_template(void *ctx, const struct mr_template_info *x)
{
    struct mr_parser_result *d = ctx;
    size_t old = d->templates_count * sizeof *d->templates;
    d->templates = mr_grow(d->templates, old, old + sizeof *d->templates);
    d->templates[d->templates_count++] = (struct mr_parser_template){.name = copy_text(x->name),
        .params = copy_text(x->params),
        .json = copy_text(x->json),
        .installed_ns = x->installed_ns,
        .nbytes = x->nbytes,
        .tasks = x->tasks};
}

/* Handles the calls Install, Get, List and Delete. */
static struct mr_parser_result *handle_template(
    struct mr_parse_thread *t, const struct mr_parser_request *r)
{
    struct mr_parser_ops *o = &t->ops;
    const struct mr_graph_catalogue catalogue = mr_parser_ops_catalogue(&o);
    struct mr_parser_result *d = mr_parser_result_new(r);
    struct mr_str name = mr_str(r->template);
    struct mr_template_info info = {0};
    int err = MR_OK;
    o->has_missed = false;
    if (r->form == MR_PARSER_LIST) {
        err = mr_templates_list(t->templates, add_template, d, &d->error);
    } else if (r->form == MR_PARSER_DELETE) {
        err = mr_templates_delete(t->templates, name, &d->error);
    } else if (r->form == MR_PARSER_GET) {
        err = mr_templates_get(t->templates, name, &catalogue, &info, &d->error);
    } else {
        err = mr_templates_install(
            t->templates, name, mr_buf_str(&r->body), r->replace, &catalogue, &info, &d->error);
        err = check_missed_op(o, r, d, err);
        info.json = (struct mr_str){0};
    }
    if (!err && info.name.n) add_template(d, &info);
    if (err) mr_parser_result_fail(d, err);
    return d;
}

static int parse_template(
    struct mr_parse_thread *t, const struct mr_parser_request *r, struct mr_parser_result *d)
{
    struct mr_parser_ops *o = &t->ops;
    const struct mr_graph_catalogue catalogue = mr_parser_ops_catalogue(&o);
    o->has_missed = false;
    return mr_templates_graph(t->templates, mr_str(r->template), mr_buf_str(&r->body), &catalogue,
        &d->graph, &d->template, &d->error);
}

/* Returns memory for the next bytes of the graph. A large graph is written as journal records of
 * one chunk each. These are never copied from here on, and each is freed when Redis has it. */
static unsigned char *next_piece(void *ctx, size_t n, uint64_t total)
{
    struct mr_parser_result *d = ctx;
    if (total <= MR_CHUNK_BYTES) return mr_buf_extend(&d->graph_bytes, n);
    if (!d->pieces) d->pieces = mr_alloc_array(total / MR_CHUNK_BYTES + 1, sizeof *d->pieces);
    char *piece = mr_journal_record_new(MR_SCHED_PIECE_HEAD_BYTES + n);
    d->pieces[d->pieces_count++] = piece;
    d->piece_bytes = total;
    return (unsigned char *)piece + MR_SCHED_PIECE_HEAD_BYTES;
}

static int write_graph(struct mr_parser_result *d)
{
    uint64_t total = 0;
    const struct mr_graph_pieces to = {next_piece, d, MR_CHUNK_BYTES, d->graph_bytes.bytes_max};
    return mr_graph_to_pieces(d->graph, &to, &total, &d->error);
}

void mr_parse_feed(struct mr_parse_thread *t, struct mr_parser_stream *stream, struct mr_buf *bytes)
{
    struct mr_parser_ops *o = &t->ops;
    const struct mr_graph_catalogue catalogue = mr_parser_ops_catalogue(&o);
    mr_parser_stream_feed(stream, &catalogue, bytes);
}

/* Makes the result of a parsed graph: resolves names and writes the graph as bytes for the journal.
 * `err`: the parser's error. */
static void finish(struct mr_parse_thread *t, const struct mr_parser_request *r,
    struct mr_parser_result *d, int err)
{
    err = check_missed_op(&t->ops, r, d, err);
    if (err == MR_ELIMIT)
        err = d->error.code = MR_EINVAL; /* MR_ELIMIT would invite the client to try again */
    if (!err) {
        keep_request_id(d, r);
        err = mr_parser_resolve_names(t->directory, d, &d->error);
    }
    if (!err) err = write_graph(d);
    if (err) mr_parser_result_fail(d, err);
}

struct mr_parser_result *mr_parse(struct mr_parse_thread *t, struct mr_parser_request *r)
{
    if (r->form >= MR_PARSER_INSTALL) return handle_template(t, r);
    bool has_stream = r->stream != NULL;
    if (r->form == MR_PARSER_COLUMNS && !r->stream) r->stream = mr_parser_stream_new(false);
    if (r->stream && r->body.n) mr_parse_feed(t, r->stream, &r->body);
    struct mr_parser_result *d = mr_parser_result_new(r);
    d->has_stream = has_stream;
    int err = r->form == MR_PARSER_INSTANTIATE ? parse_template(t, r, d)
                                               : parse(&t->ops, r, NULL, &d->graph, &d->error);
    finish(t, r, d, err);
    return d;
}

/* True: the SubmitGraphRequest has loops, so a few bytes may make a large graph. */
static bool has_repeat(struct mr_str body)
{
    enum { F_REPEAT = 8 }; /* number of the field in jobs.proto */
    struct mr_protowire_reader r = mr_protowire_read(body);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == F_REPEAT) return true;
    return false;
}

struct mr_parser_result *mr_parse_small(struct mr_parse_thread *t, struct mr_parser_request *r)
{
    static const struct mr_json_limits limits = {
        SMALL_NODES_MAX, SMALL_ARGS_MAX, MR_PARSE_SMALL_BYTES_MAX, NULL};
    if (r->form == MR_PARSER_GRAPH && has_repeat(mr_buf_str(&r->body))) return NULL;
    if (r->form != MR_PARSER_JSON) return mr_parse(t, r);
    struct mr_parser_result *d = mr_parser_result_new(r);
    int err = parse(&t->ops, r, &limits, &d->graph, &d->error);
    if (err == MR_ELIMIT) {
        mr_parser_result_free(&d);
        return NULL;
    }
    finish(t, r, d, err);
    return d;
}

/* True: the body is long, or it may have a loop. Only a loop makes many nodes of a short body. In
 * JSON, a loop needs the key "for" or "repeat", perhaps written with an escape. */
static bool may_be_large(const struct mr_parser_request *r)
{
    if (r->body.n > TINY_BYTES_MAX) return true;
    if (r->form == MR_PARSER_GRAPH) return has_repeat(mr_buf_str(&r->body));
    return r->form == MR_PARSER_JSON &&
           (memchr(r->body.p, '\\', r->body.n) || memmem(r->body.p, r->body.n, "\"for\"", 5) ||
               memmem(r->body.p, r->body.n, "\"repeat\"", 8));
}

static bool names_outside(const struct mr_graph *g)
{
    return g->option_of || memchr(g->kind, MR_NODE_NAME, g->nodes_count) ||
           memchr(g->kind, MR_NODE_OBJECT, g->nodes_count);
}

struct mr_parser_result *mr_parse_tiny(struct mr_parser_ops *ops, struct mr_parser_request *r)
{
    static const struct mr_json_limits limits = {
        TINY_NODES_MAX, TINY_ARGS_MAX, TINY_BYTES_MAX, NULL};
    if (!r->body.n || r->stream || r->template || may_be_large(r)) return NULL;
    struct mr_parser_result *d = mr_parser_result_new(r);
    int err = parse(ops, r, &limits, &d->graph, &d->error);
    err = check_missed_op(ops, r, d, err);
    if (err == MR_ELIMIT || (!err && names_outside(d->graph))) {
        mr_parser_result_free(&d);
        return NULL;
    }
    if (!err) {
        keep_request_id(d, r);
        err = write_graph(d);
    }
    if (err) mr_parser_result_fail(d, err);
    return d;
}
