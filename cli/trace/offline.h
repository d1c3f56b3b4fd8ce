/* Options of commands that can do without a cluster: --offline, --redis, --redis-password-file and
 * --dir. Such a command reads Redis and the scheduler's files. */
#pragma once

#include "host/config/config.h"
#include "services/scheduler/history/history.h"

struct mr_offline_options {
    bool offline;
    const char *redis;
    const char *redis_password_file;
    const char *dir;
};

/* Rows of an option table. `config`: type of the command's config; `member`: the config's member of
 * type struct mr_offline_options. */
#define MR_OFFLINE_OPTIONS(config, member)                                                         \
    {.name = "offline",                                                                            \
        .type = MR_OPTION_BOOL,                                                                    \
        .help = "read Redis and the scheduler's files; the cluster may be dead",                   \
        .at = offsetof(config, member.offline)},                                                   \
        {.name = "redis",                                                                          \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "ADDR",                                                                       \
            .help = "with --offline: unix:PATH or HOST:PORT (default: of the cluster in --dir)",   \
            .at = offsetof(config, member.redis)},                                                 \
        {.name = "redis-password-file",                                                            \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "FILE",                                                                       \
            .help = "the password of Redis, alone in a file of mode 0600",                         \
            .at = offsetof(config, member.redis_password_file),                                    \
            .only_with = "offline,redis"},                                                         \
    {                                                                                              \
        .name = "dir", .env = "MILLRACE_DIR", .type = MR_OPTION_TEXT, .value = "DIR",              \
        .help = "with --offline: the cluster's directory (default: that of the last `up`)",        \
        .at = offsetof(config, member.dir), .only_with = "offline,redis"                           \
    }

/* Returns whether the command is to do without the cluster. --redis implies --offline. */
bool mr_offline_is_wanted(const struct mr_offline_options *o);
/* Parses the job's id, and opens the reader of Redis and of the scheduler's files. If the cluster's
 * Redis does not run, first starts a Redis with a copy of its records (redis_copy.h). */
int mr_offline_open(const struct mr_offline_options *o, const char *job_text, mr_job_id *job,
    struct mr_history **out, struct mr_error *e);
