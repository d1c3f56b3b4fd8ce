/* Gives GnuTLS a certificate for each new connection. The thread whose connection finds that the
 * files have changed reads them again (host/os/reread.h); other threads meanwhile use the version
 * in memory. If the new files do not work, the error is logged, the last good version stays in use,
 * and the files are tried again. */
#include "host/tls/server_certificate.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/os/reread.h"

#include <stdatomic.h>
#include <string.h>

#define CHAIN_MAX 16
/* Versions of the certificate kept in memory, because handshakes that began with an older version
 * still use it. */
#define KEPT 64
#define FILE_BYTES_MAX ((size_t)1 << 20)

struct version {
    gnutls_pcert_st certs[CHAIN_MAX];
    unsigned certs_count;
    gnutls_privkey_t key;
};

static struct {
    struct mr_certificate_files files;
    _Atomic(struct version *) current;
    struct mr_reread reread; /* the thread that reads the files owns the members below */
    struct version *kept[KEPT];
    uint32_t next;
} served;

static void version_free(struct version **version)
{
    struct version *v = MR_STEAL(*version);
    if (!v) return;
    for (unsigned i = 0; i < v->certs_count; i++)
        gnutls_pcert_deinit(&v->certs[i]);
    if (v->key) gnutls_privkey_deinit(v->key);
    mr_release(v);
}

static gnutls_datum_t datum_of(const struct mr_buf *b)
{
    return (gnutls_datum_t){.data = (unsigned char *)b->p, .size = (unsigned)b->n};
}

static int import(struct version *v, const struct mr_buf *cert, const struct mr_buf *key)
{
    unsigned count = CHAIN_MAX;
    gnutls_datum_t cert_text = datum_of(cert), key_text = datum_of(key);
    int code =
        gnutls_pcert_list_import_x509_raw(v->certs, &count, &cert_text, GNUTLS_X509_FMT_PEM, 0);
    if (code < 0) return code;
    v->certs_count = count;
    code = gnutls_privkey_init(&v->key);
    if (code < 0) return code;
    return gnutls_privkey_import_x509_raw(v->key, &key_text, GNUTLS_X509_FMT_PEM, NULL, 0);
}

static int load(const struct mr_certificate_files *f, struct version **out, struct mr_error *e)
{
    struct mr_buf cert, key;
    MR_AUTO(version_free) struct version *v = mr_alloc(sizeof *v);
    int err = mr_certificate_check(f, e);
    if (err) return err;
    mr_buf_init(&cert, FILE_BYTES_MAX);
    mr_buf_init(&key, FILE_BYTES_MAX);
    err = mr_file_read(f->cert, &cert, e);
    if (!err) err = mr_file_read_secret(f->key, &key, e);
    int code = err ? 0 : import(v, &cert, &key);
    if (code < 0)
        err = mr_fail(
            e, MR_EINVAL, "--tls-cert and --tls-key: \"%s\": %s", f->cert, gnutls_strerror(code));
    mr_buf_fini(&cert);
    mr_buf_fini(&key);
    if (!err) *out = MR_STEAL(v);
    return err;
}

static void publish(struct version *v)
{
    uint32_t slot = served.next++ % KEPT;
    version_free(&served.kept[slot]);
    served.kept[slot] = v;
    atomic_store(&served.current, v);
}

static void read_again(void)
{
    struct version *v = NULL;
    struct mr_error e = {0};
    int err = load(&served.files, &v, &e);
    if (!err) publish(v);
    bool is_new = mr_reread_end(&served.reread, err, &e);
    if (is_new) mr_log(MR_WARN, "tls.kept", "why=\"%s\"", e.text);
    if (!err) mr_log(MR_INFO, "tls.renewed", "cert=%s", served.files.cert);
}

int mr_server_certificate_open(const struct mr_certificate_files *files, struct mr_error *e)
{
    struct version *v = NULL;
    mr_assert(!atomic_load(&served.current));
    served.files = *files;
    mr_reread_init(&served.reread, files->cert, files->key);
    int err = load(files, &v, e);
    if (err) return err;
    publish(v);
    return MR_OK;
}

void mr_server_certificate_close(void)
{
    atomic_store(&served.current, NULL);
    for (uint32_t i = 0; i < KEPT; i++)
        version_free(&served.kept[i]);
}

int mr_server_certificate_pick(gnutls_session_t session, const gnutls_datum_t *ca_names,
    int ca_names_count, const gnutls_pk_algorithm_t *algorithms, int algorithms_count,
    gnutls_pcert_st **certs, unsigned *certs_count, gnutls_privkey_t *key)
{
    (void)session, (void)ca_names, (void)ca_names_count, (void)algorithms, (void)algorithms_count;
    if (mr_reread_begin(&served.reread, false)) read_again();
    struct version *v = atomic_load(&served.current);
    if (!v) return -1;
    *certs = v->certs;
    *certs_count = v->certs_count;
    *key = v->key;
    return 0;
}
