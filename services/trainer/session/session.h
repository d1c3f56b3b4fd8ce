/* Training sessions as a part of the trainer (shell/shell.h). */
#pragma once

#include "services/trainer/shell/shell.h"

extern const struct mr_trainer_part mr_trainings_part;
