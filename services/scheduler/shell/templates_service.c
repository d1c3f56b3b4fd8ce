/* The service Templates. Each call collects its request and passes it to a parser thread. The call
 * is answered with that thread's result. Instantiate is a submission (submit.c). */
#include "services/scheduler/shell/templates_service.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/page.h"
#include "proto/methods.h"
#include "services/scheduler/shell/submit.h"

struct asking {
    struct mr_shell *sh;
    struct mr_parser_request *request; /* NULL: a parser thread has it, or the call has failed */
    struct mr_page page;               /* the page of a List call; points into page_token */
    char *page_token;
};

static void on_open(struct mr_rpc_call *call)
{
    struct asking *a = mr_alloc(sizeof *a);
    a->sh = mr_shell_of(call);
    a->request = mr_parser_request_new(a->sh->parser, mr_rpc_call_id_of(call).v);
    mr_rpc_call_set_context(call, a);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    (void)status;
    struct asking *a = mr_rpc_call_context(call);
    mr_parser_request_free(&a->request);
    mr_release(a->page_token);
    mr_release(a);
}

static void ask(struct mr_rpc_call *call, struct asking *a, enum mr_parser_form form)
{
    if (!a->request) return;
    a->request->form = form;
    a->request->is_recovering = mr_shell_is_recovering(a->sh);
    if (mr_parser_push(a->sh->parser, &a->request))
        mr_shell_fail(call, MR_EAWAY, "too many submissions are waiting: try again");
}

static void on_install_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct asking *a = mr_rpc_call_context(call);
    const Millrace__V1__InstallTemplateRequest *m =
        mr_shell_request(a->sh, call, msg, &millrace__v1__install_template_request__descriptor);
    if (!m) mr_parser_request_free(&a->request);
    if (!m || !a->request) return;
    if (!a->request->template) {
        a->request->template = mr_copy_text(m->name);
        a->request->replace = m->replace;
    }
    if (!m->body) return;
    struct mr_error e;
    struct mr_str bytes = mr_str_of(m->body->data.data, m->body->data.len);
    if (!mr_parser_add_body(a->sh->parser, a->request, call, bytes, &e)) return;
    mr_parser_request_free(&a->request);
    (void)mr_rpc_call_fail(call, &e);
}

static void on_install_end(struct mr_rpc_call *call)
{
    struct asking *a = mr_rpc_call_context(call);
    if (!a->request) return;
    if (a->request->template && !mr_buf_status(&a->request->body)) {
        ask(call, a, MR_PARSER_INSTALL);
        return;
    }
    mr_parser_request_free(&a->request);
    mr_shell_fail(call, MR_EINVAL, "a template without a message, or one that is too large");
}

static void on_get_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct asking *a = mr_rpc_call_context(call);
    const Millrace__V1__GetTemplateRequest *m =
        mr_shell_request(a->sh, call, msg, &millrace__v1__get_template_request__descriptor);
    if (!m || !a->request) return;
    a->request->template = mr_copy_text(m->name);
    ask(call, a, MR_PARSER_GET);
}

static void on_list_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct asking *a = mr_rpc_call_context(call);
    struct mr_error e;
    const Millrace__V1__ListTemplatesRequest *m =
        mr_shell_request(a->sh, call, msg, &millrace__v1__list_templates_request__descriptor);
    if (!m || !a->request || a->page_token) return;
    a->page_token = mr_copy_text(m->page_token);
    if (mr_page_read(m->page_size, a->page_token, MR_PAGE_ROWS_MAX, &a->page, &e)) {
        mr_parser_request_free(&a->request);
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    a->request->template = mr_copy_text("");
    ask(call, a, MR_PARSER_LIST);
}

static void on_delete_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct asking *a = mr_rpc_call_context(call);
    const Millrace__V1__DeleteTemplateRequest *m =
        mr_shell_request(a->sh, call, msg, &millrace__v1__delete_template_request__descriptor);
    if (!m || !a->request) return;
    a->request->template = mr_copy_text(m->name);
    ask(call, a, MR_PARSER_DELETE);
}

