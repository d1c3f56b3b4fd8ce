/* `millrace secrets`: makes a secret file for each service of a cluster (rpc/secrets.h), and
 * rotates the secrets while the cluster runs. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "host/clock.h"
#include "host/tls/sha256.h"
#include "host/os/file.h"
#include "rpc/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_BYTES 32 /* random bytes of a secret, which is written as hexadecimal digits */
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define SETTLES_S 4 /* seconds until every service has read a changed file */
#define YOURS "# yours: what follows is kept\n"

struct config {
    bool rotate;
};

static const struct mr_option options[] = {
    {.name = "rotate",
        .type = MR_OPTION_BOOL,
        .help = "make new secrets; the previous ones stay valid until the next --rotate",
        .at = offsetof(struct config, rotate)},
};

const struct mr_config_spec mr_secrets_spec = {.program = "millrace secrets",
    .summary =
        "Makes a secret file for each service of a cluster: DIR/SERVICE/secret (mode 0600). With it a\n"
        "service can call the services that its kind needs, and cannot pose as another kind.\n"
        "Existing secrets are kept.",
    .usage = "[flags] DIR",
    .examples = "  millrace secrets /etc/millrace\n"
                "  mr-scheduler --secret-file /etc/millrace/scheduler/secret …\n"
                "  millrace secrets --rotate /etc/millrace     # services read the files again\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 1};

#define S(x) (1u << MR_SERVICE_##x)
static const unsigned calls[MR_SERVICE_COUNT] = {
    /* Lists for each service the services that it calls. */
    [MR_SERVICE_SCHEDULER] = S(OBJECTSTORE),
    [MR_SERVICE_OBJECTSTORE] = S(SCHEDULER) | S(OBJECTSTORE),
    [MR_SERVICE_WORKER] = S(SCHEDULER) | S(OBJECTSTORE) | S(TRAINER) | S(WORKER),
    [MR_SERVICE_TRAINER] = S(SCHEDULER) | S(OBJECTSTORE),
    [MR_SERVICE_GATEWAY] = S(SCHEDULER) | S(OBJECTSTORE) | S(TRAINER) | S(WORKER),
};
#undef S

typedef char secret_text[2 * SECRET_BYTES + 1];

struct set {
    const char *dir;
    /* New secrets, by caller and by callee. */
    secret_text fresh[MR_SERVICE_COUNT][MR_SERVICE_COUNT];
    struct mr_secrets *old[MR_SERVICE_COUNT]; /* by service: the old file; NULL: there was none */
    /* By service: lines that the user has added to the file. */
    struct mr_buf yours[MR_SERVICE_COUNT];
};

static char *path_of(const struct set *s, unsigned service)
{
    return mr_format("%s/%s/secret", s->dir, mr_service_name((enum mr_service_kind)service));
}

static void put_hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static int draw(struct set *s, struct mr_error *e)
{
    for (unsigned from = 0; from < MR_SERVICE_COUNT; from++)
        for (unsigned to = 0; to < MR_SERVICE_COUNT; to++) {
            uint8_t bytes[SECRET_BYTES];
            if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
                return mr_fail(e, MR_EIO, "getrandom: %s", strerror(errno));
            put_hex(bytes, sizeof bytes, s->fresh[from][to]);
        }
    return MR_OK;
}

static int read_old(struct set *s, unsigned service, struct mr_error *e)
{
    struct mr_buf text;
    struct mr_error why = {0};
    MR_AUTO(mr_free_ptr) char *path = path_of(s, service);
    mr_buf_init(&text, FILE_BYTES_MAX);
    int err = mr_file_read_secret(path, &text, e);
    if (!err && mr_secrets_parse(mr_buf_str(&text), &s->old[service], &why))
        err = mr_fail(e, MR_EINVAL, "\"%s\": %s", path, why.text);
    mr_buf_add_text(&text, "\n"); /* adds the newline that mr_file_read_secret has removed */
    mr_buf_add(&text, "", 1);
    const char *mark = err ? NULL : strstr((const char *)text.p, YOURS);
    if (mark) mr_buf_add_text(&s->yours[service], mark + strlen(YOURS));
    mr_buf_fini(&text);
    return err == MR_ENOENT ? MR_OK : err;
}

static const char *shown_before(const struct set *s, unsigned from, unsigned to)
{
    return s->old[from] ? mr_secrets_shown(s->old[from], (enum mr_service_kind)to) : NULL;
}

static void add_accept(struct mr_buf *b, unsigned from, const char *secret)
{
    uint8_t hash[MR_SHA256_BYTES];
    char text[2 * MR_SHA256_BYTES + 1];
    mr_sha256(mr_str(secret), hash);
    put_hex(hash, sizeof hash, text);
    mr_buf_printf(b, "accept %s sha256:%s\n", mr_service_name((enum mr_service_kind)from), text);
}

/* Writes the file of one service. Rotation writes each file twice. The first version accepts the
 * new secrets, and its service still sends the old ones. The second version (`is_last`) sends the
 * new ones. All services accept these by then, because a service that receives an unknown secret
 * checks its file at once. */
static int write_one(const struct set *s, unsigned service, bool is_last, struct mr_error *e)
{
    struct mr_buf b;
    MR_AUTO(mr_free_ptr) char *path = path_of(s, service);
    mr_buf_init(&b, FILE_BYTES_MAX);
    mr_buf_printf(&b,
        "# the secrets that a %s sends and those that it accepts (millrace secrets)\n",
        mr_service_name((enum mr_service_kind)service));
    for (unsigned to = 0; to < MR_SERVICE_COUNT; to++) {
        const char *before = shown_before(s, service, to);
        if (calls[service] & 1u << to)
            mr_buf_printf(&b, "show %s %s\n", mr_service_name((enum mr_service_kind)to),
                is_last || !before ? s->fresh[service][to] : before);
    }
    for (unsigned from = 0; from < MR_SERVICE_COUNT; from++) {
        const char *before = shown_before(s, from, service);
        if (!(calls[from] & 1u << service)) continue;
        add_accept(&b, from, s->fresh[from][service]);
        if (before) add_accept(&b, from, before);
    }
    mr_buf_printf(&b, "%s", YOURS);
    mr_buf_add_str(&b, mr_buf_str(&s->yours[service]));
    int err = mr_file_write(path, mr_buf_str(&b), 0600, e);
    mr_buf_fini(&b);
    return err;
}

static int write_all(const struct set *s, bool is_last, struct mr_error *e)
{
    int err = MR_OK;
    for (unsigned i = 0; i < MR_SERVICE_COUNT && !err; i++) {
        MR_AUTO(mr_free_ptr)
        char *dir = mr_format("%s/%s", s->dir, mr_service_name((enum mr_service_kind)i));
        err = mr_file_make_dirs(dir, 0700, e);
        if (!err) err = write_one(s, i, is_last, e);
    }
    return err;
}

/* Waits until all services have read their files. After a file has changed, a service may send the
 * old secret for two more seconds (host/os/reread.h). The next write makes the old secret invalid,
 * so that write has to wait. */
static void await_renewals(const struct set *s)
{
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++) {
        struct stat st;
        MR_AUTO(mr_free_ptr) char *path = path_of(s, i);
        for (int waits = 0; waits < SETTLES_S && !stat(path, &st); waits++) {
            if (mr_clock_wall() / MR_SECOND >= (uint64_t)st.st_mtim.tv_sec + SETTLES_S) break;
            mr_clock_sleep(MR_SECOND);
        }
    }
}

