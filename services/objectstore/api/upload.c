/* The method Put: joins the pieces of a body, converts the body from the declared format, and seals
 * the object. Then it persists and names the object if the request says so. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "services/objectstore/api/convert.h"
#include "services/objectstore/call/info.h"
#include "services/objectstore/cluster/directory_entries.h"

#include <string.h>
#include <yyjson.h>

#define SEAL_WAIT (30 * MR_SECOND)

struct upload {
    struct mr_format_job job;
    struct mr_buf body;
    char *mime;
    char *name;
    char *options_json;
    yyjson_doc *options;
    bool replace;
    bool persist;
    bool started;
    bool sealed;
    struct mr_allowance_hold hold;
};

static void upload_fini(struct mr_ostore_call *call)
{
    struct upload *u = call->more;
    mr_allowance_drop(call->sv->uploads, &u->hold);
    u->job.call = call;
    mr_format_job_fini(&u->job);
    mr_buf_fini(&u->body);
    if (u->options) yyjson_doc_free(u->options);
    mr_release(u->mime);
    mr_release(u->name);
    mr_release(u->options_json);
    mr_release(u);
}

static void on_open(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_new(rpc);
    struct upload *u = mr_alloc(sizeof *u);
    call->more = u;
    call->fini = upload_fini;
    mr_buf_init(&u->body, call->sv->sh->config.memory_bytes);
}

static bool take_options(
    struct mr_ostore_call *call, struct upload *u, const Millrace__V1__PutRequest *r)
{
    if (r->name[0] && !mr_ostore_call_check_name(call, "name", r->name)) return false;
    u->started = true;
    u->name = mr_copy_text(r->name);
    u->replace = r->replace;
    u->persist = r->persist;
    if (u->persist && !call->sv->sh->config.dir) {
        mr_ostore_call_fail(call, MR_ESTATE, "persist: this store was started without --dir");
        return false;
    }
    u->mime = mr_copy_text(r->format[0] ? r->format : r->body ? r->body->content_type : "");
    u->options_json = mr_copy_text(r->options_json);
    return true;
}

static bool take_body(
    struct mr_ostore_call *call, struct upload *u, const ProtobufCBinaryData *data)
{
    uint64_t bytes_max = call->sv->sh->config.memory_bytes;
    if (u->body.n + data->len > bytes_max) {
        mr_ostore_call_fail(call, MR_ETOOBIG,
            "body: more than the %llu bytes of this store's memory", (unsigned long long)bytes_max);
        return false;
    }
    struct mr_str user = {0};
    if (!u->hold.counted) user = mr_rpc_auth_caller(call->sv->auth, call->rpc);
    if (mr_allowance_add(call->sv->uploads, &u->hold, user, data->len, &call->error)) {
        call->err = MR_ELIMIT;
        mr_ostore_call_fail_error(call);
        return false;
    }
    mr_buf_add(&u->body, data->data, data->len);
    return true;
}

static void on_message(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct upload *u = call->more;
    if (call->failed) return;
    const Millrace__V1__PutRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__put_request__descriptor);
    call->failed = !r || (!u->started && !take_options(call, u, r));
    if (call->failed) return;
    if (r->body) call->failed = !take_body(call, u, &r->body->data);
    mr_pb_arena_clear(&call->arena);
}

/* ---- after the body ---------------------------------------------------------------------------*/

