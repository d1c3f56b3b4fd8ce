/* Formats a log line and writes it with one write(2), so that lines of several threads do not
 * mix. */
#include "host/os/log.h"

#include "base/err.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {
    [MR_ERROR] = "error", [MR_WARN] = "warn", [MR_INFO] = "info", [MR_DEBUG] = "debug"};

static _Atomic int level_shown = -1; /* -1: the environment variable has not been read yet */
static _Atomic(const char *) program;

/* Reads the name of a level. MR_EINVAL: no level has this name. */
static int parse_level(struct mr_str text, enum mr_log_level *out)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(level_names); i++) {
        if (!mr_str_eq(text, mr_str(level_names[i]))) continue;
        *out = (enum mr_log_level)i;
        return MR_OK;
    }
    return MR_EINVAL;
}

void mr_log_set_level(enum mr_log_level level)
{
    atomic_store(&level_shown, (int)level);
}

void mr_log_set_program(const char *name)
{
    atomic_store(&program, name);
}

bool mr_log_is_on(enum mr_log_level level)
{
    int shown = atomic_load_explicit(&level_shown, memory_order_relaxed);
    if (shown < 0) {
        enum mr_log_level wanted = MR_INFO;
        (void)parse_level(mr_str(getenv("MILLRACE_LOG")), &wanted);
        shown = (int)wanted;
        atomic_store(&level_shown, shown);
    }
    return (int)level <= shown;
}

/* Returns how many of the bytes that snprintf counted (`written`) are in the buffer of `bytes`
 * bytes: at most `bytes - 1`, because snprintf ends the text with a NUL. */
static size_t added(int written, size_t bytes)
{
    if (written < 0) return 0;
    return MR_MIN((size_t)written, bytes - 1);
}

void mr_log_line(enum mr_log_level level, const char *event, const char *fmt, ...)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    (void)gmtime_r(&now.tv_sec, &utc);
    char stamp[32];
    (void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);

    char raw[MR_LOG_LINE_MAX];
    const char *name = atomic_load(&program);
    size_t n = added(
        snprintf(raw, sizeof raw, "ts=%s.%06ldZ level=%s%s%s event=%s", stamp, now.tv_nsec / 1000,
            level_names[level], name ? " program=" : "", name ? name : "", event),
        sizeof raw);
    if (fmt[0] && n + 1 < sizeof raw) raw[n++] = ' ';
    va_list args;
    va_start(args, fmt);
    n += added(vsnprintf(raw + n, sizeof raw - n, fmt, args), sizeof raw - n);
    va_end(args);

    char line[MR_LOG_LINE_MAX + 1];
    mr_utf8_printable(raw, n, line, MR_LOG_LINE_MAX);
    n = strlen(line);
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n);
}

static bool needs_quotes(struct mr_str text)
{
    if (!text.n || !mr_utf8_is_valid(text) || mr_utf8_has_control(text)) return true;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == ' ' || text.p[i] == '"' || text.p[i] == '\\' || text.p[i] == '=')
            return true;
    return false;
}

const char *mr_log_quote(struct mr_str text, char *out, size_t out_bytes)
{
    if (out_bytes < 8) return "\"\"";
    if (!needs_quotes(text) && text.n < out_bytes) {
        memcpy(out, text.p, text.n);
        out[text.n] = 0;
        return out;
    }
    char plain[MR_LOG_LINE_MAX];
    mr_utf8_printable(text.p, text.n, plain, MR_MIN(sizeof plain, out_bytes));
    size_t n = 0;
    out[n++] = '"';
    for (const char *p = plain; *p && n + 4 < out_bytes; p++) {
        if (*p == '"') out[n++] = '\\';
        out[n++] = *p;
    }
    out[n++] = '"';
    out[n] = 0;
    return out;
}
