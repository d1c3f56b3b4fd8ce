/* The crash record says which task each executor is running, in a file that outlives the process.
 * After a crash, the next process of the same name reads which tasks were running, and only those
 * tasks are suspected of the crash. A write is a few stores to mapped memory. */
#pragma once

#include "base/err.h"
#include "base/id.h"

struct mr_crash_record;

struct mr_suspect {
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
};

/* Opens or makes DIR/worker-NAME.running. If the previous process of this name ended without
 * mr_crash_record_clear, `found` receives at most `room` tasks that it was running. Then the record
 * is emptied. A file that is no crash record counts as a new one. MR_EDISKFULL: no space is left;
 * `e` names DIR. */
int mr_crash_record_open(const char *dir, const char *name, uint32_t slots,
    struct mr_crash_record **out, struct mr_suspect *found, uint32_t room, uint32_t *found_count,
    struct mr_error *e);
/* True: the previous process ended without mr_crash_record_clear, so the suspects that were found,
 * maybe none, are all tasks that it was running. False: there was no previous process, or it
 * cleared the record before it ended. */
bool mr_crash_record_was_left(const struct mr_crash_record *s);
void mr_crash_record_close(struct mr_crash_record **s); /* clears the record first */
void mr_crash_record_clear(
    struct mr_crash_record *s); /* called before the process ends, so that no task is suspected */

/* Called by the thread of `slot`. */
void mr_crash_record_begin(struct mr_crash_record *s, uint32_t slot, const struct mr_suspect *task);
void mr_crash_record_end(struct mr_crash_record *s, uint32_t slot);
