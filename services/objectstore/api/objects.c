/* Methods with one request and one reply: Stat, List, Delete, Pin, Persist, Stats, Metrics. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "services/objectstore/api/scheduler_session.h"
#include "services/objectstore/api/call.h"
#include "services/objectstore/api/directory_entries.h"
#include "store/object/collection.h"

#include <millrace/v1/metrics.pb-c.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE_MAX 1000u
#define PIN_SECONDS_MAX 3600.0
#define COLLECTION_BYTES_MAX ((uint64_t)16 << 20)
#define LOOK_WAIT (5 * MR_SECOND)

static void on_open(struct mr_rpc_call *rpc)
{
    (void)mr_ostore_call_new(rpc);
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    (void)status;
    mr_ostore_call_over(mr_ostore_call_of(rpc));
}

static void reply(struct mr_ostore_call *call, const void *m)
{
    (void)mr_rpc_call_reply_pb(call->rpc, m);
}

static void fail_unknown(struct mr_ostore_call *call)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    mr_ostore_call_fail(
        call, MR_ENOENT, "object %s is not in the store of node \"%s\"", id, call->sv->config.node);
}

/* ---- what is shown of an object ---------------------------------------------------------------*/

void mr_ostore_call_describe(
    struct mr_ostore_call *call, struct mr_str bytes, Millrace__V1__ObjectInfo *out)
{
    struct mr_value v;
    if (mr_value_check(bytes, &v, NULL)) return;
    char summary[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, summary);
    out->kind = mr_ostore_call_text(call, mr_str(mr_value_kind_name(v.kind)));
    out->summary = mr_ostore_call_text(call, mr_str(summary));
    out->drawn = v.is_drawn;
    if (v.kind == MR_VALUE_TENSOR)
        out->dtype = mr_ostore_call_text(call, mr_str(mr_dtype_name(v.tensor.dtype)));
    if (v.kind != MR_VALUE_TENSOR && v.kind != MR_VALUE_COLLECTION) return;
    out->n_shape = v.tensor.ndim;
    out->shape = mr_ostore_call_take(call, v.tensor.ndim * sizeof *out->shape + 1);
    if (v.tensor.ndim) memcpy(out->shape, v.tensor.shape, v.tensor.ndim * sizeof *out->shape);
}

static void describe_from_memory(
    struct mr_ostore_call *call, const struct mr_ostore_info *info, Millrace__V1__ObjectInfo *out)
{
    struct mr_store_view view;
    if (!info->in_memory || mr_store_get(call->sv->self, info->id, NULL, 0, &view, NULL)) return;
    mr_ostore_call_describe(call, mr_str_of(view.p, view.bytes), out);
    mr_store_release(call->sv->self, &view);
}

static void show_holders(
    struct mr_ostore_call *call, const struct mr_ostore_info *info, Millrace__V1__ObjectInfo *out)
{
    size_t n = MR_MIN(info->holders_count, (uint32_t)MR_OSTORE_HOLDERS_SHOWN);
    out->holders = mr_ostore_call_take(call, (n + 1) * sizeof *out->holders);
    out->names = mr_ostore_call_take(call, (n + 1) * sizeof *out->names);
    for (size_t i = 0; i < n; i++) {
        char text[MR_KEY_BYTES_MAX + 16];
        struct mr_store_holder h = info->holders[i];
        mr_ostore_shell_holder_text(h, text, sizeof text);
        const char *name = h.kind == MR_HOLD_NAME ? mr_names_by_key(call->sv->names, h.key) : NULL;
        if (name) {
            out->names[out->n_names++] = mr_ostore_call_text(call, mr_str(name));
            snprintf(text, sizeof text, "name %s", name);
        }
        out->holders[out->n_holders++] = mr_ostore_call_text(call, mr_str(text));
    }
}

