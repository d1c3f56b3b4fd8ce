/* Log lines on stderr. The core of a service (base/time.h) writes none. One line is one event:
 *     mr_log(MR_WARN, "lease.lost", "task=%" PRIu64 " worker=%" PRIu64, task, worker);
 * writes `ts=2026-01-31T12:00:00.123456Z level=warn event=lease.lost task=7 worker=2`. The variable
 * MILLRACE_LOG (error, warn, info, debug; default info) names the lowest level that is shown. The
 * variable is read when the first line is logged. A line is cut at MR_LOG_LINE_MAX bytes; control
 * characters in it are escaped. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

#define MR_LOG_LINE_MAX 2048

enum mr_log_level {
    MR_ERROR, /* a person has to act */
    MR_WARN,  /* the program recovered by itself */
    MR_INFO,  /* a life-cycle change */
    MR_DEBUG, /* not shown by default */
};

/* Logs one event; evaluates `level` once. */
#define mr_log(level, ...)                                                                         \
    do {                                                                                           \
        enum mr_log_level mr_log_level_ = (level);                                                 \
        if (mr_log_is_on(mr_log_level_)) mr_log_line(mr_log_level_, __VA_ARGS__);                  \
    } while (0)

bool mr_log_is_on(enum mr_log_level level);
void mr_log_line(enum mr_log_level level, const char *event, const char *fmt, ...) MR_PRINTF(3, 4);
void mr_log_set_level(enum mr_log_level level);
/* Adds `program=NAME` to every line; `name` must be a static string. */
void mr_log_set_program(const char *name);

/* Formats `text` as the value of a key, writes it to `out`, and returns `out`. The value is quoted
 * and escaped if `text` is empty or has spaces, quotes, backslashes, equals signs or unprintable
 * bytes. A text that does not fit is cut. If `out_bytes` is below 8, returns an empty quoted text
 * instead. */
const char *mr_log_quote(struct mr_str text, char *out, size_t out_bytes);
