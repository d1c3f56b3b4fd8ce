/* Why tasks failed. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

struct story mr_sc_story_make(
    struct mr_sched *s, uint32_t task, int code, struct mr_str message, const char *worker);
void mr_sc_story_more(struct story *st, struct mr_str arguments, struct mr_str log);
void mr_sc_story_fini(struct story *st);
void mr_sc_story_copy(struct story *to, const struct story *from);
void mr_sc_story_put(struct mr_sched *s, uint32_t task, const struct story *from);
const struct story *mr_sc_story(const struct mr_sched *s, uint32_t task); /* or NULL */
void mr_sc_story_drop(struct mr_sched *s, uint32_t task);
void mr_sc_story_drop_job(struct mr_sched *s, uint32_t job);
