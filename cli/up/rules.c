#include "cli/up/rules.h"

#include "host/os/user.h"

#include <string.h>

static bool lies_in(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || !path[n]);
}

int mr_rules_check(const struct mr_rules *r, const char *const *denied, struct mr_error *e)
{
    for (size_t i = 0; i < r->data_root.count; i++)
        for (const char *const *d = denied; *d; d++)
            if (lies_in(r->data_root.items[i], *d))
                return mr_fail(e, MR_EPERM,
                    "--data-root: %s lies in %s, which has the cluster's state and secrets: "
                    "operators may read nothing there",
                    r->data_root.items[i], *d);
    struct mr_user user;
    if (!r->exec_user) return MR_OK;
    if (!r->allow_exec)
        return mr_fail(e, MR_EINVAL, "--exec-user: programs run only with --allow-exec");
    return mr_user_find("--exec-user", r->exec_user, &user, e);
}

void mr_rules_print(const struct mr_rules *r, FILE *out)
{
    (void)fprintf(out, "  operators read ");
    for (size_t i = 0; i < r->data_root.count; i++)
        (void)fprintf(out, "%s%s", i ? ", " : "files beneath ", r->data_root.items[i]);
    (void)fprintf(out, "%s\n",
        r->data_root.count ? ""
                           : "no files: with a token file, --data-root DIR allows a directory");
    if (r->allow_exec && r->exec_user)
        (void)fprintf(out, "  jobs run programs, as the user %s\n", r->exec_user);
    else if (r->allow_exec)
        (void)fprintf(out,
            "  --allow-exec: everyone who may submit a job can do what this user can, and read the "
            "cluster's secret%s;\n  --exec-user NAME runs programs as another user\n",
            r->token_file ? " and everybody's tokens" : "");
}
