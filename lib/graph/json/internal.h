/* The inside of the JSON parser, for its files. Nobody else includes this. */
#pragma once

#include "graph/build/builder_state.h"
#include "base/unconst.h"
#include "graph/json/json.h"

#include <yyjson.h>

#define MR_JSON_PARAMS_MAX 256
#define MR_JSON_LOOP_VARS_MAX 8
#define MR_JSON_BINDINGS_MAX (MR_JSON_PARAMS_MAX + MR_JSON_LOOP_VARS_MAX * (MR_DEPTH_MAX + 2))

/* What a `${name}` stands for. */
struct mr_json_binding {
    struct mr_str name;
    yyjson_val *value;
    yyjson_val own; /* what `value` points at while a loop counts */
};

/* `{"i": 3, "j": ["a", "b"]}`: all combinations, the first variable slowest. */
struct mr_json_loop {
    uint32_t vars_count;
    uint32_t bindings_at;
    uint64_t rounds;
    uint64_t round;
    struct {
        uint64_t n;
        uint64_t i;
        yyjson_val *list; /* NULL: counts */
        yyjson_arr_iter iter;
    } vars[MR_JSON_LOOP_VARS_MAX];
};

struct mr_json_frame;
struct mr_json_ahead;
struct mr_json_split;

struct mr_json {
    struct mr_builder *b;
    const struct mr_graph_catalogue *catalogue;
    struct mr_error *e;
    bool dsk;

    yyjson_val *given; /* parameters instead of their defaults, or NULL */
    bool is_any_kind;  /* … and not of their kind */
    bool has_params;
    uint32_t params_count;
    uint32_t bindings_count;
    struct mr_json_binding bindings[MR_JSON_BINDINGS_MAX];
    struct mr_pool kept; /* what an entry's options need until they are the builder's */
    struct mr_buf text;  /* the last text that had something put in */
    yyjson_val text_val;

    struct mr_buf *plain; /* where values go instead of the open task; NULL */
    struct mr_json_frame *frames;
    uint32_t frames_count;
    uint32_t frames_room;
};

/* How a value is read. */
struct mr_json_mode {
    bool refs;       /* references, nested tasks, `each`; off inside literals */
    bool substitute; /* `${name}`; off inside {"literal": …} and what a parameter holds */
};

static inline struct mr_str mr_json_text(const yyjson_val *v)
{
    return mr_str_of(unsafe_yyjson_get_str(mr_unconst(v)), unsafe_yyjson_get_len(mr_unconst(v)));
}

/* ---- params.c ---- */

/* The value itself, or what its `${…}` make of it: valid until the next call. `*from_param` (may
 * be NULL) tells that it is a parameter's own value. NULL and the error in `*err`. */
yyjson_val *mr_json_resolve(struct mr_json *j, yyjson_val *v, bool *from_param, int *err);
/* The same, but always a text: `${i}` alone is not a number here, as in keys. */
yyjson_val *mr_json_resolve_text(struct mr_json *j, yyjson_val *v, int *err);
int mr_json_params(struct mr_json *j, yyjson_val *params);
/* All parameters with the values they have, as a pack. */
int mr_json_pack_params(struct mr_json *j, struct mr_buf *out);
int mr_json_loop_open(struct mr_json *j, yyjson_val *spec, struct mr_json_loop *loop);
bool mr_json_loop_next(struct mr_json *j, struct mr_json_loop *loop);
void mr_json_loop_close(struct mr_json *j, struct mr_json_loop *loop);

/* ---- value.c ---- */

/* Writes a value as one item into the innermost open task of the builder. */
int mr_json_write(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth);
/* Fills a task whose key and op are known: opens it, writes its arguments, closes it. */
int mr_json_task(struct mr_json *j, uint32_t node, struct mr_str op, yyjson_val *args,
    yyjson_val *kwargs, bool skip_first);
bool mr_json_is_op(const struct mr_json *j, struct mr_str name);
int mr_json_no_duplicates(struct mr_json *j, yyjson_val *object);
/* A plain JSON value as a pack, without any of the notation. */
int mr_json_pack(struct mr_json *j, yyjson_val *v, struct mr_buf *out);

/* ---- entries.c ---- */

int mr_json_entries(struct mr_json *j, yyjson_val *tasks);

/* ---- repeat.c ---- */

/* The nodes of what comes out of the loops; then, when all else has its nodes, the loops. */
int mr_json_repeat_declare(struct mr_json *j, yyjson_val *repeat);
int mr_json_repeat(struct mr_json *j, yyjson_val *repeat);

/* ---- task.c ---- */

int mr_json_entry(struct mr_json *j, uint32_t node, yyjson_val *entry);
/* Fetches what looking up the references in an entry's outermost arguments will need. */
void mr_json_look_ahead(const struct mr_json *j, yyjson_val *entry);
/* Its "for", or NULL. */
yyjson_val *mr_json_entry_loop(const struct mr_json *j, yyjson_val *entry);

/* ---- json.c ---- */

struct mr_json_source { /* of a graph */
    yyjson_val *root;
    yyjson_val *given; /* in the place of its parameters, or NULL */
    bool is_any_kind;  /* these may be of other kinds than the defaults */
    size_t text_bytes;
    struct mr_str text; /* with `split`: what was cut out of the document stands there */
    const struct mr_json_split *split;
    struct mr_json_ahead *ahead; /* or it was read ahead; NULL */
};

struct mr_json *mr_json_new(const struct mr_json_limits *limits,
    const struct mr_graph_catalogue *catalogue, struct mr_error *e);
void mr_json_free(struct mr_json **j);
struct mr_json_limits mr_json_widest(size_t text_bytes); /* those of any job */
/* All of a document, into the builder. */
int mr_json_document(struct mr_json *j, const struct mr_json_source *from);

int mr_json_build(const struct mr_json_source *from, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
/* NULL, and why in `e`. */
yyjson_doc *mr_json_parse(struct mr_str text, struct mr_error *e);

/* ---- stream.c ---- */

/* Reads the entries that were put off: all keys are there. */
int mr_json_ahead_finish(struct mr_json_ahead *a);

/* ---- errors ---- */

const char *mr_json_kind(const yyjson_val *v); /* "a text", "a list" … */
int mr_json_unknown(struct mr_json *j, const char *what, struct mr_str name,
    const char *const *known, size_t known_count);
