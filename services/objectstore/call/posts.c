/* A queue of functions that the gRPC thread is to run. Any thread adds functions. The gRPC thread
 * never waits for room in this queue, its own inbox. If the inbox is full when the gRPC thread adds
 * a function, the function is deferred to the next round of the loop. */
#include "services/objectstore/call/posts.h"

#include "base/alloc.h"
#include "host/deferred.h"
#include "host/inbox.h"

#define INBOX_ITEMS 65536u
#define ROUND_ITEMS 64u

struct mr_posts {
    struct mr_rpc_loop *loop;
    struct mr_inbox *inbox;
    struct mr_deferred later; /* functions that the gRPC thread added to a full inbox */
};

struct item {
    void (*run)(void *p);
    void *p;
};

static _Thread_local struct mr_posts *own; /* the posts of this thread, if it is a gRPC thread */

struct mr_posts *mr_posts_new(struct mr_rpc_loop *loop)
{
    struct mr_posts *q = mr_alloc(sizeof *q);
    q->loop = loop;
    q->inbox = mr_inbox_new(INBOX_ITEMS, sizeof(struct item));
    own = q;
    return q;
}

void mr_posts_free(struct mr_posts **pq)
{
    struct mr_posts *q = MR_STEAL(*pq);
    if (!q) return;
    mr_inbox_free(&q->inbox);
    mr_deferred_fini(&q->later);
    mr_release(q);
    own = NULL;
}

void mr_posts_add(struct mr_posts *q, void (*run)(void *p), void *p)
{
    struct item item = {run, p};
    if (own == q) {
        if (mr_inbox_push(q->inbox, &item) == MR_ELIMIT) mr_deferred_add(&q->later, run, p);
    } else if (mr_inbox_push_wait(q->inbox, &item, MR_NEVER)) {
        return; /* the inbox is closed, since the loop has ended */
    }
    mr_rpc_loop_wake(q->loop);
}

size_t mr_posts_run(struct mr_posts *q)
{
    struct item items[ROUND_ITEMS];
    size_t n = mr_inbox_take(q->inbox, items, MR_ARRAY_LEN(items));
    for (size_t i = 0; i < n; i++)
        items[i].run(items[i].p);
    return n + mr_deferred_run(&q->later);
}

void mr_posts_close(struct mr_posts *q)
{
    mr_inbox_close(q->inbox);
}
