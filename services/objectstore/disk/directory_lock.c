/* DIR/lock holds a random number, which is drawn when the file is created, and the name of the node
 * that has the lock, for the error message of another process. A copy of the directory has the same
 * number in another file. So the number that mr_claim_directory returns also depends on the
 * inode. */
#include "services/objectstore/disk/directory_lock.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* how long this process waits for another process that has the lock */
#define WAIT (2 * MR_SECOND)
#define LOOK (20 * MR_MS) /* time between two attempts to get the lock */

struct mr_claim {
    int fd;
    uint64_t directory;
};

struct words { /* the contents of the file */
    uint64_t number;
    long pid;
    char node[256];
};

static bool words_read(int fd, struct words *out)
{
    char text[512] = "";
    *out = (struct words){0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 && sscanf(text, "%" SCNx64 " pid %ld node %255[^\n]", &out->number, &out->pid,
                        out->node) >= 1;
}

static int words_write(int fd, const struct words *w)
{
    char text[512];
    int n =
        snprintf(text, sizeof text, "%016" PRIx64 " pid %ld node %s\n", w->number, w->pid, w->node);
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n) return mr_file_write_error(errno);
    return MR_OK;
}

static int lock(int fd)
{
    mr_time until = mr_time_after(mr_clock_now(), WAIT);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return MR_EIO;
        if (mr_clock_now() >= until) return MR_EEXIST;
        mr_clock_sleep(LOOK);
    }
    return MR_OK;
}

static int refuse(int fd, const char *dir, int err, struct mr_error *e)
{
    struct words has;
    if (err == MR_EIO) return mr_fail(e, err, "--dir: cannot lock %s: %s", dir, strerror(errno));
    if (!words_read(fd, &has))
        return mr_fail(e, err, "--dir: another object store has %s; give this one its own", dir);
    return mr_fail(e, err,
        "--dir: the object store of node \"%s\" (pid %ld) has %s: a directory has one store; stop "
        "that one, or give this one a directory of its own",
        has.node, has.pid, dir);
}

/* Writes the new owner's name into the file. The first owner also draws the number. */
static int sign(struct mr_claim *c, const char *node)
{
    struct words w;
    struct stat st;
    if (!words_read(c->fd, &w)) w.number = 0;
    while (!w.number)
        if (getrandom(&w.number, sizeof w.number, 0) != sizeof w.number) w.number = 0;
    w.pid = (long)getpid();
    (void)snprintf(w.node, sizeof w.node, "%s", node);
    int err = words_write(c->fd, &w);
    if (!err && fstat(c->fd, &st)) err = MR_EIO;
    if (err) return err;
    uint64_t parts[] = {w.number, (uint64_t)st.st_ino};
    /* never 0, which means "no directory" */
    c->directory = XXH3_64bits(parts, sizeof parts) | 1;
    return MR_OK;
}

int mr_claim_take(const char *dir, const char *node, struct mr_claim **out, struct mr_error *e)
{
    int err = mr_file_make_dirs(dir, 0700, e);
    if (err) return err;
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/lock", dir);
    MR_AUTO(mr_claim_drop) struct mr_claim *c = mr_alloc(sizeof *c);
    c->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (c->fd < 0)
        return mr_fail(
            e, mr_file_write_error(errno), "--dir: cannot open %s: %s", path, strerror(errno));
    err = lock(c->fd);
    if (err) return refuse(c->fd, dir, err, e);
    err = sign(c, node);
    if (err == MR_EDISKFULL) return mr_fail(e, err, "--dir: no space left on %s", dir);
    if (err) return mr_fail(e, err, "--dir: cannot write %s: %s", path, strerror(errno));
    *out = MR_STEAL(c);
    return MR_OK;
}

void mr_claim_drop(struct mr_claim **pc)
{
    struct mr_claim *c = MR_STEAL(*pc);
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    mr_release(c);
}

uint64_t mr_claim_directory(const struct mr_claim *c)
{
    return c ? c->directory : 0;
}