Millrace__V1__ObjectInfo *mr_ostore_call_info(
    struct mr_ostore_call *call, const struct mr_ostore_info *info)
{
    Millrace__V1__ObjectInfo *out = mr_ostore_call_take(call, sizeof *out);
    millrace__v1__object_info__init(out);
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(info->id, id);
    out->id = mr_ostore_call_text(call, mr_str(id));
    out->nbytes = info->bytes;
    const char *state = info->persisted ? (info->in_memory ? "persisted" : "disk")
                                        : (info->in_memory ? "memory" : "spilled");
    out->state = mr_ostore_call_text(call, mr_str(state));
    out->durable = info->persisted;
    out->pins = info->pins;
    out->node = mr_ostore_call_text(call, mr_str(call->sv->config.node));
    out->created_ns = mr_clock_wall() - (mr_clock_now() - info->created);
    show_holders(call, info, out);
    describe_from_memory(call, info, out);
    return out;
}

static void end_call(void *p)
{
    mr_ostore_call_end(p);
}

static void place_told(void *ctx, int err) /* any thread */
{
    struct mr_ostore_call *call = ctx;
    if (!err) mr_places_added(call->sv, call->id);
    mr_service_post(call->sv, end_call, call);
}

void mr_ostore_call_place(
    struct mr_ostore_call *call, const Millrace__V1__ObjectInfo *info, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    struct mr_place_record r = {
        .object = call->id,
        .nbytes = info->nbytes,
        .node = mr_str(call->sv->config.node),
        .address = mr_str(call->sv->address),
        .durable = info->durable,
    };
    mr_names_place(call->sv->names, &r, place_told, call);
}

/* ---- Stat, List -------------------------------------------------------------------------------*/

static void stat_done(struct mr_ostore_call *call)
{
    if (call->err)
        fail_unknown(call);
    else
        reply(call, mr_ostore_call_info(call, &call->ask.infos[0]));
}

static void stat_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, stat_done);
}

static void on_stat(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__StatRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__stat_request__descriptor);
    if (r) mr_ostore_call_find_id(call, "id", r->id, stat_found);
}

static void list_done(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    Millrace__V1__ListObjectsResponse out = MILLRACE__V1__LIST_OBJECTS_RESPONSE__INIT;
    size_t n = call->ask.infos_count;
    out.objects = mr_ostore_call_take(call, (n + 1) * sizeof(void *));
    for (size_t i = 0; i < n; i++)
        out.objects[out.n_objects++] = mr_ostore_call_info(call, &call->ask.infos[i]);
    char token[32] = "";
    if (n && n == call->ask.n_max)
        snprintf(token, sizeof token, "%" PRIu64, call->ask.infos[n - 1].sequence);
    out.next_page_token = token;
    reply(call, &out);
}

static void on_list(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__ListObjectsRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__list_objects_request__descriptor);
    if (!r) return;
    uint64_t after = 0;
    if (r->page_size > PAGE_MAX) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "page_size: %u is not within 0 to %u", r->page_size, PAGE_MAX);
        return;
    }
    if (r->page_token[0] && mr_config_parse_u64(mr_str(r->page_token), &after)) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "page_token: \"%s\" is not from an earlier answer", r->page_token);
        return;
    }
    call->ask.after = after;
    call->ask.n_max = r->page_size ? r->page_size : 100;
    mr_ostore_call_ask(call, MR_ASK_PAGE, list_done);
}

/* ---- an object with its parts ---------------------------------------------------------------- */

struct parts {
    mr_object_id *ids; /* the object itself is the last */
    uint64_t *bytes;
    uint32_t count;
    uint32_t at;
    struct mr_persisting persisting; /* of a Persist; bytes: of all of them */
};

