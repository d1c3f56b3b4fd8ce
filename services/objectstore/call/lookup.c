/* Asks the store's directory (control/directory.h) about the names of objects, and for the nodes
 * that have an object. An answer of the directory is valid only during the callback, which any
 * thread may run. So the answer is copied for the gRPC thread. */
#include "services/objectstore/call/lookup.h"

#include "base/alloc.h"

#include <string.h>
#include <xxhash.h>

#define NAME_PREFIX "name:"

struct name_answer { /* an answer on its way to the gRPC thread */
    struct mr_ostore_call *call;
    int err;
    struct mr_name_record *records; /* the texts of the records are in `texts` */
    size_t count;
    bool more;
    char *texts;
    char *place;
};

static struct mr_str keep(char **at, struct mr_str s)
{
    struct mr_str kept = {*at, s.n};
    if (s.n) memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

static void take_records(struct name_answer *a, const struct mr_name_record *records, size_t count)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes +=
            records[i].name.n + records[i].summary.n + records[i].node.n + records[i].address.n;
    a->records = mr_alloc_array(count ? count : 1, sizeof *records);
    a->texts = mr_alloc(bytes);
    a->count = count;
    char *at = a->texts;
    for (size_t i = 0; i < count; i++) {
        struct mr_name_record *r = &a->records[i];
        *r = records[i];
        r->name = keep(&at, r->name);
        r->summary = keep(&at, r->summary);
        r->node = keep(&at, r->node);
        r->address = keep(&at, r->address);
    }
}

static void on_names(void *p)
{
    struct name_answer *a = p;
    struct mr_ostore_call *call = a->call;
    call->err = a->err;
    call->names_more = a->more;
    call->names_count = a->count;
    call->names = mr_ostore_call_take(call, (a->count + 1) * sizeof *call->names);
    for (size_t i = 0; i < a->count; i++) {
        struct mr_name_record *r = &call->names[i];
        *r = a->records[i];
        r->name = mr_str(mr_ostore_call_text(call, r->name));
        r->summary = mr_str(mr_ostore_call_text(call, r->summary));
        r->node = mr_str(mr_ostore_call_text(call, r->node));
        r->address = mr_str(mr_ostore_call_text(call, r->address));
    }
    call->place =
        a->place ? mr_str(mr_ostore_call_text(call, mr_str(a->place))) : (struct mr_str){0};
    mr_release(a->records);
    mr_release(a->texts);
    mr_release(a->place);
    mr_release(a);
    mr_ostore_call_end(call);
}

static void name_came(void *ctx, int err, const struct mr_name_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    take_records(a, record, record ? 1 : 0);
    mr_posts_add(a->call->sv->posts, on_names, a);
}

static void names_came(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct name_answer *a = ctx;
    a->err = err;
    a->more = more;
    take_records(a, records, err ? 0 : count);
    mr_posts_add(a->call->sv->posts, on_names, a);
}

static void place_came(void *ctx, int err, const struct mr_place_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    if (!err && record) a->place = mr_format("%.*s", MR_STR_ARG(record->address));
    mr_posts_add(a->call->sv->posts, on_names, a);
}

static struct name_answer *ask_names(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    struct name_answer *a = mr_alloc(sizeof *a);
    a->call = call;
    return a;
}

void mr_ostore_call_resolve(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then)
{
    mr_names_resolve(call->sv->names, name, name_came, ask_names(call, then));
}

static void id_resolved(struct mr_ostore_call *call)
{
    if (call->err == MR_ENOENT) {
        mr_ostore_call_fail(call, call->err, "id: no object has the name \"%s\"", call->wanted);
    } else if (call->err) {
        mr_ostore_call_fail(call, call->err, "id: the name \"%s\" cannot be looked up: %s",
            call->wanted,
            call->err == MR_EAWAY ? "names are kept in Redis, which does not answer"
                                  : mr_err_words(call->err));
    } else {
        call->id = call->names[0].object;
        call->wanted_by(call);
    }
}

void mr_ostore_call_find_id(
    struct mr_ostore_call *call, const char *field, const char *text, mr_ostore_call_fn then)
{
    bool is_name = !strncmp(text, NAME_PREFIX, strlen(NAME_PREFIX));
    if (!is_name) {
        if (mr_ostore_call_parse_id(call, field, text)) then(call);
        return;
    }
    call->wanted = text + strlen(NAME_PREFIX);
    call->wanted_by = then;
    if (mr_ostore_call_check_name(call, field, call->wanted))
        mr_ostore_call_resolve(call, mr_str(call->wanted), id_resolved);
}

void mr_ostore_call_unname(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then)
{
    mr_names_remove(call->sv->names, name, (mr_object_id){0}, name_came, ask_names(call, then));
}

void mr_ostore_call_set_name(struct mr_ostore_call *call, const struct mr_name_record *record,
    bool replace, mr_ostore_call_fn then)
{
    mr_names_set(call->sv->names, record, replace, name_came, ask_names(call, then));
}

void mr_ostore_call_list_names(struct mr_ostore_call *call, struct mr_str prefix,
    struct mr_str after, uint32_t n_max, mr_ostore_call_fn then)
{
    mr_names_list(call->sv->names, prefix, after, n_max, names_came, ask_names(call, then));
}

void mr_ostore_call_find(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    mr_names_find(call->sv->names, call->id, place_came, ask_names(call, then));
}

uint64_t mr_name_key(struct mr_str name)
{
    return XXH3_64bits(name.p, name.n);
}
