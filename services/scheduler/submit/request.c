#include "services/scheduler/submit/request.h"

#include "base/alloc.h"
#include "services/scheduler/submit/stream.h"
#include "store/meta/journal/journal.h"

#include <string.h>
#include <xxhash.h>

void mr_parser_request_free(struct mr_parser_request **rp)
{
    struct mr_parser_request *r = *rp;
    *rp = NULL;
    if (!r) return;
    mr_parser_stream_free(&r->stream);
    mr_buf_fini(&r->body);
    mr_allowance_drop(r->quota, &r->hold);
    mr_release(r->request_id);
    mr_release(r->template);
    mr_release(r);
}

struct mr_parser_result *mr_parser_result_new(const struct mr_parser_request *r)
{
    struct mr_parser_result *d = mr_alloc(sizeof *d);
    d->ticket = r->ticket;
    d->form = r->form;
    d->queue = r->queue;
    mr_buf_init(&d->graph_bytes, (size_t)8 << 30);
    if (r->stream) {
        d->body_hash = mr_parser_stream_hash(r->stream);
    } else {
        XXH128_hash_t h = XXH3_128bits(r->body.p, r->body.n);
        d->body_hash = (mr_graph_hash){h.high64, h.low64};
    }
    if (r->template) d->body_hash.hi ^= XXH3_64bits(r->template, strlen(r->template));
    return d;
}

void mr_parser_result_fail(struct mr_parser_result *d, int err)
{
    mr_graph_free(&d->graph);
    if (!d->error.code) (void)mr_fail(&d->error, err, "%s", mr_err_words(err));
}

void mr_parser_result_free(struct mr_parser_result **dp)
{
    struct mr_parser_result *d = *dp;
    *dp = NULL;
    if (!d) return;
    mr_graph_free(&d->graph);
    mr_buf_fini(&d->graph_bytes);
    for (uint32_t i = 0; i < d->pieces_count; i++)
        mr_journal_record_free(&d->pieces[i]);
    mr_release(d->pieces);
    mr_release(d->resolved);
    for (uint32_t i = 0; i < d->templates_count; i++) {
        mr_release(d->templates[i].name);
        mr_release(d->templates[i].params);
        mr_release(d->templates[i].json);
    }
    mr_release(d->templates);
    mr_release(d);
}
