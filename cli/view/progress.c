/* Writes the progress of a job as one line or as a screen, from the counts in the gateway's
 * answers. */
#include "cli/view/progress.h"

#include "base/units.h"
#include "cli/client/client.h"
#include "cli/term/text.h"

#include <inttypes.h>
#include <string.h>

#define IDLE MR_SECOND
/* A running task is named if no task has ended for this time. */
#define STUCK (3 * MR_SECOND)
#define BAR_MIN 10u
#define BAR_MAX 30u
#define PICTURE_BAR_MAX 60u
#define KEY_MIN 8u
#define LINE_BYTES_MAX ((size_t)65536)

void mr_progress_init(struct mr_progress *p, mr_time now)
{
    *p = (struct mr_progress){.since = now, .moved = now};
}

void mr_progress_take(struct mr_progress *p, yyjson_val *job, mr_time now)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    const char *state = mr_json_get_text(job, "state");
    uint64_t over = mr_json_get_u64(counts, "done") + mr_json_get_u64(counts, "erred") +
                    mr_json_get_u64(counts, "cancelled") + mr_json_get_u64(counts, "skipped");
    if (over == p->over && !strcmp(state, p->state)) return;
    p->over = over;
    p->moved = now;
    (void)snprintf(p->state, sizeof p->state, "%s", state);
}

bool mr_progress_is_idle(const struct mr_progress *p, mr_time now)
{
    return now - p->moved >= IDLE;
}

static uint64_t tasks_of(yyjson_val *counts)
{
    return mr_json_get_u64(counts, "submitted") - mr_json_get_u64(counts, "culled");
}

/* Writes a time as text: "12.3 s", "4 min 12 s", "3 h 4 min". */
static void time_text(double seconds, char out[32])
{
    uint64_t s = (uint64_t)seconds;
    if (s < 100)
        (void)snprintf(out, 32, "%.1f s", seconds);
    else if (s < 3600)
        (void)snprintf(out, 32, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else
        (void)snprintf(out, 32, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
}

static void add_bar(uint64_t done, uint64_t all, unsigned width, struct mr_buf *out)
{
    unsigned filled = all ? (unsigned)(MR_MIN(done, all) * width / all) : 0;
    mr_buf_add_byte(out, '[');
    for (unsigned i = 0; i < width; i++)
        mr_buf_add_byte(out, i < filled ? '#' : '.');
    mr_buf_add_byte(out, ']');
}

/* Appends what the job waits for. If values are being persisted: how many bytes. Otherwise nothing,
 * until no task has ended for the time STUCK. Then the task that has run longest, or for how long
 * no task has ended if no running task is known. The task's key is cut to fit the text into
 * `columns` columns (0: no limit), but not to fewer than KEY_MIN columns. */
static void add_wait(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out)
{
    char text[MR_BYTES_TEXT_MAX];
    char age[32];
    char rest[256];
    uint64_t persisting = mr_json_get_u64(job, "persisting_bytes");
    yyjson_val *task = yyjson_obj_get(job, "longest_running");
    uint64_t since = mr_json_get_u64(task, "since_ns");
    if (persisting) {
        mr_bytes_text(persisting, text);
        mr_buf_printf(out, "persisting %s", text);
        return;
    }
    if (now - p->moved < STUCK) return;
    if (!since) {
        time_text((double)(now - p->moved) / 1e9, age);
        mr_buf_printf(out, "nothing has ended for %s", age);
        return;
    }
    time_text(wall_ns > since ? (double)(wall_ns - since) / 1e9 : 0.0, age);
    (void)snprintf(
        rest, sizeof rest, " runs for %s on %.100s", age, mr_json_get_text(task, "worker"));
    unsigned wide = mr_text_width(mr_str(rest));
    if (columns && columns < wide + KEY_MIN)
        wide = (unsigned)snprintf(rest, sizeof rest, " runs for %s", age);
    unsigned room = columns > wide + KEY_MIN ? columns - wide : KEY_MIN;
    mr_text_add_elided(mr_str(mr_json_get_text(task, "key")), columns ? room : 0, out);
    mr_buf_add_text(out, rest);
}

void mr_progress_line(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    uint64_t done = mr_json_get_u64(counts, "done");
    uint64_t all = tasks_of(counts);
    char age[32];
    char head[32];
    char tail[160];
    time_text((double)(now - p->since) / 1e9, age);
    (void)snprintf(head, sizeof head, "%-9s ", mr_job_state_word(mr_json_get_text(job, "state")));
    (void)snprintf(tail, sizeof tail, " %" PRIu64 "/%" PRIu64 " tasks, %" PRIu64 " running, %s",
        done, all, mr_json_get_u64(counts, "running"), age);
    unsigned fixed = (unsigned)(strlen(head) + 2 + strlen(tail));
    struct mr_buf wait;
    struct mr_buf line;
    mr_buf_init(&wait, LINE_BYTES_MAX);
    mr_buf_init(&line, LINE_BYTES_MAX);
    unsigned room = columns > fixed + BAR_MIN + 2 ? columns - fixed - BAR_MIN - 2 : 1;
    add_wait(p, job, now, wall_ns, columns ? room : 0, &wait);
    unsigned taken = fixed + (wait.n ? 2 + mr_text_width(mr_buf_str(&wait)) : 0);
    unsigned bar = columns > taken ? columns - taken : 0;
    mr_buf_add_text(&line, head);
    add_bar(done, all, columns ? MR_MIN(MR_MAX(bar, BAR_MIN), BAR_MAX) : BAR_MAX, &line);
    mr_buf_printf(&line, "%s%s%.*s", tail, wait.n ? "; " : "", MR_STR_ARG(mr_buf_str(&wait)));
    mr_text_add_truncated(mr_buf_str(&line), columns, out);
    mr_buf_fini(&wait);
    mr_buf_fini(&line);
}

void mr_progress_screen(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    uint64_t done = mr_json_get_u64(counts, "done");
    uint64_t all = tasks_of(counts);
    const char *name = mr_json_get_text(job, "name");
    char age[32];
    time_text((double)(now - p->since) / 1e9, age);
    mr_buf_printf(out, "job %s%s%s: %s, watched for %s\n", mr_json_get_text(job, "id"),
        name[0] ? " " : "", name, mr_job_state_word(mr_json_get_text(job, "state")), age);
    add_bar(done, all, MR_MIN(columns > 30 ? columns - 30 : BAR_MIN, PICTURE_BAR_MAX), out);
    mr_buf_printf(out, " %" PRIu64 "/%" PRIu64 " tasks\n\n", done, all);
    mr_buf_printf(out,
        "%" PRIu64 " running, %" PRIu64 " waiting, %" PRIu64 " failed, %" PRIu64 " retried\n",
        mr_json_get_u64(counts, "running"),
        mr_json_get_u64(counts, "waiting") + mr_json_get_u64(counts, "ready") +
            mr_json_get_u64(counts, "sent"),
        mr_json_get_u64(counts, "erred"), mr_json_get_u64(counts, "retried"));
    add_wait(p, job, now, wall_ns, columns, out);
    mr_buf_add_text(out, "\n\nq: leave; the job goes on\n");
}
