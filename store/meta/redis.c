/* A connection to Redis with one thread. A command becomes bytes in `out` and an item in `pending`;
 * answers come in the order of `pending`. A thread that sends a small command writes it to the
 * socket itself if no large command waits before it, because waking the connection's thread takes
 * as long as Redis takes to run the command. The connection's thread writes large commands and the
 * bytes that the socket did not take. This thread sleeps in epoll, reads answers, runs callbacks
 * and reconnects. Another thread may read the answers instead (mr_redis_attend); meanwhile the
 * connection's thread does not poll the socket for answers. A thread that reads answers, opens the
 * connection or closes it holds the mutex `reading`. */
#include "store/meta/redis.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/list.h"
#include "host/clock.h"
#include "store/meta/redis_link.h"

#include <hiredis/hiredis.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A thread that sends a command writes up to this many queued bytes to the socket itself. */
#define DIRECT_BYTES_MAX ((size_t)16 << 10)
/* An empty buffer gives its memory back if the memory is larger. */
#define KEPT_BYTES_MAX ((size_t)1 << 20)
#define READ_BYTES 16384
#define BACKOFF_MIN_MS 20
#define BACKOFF_MAX_MS 500
/* The longest pause after Redis has refused to serve, in ms. */
#define REFUSED_MAX_MS 2000

struct command {
    struct mr_list node;
    mr_redis_reply_fn fn;
    void *ctx;
};

struct mr_redis {
    struct mr_redis_config config;
    char *address;
    char *password;
    pthread_t thread;
    int wake_fd;
    int sleep_fd; /* epoll descriptor for wake_fd and, while connected, for the socket */
    /* Used by the connection's thread. Senders write to the link's socket under `lock` while `here`
     * is true. */
    redisContext *link;
    struct mr_buf writing; /* used by the connection's thread: bytes that it took from `out` */
    size_t writing_at;
    int backoff_ms;

    pthread_mutex_t reading; /* protects the members up to `refusal`; taken before `lock` */
    bool is_served;          /* true: connected, so answers may be read */
    /* another thread than the connection's read answers, and found that the connection is broken or
     * that Redis refuses to serve */
    bool is_broken;
    bool is_refusing; /* an answer said that Redis cannot serve now; `refusal` is its text */
    char refusal[160];

    atomic_bool here;
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t changed;
    struct mr_list pending; /* commands that have no answer yet, in the order of sending */
    struct mr_buf out;      /* bytes that are not written yet */
    /* The later of two times: when the last answer came, and when the first command of `pending`
     * was sent. */
    mr_time heard;
    /* True: the connection's thread has bytes that must be written before `out`. */
    bool is_writing;
    bool is_woken;
    bool is_watched;  /* the socket is in sleep_fd */
    bool is_attended; /* true: another thread reads the answers */
    bool wants_room;  /* the connection's thread waits until the socket takes more bytes */
    /* A new socket on which Redis has not yet answered AUTH and PING; -1: no such socket. */
    int greeting_fd;
    bool closing;
};

/* The reply whose callback runs on this thread. NULL: no callback runs, or the callback has taken
 * the reply. */
static _Thread_local redisReply *in_hand;

struct mr_reply *mr_reply_take(const struct mr_reply *r)
{
    mr_assert(in_hand && (const struct mr_reply *)(const void *)in_hand == r);
    return (struct mr_reply *)(void *)MR_STEAL(in_hand);
}

/* Authenticates, and sends PING to find out whether Redis serves: Redis may be loading its data or
 * require a password. False: Redis does not serve, and `why` has the reason. */
static bool greet(const struct mr_redis *r, redisContext *link, char *why, size_t why_bytes)
{
    if (r->password) {
        const struct mr_str argv[] = {MR_STR("AUTH"), mr_str(r->password)};
        redisReply *auth = mr_redis_ask(link, MR_ARRAY_LEN(argv), argv);
        if (auth) freeReplyObject(auth);
    }
    const struct mr_str argv[] = {MR_STR("PING")};
    redisReply *pong = mr_redis_ask(link, MR_ARRAY_LEN(argv), argv);
    if (!pong) {
        (void)snprintf(why, why_bytes, "%s", link->errstr);
        return false;
    }
    bool good = pong->type == REDIS_REPLY_STATUS;
    if (!good) (void)snprintf(why, why_bytes, "%s", pong->str ? pong->str : "no PONG");
    freeReplyObject(pong);
    return good;
}

