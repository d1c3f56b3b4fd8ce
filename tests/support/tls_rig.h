/* Certificates for tests of TLS, in a new directory: the CA "ca" with certificates that it signed,
 * and the CA "other-ca", which signed "enemy". NAME is the file of a certificate or CA, NAME-key
 * the file of its key. */
#pragma once

#include "base/alloc.h"
#include "host/tls/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DAY ((int64_t)86400)

static char pki[] = "/tmp/mr-pki-XXXXXX";

/* Returns a path in the directory of certificates. The path is valid for eleven more calls of
 * pki_path or pki_key. */
static inline const char *pki_path(const char *name)
{
    static char paths[12][96];
    static unsigned next;
    char *p = paths[next++ % MR_ARRAY_LEN(paths)];
    (void)snprintf(p, sizeof paths[0], "%s/%s", pki, name);
    return p;
}

static inline const char *pki_key(const char *name)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%s-key", name);
    return pki_path(key);
}

static inline void pki_make_ca(const char *name)
{
    struct mr_error e = {0};
    const struct mr_certificate_spec spec = {.common_name = name, .begins_s = -60, .lasts_s = DAY};
    if (mr_certificate_make_ca(pki_path(name), pki_key(name), &spec, &e)) fail_msg("%s", e.text);
}

static inline void pki_make(
    const char *ca, const char *name, const char *for_name, int64_t begins_s, int64_t lasts_s)
{
    struct mr_error e = {0};
    const struct mr_certificate_spec spec = {
        .common_name = name, .names = {&for_name, 1}, .begins_s = begins_s, .lasts_s = lasts_s};
    if (mr_certificate_make(pki_path(ca), pki_key(ca), pki_path(name), pki_key(name), &spec, &e))
        fail_msg("%s", e.text);
}

static inline int make_pki(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(pki));
    pki_make_ca("ca");
    pki_make_ca("other-ca");
    pki_make("ca", "service", "127.0.0.1", -60, DAY);
    pki_make("ca", "elsewhere", "elsewhere.example", -60, DAY);
    pki_make("other-ca", "enemy", "127.0.0.1", -60, DAY);
    return 0;
}

static inline int remove_pki(void **state)
{
    (void)state;
    static const char *const names[] = {"ca", "other-ca", "service", "elsewhere", "enemy", "turn"};
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        (void)unlink(pki_path(names[i]));
        (void)unlink(pki_key(names[i]));
    }
    return rmdir(pki);
}
