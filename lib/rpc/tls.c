/* TLS credentials of gRPC. gRPC's certificate provider watches the files on a thread of its own.
 * For each new connection, servers and channels take the certificates from the provider. */
#include "rpc/core.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <grpc/grpc_security.h>
#include <stdlib.h>

#define REFRESH (5 * MR_SECOND)

struct mr_rpc_tls {
    char *cert, *key, *ca; /* paths of the files; NULL: no such file */
    unsigned refresh_s;
    pthread_mutex_t lock;
    grpc_tls_certificate_provider *provider; /* NULL until the first server or channel needs it */
};

static struct mr_rpc_tls *process_wide; /* TLS of the process, set before threads start */

static char *copy_given(const char *path)
{
    return mr_certificate_is_given(path) ? mr_copy_text(path) : NULL;
}

int mr_rpc_tls_open(
    const struct mr_rpc_tls_options *options, struct mr_rpc_tls **out, struct mr_error *e)
{
    const struct mr_certificate_files *f = &options->files;
    int err = mr_certificate_check(f, e);
    if (err) return err;
    if (!mr_certificate_is_given(f->ca))
        return mr_fail(e, MR_EINVAL,
            "--tls-ca is missing: gRPC with TLS needs --tls-cert, --tls-key and --tls-ca");
    mr_duration refresh = options->refresh ? options->refresh : REFRESH;
    struct mr_rpc_tls *t = mr_alloc(sizeof *t);
    t->cert = copy_given(f->cert);
    t->key = copy_given(f->key);
    t->ca = mr_copy_text(f->ca);
    t->refresh_s = (unsigned)MR_MAX(refresh / MR_SECOND, 1u);
    int failed = pthread_mutex_init(&t->lock, NULL);
    mr_assert(!failed);
    *out = t;
    return MR_OK;
}

void mr_rpc_tls_free(struct mr_rpc_tls **tls)
{
    if (!*tls) return;
    struct mr_rpc_tls *t = MR_STEAL(*tls);
    if (t->provider) grpc_tls_certificate_provider_release(t->provider);
    (void)pthread_mutex_destroy(&t->lock);
    mr_release(t->cert);
    mr_release(t->key);
    mr_release(t->ca);
    mr_release(t);
}

/* Runs at exit: stops gRPC's thread that watches the files, before the libraries that this thread
 * uses are unloaded. Nothing else is freed, because detached threads may still open channels. */
static void stop_watching(void)
{
    (void)pthread_mutex_lock(&process_wide->lock);
    grpc_tls_certificate_provider *provider = MR_STEAL(process_wide->provider);
    (void)pthread_mutex_unlock(&process_wide->lock);
    if (provider) grpc_tls_certificate_provider_release(provider);
}

int mr_rpc_tls_use(const struct mr_certificate_files *files, struct mr_error *e)
{
    bool has_cert = mr_certificate_is_given(files->cert),
         has_ca = mr_certificate_is_given(files->ca);
    const char *kind = files->kind ? files->kind : "tls";
    mr_assert(!process_wide);
    if (!has_cert && !has_ca && !mr_certificate_is_given(files->key)) return MR_OK;
    if (!has_cert && !mr_certificate_is_given(files->key))
        return mr_fail(e, MR_EINVAL,
            "--tls-ca needs --%s-cert and --%s-key: services present certificates to each "
            "other",
            kind, kind);
    int err = mr_rpc_tls_open(&(struct mr_rpc_tls_options){.files = *files}, &process_wide, e);
    if (!err) (void)atexit(stop_watching);
    return err;
}

bool mr_rpc_tls_is_used(void)
{
    return process_wide != NULL;
}

/* ---- credentials ----------------------------------------------------------------------------- */

struct mr_rpc_tls *mr_rpc_tls_for(struct mr_rpc_tls *own, const char *address)
{
    if (strncmp(address, "unix:", 5) == 0) return NULL;
    return own ? own : process_wide;
}

static grpc_tls_credentials_options *make_options(struct mr_rpc_tls *t)
{
    (void)pthread_mutex_lock(&t->lock);
    if (!t->provider)
        t->provider =
            grpc_tls_certificate_provider_file_watcher_create(t->key, t->cert, t->ca, t->refresh_s);
    (void)pthread_mutex_unlock(&t->lock);
    grpc_tls_credentials_options *o = grpc_tls_credentials_options_create();
    grpc_tls_credentials_options_set_certificate_provider(o, t->provider);
    grpc_tls_credentials_options_watch_root_certs(o);
    if (t->cert) grpc_tls_credentials_options_watch_identity_key_cert_pairs(o);
    return o;
}

grpc_server_credentials *mr_rpc_tls_server_credentials(struct mr_rpc_tls *t)
{
    mr_assert(t->cert);
    grpc_tls_credentials_options *o = make_options(t);
    grpc_tls_credentials_options_set_cert_request_type(
        o, GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
    return grpc_tls_server_credentials_create(o);
}

grpc_channel_credentials *mr_rpc_tls_channel_credentials(struct mr_rpc_tls *t)
{
    grpc_tls_credentials_options *o = make_options(t);
    grpc_tls_certificate_verifier *verifier = grpc_tls_certificate_verifier_host_name_create();
    grpc_tls_credentials_options_set_certificate_verifier(o, verifier);
    grpc_tls_certificate_verifier_release(verifier);
    return grpc_tls_credentials_create(o);
}
