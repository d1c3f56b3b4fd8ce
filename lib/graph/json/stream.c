/* Reads a job in JSON while it arrives (stream.h). The text stays in the pieces in which it
 * arrived. Each piece is cut into slices of complete entries. An entry that two pieces share is
 * copied into a small piece of its own:
 *
 *   … , "a": {…}, "b": {"op":      "inc", "args": [1]}, "c": {…}, "d
 *   ─── piece ── ┴── a piece of one entry ──────────┴── piece ──┴──   and so on
 *
 * Slices are read when there is one for each thread. A slice that is not simple, mostly because it
 * refers to a later key, is deferred to the end. */
#include "graph/json/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "graph/json/entries.h"
#include "graph/json/fast_path.h"
#include "graph/parallel.h"

#define HEAD_BYTES_MAX ((size_t)256 << 10) /* bytes of the text before the entries */
/* limit of the bytes of an incomplete entry. The entry is scanned again from its start whenever
 * more of it has come. If an entry is longer, the stream only collects the text (phase OFF). */
#define REST_BYTES_MAX ((size_t)4 << 20)
#define REST_STEP_BYTES ((size_t)4 << 10)
/* When slices name operators that the builder does not know, these operators are added and the
 * slices are read again: at most this many times. */
#define NEW_OPS_MAX 8

enum phase {
    HEAD,    /* before the entries: `head` has the text so far */
    ENTRIES, /* inside the entries: `rest` has the beginning of an incomplete entry */
    TAIL,    /* after the entries: `rest` has the text after them */
    OFF,     /* the text is only collected; mr_json_stream_end reads the whole text */
};

/* A part of the job's text: after the stream's `head`, and before the stream's `rest`. */
struct stretch {
    struct mr_buf bytes;
    size_t from; /* where the part begins in `bytes`; the previous stretch has the bytes before */
};

struct cut_text { /* entries that have been cut from a text and are not read yet */
    struct mr_str text;
    struct mr_json_slices split;
};

/* Texts that come from one piece: the entry that began in an earlier piece, and the rest of this
 * piece. */
#define CUT_MAX 2

struct mr_json_stream {
    enum phase phase;
    struct mr_json_limits limits;
    bool is_within; /* true: the caller has set the limits */
    struct mr_json *j;
    struct mr_json_slicer slicer;
    struct mr_json_fast_path *plain;
    struct mr_buf head, rest;
    struct cut_text found[CUT_MAX];
    uint32_t found_count;
    /* Another thread cuts this piece while slices of the previous piece are read. */
    struct mr_buf *piece;
    bool is_hopeless; /* true: an incomplete entry exceeds REST_BYTES_MAX; the phase OFF follows */
    struct stretch *stretches;
    uint32_t stretches_count, stretches_room;
    struct mr_json_piece *put_off;
    uint32_t put_off_count, put_off_room;
    size_t bytes; /* bytes of the whole text so far */
    struct mr_error error;
};

struct mr_json_stream *mr_json_stream_new_within(const struct mr_json_limits *limits)
{
    struct mr_json_stream *a = mr_alloc(sizeof *a);
    mr_assert(limits->parallel);
    a->limits = *limits;
    a->is_within = true;
    mr_buf_init(&a->head, MR_JOB_BODY_BYTES_MAX);
    mr_buf_init(&a->rest, MR_JOB_BODY_BYTES_MAX);
    return a;
}

struct mr_json_stream *mr_json_stream_new(const struct mr_graph_parallel *parallel)
{
    struct mr_json_limits limits = mr_json_widest(MR_JOB_BODY_BYTES_MAX);
    limits.parallel = parallel;
    struct mr_json_stream *a = mr_json_stream_new_within(&limits);
    a->is_within = false;
    return a;
}

static void drop_found(struct cut_text *found, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        mr_json_slices_fini(&found[i].split);
}

static void drop_reader(struct mr_json_stream *a)
{
    drop_found(a->found, a->found_count);
    a->found_count = 0;
    mr_json_slicer_fini(&a->slicer);
    mr_json_fast_path_free(&a->plain);
    mr_release(a->put_off);
    a->put_off = NULL;
    a->put_off_count = a->put_off_room = 0;
    if (a->j) mr_builder_free(&a->j->b);
    mr_json_free(&a->j);
}

