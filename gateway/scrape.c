/* One unary call a service. A service that does not answer is missing, and a series says so. */
#include "gateway/scrape.h"

#include "base/alloc.h"
#include "gateway/prometheus.h"
#include "rpc/wire.h"

#define TIMEOUT (2 * MR_SECOND)
#define OWN_BYTES_MAX ((size_t)8 << 20)

struct scrape {
    struct mr_exchange *x;
    struct mr_prometheus *all;
    size_t waiting;
    void (*done)(struct mr_exchange *x);
};

struct part {
    struct scrape *scrape;
    char *instance;
};

static void finish_if_last(struct scrape *s)
{
    if (--s->waiting) return;
    mr_prometheus_write(s->all, &s->x->text);
    mr_prometheus_free(&s->all);
    s->done(s->x);
    mr_release(s);
}

static void add_up(struct scrape *s, const char *instance, bool up)
{
    struct mr_buf b;
    mr_buf_init(&b, 512);
    mr_buf_printf(&b,
        "# HELP millrace_up Whether the service answered.\n# TYPE millrace_up gauge\n"
        "millrace_up %d\n",
        up);
    mr_prometheus_add(s->all, mr_buf_str(&b), instance);
    mr_buf_fini(&b);
}

static void on_text(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct part *p = ctx;
    bool up = status->code == 0 && reply;
    add_up(p->scrape, p->instance, up);
    if (up) {
        struct mr_wire_reader r = mr_wire_read(mr_rpc_message_str(reply));
        struct mr_wire_field f;
        while (!mr_wire_next(&r, &f))
            if (f.number == 1 && f.type == MR_WIRE_BYTES)
                mr_prometheus_add(p->scrape->all, f.bytes, p->instance);
    }
    finish_if_last(p->scrape);
    mr_release(p->instance);
    mr_release(p);
}

static bool is_repeated(const struct mr_backends *b, size_t at)
{
    const char *address = mr_rpc_channel_address(mr_backends_at(b, at));
    for (size_t i = 0; i < at; i++)
        if (!strcmp(mr_rpc_channel_address(mr_backends_at(b, i)), address)) return true;
    return false;
}

void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x))
{
    struct scrape *s = mr_alloc(sizeof *s);
    *s = (struct scrape){x, mr_prometheus_new(), 0, done};
    struct mr_buf text;
    mr_buf_init(&text, OWN_BYTES_MAX);
    mr_stats_write(own, &text);
    mr_prometheus_add(s->all, mr_buf_str(&text), "gateway");
    mr_buf_fini(&text);

    size_t count = mr_backends_count(b);
    for (size_t i = 0; i < count; i++) {
        struct mr_rpc_channel *channel = mr_backends_at(b, i);
        if (is_repeated(b, i)) continue; /* one process for both */
        s->waiting++;
        struct part *p = mr_alloc(sizeof *p);
        *p = (struct part){s, mr_copy_text(mr_rpc_channel_address(channel))};
        struct mr_rpc_call_options options = {.timeout = TIMEOUT, .one_reply = true};
        (void)mr_rpc_unary(channel, mr_proto_method(MR_METHOD_METRICS_READ)->path, mr_str_of("", 0),
            &options, on_text, p);
    }
}
