/* Recognises the texts in which gRPC and libcrypto report a connection that failed because of TLS,
 * and writes sentences that name the address and the command-line option. */
#include "rpc/core.h"

#include "host/clock.h"
#include "host/os/log.h"

#include <string.h>

/* Failed handshakes add at most one line to the log in this time, because any peer can cause
 * them. */
#define NOTICE_EVERY MR_SECOND

static bool has(struct mr_str text, const char *part)
{
    return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

/* True: gRPC's text says only that the connection was closed. The text says no more than that in
 * two cases: the other side refuses this side's certificate, or the other side has TLS and this
 * side has none. */
static bool was_ended(struct mr_str why)
{
    return has(why, "Socket closed") || has(why, "onnection reset") || has(why, "Broken pipe");
}

static bool words_of_plain(const char *address, struct mr_str why, struct mr_error *out)
{
    if (!was_ended(why)) return false;
    (void)mr_fail(out, MR_EAWAY,
        "%s closed the connection before it answered: it is starting or stopping, or it requires "
        "TLS, for which this program needs --tls-cert, --tls-key and --tls-ca",
        address);
    return true;
}

bool mr_rpc_tls_words(
    const char *address, const struct mr_rpc_tls *tls, struct mr_str why, struct mr_error *out)
{
    if (strncmp(address, "unix:", 5) == 0 || !has(why, "failed to connect")) return false;
    if (!tls) return words_of_plain(address, why, out);
    if (has(why, "wrong version number"))
        (void)mr_fail(out, MR_EAWAY,
            "%s does not use TLS, which this program requires (--tls-ca): the service there needs "
            "--tls-cert, --tls-key and --tls-ca",
            address);
    else if (has(why, "certificate verify failed"))
        (void)mr_fail(out, MR_EAWAY,
            "the certificate of %s is refused: no CA in --tls-ca has signed it, or it has expired",
            address);
    else if (has(why, "Hostname Verification"))
        (void)mr_fail(out, MR_EAWAY,
            "the certificate of %s is refused: it is for another host (the --tls-cert there must "
            "have this name or address in its subjectAltName)",
            address);
    else if (has(why, "andshake failed"))
        (void)mr_fail(out, MR_EAWAY, "no TLS with %s (--tls-ca): %.*s", address, MR_STR_ARG(why));
    else if (was_ended(why))
        (void)mr_fail(out, MR_EAWAY,
            "%s closed the connection at once: it is starting or stopping, or it refuses this "
            "program's certificate (--tls-cert): a CA in the --tls-ca there must have signed it, "
            "and it must not have expired",
            address);
    else
        return false;
    return true;
}

/* ---- the side that refuses a handshake ------------------------------------------------------- */

bool mr_rpc_tls_notice(const char *text)
{
    static _Atomic mr_time last;
    const char *why = NULL;
    struct mr_str said = mr_str(text);
    if (!has(said, "Handshake failed with fatal error")) return false;
    if (has(said, "certificate verify failed"))
        why = "the other side's certificate is not signed by a CA in --tls-ca, or has expired";
    else if (has(said, "wrong version number") || has(said, "http request"))
        why = "one side uses TLS and the other does not (--tls-cert, --tls-key, --tls-ca)";
    mr_time now = mr_clock_now(), then = atomic_load(&last);
    bool due = !then || now - then >= NOTICE_EVERY;
    if (!due || !atomic_compare_exchange_strong(&last, &then, now)) return true;
    char quoted[MR_LOG_LINE_MAX];
    mr_log(MR_WARN, "tls.refused", "why=%s",
        mr_log_quote(why ? mr_str(why) : said, quoted, sizeof quoted));
    return true;
}
