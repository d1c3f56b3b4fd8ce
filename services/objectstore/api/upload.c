/* Put: the pieces of a body are joined, read as the format they claim to be, and sealed. Then, as
 * asked: persisted, named. */
#include "base/alloc.h"
#include "services/objectstore/api/convert.h"
#include "services/objectstore/api/call.h"

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

static void upload_fini(struct mr_op *op)
{
    struct upload *u = op->more;
    mr_allowance_drop(op->sv->uploads, &u->hold);
    u->job.op = op;
    mr_format_job_fini(&u->job);
    mr_buf_fini(&u->body);
    if (u->options) yyjson_doc_free(u->options);
    mr_release(u->mime);
    mr_release(u->name);
    mr_release(u->options_json);
    mr_release(u);
}

static void on_open(struct mr_rpc_call *call)
{
    struct mr_op *op = mr_op_new(call);
    struct upload *u = mr_alloc(sizeof *u);
    op->more = u;
    op->fini = upload_fini;
    mr_buf_init(&u->body, op->sv->sh->config.memory_bytes);
}

static bool take_options(struct mr_op *op, struct upload *u, const Millrace__V1__PutRequest *r)
{
    if (r->name[0] && !mr_op_check_name(op, "name", r->name)) return false;
    u->started = true;
    u->name = mr_copy_text(r->name);
    u->replace = r->replace;
    u->persist = r->persist;
    if (u->persist && !op->sv->sh->config.dir) {
        mr_op_fail(op, MR_ESTATE, "persist: this store was started without --dir");
        return false;
    }
    u->mime = mr_copy_text(r->format[0] ? r->format : r->body ? r->body->content_type : "");
    u->options_json = mr_copy_text(r->options_json);
    return true;
}

static bool take_body(struct mr_op *op, struct upload *u, const ProtobufCBinaryData *data)
{
    uint64_t bytes_max = op->sv->sh->config.memory_bytes;
    if (u->body.n + data->len > bytes_max) {
        mr_op_fail(op, MR_ETOOBIG, "body: more than the %llu bytes of this store's memory",
            (unsigned long long)bytes_max);
        return false;
    }
    struct mr_str user = {0};
    if (!u->hold.counted) user = mr_rpc_auth_caller(op->sv->auth, op->call);
    if (mr_allowance_add(op->sv->uploads, &u->hold, user, data->len, &op->error)) {
        op->err = MR_ELIMIT;
        mr_op_fail_error(op);
        return false;
    }
    mr_buf_add(&u->body, data->data, data->len);
    return true;
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_op *op = mr_op_of(call);
    struct upload *u = op->more;
    if (op->failed) return;
    const Millrace__V1__PutRequest *r =
        mr_op_request(op, m, &millrace__v1__put_request__descriptor);
    op->failed = !r || (!u->started && !take_options(op, u, r));
    if (op->failed) return;
    if (r->body) op->failed = !take_body(op, u, &r->body->data);
    mr_pb_arena_clear(&op->arena);
}

/* ---- after the body ---------------------------------------------------------------------------*/

static void give_up(struct mr_op *op)
{
    struct upload *u = op->more;
    mr_op_fail_error(op);
    if (u->sealed)
        mr_store_unhold(op->sv->self, &op->id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
}

static void placed(struct mr_op *op)
{
    op->sv->puts++;
    (void)mr_rpc_call_reply_pb(op->call, &op->info->base);
}

static void reply_info(struct mr_op *op)
{
    if (op->err) {
        op->err = mr_fail(&op->error, MR_ELOST, "the new object was deleted at once");
        give_up(op);
        return;
    }
    op->info = mr_op_info(op, &op->ask.infos[0]);
    mr_op_place(op, op->info, placed);
}

static void named(struct mr_op *op)
{
    if (op->err) {
        give_up(op);
        return;
    }
    /* From now on the name holds it, not the store on the uploader's behalf. */
    mr_store_unhold(op->sv->self, &op->id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
    mr_op_stat(op, reply_info);
}

static void name_it(struct mr_op *op)
{
    struct upload *u = op->more;
    if (op->err) {
        op->err = mr_fail(
            &op->error, op->err, "the object cannot be persisted: %s", mr_op_why_not_written(op));
        give_up(op);
    } else if (u->name[0]) {
        mr_op_name_object(op, mr_str(u->name), NULL, u->replace, named);
    } else {
        mr_op_stat(op, reply_info);
    }
}

static void is_here(struct mr_op *op)
{
    struct upload *u = op->more;
    if (op->err)
        give_up(op);
    else if (u->persist)
        mr_op_event(op, MR_OE_PERSIST, name_it);
    else
        name_it(op);
}

static void imported(struct mr_op *op)
{
    struct upload *u = op->more;
    if (op->err) {
        mr_op_fail_error(op);
        return;
    }
    op->id = u->job.draft.id;
    op->err = mr_store_seal(op->sv->self, &u->job.draft, NULL, NULL, &op->error);
    if (op->err) {
        mr_op_fail_error(op);
        return;
    }
    u->sealed = true;
    mr_op_get(op, NULL, SEAL_WAIT, is_here); /* answered once the core knows it */
}

static bool set_option(struct mr_op *op, struct upload *u, const char *name, yyjson_val *v)
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
    int err = mr_format_option(&u->job.options, mr_str(name), text, &op->error);
    if (!err) return true;
    mr_op_fail(op, err, "options_json: %s", op->error.text);
    return false;
}

static bool read_options(struct mr_op *op, struct upload *u)
{
    if (!u->options_json[0]) return true;
    u->options = yyjson_read(u->options_json, strlen(u->options_json), 0);
    yyjson_val *root = yyjson_doc_get_root(u->options);
    if (!yyjson_is_obj(root)) {
        mr_op_fail(op, MR_EINVAL, "options_json: not a JSON object");
        return false;
    }
    yyjson_obj_iter it = yyjson_obj_iter_with(root);
    for (yyjson_val *key = yyjson_obj_iter_next(&it); key; key = yyjson_obj_iter_next(&it))
        if (!set_option(op, u, yyjson_get_str(key), yyjson_obj_iter_get_val(key))) return false;
    return true;
}

static void on_half_close(struct mr_rpc_call *call)
{
    struct mr_op *op = mr_op_of(call);
    struct upload *u = op->more;
    if (op->failed) return;
    if (!u->started) {
        mr_op_fail(op, MR_EINVAL, "body: nothing was sent");
        return;
    }
    struct mr_str mime = u->mime[0] ? mr_str(u->mime) : mr_str("raw");
    u->job.is_import = true;
    if (mr_format_find(mime, &u->job.format, &op->error)) {
        mr_op_fail_error(op);
        return;
    }
    if (!mr_format_can_import(u->job.format)) {
        mr_op_fail(op, MR_EMEDIA, "body: %s can be downloaded, not uploaded",
            mr_format_name(u->job.format));
        return;
    }
    if (!read_options(op, u)) return;
    u->job.op = op;
    u->job.text = u->body;
    mr_buf_init(&u->body, 0);
    mr_formatter_do(op->sv->formatter, &u->job, imported);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    mr_op_over(mr_op_of(call));
}

const struct mr_rpc_handler mr_put_handler = {.on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_done = on_done};
