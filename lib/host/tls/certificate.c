/* Reads certificates and keys with libcrypto, and says what is wrong with unusable ones. */
#include "host/tls/certificate.h"

#include "host/tls/internal.h"
#include "host/os/file.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

bool mr_certificate_is_given(const char *path)
{
    return path && path[0];
}

/* A passphrase callback that gives no passphrase. Without a callback libcrypto would ask on the
 * terminal. */
static int no_passphrase(char *buf, int size, int rwflag, void *ctx)
{
    (void)buf, (void)size, (void)rwflag, (void)ctx;
    return -1;
}

void mr_certificate_free(X509 **cert)
{
    X509_free(*cert);
    *cert = NULL;
}

void mr_certificate_free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
    *key = NULL;
}

static void free_bio(BIO **bio)
{
    (void)BIO_free(*bio);
    *bio = NULL;
}

static void free_store(X509_STORE **store)
{
    X509_STORE_free(*store);
    *store = NULL;
}

static int read_text(const char *path, bool is_secret, BIO **out, struct mr_error *e)
{
    struct mr_buf text;
    mr_buf_init(&text, MR_CERTIFICATE_BYTES_MAX);
    int err = is_secret ? mr_file_read_secret(path, &text, e) : mr_file_read(path, &text, e);
    if (!err) {
        *out = BIO_new(BIO_s_mem());
        bool ok = *out && BIO_write(*out, text.p, (int)text.n) == (int)text.n;
        if (!ok) err = mr_fail(e, MR_EINTERNAL, "\"%s\": libcrypto cannot allocate memory", path);
    }
    mr_buf_fini(&text);
    return err;
}

int mr_certificate_read(const char *path, X509 **out, struct mr_error *e)
{
    MR_AUTO(free_bio) BIO *bio = NULL;
    int err = read_text(path, false, &bio, e);
    if (err) return err;
    X509 *cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    if (!cert) return mr_fail(e, MR_EINVAL, "\"%s\" holds no certificate in PEM", path);
    *out = cert;
    return MR_OK;
}

int mr_certificate_read_key(const char *path, EVP_PKEY **out, struct mr_error *e)
{
    MR_AUTO(free_bio) BIO *bio = NULL;
    int err = read_text(path, true, &bio, e);
    if (err) return err;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    if (!key) return mr_fail(e, MR_EINVAL, "\"%s\" holds no key in PEM without a passphrase", path);
    *out = key;
    return MR_OK;
}

/* ---- what is wrong with a certificate -------------------------------------------------------- */

static void write_time(const ASN1_TIME *at, char out[64])
{
    MR_AUTO(free_bio) BIO *bio = BIO_new(BIO_s_mem());
    int n = bio && ASN1_TIME_print(bio, at) ? BIO_read(bio, out, 63) : 0;
    out[n > 0 ? n : 0] = 0;
}

static int check_time(const char *path, const X509 *cert, struct mr_error *e)
{
    char at[64];
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0) {
        write_time(X509_get0_notAfter(cert), at);
        return mr_fail(e, MR_EINVAL, "\"%s\" has expired: it ended on %s", path, at);
    }
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        write_time(X509_get0_notBefore(cert), at);
        return mr_fail(e, MR_EINVAL, "\"%s\" is not valid yet: it begins on %s", path, at);
    }
    return MR_OK;
}

/* Reads all CA certificates of a file. While one CA replaces another, the file has both
 * certificates. */
static int read_store(const char *path, X509_STORE **out, struct mr_error *e)
{
    MR_AUTO(free_bio) BIO *bio = NULL;
    MR_AUTO(free_store) X509_STORE *store = X509_STORE_new();
    int err = read_text(path, false, &bio, e);
    if (err) return err;
    size_t count = 0;
    for (;;) {
        MR_AUTO(mr_certificate_free) X509 *ca = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
        if (!ca) break;
        if (!X509_STORE_add_cert(store, ca))
            return mr_fail(
                e, MR_EINVAL, "\"%s\": libcrypto cannot use certificate %zu", path, count + 1);
        count++;
    }
    if (!count) return mr_fail(e, MR_EINVAL, "\"%s\" holds no certificate in PEM", path);
    *out = MR_STEAL(store);
    return MR_OK;
}

