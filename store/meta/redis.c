/* Knows hiredis, sockets and one thread; refuses to know what is stored. The thread alternates:
 * take all that is queued, send it, read as many answers, call back. Between batches it sleeps in
 * poll on the socket, so a Redis that goes away is noticed at once and an idle link costs nothing.
 */
#include "store/meta/redis.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"

#include <hiredis/hiredis.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_BYTES_MAX ((size_t)256 << 20)
#define BATCH_BYTES_MAX ((size_t)8 << 20)
#define BATCH_COMMANDS_MAX 4096
#define BACKOFF_MIN_MS 20
#define BACKOFF_MAX_MS 500

struct command {
    struct mr_list node;
    mr_redis_reply_fn fn;
    void *ctx;
    size_t argc;
    size_t bytes;
    size_t *lengths;   /* argc of them, behind the struct */
    const char **argv; /* likewise; the bytes follow */
};

struct mr_redis {
    struct mr_redis_config config;
    char *address;
    char *password;
    pthread_t thread;
    int wake_fd;
    redisContext *link; /* of the thread */
    atomic_bool here;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* here or closing */
    struct mr_list queue;
    size_t queue_bytes;
    bool closing;
};

enum mr_reply_type mr_reply_type(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER: return MR_REPLY_INT;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return MR_REPLY_TEXT;
    case REDIS_REPLY_ARRAY: return MR_REPLY_LIST;
    case REDIS_REPLY_ERROR: return MR_REPLY_ERROR;
    default: return MR_REPLY_NIL;
    }
}

int64_t mr_reply_int(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

struct mr_str mr_reply_text(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    enum mr_reply_type type = mr_reply_type(r);
    if (type != MR_REPLY_TEXT && type != MR_REPLY_ERROR) return (struct mr_str){0};
    return mr_str_of(reply->str, reply->len);
}

size_t mr_reply_count(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    return reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const struct mr_reply *mr_reply_at(const struct mr_reply *r, size_t i)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    mr_assert(i < mr_reply_count(r));
    return (const struct mr_reply *)(const void *)reply->element[i];
}

void mr_reply_free(struct mr_reply **r)
{
    freeReplyObject(*r);
    *r = NULL;
}

static bool is_away_error(const redisReply *reply)
{
    static const char *const words[] = {
        "LOADING", "OOM", "READONLY", "MASTERDOWN", "NOAUTH", "MISCONF"};
    if (reply->type != REDIS_REPLY_ERROR) return false;
    for (size_t i = 0; i < MR_ARRAY_LEN(words); i++)
        if (strncmp(reply->str, words[i], strlen(words[i])) == 0) return true;
    return false;
}

static struct timeval to_timeval(mr_duration ns)
{
    return (struct timeval){
        .tv_sec = (time_t)(ns / MR_SECOND), .tv_usec = (suseconds_t)(ns % MR_SECOND / 1000)};
}

static redisContext *dial(const struct mr_redis *r)
{
    struct timeval timeout = to_timeval(r->config.connect_timeout_ns);
    if (strncmp(r->address, "unix:", 5) == 0)
        return redisConnectUnixWithTimeout(r->address + 5, timeout);
    char host[256];
    const char *colon = strrchr(r->address, ':');
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - r->address), r->address);
    return redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), timeout);
}

