/* A signal thread counts Ctrl-C: the first one changes nothing, the second one cancels the job, the
 * third one ends the process. */
#include "cli/client/interrupt.h"

#include "base/alloc.h"
#include "host/os/signal.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CANCEL_TIMEOUT (5 * MR_SECOND)

static char left_text[128]; /* formatted in advance, because a signal handler cannot format text */

struct mr_interrupts {
    const struct mr_client *c;
    const char *id;
    unsigned count; /* number of signals; used by the signal thread only */
    struct mr_signals *signals;
};

static void say(const struct mr_interrupts *x, const char *text, const char *more)
{
    (void)fprintf(
        stderr, "%sjob %s %s%s\n", x->c->tty ? "\r\033[K" : "", x->id, text, more ? more : "");
}

static int cancel(const struct mr_interrupts *x, struct mr_error *e)
{
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "POST",
        .headers = {"Content-Type: application/json"},
        .body = MR_STR("{\"reason\": \"cancelled by Ctrl-C\"}"),
        .timeout_ns = CANCEL_TIMEOUT};
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(x->id));
    mr_http_reply_init(&reply);
    int err = mr_client_send(x->c, &request, &reply, e, "/v1/jobs/%s:cancel", id);
    mr_http_reply_fini(&reply);
    return err;
}

static void on_third(int number)
{
    (void)!write(STDERR_FILENO, left_text, strlen(left_text));
    _exit(128 + number);
}

/* Cancels the job. That blocks the signal thread until the cluster answers, so a signal handler
 * takes the third Ctrl-C and ends the process. */
static void cancel_or_leave(const struct mr_interrupts *x)
{
    struct mr_error e = {0};
    sigset_t third;
    struct sigaction act = {.sa_handler = on_third};
    (void)snprintf(left_text, sizeof left_text,
        "%sjob %.40s: left before the cluster said that it is cancelled\n",
        x->c->tty ? "\r\033[K" : "", x->id);
    (void)sigemptyset(&third);
    (void)sigaddset(&third, SIGINT);
    (void)sigaction(SIGINT, &act, NULL);
    (void)pthread_sigmask(SIG_UNBLOCK, &third, NULL);
    int err = cancel(x, &e);
    (void)pthread_sigmask(SIG_BLOCK, &third, NULL);
    say(x, err ? "is not cancelled: " : "is being cancelled; Ctrl-C again does not wait for that",
        err ? e.text : NULL);
}

/* Handles one signal, on the signal thread. */
static void on_signal(void *ctx, int number)
{
    struct mr_interrupts *x = ctx;
    unsigned count = number == SIGINT ? ++x->count : 3;
    if (count == 1) {
        say(x, "goes on; Ctrl-C again cancels it", NULL);
    } else if (count == 2) {
        cancel_or_leave(x);
    } else {
        say(x, "is left to itself; `millrace watch` follows it", NULL);
        _exit(128 + number);
    }
}

struct mr_interrupts *mr_interrupts_open(const struct mr_client *c, const char *id)
{
    struct mr_interrupts *x = mr_alloc(sizeof *x);
    x->c = c;
    x->id = id;
    mr_signal_block();
    x->signals = mr_signal_open(on_signal, x);
    return x;
}

void mr_interrupts_close(struct mr_interrupts **interrupts)
{
    struct mr_interrupts *x = *interrupts;
    if (!x) return;
    mr_signal_close(&x->signals);
    mr_signal_reset_child(); /* sets the default actions, with which the process started */
    mr_release(x);
    *interrupts = NULL;
}