/* call->more becomes the parts of the collection in call->view, if it is one, and call->id. */
static void take_parts(struct mr_ostore_call *call)
{
    struct parts *p = mr_ostore_call_take(call, sizeof *p);
    mr_object_id whole = call->id;
    call->more = p;
    struct mr_value v;
    struct mr_collection c;
    bool is_collection = !call->err && call->view.pin &&
                         !mr_value_check(mr_str_of(call->view.p, call->view.bytes), &v, NULL) &&
                         v.kind == MR_VALUE_COLLECTION && !mr_collection_open(&v, &c, NULL);
    uint32_t count = is_collection ? c.count : 0;
    p->ids = mr_ostore_call_take(call, (count + 1) * sizeof *p->ids);
    p->bytes = mr_ostore_call_take(call, (count + 1) * sizeof *p->bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_collection_part part;
        if (mr_collection_part(&c, i, &part, NULL) || mr_object_id_is_none(part.id)) continue;
        p->persisting.bytes += part.nbytes;
        p->bytes[p->count] = part.nbytes;
        p->ids[p->count++] = part.id;
    }
    p->persisting.bytes += call->view.bytes;
    p->bytes[p->count] = call->view.bytes;
    p->ids[p->count++] = whole;
}

/* ---- Delete, Pin ------------------------------------------------------------------------------*/

static void delete_refused(struct mr_ostore_call *call)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    char holder[64];
    mr_object_id_format(call->id, id);
    mr_ostore_shell_holder_text(call->ask.holder, holder, sizeof holder);
    const char *name = call->ask.holder.kind == MR_HOLD_NAME
                           ? mr_names_by_key(call->sv->names, call->ask.holder.key)
                           : NULL;
    mr_ostore_call_fail(call, call->err,
        "object %s is held by %s%s; delete it with force, or let that go first", id,
        name ? "name " : "", name ? name : holder);
}

/* The parts of a collection go with it, unless something else holds them. */
static void delete_part(struct mr_ostore_call *call);

static void part_deleted(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    p->at++;
    delete_part(call);
}

static void part_looked_up(struct mr_ostore_call *call)
{
    call->ask.ev.flags = 0;
    if (call->err)
        mr_ostore_call_remote(call, "/millrace.v1.Objects/Delete", part_deleted);
    else
        mr_ostore_call_event(call, MR_OE_DELETE, part_deleted);
}

static void delete_part(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (p->at + 1 >= p->count) {
        Millrace__V1__DeleteObjectResponse out = MILLRACE__V1__DELETE_OBJECT_RESPONSE__INIT;
        reply(call, &out);
        return;
    }
    call->id = p->ids[p->at];
    mr_ostore_call_stat(call, part_looked_up);
}

static void ignore_name(void *ctx, int err, const struct mr_name_record *record)
{
    (void)ctx;
    (void)err;
    (void)record;
}

/* Names of what is deleted by force lead nowhere: they go with it. */
static void remove_names(struct mr_ostore_call *call)
{
    for (size_t i = 0; i < call->names_count; i++)
        mr_names_remove(call->sv->names, call->names[i].name, call->id, ignore_name, NULL);
}

static void delete_done(struct mr_ostore_call *call)
{
    if (call->err) {
        delete_refused(call);
        return;
    }
    remove_names(call);
    delete_part(call);
}

static void delete_viewed(struct mr_ostore_call *call)
{
    take_parts(call);
    if (call->view.pin) mr_store_release(call->sv->self, &call->view);
    call->ask.ev = (struct mr_ostore_event){.flags = call->forced ? MR_OSTORE_FORCE : 0};
    mr_ostore_call_event(call, MR_OE_DELETE, delete_done);
}

/* call->names become those of the object, as far as they are known. */
static void take_names(struct mr_ostore_call *call)
{
    const struct mr_ostore_info *info = &call->ask.infos[0];
    call->names = mr_ostore_call_take(call, MR_OSTORE_HOLDERS_SHOWN * sizeof *call->names);
    call->names_count = 0;
    for (uint32_t i = 0; i < MR_MIN(info->holders_count, (uint32_t)MR_OSTORE_HOLDERS_SHOWN); i++) {
        if (info->holders[i].kind != MR_HOLD_NAME) continue;
        const char *name = mr_names_by_key(call->sv->names, info->holders[i].key);
        if (name)
            call->names[call->names_count++].name = mr_str(mr_ostore_call_text(call, mr_str(name)));
    }
}

