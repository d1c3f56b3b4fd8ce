/* What the commands share: where the cluster is, calls that answer JSON, and exit codes. */
#pragma once

#include "cli/client/command.h"
#include "cli/client/http.h"
#include "host/config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <yyjson.h>

struct mr_client_options { /* the flags that every command has; first in its config */
    const char *url;
    const char *token;
    const char *tls_ca;
    bool json;
};

/* Rows for a command's table; `config` begins with struct mr_client_options. */
#define MR_CLIENT_OPTIONS                                                                          \
    {.name = "url",                                                                                \
        .env = "MILLRACE_URL",                                                                     \
        .type = MR_OPTION_TEXT,                                                                    \
        .value = "URL",                                                                            \
        .help = "the gateway (default: of the cluster that `up` last started)",                    \
        .at = offsetof(struct mr_client_options, url)},                                            \
        {.name = "token",                                                                          \
            .env = "MILLRACE_TOKEN",                                                               \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "TOKEN",                                                                      \
            .help = "bearer token",                                                                \
            .at = offsetof(struct mr_client_options, token)},                                      \
        {.name = "tls-ca",                                                                         \
            .env = "MILLRACE_TLS_CA",                                                              \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "FILE",                                                                       \
            .help = "the CA of an https:// gateway (default: that of `up`, else the system's)",    \
            .at = offsetof(struct mr_client_options, tls_ca)},                                     \
    {                                                                                              \
        .name = "json", .type = MR_OPTION_BOOL, .help = "print JSON, for scripts",                 \
        .at = offsetof(struct mr_client_options, json)                                             \
    }

struct mr_client {
    char *url; /* without a slash at the end */
    char *authorization;
    char *ca; /* NULL: the system's */
    bool json;
    bool tty;     /* stderr is a terminal */
    bool is_here; /* it is the cluster that `up` started on this machine */
};

int mr_client_open(const struct mr_client_options *o, struct mr_client *out, struct mr_error *e);
void mr_client_fini(struct mr_client *c);
/* What `--data DIR` means to the cluster: a directory of this machine with its full path, or, if
 * the cluster is elsewhere, DIR as it stands, which the cluster looks for. NULL stays NULL;
 * mr_release it. */
int mr_client_data(const struct mr_client *c, const char *data, char **path, struct mr_error *e);

/* A call; the path is formatted (escape what comes from outside). On 2xx the answer is parsed into
 * `*doc` (yyjson_doc_free it; may be NULL); otherwise the error of the answer comes back. */
int mr_client_call(const struct mr_client *c, const char *method, struct mr_str body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(6, 7);
/* All pages of a list as one document, whose member `rows` has the rows of all of them. `path` is
 * as it is sent, with its query, if it has one. */
int mr_client_list(const struct mr_client *c, const char *path, const char *rows, yyjson_doc **doc,
    struct mr_error *e);
/* The same with headers and streams; `request` lacks url and authorization. */
int mr_client_send(const struct mr_client *c, struct mr_http_request *request,
    struct mr_http_reply *reply, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(5, 6);

/* The error in an answer that is not 2xx. */
int mr_client_answer(const struct mr_http_reply *reply, struct mr_error *e);

/* What most commands are: flags, a client, one act, an exit code. `config` begins with struct
 * mr_client_options and is filled; `act` may change `*code`, which is MR_EXIT_OK. */
typedef int (*mr_client_act)(const struct mr_client *c, const void *config,
    const struct mr_texts *rest, int *code, struct mr_error *e);
int mr_client_run(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, mr_client_act act);
/* GETs the path and prints the answer: as JSON, or as `print` does. */
int mr_client_show(const struct mr_client *c, void (*print)(yyjson_val *root), struct mr_error *e,
    const char *path_fmt, ...) MR_PRINTF(4, 5);

/* The same of a list, all pages of it; as for mr_client_list. */
int mr_client_show_list(const struct mr_client *c, void (*print)(yyjson_val *root),
    const char *path, const char *rows, struct mr_error *e);
/* Sends a document, which is used up: `*body` is NULL afterwards. `doc` as for mr_client_call. */
int mr_client_put(const struct mr_client *c, const char *method, yyjson_mut_doc **body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(6, 7);
yyjson_mut_doc *mr_json_object(void); /* a document that is an empty object */

/* Says what the command expects behind its flags; MR_EXIT_USAGE. */
int mr_client_wrong_usage(const struct mr_config_spec *spec);
/* Prints `millrace NAME: sentence` and gives the exit code that fits. */
int mr_client_fail(const char *command, const struct mr_error *e);
void mr_client_print(const yyjson_doc *doc); /* the whole answer, pretty */

/* Members of an answer, of whatever JSON type it may have. Texts are lent by the document. */
const char *mr_json_get_text(yyjson_val *object, const char *name); /* "" when it is not there */
uint64_t mr_json_get_u64(yyjson_val *object, const char *name);     /* numbers come as texts too */
double mr_json_get_real(yyjson_val *object, const char *name);
bool mr_json_get_bool(yyjson_val *object, const char *name);
const char *mr_job_state_word(const char *state); /* "JOB_DONE": "done" */