static int make(struct set *s, bool rotate, struct mr_error *e)
{
    unsigned there = 0;
    int err = MR_OK;
    for (unsigned i = 0; i < MR_SERVICE_COUNT && !err; i++) {
        err = read_old(s, i, e);
        if (s->old[i]) there++;
    }
    if (err) return err;
    if (there == MR_SERVICE_COUNT && !rotate) {
        (void)printf("%s has a secret for each service already; --rotate makes new ones\n", s->dir);
        return MR_OK;
    }
    if (there && !rotate)
        return mr_fail(e, MR_EINVAL,
            "%s has secrets for some services only: --rotate makes new ones for all", s->dir);
    await_renewals(s);
    err = draw(s, e);
    if (!err && there) err = write_all(s, false, e);
    if (!err) err = write_all(s, true, e);
    if (!err)
        (void)printf("%s/SERVICE/secret: %s for scheduler, objectstore, worker, trainer, gateway\n",
            s->dir, there ? "rotated" : "made");
    return err;
}

int mr_command_secrets(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    mr_config_load(&mr_secrets_spec, argc, argv, &k, &rest);
    struct set *s = mr_alloc(sizeof *s);
    s->dir = rest.items[0];
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++)
        mr_buf_init(&s->yours[i], FILE_BYTES_MAX);
    int code = make(s, k.rotate, &e) ? mr_client_fail("secrets", &e) : MR_EXIT_OK;
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++) {
        mr_secrets_free(&s->old[i]);
        mr_buf_fini(&s->yours[i]);
    }
    mr_release(s);
    mr_texts_fini(&rest);
    return code;
}