static void delete_known(struct mr_ostore_call *call)
{
    if (!call->err && call->forced) take_names(call);
    if (call->err)
        fail_unknown(call);
    else if (call->ask.infos[0].bytes <= COLLECTION_BYTES_MAX)
        mr_ostore_call_get(call, NULL, LOOK_WAIT, delete_viewed); /* is it a collection? */
    else
        delete_viewed(call);
}

static void delete_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, delete_known);
}

static void on_delete(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__DeleteObjectRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__delete_object_request__descriptor);
    if (!r) return;
    call->forced = r->force;
    mr_ostore_call_find_id(call, "id", r->id, delete_found);
}

static void pin_done(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    /* The pin is the call's view: it lives on without its call, until the time is over. */
    double seconds = *(const double *)call->more;
    mr_lease_view(call->sv, &call->view, (mr_duration)(seconds * 1e9));
    mr_ostore_call_stat(call, stat_done);
}

static void pin_known(struct mr_ostore_call *call)
{
    if (call->err)
        fail_unknown(call);
    else
        mr_ostore_call_get(call, NULL, 30 * MR_SECOND, pin_done);
}

static void pin_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, pin_known);
}

static void on_pin(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__PinRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__pin_request__descriptor);
    if (!r) return;
    if (!(r->seconds >= 0 && r->seconds <= PIN_SECONDS_MAX)) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "seconds: %g is not between 0 and %g", r->seconds, PIN_SECONDS_MAX);
        return;
    }
    double *seconds = mr_ostore_call_take(call, sizeof *seconds);
    *seconds = r->seconds;
    call->more = seconds;
    mr_ostore_call_find_id(call, "id", r->id, pin_found);
}

/* ---- Persist: a collection takes its partitions along ---------------------------------------- */

static void persist_next(struct mr_ostore_call *call);

static void persist_failed(struct mr_ostore_call *call, const char *why)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    mr_ostore_call_fail(call, call->err, "object %s cannot be persisted: %s", id, why);
}

static void persist_went_remote(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (call->err) {
        persist_failed(call, call->error.text);
        return;
    }
    p->at++;
    persist_next(call);
}

const char *mr_ostore_call_why_not_written(struct mr_ostore_call *call)
{
    if (call->err == MR_ESTATE) return "the store was started without --dir";
    if (call->err != MR_EDISKFULL) return mr_err_words(call->err);
    char why[512];
    (void)snprintf(why, sizeof why, "no space left on %.400s", call->sv->config.dir);
    return mr_ostore_call_text(call, mr_str(why));
}

/* A part is written, or is another store's business from now on, which tells of it then. */
static void persist_less(struct parts *p)
{
    p->persisting.bytes -= MR_MIN(p->bytes[p->at], p->persisting.bytes);
}

static void persist_over(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    mr_list_remove(&p->persisting.node);
}

static void persist_written(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    bool is_part = p->at + 1 < p->count;
    persist_less(p);
    if (call->err == MR_ENOENT && is_part) {
        mr_ostore_call_remote(call, "/millrace.v1.Objects/Persist", persist_went_remote);
    } else if (call->err) {
        persist_failed(call, mr_ostore_call_why_not_written(call));
    } else {
        p->at++;
        persist_next(call);
    }
}

static void persist_placed(struct mr_ostore_call *call)
{
    reply(call, call->info);
}

static void persist_done(struct mr_ostore_call *call)
{
    if (call->err) {
        fail_unknown(call);
        return;
    }
    call->info = mr_ostore_call_info(call, &call->ask.infos[0]);
    mr_names_persisted(call->sv->names, call->info);
    mr_ostore_call_place(call, call->info, persist_placed);
}

