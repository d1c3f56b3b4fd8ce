/* The streams of Cluster.Live. state.c makes the state that is sent. */
#include "services/scheduler/live/live.h"

#include "base/alloc.h"
#include "services/scheduler/base/journal_link.h"
#include "services/scheduler/live/state.h"

#define WATCHERS_MAX 1024u
#define EVERY (250 * MR_MS)
/* If the state does not change, it is sent again after this time, so that a client knows that the
 * scheduler is alive. */
#define UNCHANGED_AFTER (2 * MR_SECOND)
#define STATE_BYTES_MAX ((size_t)1 << 20)
/* limit of unsent bytes of one stream; the stream misses states while more are unsent */
#define QUEUED_BYTES_MAX ((size_t)64 << 10)
/* LiveState.time_ns is the first field: a byte of tag and 8 bytes. It is left out when two states
 * are compared. */
#define TIME_BYTES 9

struct watcher {
    struct mr_list node;
    mr_rpc_call_id call;
    bool has_state; /* the client has got a state */
};

struct mr_live {
    struct mr_list watchers;
    uint32_t watchers_count;
    mr_time due;
    mr_time sent_at; /* when the last state was sent to all */
    struct mr_buf state, before;
    struct mr_live_speed speed;
};

struct mr_live *mr_live_new(void)
{
    struct mr_live *l = mr_alloc(sizeof *l);
    mr_list_init(&l->watchers);
    mr_buf_init(&l->state, STATE_BYTES_MAX);
    mr_buf_init(&l->before, STATE_BYTES_MAX);
    return l;
}

static void watcher_free(struct mr_live *l, struct watcher *w)
{
    mr_list_remove(&w->node);
    l->watchers_count--;
    mr_release(w);
    if (!l->watchers_count) l->speed = (struct mr_live_speed){0};
}

void mr_live_free(struct mr_live **lp)
{
    struct mr_live *l = *lp;
    *lp = NULL;
    if (!l) return;
    MR_LIST_EACH(node, &l->watchers)
    watcher_free(l, MR_LIST_ITEM(node, struct watcher, node));
    mr_buf_fini(&l->state);
    mr_buf_fini(&l->before);
    mr_release(l);
}

static bool is_changed(const struct mr_live *l)
{
    if (l->state.n != l->before.n || l->state.n < TIME_BYTES) return true;
    return memcmp(l->state.p + TIME_BYTES, l->before.p + TIME_BYTES, l->state.n - TIME_BYTES) != 0;
}

static void send(struct mr_shell *sh, struct watcher *w, bool to_all)
{
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
    if (!call || (w->has_state && !to_all)) return;
    if (!mr_rpc_call_has_room(call, QUEUED_BYTES_MAX)) return; /* this client misses the state */
    w->has_state = true;
    (void)mr_rpc_call_send(call, mr_buf_str(&sh->live->state));
}

mr_time mr_live_deadline(const struct mr_shell *sh)
{
    return sh->live->watchers_count ? sh->live->due : MR_NEVER;
}

void mr_live_tick(struct mr_shell *sh, mr_time now)
{
    struct mr_live *l = sh->live;
    if (now < mr_live_deadline(sh)) return;
    l->due = mr_time_after(now, EVERY);
    struct mr_buf older = l->before;
    l->before = l->state;
    l->state = older;
    mr_buf_clear(&l->state);
    mr_live_render(sh, now, mr_journal_link_state(sh).n != 0, &l->speed, &l->state);
    bool to_all = is_changed(l) || now >= mr_time_after(l->sent_at, UNCHANGED_AFTER);
    if (to_all) l->sent_at = now;
    MR_LIST_EACH(node, &l->watchers)
    send(sh, MR_LIST_ITEM(node, struct watcher, node), to_all);
}

void mr_live_stop(struct mr_shell *sh)
{
    MR_LIST_EACH(node, &sh->live->watchers)
    {
        struct mr_rpc_call *call =
            mr_rpc_call_find(sh->loop, MR_LIST_ITEM(node, struct watcher, node)->call);
        if (call) mr_shell_fail(call, MR_EAWAY, "the scheduler is stopping: ask again");
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct context { /* the context of a call */
    struct mr_shell *sh;
    struct watcher *w; /* NULL: the request has not arrived yet */
};

static void on_open(struct mr_rpc_call *call)
{
    struct context *x = mr_alloc(sizeof *x);
    x->sh = mr_shell_of(call);
    mr_rpc_call_set_context(call, x);
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct context *x = mr_rpc_call_context(call);
    struct mr_live *l = x->sh->live;
    if (!mr_shell_request(x->sh, call, msg, &millrace__v1__live_request__descriptor) || x->w)
        return;
    if (l->watchers_count == WATCHERS_MAX) {
        mr_shell_fail(call, MR_ELIMIT, "%u calls watch the cluster already", WATCHERS_MAX);
        return;
    }
    x->w = mr_alloc(sizeof *x->w);
    x->w->call = mr_rpc_call_id_of(call);
    mr_list_add_tail(&l->watchers, &x->w->node);
    l->watchers_count++; /* mr_live_tick sends the first state when it is due */
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct context *x = mr_rpc_call_context(call);
    (void)status;
    if (x->w) watcher_free(x->sh->live, x->w);
    mr_release(x);
}

const struct mr_rpc_handler mr_live_handler = {
    .on_open = on_open, .on_message = on_message, .on_done = on_done};
