/* Exit codes of `millrace`; docs/cli.md has the table. */
#pragma once

enum {
    MR_EXIT_OK = 0,
    MR_EXIT_FAILED = 1,
    MR_EXIT_USAGE = 2,
    MR_EXIT_AWAY = 3, /* the cluster does not answer, or no cluster is known */
    MR_EXIT_JOB = 4,  /* the job failed, was cancelled, or still runs */
    MR_EXIT_NOT_FOUND = 5,
    MR_EXIT_TIMEOUT = 6,
};