static void give_up(struct mr_ostore_call *call)
{
    struct upload *u = call->more;
    mr_ostore_call_fail_error(call);
    if (u->sealed)
        mr_store_unhold(call->sv->self, &call->id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
}

static void placed(struct mr_ostore_call *call)
{
    call->sv->puts++;
    mr_ostore_call_reply(call, &call->info->base);
}

static void reply_info(struct mr_ostore_call *call)
{
    if (call->err) {
        call->err = mr_fail(
            &call->error, MR_ELOST, "the new object was deleted before it could be described");
        give_up(call);
        return;
    }
    call->info = mr_ostore_call_info(call, &call->ask.infos[0]);
    mr_ostore_call_place(call, call->info, placed);
}

static void named(struct mr_ostore_call *call)
{
    if (call->err) {
        give_up(call);
        return;
    }
    /* The name holds the object from now on, so the store's own hold is dropped. */
    mr_store_unhold(call->sv->self, &call->id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
    mr_ostore_call_stat(call, reply_info);
}

static void name_it(struct mr_ostore_call *call)
{
    struct upload *u = call->more;
    if (call->err) {
        call->err = mr_fail(&call->error, call->err, "the object cannot be persisted: %s",
            mr_ostore_call_why_not_written(call));
        give_up(call);
    } else if (u->name[0]) {
        mr_ostore_call_name_object(call, mr_str(u->name), NULL, u->replace, named);
    } else {
        mr_ostore_call_stat(call, reply_info);
    }
}

static void is_here(struct mr_ostore_call *call)
{
    struct upload *u = call->more;
    if (call->err)
        give_up(call);
    else if (u->persist)
        mr_ostore_call_event(call, MR_OE_PERSIST, name_it);
    else
        name_it(call);
}

static void imported(struct mr_ostore_call *call)
{
    struct upload *u = call->more;
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    call->id = u->job.draft.id;
    call->err = mr_store_seal(call->sv->self, &u->job.draft, NULL, NULL, &call->error);
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    u->sealed = true;
    /* the object can be read as soon as the core knows of the seal */
    mr_ostore_call_get(call, NULL, SEAL_WAIT, is_here);
}

static bool set_option(
    struct mr_ostore_call *call, struct upload *u, const char *name, yyjson_val *v)
{
    char number[40];
    struct mr_str text = {yyjson_get_str(v), yyjson_get_len(v)};
    if (yyjson_is_bool(v))
        text = mr_str(yyjson_get_bool(v) ? "true" : "false");
    else if (yyjson_is_num(v))
        text =
            mr_str_of(number, (size_t)snprintf(number, sizeof number, "%.17g", yyjson_get_num(v)));
    else if (!yyjson_is_str(v))
        text = (struct mr_str){0};
    int err = mr_format_option(&u->job.options, mr_str(name), text, &call->error);
    if (!err) return true;
    mr_ostore_call_fail(call, err, "options_json: %s", call->error.text);
    return false;
}

static bool read_options(struct mr_ostore_call *call, struct upload *u)
{
    if (!u->options_json[0]) return true;
    u->options = yyjson_read(u->options_json, strlen(u->options_json), 0);
    yyjson_val *root = yyjson_doc_get_root(u->options);
    if (!yyjson_is_obj(root)) {
        mr_ostore_call_fail(call, MR_EINVAL, "options_json: not a JSON object");
        return false;
    }
    yyjson_obj_iter it = yyjson_obj_iter_with(root);
    for (yyjson_val *key = yyjson_obj_iter_next(&it); key; key = yyjson_obj_iter_next(&it))
        if (!set_option(call, u, yyjson_get_str(key), yyjson_obj_iter_get_val(key))) return false;
    return true;
}

static void on_half_close(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    struct upload *u = call->more;
    if (call->failed) return;
    if (!u->started) {
        mr_ostore_call_fail(call, MR_EINVAL, "body: no message was sent");
        return;
    }
    struct mr_str mime = u->mime[0] ? mr_str(u->mime) : mr_str("raw");
    u->job.is_import = true;
    if (mr_format_find(mime, &u->job.format, &call->error)) {
        mr_ostore_call_fail_error(call);
        return;
    }
    if (!mr_format_can_import(u->job.format)) {
        mr_ostore_call_fail(call, MR_EMEDIA,
            "body: the format %s can be downloaded, but not uploaded",
            mr_format_name(u->job.format));
        return;
    }
    if (!read_options(call, u)) return;
    u->job.call = call;
    u->job.text = u->body;
    mr_buf_init(&u->body, 0);
    mr_converter_do(call->sv->converter, &u->job, imported);
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    (void)status;
    mr_ostore_call_over(mr_ostore_call_of(rpc));
}

const struct mr_rpc_handler mr_put_handler = {.on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