static void drop_text(struct mr_json_stream *a)
{
    for (uint32_t i = 0; i < a->stretches_count; i++)
        mr_buf_fini(&a->stretches[i].bytes);
    mr_release(a->stretches);
    a->stretches = NULL;
    a->stretches_count = a->stretches_room = 0;
}

void mr_json_stream_free(struct mr_json_stream **ap)
{
    struct mr_json_stream *a = MR_STEAL(*ap);
    if (!a) return;
    drop_reader(a);
    drop_text(a);
    mr_buf_fini(&a->head);
    mr_buf_fini(&a->rest);
    mr_release(a);
}

/* Moves the buffer `bytes` into a->stretches and leaves `bytes` empty. `from`: where the text after
 * the previous stretch begins in the buffer. Returns the buffer's text, which stays at its address
 * until drop_text or join frees the buffer. */
static struct mr_str keep(struct mr_json_stream *a, struct mr_buf *bytes, size_t from)
{
    if (a->stretches_count == a->stretches_room) {
        uint32_t room = a->stretches_room ? a->stretches_room * 2 : 16;
        a->stretches = mr_grow(
            a->stretches, a->stretches_room * sizeof *a->stretches, room * sizeof *a->stretches);
        a->stretches_room = room;
    }
    a->stretches[a->stretches_count++] = (struct stretch){*bytes, from};
    struct mr_str text = mr_buf_str(bytes);
    mr_buf_init(bytes, MR_JOB_BODY_BYTES_MAX);
    return text;
}

static void give_up(struct mr_json_stream *a)
{
    drop_reader(a);
    if (a->rest.n) (void)keep(a, &a->rest, 0);
    a->phase = OFF;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void put_off(struct mr_json_stream *a, const struct mr_json_piece *piece)
{
    if (a->put_off_count == a->put_off_room) {
        uint32_t room = a->put_off_room ? a->put_off_room * 2 : 64;
        a->put_off = mr_grow(a->put_off, a->put_off_room * sizeof *piece, room * sizeof *piece);
        a->put_off_room = room;
    }
    a->put_off[a->put_off_count++] = *piece;
}

/* Each slice tells at most one operator that the builder does not know yet. Adds these operators to
 * the builder if they exist. True: at least one was added, so the slices should be read again. */
static bool brings_op(struct mr_json_stream *a, uint32_t count)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        struct mr_str op;
        uint16_t number = 0;
        struct mr_graph_op_info info;
        const struct mr_graph_catalogue *c = a->j->catalogue;
        if (!mr_json_fast_path_misses(a->plain, i, &op)) continue;
        if (c->find(c->ctx, op, &info)) found |= !mr_builder_op(a->j->b, op, &number, NULL);
    }
    return found;
}

/* ---- cutting: on another thread, while slices are read --------------------------------------- */

static void find(struct mr_json_stream *a, struct mr_str text, struct mr_json_slices *split)
{
    mr_assert(a->found_count < CUT_MAX);
    a->found[a->found_count++] = (struct cut_text){text, *split};
}

/* Completes the entry in `rest` with bytes of this piece. Returns the position after the entry. If
 * it returns the size of the piece, the entry may go on in the next piece. */
static size_t complete_rest(struct mr_json_stream *a, const struct mr_buf *piece, bool *is_end)
{
    size_t taken = 0;
    while (taken < piece->n) {
        size_t had = a->rest.n, some = MR_MIN(piece->n - taken, MR_MAX(had, REST_STEP_BYTES));
        mr_buf_add(&a->rest, piece->p + taken, some);
        struct mr_json_slices split = {0};
        uint32_t at = 0;
        *is_end = mr_json_slices_add(mr_buf_str(&a->rest), &at, 1, a->limits.slice_bytes, &split);
        if (at) {
            a->rest.n = at;
            find(a, keep(a, &a->rest, 0), &split);
            return taken + at - had;
        }
        mr_json_slices_fini(&split);
        taken += some;
    }
    a->is_hopeless = a->rest.n > REST_BYTES_MAX;
    return taken;
}