static void persist_next(struct mr_ostore_call *call)
{
    struct parts *p = call->more;
    if (p->at == p->count) {
        mr_ostore_call_stat(call, persist_done);
        return;
    }
    call->id = p->ids[p->at];
    mr_ostore_call_event(call, MR_OE_PERSIST, persist_written);
}

static void persist_look(struct mr_ostore_call *call)
{
    mr_job_id job = *(const mr_job_id *)call->more;
    take_parts(call);
    struct parts *p = call->more;
    p->persisting.job = job;
    mr_list_add_tail(&call->sv->persisting, &p->persisting.node);
    call->fini = persist_over;
    persist_next(call);
}

static void persist_known(struct mr_ostore_call *call)
{
    if (call->err) {
        fail_unknown(call);
        return;
    }
    mr_job_id *job = mr_ostore_call_take(call, sizeof *job);
    *job = call->ask.infos[0].owner.job;
    call->more = job;
    mr_ostore_call_get(call, NULL, 30 * MR_SECOND, persist_look);
}

static void persist_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, persist_known);
}

static void on_persist(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__PersistRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__persist_request__descriptor);
    if (r) mr_ostore_call_find_id(call, "id", r->id, persist_found);
}

/* ---- Stats, Metrics ---------------------------------------------------------------------------*/

static void stats_done(struct mr_ostore_call *call)
{
    const struct mr_store_stats *s = &call->ask.stats;
    Millrace__V1__StatsResponse out = MILLRACE__V1__STATS_RESPONSE__INIT;
    out.node = mr_unconst(call->sv->config.node);
    out.id = call->sv->sh->welcome.node;
    out.memory_bytes = s->memory_bytes_max;
    out.committed_bytes = s->memory_bytes;
    out.used_bytes = s->object_bytes;
    out.spilled_bytes = s->spilled_bytes;
    out.persisted_bytes = s->persisted_bytes;
    out.objects = s->objects;
    out.clients = s->clients;
    out.segments = s->segments;
    out.puts = call->sv->puts;
    out.gets = call->sv->gets;
    out.pulls = s->pulls;
    out.pulled_bytes = s->pulled_bytes;
    out.spills = s->spills;
    out.restores = s->restores;
    out.freed_unclaimed = s->orphans_freed;
    out.pinned_bytes = s->pinned_bytes;
    out.objects_max = s->objects_max;
    out.seals_refused = s->seals_refused;
    out.written_bytes = s->written_bytes;
    out.read_bytes = s->read_bytes;
    out.disk_full = call->ask.disk.is_full;
    out.write_failures = call->ask.disk.write_failures;
    reply(call, &out);
}

static void on_stats(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    if (mr_ostore_call_request(call, m, &millrace__v1__stats_request__descriptor))
        mr_ostore_call_ask(call, MR_ASK_STATS, stats_done);
}

static void series(
    struct mr_buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    mr_buf_printf(
        b, "# HELP millrace_store_%s %s\n# TYPE millrace_store_%s %s\n", name, help, name, type);
    mr_buf_printf(b, "millrace_store_%s %" PRIu64 "\n", name, v);
}