static void set_here(struct mr_redis *r, bool here, const char *why)
{
    bool was = atomic_exchange(&r->here, here);
    (void)pthread_mutex_lock(&r->lock);
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    if (was != here && r->config.on_state) r->config.on_state(r->config.ctx, here, why);
}

/* Publishes the new socket on which Redis has not yet answered AUTH and PING; -1: no such socket.
 * mr_redis_close shuts this socket down, so that a Redis that does not answer delays no close.
 * True: the connection may be opened. False: mr_redis_close has been called. */
static bool set_greeting(struct mr_redis *r, int fd)
{
    (void)pthread_mutex_lock(&r->lock);
    r->greeting_fd = fd;
    bool goes_on = !r->closing;
    (void)pthread_mutex_unlock(&r->lock);
    return goes_on;
}

static bool connect_once(struct mr_redis *r, char *why, size_t why_bytes)
{
    redisContext *link = mr_redis_dial(r->address, r->config.connect_timeout_ns);
    if (!link) {
        (void)snprintf(why, why_bytes, "out of memory");
        return false;
    }
    bool good = link->err == 0;
    if (!good) (void)snprintf(why, why_bytes, "%s", link->errstr);
    if (good)
        good = redisSetTimeout(link, mr_redis_timeval(r->config.reply_timeout_ns)) == REDIS_OK;
    if (good) good = set_greeting(r, link->fd) && greet(r, link, why, why_bytes);
    (void)set_greeting(r, -1);
    if (!good) {
        redisFree(link);
        return false;
    }
    r->link = link;
    return true;
}

static void finish(struct command *c, int err, const redisReply *reply)
{
    if (c->fn) c->fn(c->ctx, err, (const struct mr_reply *)(const void *)reply);
    mr_release(c);
}

static void buf_clear(struct mr_buf *b)
{
    mr_buf_clear(b);
    if (b->room <= KEPT_BYTES_MAX) return;
    mr_buf_fini(b);
    mr_buf_init(b, MR_REDIS_QUEUE_BYTES_MAX);
}

/* Ends all pending commands with `err`, because the connection is broken or closed. No command is
 * sent until the connection is open again. */
static void fail_pending(struct mr_redis *r, int err)
{
    struct mr_list all;
    mr_list_init(&all);
    (void)pthread_mutex_lock(&r->lock);
    atomic_store(&r->here, false);
    for (struct mr_list *node; (node = mr_list_pop_head(&r->pending));)
        mr_list_add_tail(&all, node);
    buf_clear(&r->out);
    r->is_writing = false;
    (void)pthread_mutex_unlock(&r->lock);
    buf_clear(&r->writing);
    for (struct mr_list *node; (node = mr_list_pop_head(&all));)
        finish(MR_LIST_ITEM(node, struct command, node), err, NULL);
}

/* Sleeps until a wake, an event on the socket, or the timeout. True: the socket has an event.
 * False: it has none. */
static bool sleep_until(struct mr_redis *r, int timeout_ms)
{
    struct epoll_event got[2];
    int n = epoll_wait(r->sleep_fd, got, MR_ARRAY_LEN(got), timeout_ms);
    bool of_link = false;
    for (int i = 0; i < n; i++) {
        if (got[i].data.fd != r->wake_fd) {
            of_link = true;
            continue;
        }
        uint64_t count = 0;
        ssize_t size = read(r->wake_fd, &count, sizeof count);
        (void)size;
        (void)pthread_mutex_lock(&r->lock);
        /* A command that is queued after the flag is cleared wakes this thread again. The caller of
         * this function takes the commands that were queued before. */
        r->is_woken = false;
        (void)pthread_mutex_unlock(&r->lock);
    }
    return of_link;
}

/* Sets the events of the socket for which the connection's thread waits. The caller holds
 * `lock`. */
