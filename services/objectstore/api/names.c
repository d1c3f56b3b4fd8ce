/* The methods of names: Name, Resolve, Unname, Names and Renamed. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "base/page.h"
#include "services/objectstore/call/lookup.h"

static Millrace__V1__NameInfo *info_of(struct mr_ostore_call *call, const struct mr_name_record *r)
{
    Millrace__V1__NameInfo *out = mr_ostore_call_take(call, sizeof *out);
    millrace__v1__name_info__init(out);
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(r->object, id);
    out->name = mr_ostore_call_text(call, r->name);
    out->object = mr_ostore_call_text(call, mr_str(id));
    if (r->has_definition) {
        out->definition.len = sizeof r->definition;
        out->definition.data =
            (uint8_t *)mr_ostore_call_text(call, mr_str_of(r->definition, sizeof r->definition));
    }
    out->nbytes = r->nbytes;
    out->summary = mr_ostore_call_text(call, r->summary);
    out->node = mr_ostore_call_text(call, r->node.n ? r->node : mr_str(call->sv->config.node));
    out->address = mr_ostore_call_text(call, r->address.n ? r->address : mr_str(call->sv->address));
    out->created_ns = r->created_ns;
    out->durable = r->durable;
    return out;
}

static void fail_name(struct mr_ostore_call *call, struct mr_str name)
{
    if (call->err == MR_ENOENT)
        mr_ostore_call_fail(call, call->err, "no object has the name \"%.*s\"", MR_STR_ARG(name));
    else if (call->err == MR_EAWAY)
        mr_ostore_call_fail(call, call->err, "names are kept in Redis, which does not answer");
    else
        mr_ostore_call_fail(
            call, call->err, "name \"%.*s\": %s", MR_STR_ARG(name), mr_err_words(call->err));
}

static void renamed_looked_up(struct mr_ostore_call *call)
{
    const struct mr_name_record *was = call->more;
    bool gone = call->err == MR_ENOENT;
    if (call->err && !gone) {
        fail_name(call, was->name);
        return;
    }
    if (gone || !mr_object_id_eq(call->names[0].object, was->object))
        mr_ostore_call_let_go(call, was);
    Millrace__V1__RenamedResponse out = MILLRACE__V1__RENAMED_RESPONSE__INIT;
    mr_ostore_call_reply(call, &out.base);
}

void mr_on_renamed(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__RenamedRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__renamed_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    struct mr_name_record *was = mr_ostore_call_take(call, sizeof *was);
    was->name = mr_str(r->name);
    call->more = was;
    if (mr_object_id_from_bytes(mr_str_of(r->object.data, r->object.len), &was->object))
        mr_ostore_call_fail(call, MR_EINVAL, "object: %zu bytes, not 16", r->object.len);
    else
        mr_ostore_call_resolve(call, was->name, renamed_looked_up);
}

static void name_done(struct mr_ostore_call *call)
{
    if (call->err)
        mr_ostore_call_fail_error(call);
    else
        mr_ostore_call_reply(call, &info_of(call, &call->names[0])->base);
}

void mr_on_name(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__NameRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__name_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name) ||
        !mr_ostore_call_parse_id(call, "object", r->object))
        return;
    if (r->definition.len != 0 && r->definition.len != 16) {
        mr_ostore_call_fail(call, MR_EINVAL, "definition: %zu bytes, not 16", r->definition.len);
        return;
    }
    mr_ostore_call_name_object(call, mr_str(r->name), &r->definition, r->replace, name_done);
}

static void resolve_done(struct mr_ostore_call *call)
{
    if (call->err)
        fail_name(call, mr_str(call->more));
    else
        mr_ostore_call_reply(call, &info_of(call, &call->names[0])->base);
}

void mr_on_resolve(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__ResolveRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__resolve_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    call->more = r->name;
    mr_ostore_call_resolve(call, mr_str(r->name), resolve_done);
}

static void unname_done(struct mr_ostore_call *call)
{
    struct mr_str name = mr_str(call->more);
    if (call->err) {
        fail_name(call, name);
        return;
    }
    if (call->names_count) mr_ostore_call_let_go(call, &call->names[0]);
    Millrace__V1__UnnameResponse out = MILLRACE__V1__UNNAME_RESPONSE__INIT;
    mr_ostore_call_reply(call, &out.base);
}

void mr_on_unname(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__UnnameRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__unname_request__descriptor);
    if (!r || !mr_ostore_call_check_name(call, "name", r->name)) return;
    call->more = r->name;
    mr_ostore_call_unname(call, mr_str(r->name), unname_done);
}

static void names_done(struct mr_ostore_call *call)
{
    if (call->err) {
        fail_name(call, MR_STR("*"));
        return;
    }
    Millrace__V1__NamesResponse out = MILLRACE__V1__NAMES_RESPONSE__INIT;
    out.names = mr_ostore_call_take(call, (call->names_count + 1) * sizeof(void *));
    for (size_t i = 0; i < call->names_count; i++)
        out.names[out.n_names++] = info_of(call, &call->names[i]);
    MR_AUTO(mr_free_ptr)
    char *next = call->names_more && call->names_count
                     ? mr_page_token(out.names[call->names_count - 1]->name)
                     : NULL;
    if (next) out.next_page_token = next;
    mr_ostore_call_reply(call, &out.base);
}

void mr_on_names(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__NamesRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__names_request__descriptor);
    if (!r) return;
    struct mr_page page;
    struct mr_error e;
    if (mr_page_read(r->page_size, r->page_token, 100, &page, &e)) {
        mr_ostore_call_fail(call, e.code, "%s", e.text);
        return;
    }
    mr_ostore_call_list_names(call, mr_str(r->prefix), page.after, page.rows_max, names_done);
}
