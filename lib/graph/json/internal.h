/* The JSON parser. Private to lib/graph/json. */
#pragma once

#include "graph/build/builder_state.h"
#include "graph/json/build.h"
#include "graph/json/json.h"

#define MR_JSON_PARAMS_MAX 256
#define MR_JSON_LOOP_VARS_MAX 8
#define MR_JSON_BINDINGS_MAX (MR_JSON_PARAMS_MAX + MR_JSON_LOOP_VARS_MAX * (MR_DEPTH_MAX + 2))

/* The name and the value of a `${name}`. */
struct mr_json_binding {
    struct mr_str name;
    yyjson_val *value;
    yyjson_val own; /* `value` points here if the variable runs through numbers */
};

/* A "for": `{"i": 3, "j": ["a", "b"]}` runs through all combinations, the last variable fastest. */
struct mr_json_loop {
    uint32_t vars_count;
    uint32_t bindings_at;
    uint64_t rounds;
    uint64_t round;
    struct {
        uint64_t n;
        uint64_t i;
        yyjson_val *list; /* NULL: the variable runs through the numbers below n */
        yyjson_arr_iter iter;
    } vars[MR_JSON_LOOP_VARS_MAX];
};

struct mr_json_frame;
struct mr_json_stream;
struct mr_json_slices;
struct mr_json_entries_source;

struct mr_json {
    struct mr_builder *b;
    const struct mr_graph_catalogue *catalogue;
    struct mr_error *e;
    bool dsk;

    /* Values of parameters, which replace the defaults; NULL: none are given. */
    yyjson_val *given;
    bool is_any_kind; /* true: given values may have other types than the defaults */
    bool has_params;
    uint32_t params_count;
    uint32_t bindings_count;
    struct mr_json_binding bindings[MR_JSON_BINDINGS_MAX];
    /* Texts of an entry's options, kept until the builder has copied them. */
    struct mr_text_arena kept;
    struct mr_buf text; /* the last text with `${…}` replaced */
    yyjson_val text_val;

    /* Values are written into this buffer instead of the arguments of the open task; NULL: into
     * these arguments. */
    struct mr_buf *plain;
    struct mr_json_frame *frames;
    uint32_t frames_count;
    uint32_t frames_room;
};

struct mr_json_mode {
    /* true: objects such as {"ref": key}, nested tasks and `each` are interpreted; false in
     * literals */
    bool refs;
    bool substitute; /* true: `${name}` is replaced; false in {"literal": …} and in parameters */
};

/* ---- params.c ---- */

/* Returns the value with its `${…}` replaced, valid until the next call. `*from_param` (may be
 * NULL) is true if the result is the value of a parameter. NULL: the error is in `*err`. */
yyjson_val *mr_json_resolve(struct mr_json *j, yyjson_val *v, bool *from_param, int *err);
/* Like mr_json_resolve, but the result is always a text: `${i}` alone does not become a number.
 * Used for keys. */
yyjson_val *mr_json_resolve_text(struct mr_json *j, yyjson_val *v, int *err);
int mr_json_params(struct mr_json *j, yyjson_val *params);
/* Appends all parameters with their values in MessagePack. */
int mr_json_pack_params(struct mr_json *j, struct mr_buf *out);
int mr_json_loop_open(struct mr_json *j, yyjson_val *spec, struct mr_json_loop *loop);
bool mr_json_loop_next(struct mr_json *j, struct mr_json_loop *loop);
void mr_json_loop_close(struct mr_json *j, struct mr_json_loop *loop);

/* ---- value.c ---- */

/* Writes a value as one item of the arguments of the innermost open task. */
int mr_json_write(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth);
/* Adds a task with this node and operator: opens it, writes its arguments, closes it. `skip_first`:
 * the first item of `args` is not an argument but the operator. */
int mr_json_task(struct mr_json *j, uint32_t node, struct mr_str op, yyjson_val *args,
    yyjson_val *kwargs, bool skip_first);
bool mr_json_is_op(const struct mr_json *j, struct mr_str name);
int mr_json_no_duplicates(struct mr_json *j, yyjson_val *object);
/* Appends a JSON value to `out` in MessagePack, as data: references and `${…}` are not interpreted.
 */
int mr_json_pack(struct mr_json *j, yyjson_val *v, struct mr_buf *out);

/* ---- entries.c ---- */

int mr_json_entries(struct mr_json *j, yyjson_val *tasks);

/* ---- repeat.c ---- */

/* mr_json_repeat_declare makes the nodes for the results of the loops. mr_json_repeat adds the
 * loops, when all other keys have nodes. */
int mr_json_repeat_declare(struct mr_json *j, yyjson_val *repeat);
int mr_json_repeat(struct mr_json *j, yyjson_val *repeat);

/* ---- task.c ---- */

int mr_json_entry(struct mr_json *j, uint32_t node, yyjson_val *entry);
/* Prefetches slots of the hash table of keys into the processor's cache: those of the keys that an
 * entry's outermost arguments refer to. */
void mr_json_prefetch(const struct mr_json *j, yyjson_val *entry);
/* Returns the entry's "for", or NULL. */
yyjson_val *mr_json_entry_loop(const struct mr_json *j, yyjson_val *entry);

/* ---- parsed.c ---- */

/* Like mr_json_parse, but leaves out the entries that `slices` (may be NULL) has found in the
 * text. */
yyjson_doc *mr_json_parse_rest(
    struct mr_str text, const struct mr_json_slices *slices, struct mr_error *e);

/* ---- build.c ---- */

struct mr_json *mr_json_new(const struct mr_json_limits *limits,
    const struct mr_graph_catalogue *catalogue, struct mr_error *e);
void mr_json_free(struct mr_json **j);
/* Returns the limits for a job's text of `text_bytes` bytes when the parser's caller sets none. */
struct mr_json_limits mr_json_widest(size_t text_bytes);

/* ---- document.c ---- */

/* An entry is a member of the object "tasks" or "dsk". This struct tells where the entries are if
 * the parsed document lacks them. All zeros: the document is complete. */
struct mr_json_entries_source {
    struct mr_str text;                  /* the whole text; empty: unknown, as in a template */
    const struct mr_json_slices *slices; /* the entries in `text`; NULL: the document has them */
    struct mr_json_stream *stream;       /* a stream that has taken the entries; NULL: none */
};

/* Adds all of the job to the builder. */
int mr_json_document(
    struct mr_json *j, yyjson_val *root, const struct mr_json_entries_source *entries);

/* ---- stream.c ---- */

/* Reads the slices of entries that the stream has deferred (stream.c). To be called when the keys
 * of all entries have nodes. */
int mr_json_stream_finish(struct mr_json_stream *a);

/* ---- errors ---- */

int mr_json_unknown(struct mr_json *j, const char *what, struct mr_str name,
    const char *const *known, size_t known_count);