/* Finds the entries of this piece from `from` on, and keeps the incomplete entry at its end in
 * `rest`. */
static void cut(struct mr_json_stream *a, struct mr_buf *piece, size_t from)
{
    bool is_end = false;
    if (a->rest.n) from = complete_rest(a, piece, &is_end);
    if (from == piece->n) {
        mr_buf_fini(piece);
    } else {
        uint32_t at = (uint32_t)from;
        struct mr_str text = keep(a, piece, from);
        struct mr_json_slices split = {0};
        if (!is_end)
            is_end = mr_json_slices_add(text, &at, MR_TASKS_MAX, a->limits.slice_bytes, &split);
        find(a, text, &split);
        mr_buf_add(&a->rest, text.p + at, text.n - at);
        a->stretches[a->stretches_count - 1].bytes.n = at;
    }
    if (is_end) a->phase = TAIL;
}

static void cut_piece(void *ctx)
{
    struct mr_json_stream *a = ctx;
    if (a->piece) cut(a, a->piece, 0);
    a->piece = NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads slices whose keys have nodes. At the same time another thread cuts a->piece. */
static int read_some(struct mr_json_stream *a, const struct mr_json_piece *pieces, uint32_t count)
{
    mr_json_fast_path_read_beside(a->plain, pieces, count, cut_piece, a);
    for (int i = 0; i < NEW_OPS_MAX && brings_op(a, count); i++)
        mr_json_fast_path_read(a->plain, pieces, count, false);
    int err = MR_OK;
    for (uint32_t i = 0; i < count && !err; i++) {
        bool taken = false;
        err = mr_json_fast_path_add(a->plain, i, &taken);
        if (!taken && !err) put_off(a, &pieces[i]);
    }
    return err;
}

static int read_found(struct mr_json_stream *a, const struct cut_text *found, uint32_t count)
{
    uint32_t room = mr_json_fast_path_room(a->plain), n = 0;
    struct mr_json_piece *pieces = mr_alloc_array(room, sizeof *pieces);
    int err = MR_OK;
    for (uint32_t t = 0; t < count; t++)
        for (uint32_t i = 0; i < found[t].split.slices_count && !err; i++) {
            const struct mr_json_slices *split = &found[t].split;
            pieces[n] = mr_json_piece_of(found[t].text, split, i, a->j->b->keys.count);
            err = split->slices[i].is_plain
                      ? mr_json_slice_keys(&a->slicer, found[t].text, split, &split->slices[i])
                      : MR_EFORMAT;
            if (++n < room || err) continue;
            err = read_some(a, pieces, n);
            n = 0;
        }
    if (!err && n) err = read_some(a, pieces, n);
    mr_release(pieces);
    return err;
}

/* Reads the entries of the previous piece. At the same time another thread cuts `piece` (may be
 * NULL). */
static void entries(struct mr_json_stream *a, struct mr_buf *piece)
{
    struct cut_text found[CUT_MAX];
    uint32_t count = a->found_count;
    memcpy(found, a->found, sizeof found);
    a->found_count = 0;
    a->piece = piece;
    int err = read_found(a, found, count);
    cut_piece(a);
    drop_found(found, count);
    if (err || a->is_hopeless) give_up(a);
}

static void begin(struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue, bool is_dsk)
{
    a->j = mr_json_new(&a->limits, catalogue, &a->error);
    a->j->dsk = is_dsk;
    a->slicer.j = a->j;
    a->plain = mr_json_fast_path_new(a->j);
    a->phase = ENTRIES;
}

static bool has(const struct mr_buf *text, struct mr_str word)
{
    return text->n && memmem(text->p, text->n, word.p, word.n);
}

/* Adds a piece to a->head, the text before the entries. When a piece reaches the entries, reading
 * begins. A text with parameters or loops cannot be read early. */
static void head(
    struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue, struct mr_buf *piece)
{
    bool is_dsk = false;
    size_t had = a->head.n;
    mr_buf_add(&a->head, piece->p, piece->n);
    uint32_t at = mr_json_entries_at(mr_buf_str(&a->head), &is_dsk);
    if (!at) {
        mr_buf_fini(piece);
        if (a->head.n > HEAD_BYTES_MAX) give_up(a);
        return;
    }
    /* The brace that opens the entries lies in this piece. Had it been in an earlier piece, the
     * call with that piece would have found it. */
    mr_assert(at > had);
    a->head.n = at;
    if (at <= HEAD_BYTES_MAX && !has(&a->head, MR_STR("\"params\"")) &&
        !has(&a->head, MR_STR("\"repeat\""))) {
        begin(a, catalogue, is_dsk);
        cut(a, piece, at - had);
    } else {
        (void)keep(a, piece, at - had);
        give_up(a);
    }
}

void mr_json_stream_feed(
    struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue, struct mr_buf *piece)
{
    a->bytes += piece->n;
    if (a->j) a->j->catalogue = catalogue;
    switch (a->phase) {
    case HEAD: head(a, catalogue, piece); break;
    case ENTRIES: entries(a, piece); break;
    case TAIL:
        mr_buf_add(&a->rest, piece->p, piece->n);
        mr_buf_fini(piece);
        break;
    case OFF: (void)keep(a, piece, 0); break;
    }
    if (a->j) a->j->catalogue = NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Copies all parts of the job's text to `text`, in order. */
static void join(struct mr_json_stream *a, struct mr_buf *text)
{
    mr_buf_init(text, MR_JOB_BODY_BYTES_MAX);
    /* The text may be empty, and the reservation must be positive. */
    mr_buf_reserve(text, MR_MAX(a->bytes, (size_t)1));
    mr_buf_add(text, a->head.p, a->head.n);
    for (uint32_t i = 0; i < a->stretches_count; i++) {
        struct stretch *s = &a->stretches[i];
        mr_buf_add(text, s->bytes.p + s->from, s->bytes.n - s->from);
        mr_buf_fini(&s->bytes);
    }
    mr_buf_add(text, a->rest.p, a->rest.n);
    mr_assert(text->n == a->bytes);
}

int mr_json_stream_finish(struct mr_json_stream *a)
{
    return mr_json_read_parallel(&a->slicer, a->put_off, a->put_off_count);
}

/* Reads the fields around the entries, and the slices that were deferred. */
static int fill(struct mr_json_stream *a)
{
    struct mr_builder *b = a->j->b;
    if (b->args.n > a->limits.args_bytes_max) return MR_ELIMIT;
    b->args.bytes_max = a->limits.args_bytes_max;
    mr_buf_add_text(&a->head, "}");
    mr_buf_add(&a->head, a->rest.p, a->rest.n);
    yyjson_doc *doc = mr_json_parse(mr_buf_str(&a->head), &a->error);
    a->head.n -= a->rest.n + 1;
    if (!doc) return MR_EFORMAT;
    const struct mr_json_entries_source entries_source = {.stream = a};
    int err = mr_json_document(a->j, yyjson_doc_get_root(doc), &entries_source);
    yyjson_doc_free(doc);
    return err;
}

int mr_json_stream_end(struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    if (!a->is_within) {
        const struct mr_graph_parallel *parallel = a->limits.parallel;
        a->limits = mr_json_widest(a->bytes);
        a->limits.parallel = parallel;
    }
    struct mr_builder *b = NULL;
    if (a->j) a->j->catalogue = catalogue;
    if (a->phase == TAIL) entries(a, NULL);
    if (a->phase == TAIL && !fill(a)) b = MR_STEAL(a->j->b);
    drop_reader(a);
    if (b) {
        drop_text(a);
        return mr_graph_build(&b, catalogue, out, e);
    }
    struct mr_buf text;
    join(a, &text);
    if (!a->is_within) return mr_graph_from_json_buf(&text, catalogue, a->limits.parallel, out, e);
    int err = mr_graph_from_json_within(mr_buf_str(&text), catalogue, &a->limits, out, e);
    mr_buf_fini(&text);
    return err;
}
