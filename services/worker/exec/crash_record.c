#include "services/worker/exec/crash_record.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/os/file.h"
#include "host/flag.h"

#include <errno.h>
#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_MAGIC 0x31505355u /* "USP1" */
#define SLOTS_MAX (MR_SLOTS_MAX + 64u)

struct row { /* one cache line for each executor, against false sharing */
    uint64_t job;
    uint32_t index;
    uint32_t attempt;
    struct mr_flag running;
    uint8_t reserved[47];
};

struct page {
    uint32_t magic;
    uint32_t slots;
    uint32_t reserved[14];
    struct row rows[];
};

static_assert(sizeof(struct row) == 64, "a row is a cache line");
static_assert(sizeof(struct page) == 64, "rows are aligned to cache lines");

struct mr_crash_record {
    struct page *page;
    size_t bytes;
    uint32_t slots;
    bool was_left;
};

static int unmap(struct mr_crash_record **s)
{
    if (!*s) return MR_OK;
    if ((*s)->page) (void)munmap((*s)->page, (*s)->bytes);
    mr_release(*s);
    *s = NULL;
    return MR_OK;
}

static int page_map(
    struct mr_crash_record *s, const char *dir, const char *path, struct mr_error *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return mr_fail(e, MR_EIO, "cannot open %s: %s", path, strerror(errno));
    /* Allocates the space on the disk now: a later write to a mapped page without space would kill
     * the process (SIGBUS). */
    int problem = posix_fallocate(fd, 0, (off_t)s->bytes);
    void *p = MAP_FAILED;
    if (!problem) {
        p = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        problem = errno;
    }
    (void)close(fd);
    if (p == MAP_FAILED && mr_file_write_error(problem) == MR_EDISKFULL)
        return mr_fail(e, MR_EDISKFULL, "no space left on %s: cannot make %s", dir, path);
    if (p == MAP_FAILED) return mr_fail(e, MR_EIO, "cannot map %s: %s", path, strerror(problem));
    s->page = p;
    return MR_OK;
}

int mr_crash_record_open(const char *dir, const char *name, uint32_t slots,
    struct mr_crash_record **out, struct mr_suspect *found, uint32_t room, uint32_t *found_count,
    struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/worker-%s.running", dir, name);
    struct mr_crash_record *s = mr_alloc(sizeof *s);
    /* Always the size for the largest number of slots: the previous process may have had more
     * slots. */
    s->bytes = sizeof(struct page) + SLOTS_MAX * sizeof(struct row);
    s->slots = MR_MIN(slots, SLOTS_MAX);
    int err = page_map(s, dir, path, e);
    if (err) {
        (void)unmap(&s);
        return err;
    }
    uint32_t n = 0;
    bool known = s->page->magic == PAGE_MAGIC;
    for (uint32_t i = 0; i < SLOTS_MAX; i++) {
        struct row *r = &s->page->rows[i];
        if (known && mr_flag_is_set(&r->running) && r->job && r->attempt && n < room)
            found[n++] = (struct mr_suspect){{r->job}, r->index, r->attempt};
        mr_flag_set(&r->running, false);
    }
    s->was_left = known;
    s->page->magic = PAGE_MAGIC;
    s->page->slots = s->slots;
    *found_count = n;
    *out = s;
    return MR_OK;
}

bool mr_crash_record_was_left(const struct mr_crash_record *s)
{
    return s->was_left;
}

void mr_crash_record_clear(struct mr_crash_record *s)
{
    if (!s) return;
    s->page->magic = 0; /* executors may still write rows, which count no more */
}

void mr_crash_record_close(struct mr_crash_record **s)
{
    mr_crash_record_clear(*s);
    (void)unmap(s);
}

void mr_crash_record_begin(struct mr_crash_record *s, uint32_t slot, const struct mr_suspect *task)
{
    if (slot >= s->slots) return;
    struct row *r = &s->page->rows[slot];
    r->job = task->job.v;
    r->index = task->index;
    r->attempt = task->attempt;
    mr_flag_set(&r->running, true);
}

void mr_crash_record_end(struct mr_crash_record *s, uint32_t slot)
{
    if (slot >= s->slots) return;
    mr_flag_set(&s->page->rows[slot].running, false);
}
