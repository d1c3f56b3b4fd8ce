#include "services/worker/exec/prefetch.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/str.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "host/thread.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FETCH_TIMEOUT (120 * MR_SECOND)
#define ORDERS_MAX 65536u
#define BATCH 64

struct order {
    bool is_fetch;
    uint32_t value, serial;
    mr_object_id object;
    const char *address;
};

struct pin { /* one fetch, from its start until its unpin */
    uint32_t value, serial;
    bool pending;
    bool unwanted;
    struct mr_store_view view;
};

struct mr_prefetch {
    struct mr_store *store;
    struct mr_inbox *inbox;
    struct mr_thread *thread;
    int event_fd;
    void (*done)(void *ctx, const struct mr_fetched *f);
    void *ctx;
    struct pin *pins;
    uint32_t pins_count, pins_room;
};

static void prefetch_wait(void *ctx, mr_time deadline)
{
    struct mr_prefetch *f = ctx;
    if (!deadline) return; /* 0: do not wait; prefetch_main takes the store's completions */
    struct pollfd fds[2] = {
        {.fd = f->event_fd, .events = POLLIN}, {.fd = mr_store_fd(f->store), .events = POLLIN}};
    (void)poll(fds, 2, -1);
    uint64_t n;
    (void)!read(f->event_fd, &n, sizeof n);
}

static void prefetch_wake(void *ctx)
{
    struct mr_prefetch *f = ctx;
    uint64_t one = 1;
    (void)!write(f->event_fd, &one, sizeof one);
}

static struct pin *pin_find(struct mr_prefetch *f, uint32_t serial)
{
    for (uint32_t i = 0; i < f->pins_count; i++)
        if (f->pins[i].serial == serial) return &f->pins[i];
    return NULL;
}

static void pin_remove(struct mr_prefetch *f, struct pin *p)
{
    *p = f->pins[--f->pins_count];
}

static void pin_ended(struct mr_prefetch *f, struct pin *p, int err, const char *why)
{
    struct mr_fetched done = {.value = p->value, .serial = p->serial, .err = err};
    (void)snprintf(done.why, sizeof done.why, "%s", why);
    bool unwanted = p->unwanted;
    p->pending = false;
    if (err) {
        pin_remove(f, p);
    } else if (unwanted) {
        mr_store_release(f->store, &p->view);
        pin_remove(f, p);
    }
    if (!unwanted) f->done(f->ctx, &done);
}

static void fetch(struct mr_prefetch *f, const struct order *o)
{
    if (f->pins_count == f->pins_room) {
        uint32_t room = f->pins_room ? f->pins_room * 2 : 64;
        f->pins = mr_grow(f->pins, f->pins_room * sizeof *f->pins, room * sizeof *f->pins);
        f->pins_room = room;
    }
    struct pin *p = &f->pins[f->pins_count++];
    *p = (struct pin){.value = o->value, .serial = o->serial, .pending = true};
    struct mr_error e;
    e.text[0] = 0;
    int err =
        mr_store_get_start(f->store, o->object, o->address, FETCH_TIMEOUT, o->serial, &p->view, &e);
    if (err != MR_EAGAIN) pin_ended(f, p, err, e.text);
}

static void unpin(struct mr_prefetch *f, uint32_t serial)
{
    struct pin *p = pin_find(f, serial);
    if (!p) return; /* the fetch had failed */
    p->unwanted = true;
    if (p->pending) return;
    mr_store_release(f->store, &p->view);
    pin_remove(f, p);
}

static void completions(struct mr_prefetch *f)
{
    struct mr_store_completion done[BATCH];
    size_t n;
    while ((n = mr_store_completions(f->store, done, BATCH)) > 0) {
        for (size_t i = 0; i < n; i++) {
            struct pin *p = pin_find(f, (uint32_t)done[i].token);
            mr_assert(p); /* each start has exactly one completion */
            p->view = done[i].view;
            pin_ended(f, p, done[i].err, mr_err_words(done[i].err));
        }
    }
}

static void prefetch_main(void *ctx)
{
    struct mr_prefetch *f = ctx;
    struct order orders[BATCH];
    while (!mr_inbox_is_closed(f->inbox)) {
        size_t n = mr_inbox_wait(f->inbox, MR_NEVER, orders, BATCH);
        for (size_t i = 0; i < n; i++) {
            if (orders[i].is_fetch) {
                fetch(f, &orders[i]);
            } else {
                unpin(f, orders[i].serial);
            }
        }
        completions(f);
    }
}

struct mr_prefetch *mr_prefetch_start(
    struct mr_store *store, void (*done)(void *ctx, const struct mr_fetched *f), void *ctx)
{
    struct mr_prefetch *f = mr_alloc(sizeof *f);
    f->store = store;
    f->done = done;
    f->ctx = ctx;
    f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_assert(f->event_fd >= 0);
    f->inbox = mr_inbox_new(ORDERS_MAX, sizeof(struct order));
    mr_inbox_set_waiter(f->inbox, (struct mr_waiter){prefetch_wait, prefetch_wake, f});
    f->thread = mr_thread_start("prefetch", prefetch_main, f);
    return f;
}

void mr_prefetch_stop(struct mr_prefetch **prefetch)
{
    struct mr_prefetch *f = *prefetch;
    if (!f) return;
    mr_inbox_close(f->inbox);
    prefetch_wake(f);
    mr_thread_join(&f->thread);
    for (uint32_t i = 0; i < f->pins_count; i++)
        if (!f->pins[i].pending) mr_store_release(f->store, &f->pins[i].view);
    mr_inbox_free(&f->inbox);
    (void)close(f->event_fd);
    mr_release(f->pins);
    mr_release(f);
    *prefetch = NULL;
}

int mr_prefetch_fetch(struct mr_prefetch *f, uint32_t value, uint32_t serial, mr_object_id object,
    const char *address)
{
    struct order o = {true, value, serial, object, address};
    return mr_inbox_push(f->inbox, &o);
}

void mr_prefetch_unpin(struct mr_prefetch *f, uint32_t serial)
{
    struct order o = {.serial = serial};
    /* The inbox has room: fetches are few at a time, and each has one unpin. */
    int err = mr_inbox_push_wait(f->inbox, &o, MR_NEVER);
    (void)err;
}