static void watch(struct mr_redis *r, int op)
{
    struct epoll_event ev = {.data.fd = r->link->fd};
    if (!r->is_attended) ev.events |= EPOLLIN;
    if (r->wants_room) ev.events |= EPOLLOUT;
    int err = epoll_ctl(r->sleep_fd, op, r->link->fd, &ev);
    mr_assert(!err);
    r->is_watched = op != EPOLL_CTL_DEL;
}

static void set_wants_room(struct mr_redis *r, bool on)
{
    if (r->wants_room == on) return; /* read without the lock: only this thread writes wants_room */
    (void)pthread_mutex_lock(&r->lock);
    r->wants_room = on;
    watch(r, EPOLL_CTL_MOD);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Takes the bytes that senders have queued. True: there are bytes to write. False: there are
 * none. */
static bool take_out(struct mr_redis *r)
{
    if (r->writing_at < r->writing.n) return true;
    buf_clear(&r->writing);
    r->writing_at = 0;
    (void)pthread_mutex_lock(&r->lock);
    struct mr_buf taken = r->out;
    r->out = r->writing;
    r->writing = taken;
    r->is_writing = taken.n > 0;
    (void)pthread_mutex_unlock(&r->lock);
    return taken.n > 0;
}

/* Returns how many bytes the socket took; 0: it takes none now. An error of the socket shows when
 * the socket is read. */
static size_t push_bytes(int fd, const void *p, size_t n)
{
    ssize_t put = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return put > 0 ? (size_t)put : 0;
}

void mr_redis_pause(struct mr_redis *r, const char *why)
{
    if (r->is_refusing) return; /* keeps the first reason */
    r->is_refusing = true;
    (void)snprintf(r->refusal, sizeof r->refusal, "%s", why);
}

static void answer(struct mr_redis *r, redisReply *reply)
{
    (void)pthread_mutex_lock(&r->lock);
    struct mr_list *node = mr_list_pop_head(&r->pending);
    r->heard = mr_clock_now();
    (void)pthread_mutex_unlock(&r->lock);
    bool away = mr_reply_is_away((const struct mr_reply *)(const void *)reply);
    if (away) mr_redis_pause(r, reply->str);
    in_hand = reply;
    if (node) finish(MR_LIST_ITEM(node, struct command, node), away ? MR_EAWAY : MR_OK, reply);
    if (in_hand) freeReplyObject(in_hand);
    in_hand = NULL;
}

/* Reads the available answers. True: the connection goes on. False: the connection is broken, or
 * Redis refuses to serve. */
static bool read_answers(struct mr_redis *r)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(r->link->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
        (void)snprintf(r->link->errstr, sizeof r->link->errstr, "%s",
            n ? "the connection broke" : "Redis closed the connection");
        return false;
    }
    bool fed = redisReaderFeed(r->link->reader, bytes, (size_t)n) == REDIS_OK;
    while (fed) {
        void *got = NULL;
        if (redisReaderGetReply(r->link->reader, &got) != REDIS_OK) {
            (void)snprintf(r->link->errstr, sizeof r->link->errstr, "%s", r->link->reader->errstr);
            return false;
        }
        if (!got) break;
        answer(r, got);
    }
    return fed && !r->is_refusing;
}

static bool is_late(struct mr_redis *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool waits = !mr_list_is_empty(&r->pending);
    mr_time due = mr_time_after(r->heard, r->config.reply_timeout_ns);
    (void)pthread_mutex_unlock(&r->lock);
    if (!waits || mr_clock_now() < due) return false;
    (void)snprintf(r->link->errstr, sizeof r->link->errstr, "no answer in time");
    return true;
}

static bool is_closing(struct mr_redis *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool closing = r->closing;
    (void)pthread_mutex_unlock(&r->lock);
    return closing;
}

static bool read_or_look(struct mr_redis *r)
{
    (void)pthread_mutex_lock(&r->reading);
    bool good = !r->is_broken && read_answers(r);
    (void)pthread_mutex_unlock(&r->reading);
    return good;
}

