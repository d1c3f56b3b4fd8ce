/* Decides when the secret file is read again, and on which thread. secrets.c parses the file. */
#include "rpc/secret_file.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/reread.h"

#include <pthread.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)

struct mr_secret_file {
    char *path;
    struct mr_reread reread;
    struct mr_credential credentials[MR_SERVICE_COUNT];
    pthread_mutex_t lock;
    struct mr_secrets *now; /* the secrets in use; protected by the lock */
};

static int read_file(const char *path, struct mr_secrets **out, struct mr_error *e)
{
    struct mr_buf b;
    struct mr_error why = {0};
    mr_buf_init(&b, FILE_BYTES_MAX);
    int err = mr_file_read_secret(path, &b, &why);
    if (err)
        (void)mr_fail(e, err, "--secret-file: %s", why.text);
    else if ((err = mr_secrets_parse(mr_buf_str(&b), out, &why)) != MR_OK)
        (void)mr_fail(e, err, "--secret-file: \"%s\": %s", path, why.text);
    mr_buf_fini(&b);
    return err;
}

int mr_secret_file_open(const char *path, struct mr_secret_file **out, struct mr_error *e)
{
    MR_AUTO(mr_secret_file_free) struct mr_secret_file *f = mr_alloc(sizeof *f);
    int failed = pthread_mutex_init(&f->lock, NULL);
    mr_assert(!failed);
    f->path = mr_copy_text(path);
    mr_reread_init(&f->reread, f->path, NULL);
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++)
        f->credentials[i] = (struct mr_credential){.file = f, .to = (enum mr_service_kind)i};
    int err = read_file(path, &f->now, e);
    if (err) return err;
    *out = MR_STEAL(f);
    return MR_OK;
}

void mr_secret_file_free(struct mr_secret_file **file)
{
    if (!*file) return;
    struct mr_secret_file *f = MR_STEAL(*file);
    mr_secrets_free(&f->now);
    (void)pthread_mutex_destroy(&f->lock);
    mr_release(f->path);
    mr_release(f);
}

static bool look(struct mr_secret_file *f, bool at_once)
{
    if (!mr_reread_begin(&f->reread, at_once)) return false;
    struct mr_secrets *fresh = NULL;
    struct mr_error e = {0};
    int err = read_file(f->path, &fresh, &e);
    if (!err) {
        pthread_mutex_lock(&f->lock);
        struct mr_secrets *old = f->now;
        f->now = fresh;
        pthread_mutex_unlock(&f->lock);
        mr_secrets_free(&old);
    }
    bool is_new = mr_reread_end(&f->reread, err, &e);
    if (is_new)
        mr_log(MR_WARN, "secrets.kept", "why=\"%s; the secrets read before stay valid\"", e.text);
    if (!err) mr_log(MR_INFO, "secrets.renewed", "file=\"%s\"", f->path);
    return !err;
}

const struct mr_credential *mr_secret_file_credential(
    struct mr_secret_file *file, enum mr_service_kind to)
{
    mr_assert((unsigned)to < MR_SERVICE_COUNT);
    return file ? &file->credentials[to] : NULL;
}

void mr_credential_add(const struct mr_credential *c, struct mr_buf *out)
{
    if (!c->file) {
        mr_buf_printf(out, "Bearer %s", c->fixed);
        return;
    }
    struct mr_secret_file *f = c->file;
    (void)look(f, false);
    pthread_mutex_lock(&f->lock);
    const char *secret = mr_secrets_shown(f->now, c->to);
    if (secret) mr_buf_printf(out, "Bearer %s", secret);
    pthread_mutex_unlock(&f->lock);
}

static unsigned ask(struct mr_secret_file *f, struct mr_str shown)
{
    pthread_mutex_lock(&f->lock);
    unsigned found = mr_secrets_accepted(f->now, shown);
    pthread_mutex_unlock(&f->lock);
    return found;
}

unsigned mr_secret_file_knows(struct mr_secret_file *f, struct mr_str shown)
{
    (void)look(f, false);
    return ask(f, shown);
}

unsigned mr_secret_file_accepted(struct mr_secret_file *f, struct mr_str shown)
{
    unsigned found = mr_secret_file_knows(f, shown);
    return found || !look(f, true) ? found : ask(f, shown);
}
