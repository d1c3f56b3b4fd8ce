/* Makes a CA and certificates that it signs: keys on the curve P-256, a subject with a common name
 * only, all names in subjectAltName. */
#include "host/tls/internal.h"

#include "base/alloc.h"
#include "host/os/file.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <unistd.h>

#define NAMES_BYTES_MAX 65536

static int write_bio(const char *path, BIO *bio, mode_t mode, struct mr_error *e)
{
    char *text = NULL;
    long n = BIO_get_mem_data(bio, &text);
    int err = n > 0 ? mr_file_write(path, mr_str_of(text, (size_t)n), mode, e)
                    : mr_fail(e, MR_EINTERNAL, "\"%s\": libcrypto wrote nothing", path);
    (void)BIO_free(bio);
    return err;
}

static int write_key(const char *path, EVP_PKEY *key, struct mr_error *e)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio) (void)PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return write_bio(path, bio, 0600, e);
}

static int write_cert(const char *path, X509 *cert, struct mr_error *e)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio) (void)PEM_write_bio_X509(bio, cert);
    return write_bio(path, bio, 0644, e);
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = x && X509_add_ext(cert, x, -1) == 1;
    X509_EXTENSION_free(x);
    return ok;
}

/* Adds subjectAltName, e.g. "DNS:localhost,IP:127.0.0.1". The names come from the command line and
 * from the host's name. A comma in a name would begin another entry, so a name with a character
 * that host names do not have is refused. */
static int add_names(
    X509 *cert, X509 *issuer, const struct mr_certificate_spec *spec, struct mr_error *e)
{
    static const char plain[] =
        "-._*:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char address[sizeof(struct in6_addr)];
    struct mr_buf b;
    int err = MR_OK;
    mr_buf_init(&b, NAMES_BYTES_MAX);
    for (size_t i = 0; i < spec->names.count && !err; i++) {
        const char *name = spec->names.items[i];
        bool is_ip =
            inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
        if (!name[0] || name[strspn(name, plain)] || (!is_ip && strchr(name, ':')))
            err = mr_fail(e, MR_EINVAL, "\"%s\" is neither a host name nor an IP address", name);
        mr_buf_printf(&b, "%s%s:%s", i ? "," : "", is_ip ? "IP" : "DNS", name);
    }
    mr_buf_add_byte(&b, 0);
    bool ok = err || mr_buf_status(&b) || !spec->names.count ||
              add_extension(cert, issuer, NID_subject_alt_name, (const char *)b.p);
    if (!err) err = mr_buf_status(&b);
    mr_buf_fini(&b);
    return ok ? err : mr_fail(e, MR_EINTERNAL, "libcrypto cannot use the names");
}

/* Sets the serial number, the period of validity, the subject and the public key. */
static bool describe(X509 *cert, EVP_PKEY *key, const struct mr_certificate_spec *spec)
{
    unsigned char serial[16];
    X509_NAME *name = X509_get_subject_name(cert);
    if (RAND_bytes(serial, sizeof serial) != 1) return false;
    /* The serial number is positive and has its full length. */
    serial[0] = (unsigned char)((serial[0] & 0x3f) | 0x40);
    BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
    bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok && X509_set_version(cert, X509_VERSION_3) &&
           X509_gmtime_adj(X509_getm_notBefore(cert), (long)spec->begins_s) &&
           X509_gmtime_adj(X509_getm_notAfter(cert), (long)(spec->begins_s + spec->lasts_s)) &&
           X509_NAME_add_entry_by_txt(
               name, "CN", MBSTRING_UTF8, (const unsigned char *)spec->common_name, -1, -1, 0) &&
           X509_set_pubkey(cert, key);
}

int mr_certificate_make_ca(const char *cert_path, const char *key_path,
    const struct mr_certificate_spec *spec, struct mr_error *e)
{
    MR_AUTO(mr_certificate_free) X509 *cert = X509_new();
    MR_AUTO(mr_certificate_free_key) EVP_PKEY *key = EVP_EC_gen("P-256");
    bool ok = cert && key && describe(cert, key, spec) &&
              X509_set_issuer_name(cert, X509_get_subject_name(cert)) &&
              add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
              add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              add_extension(cert, cert, NID_subject_key_identifier, "hash") &&
              X509_sign(cert, key, EVP_sha256());
    if (!ok) return mr_fail(e, MR_EINTERNAL, "libcrypto cannot make a CA for \"%s\"", cert_path);
    int err = write_key(key_path, key, e);
    return err ? err : write_cert(cert_path, cert, e);
}

static int settle_key(const char *path, EVP_PKEY **out, struct mr_error *e)
{
    if (access(path, F_OK) == 0) return mr_certificate_read_key(path, out, e);
    MR_AUTO(mr_certificate_free_key) EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!key) return mr_fail(e, MR_EINTERNAL, "libcrypto cannot make a key for \"%s\"", path);
    int err = write_key(path, key, e);
    if (!err) *out = MR_STEAL(key);
    return err;
}

int mr_certificate_make(const char *ca_path, const char *ca_key_path, const char *cert_path,
    const char *key_path, const struct mr_certificate_spec *spec, struct mr_error *e)
{
    MR_AUTO(mr_certificate_free) X509 *ca = NULL;
    MR_AUTO(mr_certificate_free_key) EVP_PKEY *ca_key = NULL;
    MR_AUTO(mr_certificate_free) X509 *cert = X509_new();
    MR_AUTO(mr_certificate_free_key) EVP_PKEY *key = NULL;
    int err = mr_certificate_read(ca_path, &ca, e);
    if (!err) err = mr_certificate_read_key(ca_key_path, &ca_key, e);
    if (!err) err = settle_key(key_path, &key, e);
    if (err) return err;
    bool ok = cert && describe(cert, key, spec) &&
              X509_set_issuer_name(cert, X509_get_subject_name(ca)) &&
              add_extension(cert, ca, NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(cert, ca, NID_key_usage, "critical,digitalSignature") &&
              add_extension(cert, ca, NID_ext_key_usage, "serverAuth,clientAuth") &&
              add_extension(cert, ca, NID_subject_key_identifier, "hash") &&
              add_extension(cert, ca, NID_authority_key_identifier, "keyid:always");
    err = ok ? add_names(cert, ca, spec, e) : MR_EINTERNAL;
    if (ok && err) return err;
    if (!ok || !X509_sign(cert, ca_key, EVP_sha256()))
        return mr_fail(
            e, MR_EINTERNAL, "libcrypto cannot make a certificate for \"%s\"", cert_path);
    return write_cert(cert_path, cert, e);
}
