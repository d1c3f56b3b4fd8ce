/* Notices that a file has changed, and chooses the thread that reads the file again. The caller
 * does the reading. */
#include "host/os/reread.h"

#include "host/clock.h"

#include <string.h>

#define LOOK_EVERY (2 * MR_SECOND)

static struct mr_file_stamp stamp_of(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st)) return (struct mr_file_stamp){0};
    return (struct mr_file_stamp){st.st_mtim, st.st_ino, st.st_size};
}

static bool is_same(const struct mr_file_stamp *a, const struct mr_file_stamp *b)
{
    return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
           a->inode == b->inode && a->bytes == b->bytes;
}

/* True: the files have changed since the last call. The files' stamps are taken before the files
 * are read, so a change during the reading is noticed at the next call. */
static bool have_changed(struct mr_reread *r)
{
    bool changed = false;
    for (size_t i = 0; i < MR_REREAD_FILES; i++) {
        struct mr_file_stamp now = stamp_of(r->paths[i]);
        if (is_same(&now, &r->stamps[i])) continue;
        r->stamps[i] = now;
        changed = true;
    }
    return changed;
}

void mr_reread_init(struct mr_reread *r, const char *path, const char *other)
{
    memset(r, 0, sizeof *r);
    r->paths[0] = path;
    r->paths[1] = other;
    (void)have_changed(r);
    atomic_store(&r->looked_at, mr_clock_now());
}

bool mr_reread_begin(struct mr_reread *r, bool at_once)
{
    mr_time now = mr_clock_now();
    bool is_due = now >= atomic_load(&r->looked_at) + LOOK_EVERY;
    if ((!is_due && !at_once) || atomic_exchange(&r->is_looking, true)) return false;
    if (is_due) atomic_store(&r->looked_at, now);
    if (have_changed(r) || (is_due && r->why.code)) return true;
    atomic_store(&r->is_looking, false);
    return false;
}

bool mr_reread_end(struct mr_reread *r, int err, const struct mr_error *e)
{
    bool is_new = err && strcmp(r->why.text, e->text) != 0;
    r->why = err ? *e : (struct mr_error){0};
    atomic_store(&r->is_looking, false);
    return is_new;
}
