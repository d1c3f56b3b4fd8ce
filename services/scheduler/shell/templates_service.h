/* The service Templates: install, get, list, delete. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/submit/parser.h"

extern const struct mr_rpc_service mr_templates_service;

/* Answers a call whose request a parser thread has handled. */
void mr_template_answered(struct mr_shell *sh, const struct mr_parser_result *done);
