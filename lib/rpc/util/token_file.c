/* Decides when the token file is read again, and on which thread. tokens.c parses the file. */
#include "rpc/util/token_file.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/log.h"
#include "host/os/reread.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct mr_token_file {
    char *path;
    struct mr_secret_file *secrets; /* NULL: no secrets to compare with */
    struct mr_reread reread;
    pthread_mutex_t lock;
    struct mr_tokens *now; /* the tokens in use; protected by the lock */
};

/* Refuses a token that is also a secret, because its user would count as a service. */
static int tell_apart(struct mr_secret_file *secrets, const struct mr_tokens *t, struct mr_error *e)
{
    const struct mr_identity *who;
    struct mr_str token;
    for (size_t i = 0; secrets && mr_tokens_at(t, i, &token, &who); i++)
        if (mr_secret_file_accepted(secrets, token))
            return mr_fail(e, MR_EINVAL,
                "--token-file: the token of \"%.*s\" is also in --secret-file, whose secrets are "
                "for services only",
                MR_STR_ARG(who->name));
    return MR_OK;
}

static int read_file(const struct mr_token_file *f, struct mr_tokens **out, struct mr_error *e)
{
    MR_AUTO(mr_tokens_free) struct mr_tokens *t = NULL;
    int err = mr_tokens_open(f->path, &t, e);
    if (!err) err = tell_apart(f->secrets, t, e);
    if (!err) *out = MR_STEAL(t);
    return err;
}

int mr_token_file_open(const char *path, struct mr_secret_file *secrets, struct mr_token_file **out,
    struct mr_error *e)
{
    MR_AUTO(mr_token_file_free) struct mr_token_file *f = mr_alloc(sizeof *f);
    int failed = pthread_mutex_init(&f->lock, NULL);
    mr_assert(!failed);
    f->path = mr_copy_text(path);
    f->secrets = secrets;
    mr_reread_init(&f->reread, f->path, NULL);
    int err = read_file(f, &f->now, e);
    if (err) return err;
    *out = MR_STEAL(f);
    return MR_OK;
}

void mr_token_file_free(struct mr_token_file **file)
{
    if (!*file) return;
    struct mr_token_file *f = MR_STEAL(*file);
    mr_tokens_free(&f->now);
    (void)pthread_mutex_destroy(&f->lock);
    mr_release(f->path);
    mr_release(f);
}

static bool look(struct mr_token_file *f, bool at_once)
{
    if (!mr_reread_begin(&f->reread, at_once)) return false;
    struct mr_tokens *fresh = NULL;
    struct mr_error e = {0};
    int err = read_file(f, &fresh, &e);
    if (!err) {
        pthread_mutex_lock(&f->lock);
        struct mr_tokens *old = f->now;
        f->now = fresh;
        pthread_mutex_unlock(&f->lock);
        mr_tokens_free(&old);
    }
    bool is_new = mr_reread_end(&f->reread, err, &e);
    if (is_new)
        mr_log(MR_WARN, "tokens.kept", "why=\"%s; the tokens read before stay valid\"", e.text);
    if (!err) mr_log(MR_INFO, "tokens.renewed", "file=\"%s\"", f->path);
    return !err;
}

static bool ask(struct mr_token_file *f, struct mr_str token, struct mr_token_holder *out)
{
    pthread_mutex_lock(&f->lock);
    const struct mr_identity *found = mr_tokens_find(f->now, token);
    if (found) {
        (void)snprintf(out->name, sizeof out->name, "%.*s", MR_STR_ARG(found->name));
        out->role = found->role;
    }
    pthread_mutex_unlock(&f->lock);
    return found != NULL;
}

bool mr_token_file_knows(struct mr_token_file *f, struct mr_str token, struct mr_token_holder *out)
{
    (void)look(f, false);
    return ask(f, token, out);
}

bool mr_token_file_find(struct mr_token_file *f, struct mr_str token, struct mr_token_holder *out)
{
    bool found = mr_token_file_knows(f, token, out);
    return found || !look(f, true) ? found : ask(f, token, out);
}

int mr_token_file_check(struct mr_token_file *f, struct mr_str authorization,
    struct mr_token_holder *out, struct mr_error *e)
{
    struct mr_str token;
    if (!mr_token_of(authorization, &token))
        return mr_fail(e, MR_EAUTH, "a token is required: Authorization: Bearer TOKEN");
    if (mr_token_file_find(f, token, out)) return MR_OK;
    return mr_fail(e, MR_EAUTH, "the token is unknown");
}