static void set_served(struct mr_redis *r, bool on)
{
    (void)pthread_mutex_lock(&r->reading);
    r->is_served = on;
    r->is_broken = false;
    (void)pthread_mutex_lock(&r->lock);
    r->wants_room = false;
    watch(r, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_mutex_unlock(&r->reading);
}

/* Runs one connection until it breaks or mr_redis_close is called. */
static void serve(struct mr_redis *r)
{
    /* The thread wakes every quarter of the timeout to look at the time, because senders do not
     * wake it when they send a command. */
    int slice_ms = (int)MR_MAX(r->config.reply_timeout_ns / MR_MS / 4, 1u);
    set_served(r, true);
    while (!is_closing(r)) {
        bool more = take_out(r);
        if (more)
            r->writing_at +=
                push_bytes(r->link->fd, r->writing.p + r->writing_at, r->writing.n - r->writing_at);
        if (more && r->writing_at == r->writing.n) continue;
        set_wants_room(r, more);
        bool has_some = sleep_until(r, slice_ms);
        /* The answers are read even without an event. The thread that reads them in place of this
         * one (mr_redis_attend) may be busy for longer than the timeout. */
        if (!read_or_look(r)) break;
        if (!has_some && is_late(r)) break;
    }
    set_served(r, false);
}

static void *run(void *arg)
{
    struct mr_redis *r = arg;
    char why[sizeof r->refusal] = "";
    r->backoff_ms = BACKOFF_MIN_MS;
    while (!is_closing(r)) {
        bool refused = r->is_refusing;
        r->is_refusing = false;
        if (refused || !connect_once(r, why, sizeof why)) {
            set_here(r, false, why);
            (void)sleep_until(r, r->backoff_ms);
            r->backoff_ms = MR_MIN(r->backoff_ms * 2, refused ? REFUSED_MAX_MS : BACKOFF_MAX_MS);
            continue;
        }
        set_here(r, true, "connected");
        mr_time since = mr_clock_now();
        serve(r);
        const char *words = r->is_refusing       ? r->refusal
                            : r->link->errstr[0] ? r->link->errstr
                                                 : "connection closed";
        (void)snprintf(why, sizeof why, "%s", words);
        bool closing = is_closing(r);
        fail_pending(r, closing ? MR_ECANCELED : MR_EAWAY);
        redisFree(r->link);
        r->link = NULL;
        bool was_long = mr_clock_now() - since > 10 * MR_SECOND;
        if (!r->is_refusing || was_long) r->backoff_ms = BACKOFF_MIN_MS;
        if (r->config.on_state) r->config.on_state(r->config.ctx, false, why);
    }
    fail_pending(r, MR_ECANCELED);
    return NULL;
}

static int check_address(const char *address, struct mr_error *e)
{
    if (strncmp(address, "unix:", 5) == 0 && strlen(address) > 5) return MR_OK;
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : 0;
    if (colon && colon != address && colon - address < 256 && end && !*end && port > 0 &&
        port < 65536)
        return MR_OK;
    return mr_fail(e, MR_EINVAL, "Redis address \"%s\": expected unix:PATH or HOST:PORT", address);
}

int mr_redis_open(const struct mr_redis_config *config, struct mr_redis **out, struct mr_error *e)
{
    int err = check_address(config->address, e);
    if (err) return err;
    struct mr_redis *r = mr_alloc(sizeof *r);
    r->config = *config;
    if (!r->config.connect_timeout_ns) r->config.connect_timeout_ns = 2 * MR_SECOND;
    if (!r->config.reply_timeout_ns) r->config.reply_timeout_ns = 10 * MR_SECOND;
    r->address = mr_copy_text(config->address);
    r->password = config->password ? mr_copy_text(config->password) : NULL;
    r->greeting_fd = -1;
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_assert(r->wake_fd >= 0);
    r->sleep_fd = epoll_create1(EPOLL_CLOEXEC);
    mr_assert(r->sleep_fd >= 0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = r->wake_fd};
    int failed = epoll_ctl(r->sleep_fd, EPOLL_CTL_ADD, r->wake_fd, &ev);
    mr_assert(!failed);
    mr_list_init(&r->pending);
    mr_buf_init(&r->out, MR_REDIS_QUEUE_BYTES_MAX);
    mr_buf_init(&r->writing, MR_REDIS_QUEUE_BYTES_MAX);
    (void)pthread_mutex_init(&r->reading, NULL);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    /* `*out` is set before the thread starts, because the first callback may use `*out` */
    *out = r;
    failed = pthread_create(&r->thread, NULL, run, r);
    mr_assert(!failed);
    return MR_OK;
}

static void wake(const struct mr_redis *r)
{
    uint64_t one = 1;
    ssize_t put = write(r->wake_fd, &one, sizeof one);
    (void)put;
}

void mr_redis_close(struct mr_redis **rp)
{
    struct mr_redis *r = *rp;
    *rp = NULL;
    if (!r) return;
    (void)pthread_mutex_lock(&r->lock);
    r->closing = true;
    if (r->greeting_fd >= 0) (void)shutdown(r->greeting_fd, SHUT_RDWR);
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    wake(r);
    (void)pthread_join(r->thread, NULL);
    (void)close(r->sleep_fd);
    (void)close(r->wake_fd);
    (void)pthread_mutex_destroy(&r->reading);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->changed);
    mr_buf_fini(&r->out);
    mr_buf_fini(&r->writing);
    mr_release(r->address);
    mr_release(r->password);
    mr_release(r);
}