static char **names_of(struct mr_shell *sh, struct mr_str lines, size_t *n)
{
    size_t most = 0;
    for (size_t i = 0; i < lines.n; i++)
        most += lines.p[i] == '\n';
    char **out = mr_shell_take(sh, (most + 1) * sizeof *out);
    *n = 0;
    for (size_t at = 0; at < lines.n;) {
        const char *end = memchr(lines.p + at, '\n', lines.n - at);
        size_t bytes = (size_t)(end - lines.p) - at;
        out[(*n)++] = mr_shell_text(sh, mr_str_of(lines.p + at, bytes));
        at += bytes + 1;
    }
    return out;
}

static Millrace__V1__Template *message_of(struct mr_shell *sh, const struct mr_parser_template *x)
{
    Millrace__V1__Template *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__template__init(m);
    m->name = mr_shell_text(sh, mr_str(x->name));
    m->json = mr_shell_text(sh, mr_str(x->json));
    m->installed_ns = x->installed_ns;
    m->nbytes = x->nbytes;
    m->tasks = x->tasks;
    m->params = names_of(sh, mr_str(x->params), &m->n_params);
    return m;
}

static void reply_list(
    struct mr_rpc_call *call, const struct asking *a, const struct mr_parser_result *done)
{
    Millrace__V1__ListTemplatesResponse r = MILLRACE__V1__LIST_TEMPLATES_RESPONSE__INIT;
    r.templates = mr_shell_take(a->sh, (done->templates_count + 1) * sizeof *r.templates);
    MR_AUTO(mr_free_ptr) char *next = NULL;
    for (uint32_t i = 0; i < done->templates_count; i++) {
        if (!mr_page_has(&a->page, done->templates[i].name)) continue;
        if (r.n_templates == a->page.rows_max) {
            next = mr_page_token(r.templates[r.n_templates - 1]->name);
            break;
        }
        r.templates[r.n_templates++] = message_of(a->sh, &done->templates[i]);
    }
    if (next) r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

void mr_template_answered(struct mr_shell *sh, const struct mr_parser_result *done)
{
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, (mr_rpc_call_id){done->ticket});
    if (!call) return;
    mr_pb_arena_clear(&sh->scratch);
    if (done->error.code) {
        (void)mr_rpc_call_fail(call, &done->error);
        return;
    }
    if (done->form == MR_PARSER_DELETE) {
        const Millrace__V1__DeleteTemplateResponse r = MILLRACE__V1__DELETE_TEMPLATE_RESPONSE__INIT;
        (void)mr_rpc_call_reply_pb(call, &r.base);
    } else if (done->form == MR_PARSER_LIST) {
        reply_list(call, mr_rpc_call_context(call), done);
    } else {
        (void)mr_rpc_call_reply_pb(call, &message_of(sh, &done->templates[0])->base);
    }
}

static const struct mr_rpc_handler install_handler = {.on_open = on_open,
    .on_message = on_install_message,
    .on_half_close = on_install_end,
    .on_done = on_done};
static const struct mr_rpc_handler get_handler = {
    .on_open = on_open, .on_message = on_get_message, .on_done = on_done};
static const struct mr_rpc_handler list_handler = {
    .on_open = on_open, .on_message = on_list_message, .on_done = on_done};
static const struct mr_rpc_handler delete_handler = {
    .on_open = on_open, .on_message = on_delete_message, .on_done = on_done};

static const struct mr_rpc_method methods[] = {
    {.name = "Install", .client_streaming = true, .handler = &install_handler},
    {.name = "Get", .handler = &get_handler},
    {.name = "List", .handler = &list_handler},
    {.name = "Delete", .handler = &delete_handler},
    {.name = "Instantiate", .client_streaming = true, .handler = &mr_instantiate_handler},
};

const struct mr_rpc_service mr_templates_service = {
    .name = "millrace.v1.Templates", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
