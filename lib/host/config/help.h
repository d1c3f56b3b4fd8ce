/* The texts of --help and --version. */
#pragma once

#include "host/config/config.h"

/* Returns the help of a program or command, to be freed with mr_release. */
char *mr_config_help(const struct mr_config_spec *spec);

const char *mr_version(void); /* for example "0.1.0" */