const char *mr_redis_address(const struct mr_redis *r)
{
    return r->address;
}

bool mr_redis_is_here(const struct mr_redis *r)
{
    return atomic_load(&r->here);
}

/* Writes bytes of `out` to the socket. The caller holds the lock. True: the connection's thread has
 * to be woken to write the rest. */
static bool push_out(struct mr_redis *r)
{
    if (r->is_writing) return false; /* the connection's thread will write the bytes later */
    if (r->out.n > DIRECT_BYTES_MAX) return true;
    size_t put = push_bytes(r->link->fd, r->out.p, r->out.n);
    memmove(r->out.p, r->out.p + put, r->out.n - put);
    r->out.n -= put;
    return r->out.n > 0;
}

int mr_redis_send(
    struct mr_redis *r, size_t argc, const struct mr_str *argv, mr_redis_reply_fn fn, void *ctx)
{
    if (!mr_redis_is_here(r)) return MR_EAWAY;
    struct command *c = mr_alloc(sizeof *c);
    c->fn = fn;
    c->ctx = ctx;
    (void)pthread_mutex_lock(&r->lock);
    int err = !atomic_load(&r->here) || r->closing ? MR_EAWAY : MR_OK;
    if (!err && !mr_redis_add_command(&r->out, argc, argv)) err = MR_ELIMIT;
    bool wakes = false;
    if (!err) {
        if (mr_list_is_empty(&r->pending)) r->heard = mr_clock_now();
        mr_list_add_tail(&r->pending, &c->node);
        wakes = push_out(r) && !r->is_woken;
        if (wakes) r->is_woken = true;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (err) mr_release(c);
    if (wakes) wake(r);
    return err;
}

void mr_redis_attend(struct mr_redis *r, bool on)
{
    (void)pthread_mutex_lock(&r->lock);
    if (r->is_attended != on) {
        r->is_attended = on;
        if (r->is_watched) watch(r, EPOLL_CTL_MOD);
    }
    (void)pthread_mutex_unlock(&r->lock);
}

void mr_redis_look(struct mr_redis *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool waits = !mr_list_is_empty(&r->pending);
    (void)pthread_mutex_unlock(&r->lock);
    /* A failed trylock means that the connection's thread is reading now. */
    if (!waits || pthread_mutex_trylock(&r->reading)) return;
    bool lost = r->is_served && !r->is_broken && !read_answers(r);
    if (lost) r->is_broken = true;
    (void)pthread_mutex_unlock(&r->reading);
    if (lost) wake(r);
}

int mr_redis_wait(struct mr_redis *r, mr_duration timeout_ns)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / MR_SECOND);
    until.tv_nsec = (long)(ns % MR_SECOND);
    (void)pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->here) && !r->closing)
        if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == ETIMEDOUT) break;
    bool here = atomic_load(&r->here);
    (void)pthread_mutex_unlock(&r->lock);
    return here ? MR_OK : MR_EAWAY;
}