/* Reads the intermediate certificates of a file: all certificates after the first one. */
static STACK_OF(X509) * read_chain(const char *path)
{
    MR_AUTO(free_bio) BIO *bio = NULL;
    STACK_OF(X509) *chain = sk_X509_new_null();
    X509 *cert = NULL;
    if (read_text(path, false, &bio, NULL)) return chain;
    while ((cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)))
        if (!sk_X509_push(chain, cert)) X509_free(cert);
    return chain;
}

static int check_signed(const struct mr_certificate_files *f, const char *kind, X509 *cert,
    X509_STORE *store, struct mr_error *e)
{
    static const struct {
        int purpose;
        const char *who, *usage;
    } uses[] = {{X509_PURPOSE_SSL_SERVER, "servers", "serverAuth"},
        {X509_PURPOSE_SSL_CLIENT, "clients", "clientAuth"}};
    for (size_t i = 0; i < MR_ARRAY_LEN(uses); i++)
        if (X509_check_purpose(cert, uses[i].purpose, 0) != 1)
            return mr_fail(e, MR_EINVAL,
                "--%s-cert: \"%s\" is not for %s: services are both, so extendedKeyUsage is to "
                "have %s, or not to be there",
                kind, f->cert, uses[i].who, uses[i].usage);
    STACK_OF(X509) *chain = read_chain(f->cert);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    bool ok = ctx && X509_STORE_CTX_init(ctx, store, cert, chain) && X509_verify_cert(ctx) == 1;
    const char *why = ctx ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)) : "";
    int err = MR_OK;
    if (!ok)
        err =
            mr_fail(e, MR_EINVAL, "--%s-cert: \"%s\" is not signed by a CA in --tls-ca \"%s\": %s",
                kind, f->cert, f->ca, why);
    X509_STORE_CTX_free(ctx);
    sk_X509_pop_free(chain, X509_free);
    return err;
}

static int check_pair(const struct mr_certificate_files *f, const char *kind, X509 **cert,
    EVP_PKEY **key, struct mr_error *e)
{
    struct mr_error why = {0};
    int err = mr_certificate_read(f->cert, cert, &why);
    if (!err) err = check_time(f->cert, *cert, &why);
    if (err) return mr_fail(e, err, "--%s-cert: %s", kind, why.text);
    err = mr_certificate_read_key(f->key, key, &why);
    if (err) return mr_fail(e, err, "--%s-key: %s", kind, why.text);
    if (X509_check_private_key(*cert, *key) == 1) return MR_OK;
    return mr_fail(e, MR_EINVAL, "--%s-key: \"%s\" is not the key of --%s-cert \"%s\"", kind,
        f->key, kind, f->cert);
}

int mr_certificate_check(const struct mr_certificate_files *f, struct mr_error *e)
{
    const char *kind = f->kind ? f->kind : "tls";
    bool has_cert = mr_certificate_is_given(f->cert), has_key = mr_certificate_is_given(f->key);
    MR_AUTO(mr_certificate_free) X509 *cert = NULL;
    MR_AUTO(mr_certificate_free_key) EVP_PKEY *key = NULL;
    MR_AUTO(free_store) X509_STORE *store = NULL;
    if (has_cert != has_key)
        return mr_fail(e, MR_EINVAL, "--%s-cert and --%s-key go together: --%s-%s is missing", kind,
            kind, kind, has_cert ? "key" : "cert");
    int err = has_cert ? check_pair(f, kind, &cert, &key, e) : MR_OK;
    if (err || !mr_certificate_is_given(f->ca)) return err;
    struct mr_error why = {0};
    err = read_store(f->ca, &store, &why);
    if (err) return mr_fail(e, err, "--tls-ca: %s", why.text);
    return has_cert ? check_signed(f, kind, cert, store, e) : MR_OK;
}

/* ---- how long a certificate lasts, and for which names --------------------------------------- */

static bool is_for(X509 *cert, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_ip = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    if (is_ip) return X509_check_ip_asc(cert, name, 0) == 1;
    return X509_check_host(cert, name, 0, 0, NULL) == 1;
}

bool mr_certificate_lasts(
    const struct mr_certificate_files *files, const struct mr_texts *names, int64_t left_s)
{
    MR_AUTO(mr_certificate_free) X509 *cert = NULL;
    if (mr_certificate_check(files, NULL) || mr_certificate_read(files->cert, &cert, NULL))
        return false;
    int days = 0, seconds = 0;
    if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert))) return false;
    if ((int64_t)days * 86400 + seconds < left_s) return false;
    for (size_t i = 0; i < names->count; i++)
        if (!is_for(cert, names->items[i])) return false;
    return true;
}
