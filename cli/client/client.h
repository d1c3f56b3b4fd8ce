/* What the commands share: the address of the cluster, calls that answer in JSON, and exit
 * codes. */
#pragma once

#include "cli/client/exit_code.h"
#include "cli/client/http.h"
#include "host/config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <yyjson.h>

struct mr_client_options { /* must be the first member of every command's config */
    const char *url;
    const char *token;
    const char *tls_ca;
    bool json;
};

/* Options of cli/trace/offline.h, with which a command does not call the gateway. */
#define MR_CLIENT_NOT_WITH "offline,redis"
/* Rows of a command's table of options. */
#define MR_CLIENT_OPTIONS                                                                          \
    {.name = "url",                                                                                \
        .env = "MILLRACE_URL",                                                                     \
        .type = MR_OPTION_TEXT,                                                                    \
        .value = "URL",                                                                            \
        .help = "the gateway (default: of the cluster that `up` last started)",                    \
        .at = offsetof(struct mr_client_options, url),                                             \
        .not_with = MR_CLIENT_NOT_WITH},                                                           \
        {.name = "token",                                                                          \
            .env = "MILLRACE_TOKEN",                                                               \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "TOKEN",                                                                      \
            .help = "bearer token",                                                                \
            .at = offsetof(struct mr_client_options, token),                                       \
            .not_with = MR_CLIENT_NOT_WITH},                                                       \
        {.name = "tls-ca",                                                                         \
            .env = "MILLRACE_TLS_CA",                                                              \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "FILE",                                                                       \
            .help = "the CA of an https:// gateway (default: that of `up`, else the system's)",    \
            .at = offsetof(struct mr_client_options, tls_ca),                                      \
            .not_with = MR_CLIENT_NOT_WITH},                                                       \
    {                                                                                              \
        .name = "json", .type = MR_OPTION_BOOL, .help = "print JSON, for scripts",                 \
        .at = offsetof(struct mr_client_options, json)                                             \
    }

struct mr_client {
    char *url; /* the gateway's URL, without a slash at the end */
    char *authorization;
    char *ca; /* file with the CA to trust; NULL: the CAs that the system trusts */
    bool json;
    bool tty;      /* true: stderr is a terminal */
    bool is_local; /* true: `up` runs the cluster on this machine */
};

int mr_client_open(const struct mr_client_options *o, struct mr_client *out, struct mr_error *e);
void mr_client_fini(struct mr_client *c);
/* Sets `*path` to the path that `--data DIR` means to the cluster, to be freed with mr_release. If
 * `up` runs the cluster on this machine, that is the absolute path of DIR; otherwise it is DIR
 * unchanged. MR_ENOENT: this machine has no such DIR. `data` NULL: `*path` does not change. */
int mr_client_data(const struct mr_client *c, const char *data, char **path, struct mr_error *e);

/* Calls the gateway. Arguments of the path have to be escaped. If the status is 2xx, the answer is
 * parsed into `*doc` (to be freed with yyjson_doc_free; `doc` may be NULL). Otherwise the answer's
 * error is returned. */
int mr_client_call(const struct mr_client *c, const char *method, struct mr_str body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(6, 7);
/* Reads all pages of a list into one document. The argument `rows` names the member with the rows
 * of a page; in the document this member has the rows of all pages. `path` is escaped and may have
 * a query. */
int mr_client_list(const struct mr_client *c, const char *path, const char *rows, yyjson_doc **doc,
    struct mr_error *e);
/* Sends a request, which may have headers and a streamed body. The function sets the URL and the
 * token. An answer whose status is not 2xx is returned as an error. */
int mr_client_send(const struct mr_client *c, struct mr_http_request *request,
    struct mr_http_reply *reply, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(5, 6);

/* Returns the error in an answer whose status is not 2xx. */
int mr_client_answer(const struct mr_http_reply *reply, struct mr_error *e);

/* Runs a command: parses the flags into `config`, which begins with struct mr_client_options, opens
 * the client, calls `act`, and returns the exit code. `*code` is MR_EXIT_OK before the call of
 * `act`, which may change it. */
typedef int (*mr_client_act)(const struct mr_client *c, const void *config,
    const struct mr_texts *rest, int *code, struct mr_error *e);
int mr_client_run(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, mr_client_act act);
/* Requests the path with GET and prints the answer: as JSON with --json, otherwise with `print`. */
int mr_client_show(const struct mr_client *c, void (*print)(yyjson_val *root), struct mr_error *e,
    const char *path_fmt, ...) MR_PRINTF(4, 5);

/* Prints all pages of a list: as JSON with --json, otherwise with `print`. `path` and `rows` are
 * those of mr_client_list. */
int mr_client_show_list(const struct mr_client *c, void (*print)(yyjson_val *root),
    const char *path, const char *rows, struct mr_error *e);
/* Like mr_client_call, with a JSON document as the body. The function frees `*body`. */
int mr_client_put(const struct mr_client *c, const char *method, yyjson_mut_doc **body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...) MR_PRINTF(6, 7);
yyjson_mut_doc *mr_json_object(void); /* makes a document with an empty object */

/* Prints which arguments the command expects. Returns MR_EXIT_USAGE. */
int mr_client_wrong_usage(const struct mr_config_spec *spec);
/* Prints `millrace NAME: sentence` and returns the exit code of the error. */
int mr_client_fail(const char *command, const struct mr_error *e);
void mr_client_print(const yyjson_doc *doc); /* indents the JSON */

/* Return members of an answer. Texts are lent by the document. */
const char *mr_json_get_text(yyjson_val *object, const char *name); /* "": absent */
/* The member is a number or a quoted number. */
uint64_t mr_json_get_u64(yyjson_val *object, const char *name);
double mr_json_get_real(yyjson_val *object, const char *name);
bool mr_json_get_bool(yyjson_val *object, const char *name);
const char *mr_job_state_word(const char *state); /* for example "done" for "JOB_DONE" */