static void metrics_done(struct mr_ostore_call *call)
{
    const struct mr_store_stats *s = &call->ask.stats;
    struct mr_buf b;
    mr_buf_init(&b, (size_t)1 << 20);
    mr_stats_write(call->sv->stats, &b);
    series(&b, "memory_bytes", "gauge", "Budget of shared memory.", s->memory_bytes_max);
    series(&b, "committed_bytes", "gauge", "Memory of all segments.", s->memory_bytes);
    series(&b, "used_bytes", "gauge", "Bytes of objects in memory.", s->object_bytes);
    series(&b, "spilled_bytes", "gauge", "Bytes of objects on disk only.", s->spilled_bytes);
    series(&b, "persisted_bytes", "gauge", "Bytes of persisted objects.", s->persisted_bytes);
    series(&b, "pinned_bytes", "gauge", "Bytes of objects that are pinned.", s->pinned_bytes);
    series(&b, "objects_max", "gauge", "Objects that may be known.", s->objects_max);
    series(&b, "seals_refused_total", "counter", "Objects lost because of that limit.",
        s->seals_refused);
    series(&b, "objects", "gauge", "Objects known.", s->objects);
    series(&b, "clients", "gauge", "Local clients.", s->clients);
    series(&b, "segments", "gauge", "Segments of shared memory.", s->segments);
    series(&b, "puts_total", "counter", "Uploads.", call->sv->puts);
    series(&b, "gets_total", "counter", "Downloads.", call->sv->gets);
    series(&b, "pulls_total", "counter", "Objects copied from other stores.", s->pulls);
    series(&b, "pulled_bytes_total", "counter", "Bytes of them.", s->pulled_bytes);
    series(&b, "spills_total", "counter", "Objects that left memory for the disk.", s->spills);
    series(&b, "restores_total", "counter", "Objects that came back.", s->restores);
    series(&b, "written_bytes_total", "counter", "Bytes of objects written to the disk.",
        s->written_bytes);
    series(&b, "read_bytes_total", "counter", "Bytes of objects brought back from the disk.",
        s->read_bytes);
    series(&b, "disk_full", "gauge", "1: the last write found no space left on the disk.",
        call->ask.disk.is_full);
    series(&b, "write_failures_total", "counter", "Writes to the disk that failed.",
        call->ask.disk.write_failures);
    series(&b, "orphans_total", "counter", "Objects freed because nobody held them.",
        s->orphans_freed);
    mr_buf_add_byte(&b, 0);
    Millrace__V1__ReadMetricsResponse out = MILLRACE__V1__READ_METRICS_RESPONSE__INIT;
    out.text = (char *)b.p;
    reply(call, &out);
    mr_buf_fini(&b);
}

static void on_metrics(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    if (mr_ostore_call_request(call, m, &millrace__v1__read_metrics_request__descriptor))
        mr_ostore_call_ask(call, MR_ASK_STATS, metrics_done);
}

// clang-format off
#define UNARY(fn) &(const struct mr_rpc_handler){.on_open = on_open, .on_message = fn, .on_done = on_done}
static const struct mr_rpc_method methods[] = {
    {.name = "Put", .client_streaming = true, .handler = &mr_put_handler},
    {.name = "Get", .server_streaming = true, .handler = &mr_get_handler},
    {.name = "Pull", .server_streaming = true, .handler = &mr_pull_handler},
    {.name = "Stat", .handler = UNARY(on_stat)},
    {.name = "List", .handler = UNARY(on_list)},
    {.name = "Delete", .handler = UNARY(on_delete)},
    {.name = "Pin", .handler = UNARY(on_pin)},
    {.name = "Persist", .handler = UNARY(on_persist)},
    {.name = "Name", .handler = UNARY(mr_on_name)},
    {.name = "Resolve", .handler = UNARY(mr_on_resolve)},
    {.name = "Unname", .handler = UNARY(mr_on_unname)},
    {.name = "Names", .handler = UNARY(mr_on_names)},
    {.name = "Renamed", .handler = UNARY(mr_on_renamed)},
    {.name = "Stats", .handler = UNARY(on_stats)},
    {.name = "Where", .handler = UNARY(mr_on_where)},
};
static const struct mr_rpc_method metrics_methods[] = {{.name = "Read", .handler = UNARY(on_metrics)}};
// clang-format on

const struct mr_rpc_service mr_objects_service = {
    .name = "millrace.v1.Objects", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
const struct mr_rpc_service mr_metrics_service = {.name = "millrace.v1.Metrics",
    .methods = metrics_methods,
    .methods_count = MR_ARRAY_LEN(metrics_methods)};
