/* The converter thread. It waits for shared memory, as any client of the store does, and for
 * nothing else. */
#include "services/objectstore/api/convert.h"

#include "base/alloc.h"
#include "host/thread.h"

#define JOBS_MAX 4096u
#define ROOM_WAIT (30 * MR_SECOND)
/* limit of the text of an export; bytes that are sent from the value do not count */
#define TEXT_BYTES_MAX ((size_t)1 << 30)

struct mr_converter {
    struct mr_service *sv;
    struct mr_inbox *jobs;
    struct mr_thread *thread;
};

struct room {
    struct mr_service *sv;
    struct mr_store_draft *draft;
    struct mr_error *error;
    int err;
};

static void *take_room(void *ctx, uint64_t bytes)
{
    struct room *r = ctx;
    if (r->draft->p) /* an importer may ask for room a second time, with another size */
        mr_store_abort(r->sv->self, r->draft);
    r->err = mr_store_create(r->sv->self, bytes, ROOM_WAIT, r->draft, r->error);
    return r->err ? NULL : r->draft->p;
}

static void import(struct mr_service *sv, struct mr_format_job *job)
{
    struct mr_ostore_call *call = job->call;
    struct mr_error no_room;
    struct room r = {sv, &job->draft, &no_room, MR_OK};
    struct mr_value_alloc a = {take_room, &r};
    call->err =
        mr_format_import(job->format, mr_buf_str(&job->text), &job->options, &a, &call->error);
    if (r.err) {
        call->err = r.err;
        call->error = no_room;
    }
    if (call->err) mr_store_abort(sv->self, &job->draft);
    mr_buf_fini(&job->text);
}

static int take_piece(void *ctx, const void *p, size_t n)
{
    struct mr_format_job *job = ctx;
    const char *value = job->view->p;
    const char *bytes = p;
    if (job->pieces_count == job->pieces_room) {
        size_t room = job->pieces_room ? job->pieces_room * 2 : 16;
        job->pieces = mr_grow(
            job->pieces, job->pieces_room * sizeof *job->pieces, room * sizeof *job->pieces);
        job->pieces_room = room;
    }
    struct mr_piece piece = {.n = n};
    if (bytes >= value && bytes < value + job->view->bytes) {
        piece.at = (size_t)(bytes - value);
    } else {
        piece.owned = true;
        piece.at = job->text.n;
        mr_buf_add(&job->text, p, n);
    }
    struct mr_piece *last = job->pieces_count ? &job->pieces[job->pieces_count - 1] : NULL;
    if (last && last->owned == piece.owned && last->at + last->n == piece.at)
        last->n += n;
    else
        job->pieces[job->pieces_count++] = piece;
    return mr_buf_status(&job->text);
}

static void export(struct mr_format_job *job)
{
    struct mr_ostore_call *call = job->call;
    mr_buf_init(&job->text, TEXT_BYTES_MAX);
    struct mr_value value;
    call->err = mr_value_check(mr_str_of(job->view->p, job->view->bytes), &value, &call->error);
    if (!call->err) call->err = mr_format_accept(job->accept, &value, &job->format, &call->error);
    struct mr_sink sink = {take_piece, job};
    if (!call->err)
        call->err = mr_format_export(&value, job->format, &job->options, sink, &call->error);
    if (call->err == MR_ELIMIT)
        call->err = mr_fail(&call->error, MR_ETOOBIG, "as %s this object has more than %zu bytes",
            mr_format_name(job->format), TEXT_BYTES_MAX);
    job->mime = mr_format_mime(job->format);
}

static void run(void *ctx)
{
    struct mr_converter *f = ctx;
    struct mr_format_job *job;
    for (;;) {
        if (!mr_inbox_wait(f->jobs, MR_NEVER, &job, 1)) {
            if (mr_inbox_is_closed(f->jobs)) return;
            continue;
        }
        if (job->is_import)
            import(f->sv, job);
        else
            export(job);
        mr_ostore_call_end_soon(job->call);
    }
}

struct mr_converter *mr_converter_open(struct mr_service *sv)
{
    struct mr_converter *f = mr_alloc(sizeof *f);
    f->sv = sv;
    f->jobs = mr_inbox_new(JOBS_MAX, sizeof(struct mr_format_job *));
    f->thread = mr_thread_start("converter", run, f);
    return f;
}

void mr_converter_close(struct mr_converter **pf)
{
    struct mr_converter *f = MR_STEAL(*pf);
    if (!f) return;
    mr_inbox_close(f->jobs);
    mr_inbox_wake(f->jobs);
    mr_thread_join(&f->thread);
    mr_inbox_free(&f->jobs);
    mr_release(f);
}

void mr_converter_do(struct mr_converter *f, struct mr_format_job *job, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(job->call, then);
    if (!mr_inbox_push(f->jobs, &job)) return;
    job->call->err = mr_fail(&job->call->error, MR_ELIMIT,
        "more than %u objects wait to be converted from or to a format", JOBS_MAX);
    mr_ostore_call_end_soon(job->call);
}

void mr_format_job_fini(struct mr_format_job *job)
{
    if (job->draft.p) mr_store_abort(job->call->sv->self, &job->draft);
    mr_buf_fini(&job->text);
    mr_release(job->pieces);
    job->pieces = NULL;
}
