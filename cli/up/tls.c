/* The files of --tls:
 *
 *   DIR/tls/ca.pem    the CA, which clients trust
 *   DIR/tls/ca-key.pem
 *   DIR/tls/cert.pem  of gateway and services; valid for a year, renewed 90 days before its end
 *   DIR/tls/key.pem */
#include "cli/up/tls.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "host/os/file.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S ((int64_t)86400)
#define CA_LASTS_S (3650 * DAY_S)
/* A CA that ends sooner than this is replaced. The time is longer than LASTS_S, because a
 * certificate must not outlive its CA. */
#define CA_LEFT_S (400 * DAY_S)
#define LASTS_S (365 * DAY_S)
#define LEFT_S (90 * DAY_S)
/* A certificate is valid from an hour before it is made, because clocks differ. */
#define BEGINS_S (-3600)

bool mr_up_tls_is_on(const struct mr_up_tls *t)
{
    return mr_certificate_is_given(t->files.cert);
}

void mr_up_tls_fini(struct mr_up_tls *t)
{
    for (size_t i = 0; i < t->names.count; i++)
        mr_release(mr_unconst(t->names.items[i]));
    mr_texts_fini(&t->names);
    if (t->directory) {
        mr_release(mr_unconst(t->files.cert));
        mr_release(mr_unconst(t->files.key));
        mr_release(mr_unconst(t->files.ca));
    }
    mr_release(t->directory);
    *t = (struct mr_up_tls){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

static void add_name(struct mr_up_tls *t, const char *name)
{
    /* The characters that a name in a certificate may have. */
    static const char plain[] = "-.:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (!name[0] || name[strspn(name, plain)]) return;
    for (size_t i = 0; i < t->names.count; i++)
        if (strcmp(t->names.items[i], name) == 0) return;
    size_t bytes = sizeof *t->names.items;
    t->names.items = mr_grow(t->names.items, t->names.count * bytes, (t->names.count + 1) * bytes);
    t->names.items[t->names.count++] = mr_copy_text(name);
}

/* Adds the addresses of this machine as names. A gateway that listens at 0.0.0.0 or :: is reached
 * at each of them. */
static void add_addresses(struct mr_up_tls *t)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all)) return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6) continue;
        char text[NI_MAXHOST];
        socklen_t n = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (getnameinfo(a->ifa_addr, n, text, sizeof text, NULL, 0, NI_NUMERICHOST)) continue;
        /* A '%' means a link-local address, which is left out. */
        if (!strchr(text, '%')) add_name(t, text);
    }
    freeifaddrs(all);
}

void mr_up_tls_name(struct mr_up_tls *t, const char *host)
{
    static const char *const usual[] = {"localhost", "127.0.0.1", "::1"};
    char own[HOST_NAME_MAX + 1] = "", listened[256] = "";
    size_t n = strlen(host);
    bool brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (brackets) host++, n -= 2;
    memcpy(listened, host, MR_MIN(n, sizeof listened - 1));
    (void)gethostname(own, sizeof own - 1);
    for (size_t i = 0; i < MR_ARRAY_LEN(usual); i++)
        add_name(t, usual[i]);
    add_name(t, own);
    add_name(t, listened);
    if (!strcmp(listened, "0.0.0.0") || !strcmp(listened, "::")) add_addresses(t);
}

/* ---- made by --tls --------------------------------------------------------------------------- */

static int make_ca(const struct mr_up_tls *t, const char *ca_key, struct mr_error *e)
{
    const struct mr_certificate_files ca = {.cert = t->files.ca, .key = ca_key};
    if (mr_certificate_lasts(&ca, &(struct mr_texts){0}, CA_LEFT_S)) return MR_OK;
    const struct mr_certificate_spec spec = {
        .common_name = "millrace up", .begins_s = BEGINS_S, .lasts_s = CA_LASTS_S - BEGINS_S};
    return mr_certificate_make_ca(t->files.ca, ca_key, &spec, e);
}

int mr_up_tls_renew(struct mr_up_tls *t, struct mr_error *e)
{
    if (!t->own) return MR_OK;
    MR_AUTO(mr_free_ptr) char *ca_key = mr_format("%s/ca-key.pem", t->directory);
    int err = make_ca(t, ca_key, e);
    if (err || mr_certificate_lasts(&t->files, &t->names, LEFT_S)) return err;
    const struct mr_certificate_spec spec = {.common_name = "millrace",
        .names = t->names,
        .begins_s = BEGINS_S,
        .lasts_s = LASTS_S - BEGINS_S};
    return mr_certificate_make(t->files.ca, ca_key, t->files.cert, t->files.key, &spec, e);
}

static int prepare_own(struct mr_up_tls *t, const char *directory, struct mr_error *e)
{
    t->directory = mr_format("%s/tls", directory);
    t->files = (struct mr_certificate_files){.cert = mr_format("%s/cert.pem", t->directory),
        .key = mr_format("%s/key.pem", t->directory),
        .ca = mr_format("%s/ca.pem", t->directory)};
    int err = mr_file_make_dirs(t->directory, 0700, e);
    if (!err && chmod(t->directory, 0700))
        err = mr_fail(e, MR_EIO, "%s: cannot set mode 0700: %s", t->directory, strerror(errno));
    if (!err) err = mr_up_tls_renew(t, e);
    return err ? err : mr_certificate_check(&t->files, e);
}

/* ---- given ----------------------------------------------------------------------------------- */

static int prepare_given(struct mr_up_tls *t, struct mr_error *e)
{
    const char **const paths[] = {&t->files.cert, &t->files.key, &t->files.ca};
    static const char *const flags[] = {"cert", "key", "ca"};
    if (!mr_certificate_is_given(t->files.cert) && mr_certificate_is_given(t->files.ca))
        return mr_fail(e, MR_EINVAL,
            "--tls-ca (or MILLRACE_TLS_CA) needs --tls-cert and --tls-key, too; --tls makes all "
            "three");
    int err = mr_certificate_check(&t->files, e);
    if (err) return err;
    t->directory = mr_copy_text(""); /* mr_up_tls_fini frees the paths because `directory` is set */
    for (size_t i = 0; i < MR_ARRAY_LEN(paths); i++) {
        const char *given = *paths[i];
        char full[PATH_MAX];
        *paths[i] = NULL;
        if (err || !mr_certificate_is_given(given)) continue;
        if (realpath(given, full))
            *paths[i] = mr_copy_text(full);
        else
            err = mr_fail(e, MR_ENOENT, "--tls-%s: %s: %s", flags[i], given, strerror(errno));
    }
    return err;
}

int mr_up_tls_prepare(
    struct mr_up_tls *t, const char *directory, const char *host, struct mr_error *e)
{
    static const char *const names[] = {"MILLRACE_TLS_CERT", "MILLRACE_TLS_KEY", "MILLRACE_TLS_CA",
        "MILLRACE_CLUSTER_CERT", "MILLRACE_CLUSTER_KEY"};
    const struct mr_certificate_files *f = &t->files;
    bool given = mr_certificate_is_given(f->cert) || mr_certificate_is_given(f->key) ||
                 mr_certificate_is_given(f->ca);
    if (t->own && given)
        return mr_fail(e, MR_EINVAL,
            "--tls makes its own certificates: it cannot be combined with --tls-cert, --tls-key and "
            "--tls-ca, nor with MILLRACE_TLS_CERT, MILLRACE_TLS_KEY and MILLRACE_TLS_CA");
    mr_up_tls_name(t, host);
    int err = t->own ? prepare_own(t, directory, e) : prepare_given(t, e);
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++)
        (void)unsetenv(names[i]);
    return err;
}
