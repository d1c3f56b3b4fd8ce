/* Rows that the option tables (host/config/config.h) of several programs share. The name, the
 * environment variable, the type and the help of such an option are defined once, here. `offset` is
 * the offset of the member in the program's config struct. `text` is the help of an option whose
 * use differs between programs. `...` is such a help followed by further members of the row. */
#pragma once

#include "host/config/config.h"

// clang-format off

/* Rows for addresses to listen on or to connect to. */
#define MR_OPTION_GRPC_LISTEN(variable, address, offset)                                           \
    {.name = "listen", .env = (variable), .type = MR_OPTION_TEXTS, .value = "ADDR",                \
        .init = (address), .help = "where to serve gRPC: unix:PATH or HOST:PORT", .at = (offset)}

#define MR_OPTION_SCHEDULER(offset, ...)                                                           \
    {.name = "scheduler", .env = "MILLRACE_SCHEDULER", .type = MR_OPTION_TEXT, .value = "ADDR",    \
        .at = (offset), .help = __VA_ARGS__}

#define MR_OPTION_TRAINER(offset, text)                                                            \
    {.name = "trainer", .env = "MILLRACE_TRAINER", .type = MR_OPTION_TEXT, .value = "ADDR",        \
        .help = (text), .at = (offset)}

#define MR_OPTION_NODE(offset, text)                                                               \
    {.name = "node", .env = "MILLRACE_NODE", .type = MR_OPTION_TEXT, .value = "NAME",              \
        .init = "node", .help = (text), .at = (offset)}

/* Rows for Redis: MR_OPTION_REDIS for a program that needs Redis, and MR_OPTION_REDIS_IF_ANY for a
 * program that also works without Redis. */
#define MR_OPTION_REDIS(offset)                                                                    \
    MR_OPTION_REDIS_IF_ANY(offset, "Redis: unix:PATH or HOST:PORT", .init = "127.0.0.1:6379")

#define MR_OPTION_REDIS_IF_ANY(offset, ...)                                                        \
    {.name = "redis", .env = "MILLRACE_REDIS", .type = MR_OPTION_TEXT, .value = "ADDR",            \
        .at = (offset), .help = __VA_ARGS__}

#define MR_OPTION_REDIS_PASSWORD_FILE(offset)                                                      \
    {.name = "redis-password-file", .env = "MILLRACE_REDIS_PASSWORD_FILE", .type = MR_OPTION_TEXT, \
        .value = "FILE", .help = "the password of Redis, alone in a file of mode 0600",         \
        .at = (offset)}

#define MR_OPTION_REDIS_TIMEOUT(offset)                                                            \
    {.name = "redis-timeout", .type = MR_OPTION_DURATION, .value = "TIME", .init = "30s",          \
        .help = "how long to wait for Redis at the start", .at = (offset)}

/* Rows for tokens, secrets and users. */
#define MR_OPTION_TOKEN_FILE(offset, ...)                                                          \
    {.name = "token-file", .env = "MILLRACE_TOKEN_FILE", .type = MR_OPTION_TEXT, .value = "FILE",  \
        .at = (offset), .help = __VA_ARGS__}

#define MR_TOKEN_FILE_HELP(who)                                                                    \
    who ", one a line: TOKEN ROLE NAME (role: admin, user, reader); needed to listen on a public address"

#define MR_OPTION_SECRET_FILE(offset, text)                                                        \
    {.name = "secret-file", .env = "MILLRACE_SECRET_FILE", .type = MR_OPTION_TEXT,                 \
        .value = "FILE", .help = (text), .at = (offset)}

/* The row of --allow-uid. `offset` is the offset of a struct mr_texts, which mr_peer_rules_parse
 * (host/os/peer.h) reads. */
#define MR_OPTION_ALLOW_UID(offset)                                                                \
    {.name = "allow-uid", .env = "MILLRACE_ALLOW_UID", .type = MR_OPTION_TEXTS, .value = "UID",    \
        .help = "id of a user who may connect to the UNIX sockets, besides root and this program's user",             \
        .at = (offset)}

/* Rows for the TLS files of programs with one server certificate. Services use the three rows of
 * MR_RPC_TLS_OPTIONS (rpc/tls.h) instead. */
#define MR_OPTION_TLS_CERT(offset, text)                                                           \
    {.name = "tls-cert", .env = "MILLRACE_TLS_CERT", .type = MR_OPTION_TEXT, .value = "FILE",      \
        .help = (text), .at = (offset)}

#define MR_OPTION_TLS_KEY(offset)                                                                  \
    {.name = "tls-key", .env = "MILLRACE_TLS_KEY", .type = MR_OPTION_TEXT, .value = "FILE",        \
        .help = "its key (PEM), in a file of mode 0600", .at = (offset)}

#define MR_OPTION_TLS_CA(offset, text)                                                             \
    {.name = "tls-ca", .env = "MILLRACE_TLS_CA", .type = MR_OPTION_TEXT, .value = "FILE",          \
        .help = (text), .at = (offset)}

// clang-format on
