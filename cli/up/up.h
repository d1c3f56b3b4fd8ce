/* The commands `millrace up` and `millrace dashboard`. */
#pragma once

#include "host/config/config.h"

extern const struct mr_config_spec mr_up_spec;
int mr_command_up(int argc, char **argv); /* returns the exit code */

extern const struct mr_config_spec mr_dashboard_spec;
int mr_command_dashboard(int argc, char **argv); /* returns the exit code */