/* A PING tells whether it serves: it may be loading its data, or want a password. */
static bool greet(const struct mr_redis *r, redisContext *link, char *why, size_t why_bytes)
{
    if (r->password) {
        redisReply *auth = redisCommand(link, "AUTH %s", r->password);
        if (auth) freeReplyObject(auth);
    }
    redisReply *pong = redisCommand(link, "PING");
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

static bool connect_once(struct mr_redis *r, char *why, size_t why_bytes)
{
    redisContext *link = dial(r);
    if (!link) {
        (void)snprintf(why, why_bytes, "out of memory");
        return false;
    }
    bool good = link->err == 0;
    if (!good) (void)snprintf(why, why_bytes, "%s", link->errstr);
    if (good) good = redisSetTimeout(link, to_timeval(r->config.reply_timeout_ns)) == REDIS_OK;
    if (good) good = greet(r, link, why, why_bytes);
    if (!good) {
        redisFree(link);
        return false;
    }
    r->link = link;
    return true;
}

/* Moves commands from the queue to `batch`; true while the link should live. */
static bool take(struct mr_redis *r, struct mr_list *batch, size_t *count)
{
    size_t bytes = 0;
    (void)pthread_mutex_lock(&r->lock);
    bool closing = r->closing;
    while (*count < BATCH_COMMANDS_MAX && bytes < BATCH_BYTES_MAX) {
        struct mr_list *node = mr_list_pop_head(&r->queue);
        if (!node) break;
        bytes += MR_LIST_ITEM(node, struct command, node)->bytes;
        mr_list_add_tail(batch, node);
        ++*count;
    }
    r->queue_bytes -= bytes;
    (void)pthread_mutex_unlock(&r->lock);
    return !closing;
}

static void finish(struct command *c, int err, const redisReply *reply)
{
    if (c->fn) c->fn(c->ctx, err, (const struct mr_reply *)(const void *)reply);
    mr_release(c);
}

static void fail_all(struct mr_list *batch, int err)
{
    for (struct mr_list *node = mr_list_pop_head(batch); node; node = mr_list_pop_head(batch))
        finish(MR_LIST_ITEM(node, struct command, node), err, NULL);
}

static void fail_queue(struct mr_redis *r, int err)
{
    struct mr_list all;
    mr_list_init(&all);
    for (;;) {
        size_t count = 0;
        (void)take(r, &all, &count);
        if (!count) return;
        fail_all(&all, err);
    }
}

/* Sends a batch and reads its answers; false when the link is lost. */
static bool exchange(struct mr_redis *r, struct mr_list *batch)
{
    MR_LIST_EACH(node, batch)
    {
        struct command *c = MR_LIST_ITEM(node, struct command, node);
        if (redisAppendCommandArgv(r->link, (int)c->argc, c->argv, c->lengths) != REDIS_OK)
            return false;
    }
    while (!mr_list_is_empty(batch)) {
        void *got = NULL;
        if (redisGetReply(r->link, &got) != REDIS_OK) return false;
        redisReply *reply = got;
        struct command *c = MR_LIST_ITEM(mr_list_pop_head(batch), struct command, node);
        finish(c, is_away_error(reply) ? MR_EAWAY : MR_OK, reply);
        freeReplyObject(reply);
    }
    return true;
}

static void drain_wake(const struct mr_redis *r)
{
    uint64_t n = 0;
    ssize_t got = read(r->wake_fd, &n, sizeof n);
    (void)got;
}

/* Serves the link until it is lost (true) or the owner closes (false). */
static bool serve(struct mr_redis *r)
{
    for (;;) {
        struct mr_list batch;
        mr_list_init(&batch);
        size_t count = 0;
        if (!take(r, &batch, &count)) {
            fail_all(&batch, MR_ECANCELED);
            return false;
        }
        if (count && !exchange(r, &batch)) {
            fail_all(&batch, MR_EAWAY);
            return true;
        }
        if (count) continue;
        struct pollfd fds[2] = {{.fd = r->link->fd, .events = POLLIN | POLLRDHUP},
            {.fd = r->wake_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return true;
        if (fds[0].revents) return true; /* nothing was asked: it can only have hung up */
        if (fds[1].revents) drain_wake(r);
    }
}

static bool is_closing(struct mr_redis *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool closing = r->closing;
    (void)pthread_mutex_unlock(&r->lock);
    return closing;
}

static void *run(void *arg)
{
    struct mr_redis *r = arg;
    int backoff_ms = BACKOFF_MIN_MS;
    char why[160] = "";
    while (!is_closing(r)) {
        if (!connect_once(r, why, sizeof why)) {
            set_here(r, false, why);
            fail_queue(r, MR_EAWAY);
            struct pollfd fd = {.fd = r->wake_fd, .events = POLLIN};
            if (poll(&fd, 1, backoff_ms) > 0) drain_wake(r);
            backoff_ms = MR_MIN(backoff_ms * 2, BACKOFF_MAX_MS);
            continue;
        }
        backoff_ms = BACKOFF_MIN_MS;
        set_here(r, true, "connected");
        bool lost = serve(r);
        (void)snprintf(why, sizeof why, "%s", r->link->err ? r->link->errstr : "connection closed");
        redisFree(r->link);
        r->link = NULL;
        set_here(r, false, why);
        fail_queue(r, lost ? MR_EAWAY : MR_ECANCELED);
    }
    fail_queue(r, MR_ECANCELED);
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
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_assert(r->wake_fd >= 0);
    mr_list_init(&r->queue);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    *out = r; /* before the thread: its first callback may use it */
    mr_assert(pthread_create(&r->thread, NULL, run, r) == 0);
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
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    wake(r);
    (void)pthread_join(r->thread, NULL);
    (void)close(r->wake_fd);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->changed);
    mr_release(r->address);
    mr_release(r->password);
    mr_release(r);
}

bool mr_redis_is_here(const struct mr_redis *r)
{
    return atomic_load(&r->here);
}

static struct command *command_make(size_t argc, const struct mr_str *argv)
{
    size_t bytes = sizeof(struct command) + argc * (sizeof(size_t) + sizeof(char *));
    size_t head = bytes;
    for (size_t i = 0; i < argc; i++)
        bytes += argv[i].n;
    struct command *c = mr_alloc(bytes);
    c->argc = argc;
    c->bytes = bytes;
    c->lengths = (size_t *)(void *)(c + 1);
    c->argv = (const char **)(void *)(c->lengths + argc);
    char *at = (char *)c + head;
    for (size_t i = 0; i < argc; i++) {
        c->lengths[i] = argv[i].n;
        c->argv[i] = at;
        if (argv[i].n) memcpy(at, argv[i].p, argv[i].n);
        at += argv[i].n;
    }
    return c;
}

int mr_redis_send(
    struct mr_redis *r, size_t argc, const struct mr_str *argv, mr_redis_reply_fn fn, void *ctx)
{
    if (!mr_redis_is_here(r)) return MR_EAWAY;
    struct command *c = command_make(argc, argv);
    c->fn = fn;
    c->ctx = ctx;
    (void)pthread_mutex_lock(&r->lock);
    bool full = r->queue_bytes + c->bytes > QUEUE_BYTES_MAX;
    bool closing = r->closing;
    bool was_empty = mr_list_is_empty(&r->queue);
    if (!full && !closing) {
        mr_list_add_tail(&r->queue, &c->node);
        r->queue_bytes += c->bytes;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (full || closing) {
        mr_release(c);
        return full ? MR_ELIMIT : MR_EAWAY;
    }
    if (was_empty) wake(r);
    return MR_OK;
}

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int err;
    redisReply *reply;
};

/* A reply is on loan in a callback, so the waiter gets a copy. mr_alloc is calloc, and
 * freeReplyObject frees. */
static redisReply *reply_copy(const redisReply *from)
{
    redisReply *to = mr_alloc(sizeof *to);
    *to = *from;
    if (from->str) {
        to->str = mr_alloc(from->len + 1);
        memcpy(to->str, from->str, from->len);
    }
    to->element = from->elements ? mr_alloc_array(from->elements, sizeof(redisReply *)) : NULL;
    for (size_t i = 0; i < from->elements; i++)
        to->element[i] = reply_copy(from->element[i]); /* hiredis refuses to nest deeper than 8 */
    return to;
}

static void wake_waiter(void *ctx, int err, const struct mr_reply *reply)
{
    struct waiting *w = ctx;
    (void)pthread_mutex_lock(&w->lock);
    w->err = err;
    if (reply && !err) w->reply = reply_copy((const redisReply *)(const void *)reply);
    w->is_done = true;
    (void)pthread_cond_signal(&w->done);
    (void)pthread_mutex_unlock(&w->lock);
}

int mr_redis_call(struct mr_redis *r, size_t argc, const struct mr_str *argv, struct mr_reply **out,
    struct mr_error *e)
{
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    int err = mr_redis_send(r, argc, argv, wake_waiter, &w);
    if (err) return mr_fail(e, err, "Redis at %s is away", r->address);
    (void)pthread_mutex_lock(&w.lock);
    while (!w.is_done)
        (void)pthread_cond_wait(&w.done, &w.lock);
    (void)pthread_mutex_unlock(&w.lock);
    if (w.err) return mr_fail(e, w.err, "Redis at %s went away", r->address);
    if (w.reply->type == REDIS_REPLY_ERROR) {
        err = mr_fail(e, MR_EINTERNAL, "Redis: %s", w.reply->str);
        freeReplyObject(w.reply);
        return err;
    }
    *out = (struct mr_reply *)(void *)w.reply;
    return MR_OK;
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
