/* Draws with escape sequences. Keys and signals make one epoll descriptor readable. */
#include "cli/term/screen.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/term/text.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[2J"
#define GIVE_BACK "\033[?25h\033[?1049l"
#define ROWS_ELSE 24
#define PICTURE_BYTES_MAX ((size_t)1 << 24)

struct mr_screen {
    struct termios before;
    bool has_keys; /* true: stdin is a terminal */
    int signal_fd;
    int fd;        /* epoll descriptor for keys and signals */
    sigset_t mask; /* signal mask of the thread before the screen was opened */
    int ended_by;  /* number of the signal that ends the process; 0: none came */
};

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void enter(const struct mr_screen *s)
{
    struct termios quiet = s->before;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 0;
    quiet.c_cc[VTIME] = 0;
    if (s->has_keys) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    say(ENTER);
}

static void give_back(const struct mr_screen *s)
{
    say(GIVE_BACK);
    if (s->has_keys) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

static void hear(const struct mr_screen *s, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    (void)epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &ev);
}

struct mr_screen *mr_screen_open(void)
{
    sigset_t words;
    if (!isatty(STDOUT_FILENO)) return NULL;
    struct mr_screen *s = mr_alloc(sizeof *s);
    (void)fflush(stdout);
    (void)sigemptyset(&words);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    for (size_t i = 0; i < MR_ARRAY_LEN(numbers); i++)
        (void)sigaddset(&words, numbers[i]);
    (void)pthread_sigmask(SIG_BLOCK, &words, &s->mask);
    s->signal_fd = signalfd(-1, &words, SFD_NONBLOCK | SFD_CLOEXEC);
    s->fd = epoll_create1(EPOLL_CLOEXEC);
    s->has_keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &s->before);
    hear(s, s->signal_fd);
    if (s->has_keys) hear(s, STDIN_FILENO);
    enter(s);
    return s;
}

void mr_screen_close(struct mr_screen **screen)
{
    struct mr_screen *s = *screen;
    if (!s) return;
    int number = s->ended_by;
    give_back(s);
    (void)close(s->signal_fd);
    (void)close(s->fd);
    (void)pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
    mr_release(s);
    *screen = NULL;
    if (number) (void)raise(number);
}

unsigned mr_screen_columns(const struct mr_screen *s)
{
    (void)s;
    return mr_text_columns(stdout);
}

static unsigned rows(void)
{
    struct winsize size = {0};
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row;
    return known ? size.ws_row : ROWS_ELSE;
}

void mr_screen_draw(struct mr_screen *s, struct mr_str text)
{
    struct mr_buf out;
    unsigned columns = mr_screen_columns(s);
    unsigned left = rows();
    mr_buf_init(&out, PICTURE_BYTES_MAX);
    mr_buf_add_text(&out, "\033[H");
    while (text.n && left--) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        mr_text_add_truncated(mr_str_of(text.p, n), columns, &out);
        mr_buf_add_text(&out, left ? "\033[K\r\n" : "\033[K");
        size_t gone = n + (end != NULL);
        text = mr_str_of(text.p + gone, text.n - gone);
    }
    mr_buf_add_text(&out, "\033[J");
    for (size_t at = 0; at < out.n;) {
        ssize_t n = write(STDOUT_FILENO, out.p + at, out.n - at);
        /* The terminal is gone, and SIGHUP will follow. */
        if (n <= 0) break;
        at += (size_t)n;
    }
    mr_buf_fini(&out);
}

int mr_screen_fd(const struct mr_screen *s)
{
    return s->fd;
}

static enum mr_screen_event take_signals(struct mr_screen *s)
{
    struct signalfd_siginfo info;
    enum mr_screen_event event = MR_SCREEN_NONE;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGTSTP) {
            give_back(s);
            (void)raise(SIGSTOP);
            enter(s);
        } else if (number != SIGWINCH) {
            s->ended_by = number;
            return MR_SCREEN_LEAVE;
        }
        event = MR_SCREEN_REDRAW;
    }
    return event;
}

enum mr_screen_event mr_screen_take(struct mr_screen *s)
{
    char keys[64];
    enum mr_screen_event event = take_signals(s);
    if (event == MR_SCREEN_LEAVE || !s->has_keys) return event;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR)) return MR_SCREEN_LEAVE;
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    for (ssize_t i = 0; i < n; i++)
        if (keys[i] == 'q' || keys[i] == 'Q') return MR_SCREEN_LEAVE;
    return event;
}
