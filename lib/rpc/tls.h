/* TLS on TCP: the certificate that a program presents and the CA that it trusts. UNIX sockets have
 * no TLS; the kernel identifies the peer.
 *
 * A server requests a client's certificate, and verifies it if the client presents one. A client
 * without a certificate may call only what users may call (rpc/util/auth.h). A client verifies the
 * server's certificate and its host name. The files are read again every few seconds: new
 * connections use the new files, open connections go on. */
#pragma once

#include "host/tls/certificate.h"
#include "host/config/common_options.h"
#include "rpc/rpc.h"

struct mr_rpc_tls;

struct mr_rpc_tls_options {
    /* A client may have the CA alone; a server needs the CA, a certificate and its key. */
    struct mr_certificate_files files;
    mr_duration refresh; /* how often the files are read; 0: 5 s; at least 1 s */
};

/* Checks the files. The error text of MR_EINVAL, MR_EPERM or MR_ENOENT names the command-line
 * option, such as --tls-ca. */
int mr_rpc_tls_open(
    const struct mr_rpc_tls_options *options, struct mr_rpc_tls **out, struct mr_error *e);
/* Frees `*tls`. To be called after the servers and channels that use it are closed. */
void mr_rpc_tls_free(struct mr_rpc_tls **tls);

/* Sets the TLS of the process, to be called in `main` before the first server or channel. Each TCP
 * port and each TCP channel of this process that has no mr_rpc_tls of its own uses these files. If
 * none of the three files is given, the process has no TLS. MR_EINVAL: only some of the files are
 * given, or a file cannot be used; other errors are those of mr_rpc_tls_open. */
int mr_rpc_tls_use(const struct mr_certificate_files *files, struct mr_error *e);
bool mr_rpc_tls_is_used(void);

/* Rows for a program's option table. `offset` is the offset of a struct mr_certificate_files in the
 * program's config. */
// clang-format off
#define MR_RPC_TLS_OPTIONS(offset)                                                                 \
    MR_OPTION_TLS_CERT((offset) + offsetof(struct mr_certificate_files, cert),                     \
        "TLS on TCP: the certificate that this program shows (PEM); all three, or none"),          \
    MR_OPTION_TLS_KEY((offset) + offsetof(struct mr_certificate_files, key)),                      \
    MR_OPTION_TLS_CA((offset) + offsetof(struct mr_certificate_files, ca),                         \
        "the cluster's CA (PEM): services know each other by what it has signed")
// clang-format on
