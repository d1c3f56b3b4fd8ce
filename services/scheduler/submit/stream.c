#include "services/scheduler/submit/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/json/stream.h"
#include "host/pool/thread_pool.h"
#include "services/scheduler/submit/pb_columns.h"

#include <xxhash.h>

/* several threads parse a body of at least this size */
#define PARALLEL_BYTES_MIN ((size_t)2 << 20)
#define PARALLEL_WORKERS_MAX 4

struct mr_parser_stream {
    bool is_json;
    struct mr_pb_stream *columns;
    struct mr_json_stream *json; /* NULL before the first piece; uses the threads of `parallel` */
    struct mr_graph_parallel parallel;
    struct mr_buf *pieces;
    size_t pieces_count, pieces_room;
    XXH3_state_t *hash; /* hash of all bytes */
};

static void run_parallel(
    void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg, uint32_t count)
{
    mr_thread_pool_run(ctx, work, arg, count);
}

static void parallel_open(uint32_t workers, struct mr_graph_parallel *parallel)
{
    *parallel = (struct mr_graph_parallel){
        .workers = workers, .run = run_parallel, .ctx = mr_thread_pool_new(workers)};
}

bool mr_parser_parallel_open(size_t bytes, struct mr_graph_parallel *parallel)
{
    uint32_t workers =
        bytes < PARALLEL_BYTES_MIN ? 1 : mr_thread_pool_workers_here(PARALLEL_WORKERS_MAX);
    *parallel = (struct mr_graph_parallel){.workers = workers};
    if (workers > 1) parallel_open(workers, parallel);
    return workers > 1;
}

void mr_parser_parallel_close(struct mr_graph_parallel *parallel)
{
    struct mr_thread_pool *c = parallel->ctx;
    mr_thread_pool_free(&c);
    parallel->ctx = NULL;
}

struct mr_parser_stream *mr_parser_stream_new(bool is_json)
{
    struct mr_parser_stream *s = mr_alloc(sizeof *s);
    s->is_json = is_json;
    if (!is_json) s->columns = mr_pb_stream_new();
    s->hash = XXH3_createState();
    mr_assert(s->hash);
    (void)XXH3_128bits_reset(s->hash);
    return s;
}

static void drop_pieces(struct mr_parser_stream *s)
{
    for (size_t i = 0; i < s->pieces_count; i++)
        mr_buf_fini(&s->pieces[i]);
    s->pieces_count = 0;
}

void mr_parser_stream_free(struct mr_parser_stream **sp)
{
    struct mr_parser_stream *s = *sp;
    *sp = NULL;
    if (!s) return;
    mr_pb_stream_free(&s->columns);
    mr_json_stream_free(&s->json);
    mr_parser_parallel_close(&s->parallel);
    drop_pieces(s);
    mr_release(s->pieces);
    (void)XXH3_freeState(s->hash);
    mr_release(s);
}

static void feed_columns(struct mr_parser_stream *s, struct mr_buf *bytes)
{
    if (s->pieces_count == s->pieces_room) {
        size_t room = s->pieces_room ? s->pieces_room * 2 : 16;
        s->pieces = mr_grow(s->pieces, s->pieces_room * sizeof *bytes, room * sizeof *bytes);
        s->pieces_room = room;
    }
    s->pieces[s->pieces_count++] = *bytes;
    struct mr_str all = mr_buf_str(bytes);
    *bytes = (struct mr_buf){0};
    for (size_t at = 0; at < all.n;)
        mr_pb_stream_add(s->columns, mr_pb_framed_next(all, &at));
}

/* Opens the JSON parser when the first piece arrives. Runs on the parser thread. */
static void json_open(struct mr_parser_stream *s)
{
    if (s->json) return;
    parallel_open(mr_thread_pool_workers_here(PARALLEL_WORKERS_MAX), &s->parallel);
    s->json = mr_json_stream_new(&s->parallel);
}

void mr_parser_stream_feed(
    struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue, struct mr_buf *bytes)
{
    (void)XXH3_128bits_update(s->hash, bytes->p, bytes->n);
    if (!s->is_json) {
        feed_columns(s, bytes);
        return;
    }
    json_open(s);
    mr_json_stream_feed(s->json, catalogue, bytes);
}

static size_t bytes_of(const struct mr_parser_stream *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->pieces_count; i++)
        bytes += s->pieces[i].n;
    return bytes;
}

int mr_parser_stream_end(struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    if (s->is_json) {
        json_open(s);
        return mr_json_stream_end(s->json, catalogue, out, e);
    }
    struct mr_builder *b = mr_pb_stream_end(s->columns);
    size_t bytes = bytes_of(s);
    int err = MR_OK;
    if (!b) {
        mr_pb_stream_free(&s->columns);
        b = mr_builder_new();
        err = mr_pb_columns_add(b, s->pieces, s->pieces_count, e);
    }
    drop_pieces(s); /* freed here, before the graph needs memory */
    if (err) {
        mr_builder_free(&b);
        return err;
    }
    if (mr_parser_parallel_open(bytes, &s->parallel)) mr_builder_set_parallel(b, &s->parallel);
    return mr_graph_build(&b, catalogue, out, e);
}

mr_graph_hash mr_parser_stream_hash(const struct mr_parser_stream *s)
{
    XXH128_hash_t h = XXH3_128bits_digest(s->hash);
    return (mr_graph_hash){h.high64, h.low64};
}
