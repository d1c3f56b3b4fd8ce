/* Keeps what all roles of trainings and all queue operators in this process share (env.h). This is
 * set once, before any role runs. */
#include "train/member/env.h"

#include <string.h>

static struct mr_role_env env_here;

void mr_role_configure(const struct mr_role_env *env)
{
    env_here = *env;
}

const struct mr_role_env *mr_role_env(void)
{
    return &env_here;
}

int mr_role_trainer_check(const char *trainer, struct mr_error *e)
{
    bool is_own = env_here.trainer && !strcmp(trainer, env_here.trainer);
    if (env_here.trainer && !is_own)
        return mr_fail(e, MR_EINVAL,
            "\"%s\" is not the trainer of this worker, which was started with --trainer=%s and "
            "calls no other trainer (a trainer's own name is the --address of mr-trainer)",
            trainer, env_here.trainer);
    if (is_own || !env_here.for_trainer) return MR_OK;
    return mr_fail(e, MR_EINVAL,
        "the cluster has a secret, and this worker does not know which trainer may see the "
        "secret: mr-worker wants --trainer=%s",
        trainer);
}

const struct mr_credential *mr_role_credential_for(const char *trainer)
{
    return env_here.trainer && !strcmp(trainer, env_here.trainer) ? env_here.for_trainer : NULL;
}
