/* Places have four sizes for each doubling. Each size has a list of free places; without a free
 * one, a new place is taken at the end of the file. The part of a place that is not used is a hole
 * in the file and costs nothing. */
#include "services/objectstore/disk/spill_file.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/index.h"
#include "base/limits.h"
#include "host/monitor.h"
#include "host/os/file.h"
#include "services/objectstore/disk/object_file.h"
#include "store/arena/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#define NONE UINT32_MAX
#define SIZES 160u                           /* 4 to a doubling, from one page */
#define PAGES_KEPT_MAX ((uint64_t)256 << 20) /* of free places, whatever is in use */
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

enum state {
    FREE,      /* with pages that may have been written */
    FREE_HOLE, /* without */
    USED,
    GONE, /* erased while a thread reads it */
};

struct place {
    mr_object_id id;
    uint64_t offset;
    uint64_t bytes; /* of the value */
    enum state state;
    uint32_t size; /* number of */
    uint32_t readers;
    uint32_t next; /* free list */
};

struct mr_spill {
    int fd;
    char *path;
    struct mr_monitor *monitor; /* guards all below */
    struct mr_index by_id;
    struct place *places;
    uint32_t places_count, places_room;
    uint32_t free[SIZES];
    uint64_t end;      /* of the last place */
    bool cannot_punch; /* the file system has no holes */
    uint32_t taken;    /* places that are not free */
    struct mr_spill_stats stats;
};

/* ---- sizes ------------------------------------------------------------------------------------*/

static uint64_t chunks_of(uint64_t bytes)
{
    return (bytes + MR_CHUNK_BYTES - 1) / MR_CHUNK_BYTES;
}

static uint64_t tail_bytes(uint64_t bytes)
{
    return sizeof(struct mr_extent_head) + chunks_of(bytes) * sizeof(uint64_t);
}

/* What is written of a place. */
static uint64_t written_bytes(uint64_t bytes)
{
    return mr_align_up(bytes + tail_bytes(bytes), MR_ARENA_PAGE);
}

static uint64_t size_bytes(uint32_t size)
{
    if (size < 4) return (size + 1) * (uint64_t)MR_ARENA_PAGE;
    return (uint64_t)(size % 4 + 5) * MR_ARENA_PAGE << (size / 4 - 1); /* 5 6 7 8 10 12 14 16 … */
}

static uint32_t size_of(uint64_t bytes)
{
    uint32_t size = 0;
    while (size_bytes(size) < bytes)
        size++;
    return size;
}

/* ---- places -----------------------------------------------------------------------------------*/

static bool has_id(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_spill *s = ctx;
    return mr_object_id_eq(s->places[item].id, *(const mr_object_id *)key);
}

static uint64_t hash_of(const void *ctx, uint32_t item)
{
    const struct mr_spill *s = ctx;
    return mr_object_id_hash(s->places[item].id);
}

static uint32_t find(const struct mr_spill *s, mr_object_id id)
{
    return mr_index_find(&s->by_id, mr_object_id_hash(id), has_id, s, &id);
}

static uint32_t place_new(struct mr_spill *s, uint32_t size)
{
    if (s->places_count == s->places_room) {
        uint32_t room = s->places_room ? s->places_room * 2 : 64;
        s->places =
            mr_grow(s->places, s->places_room * sizeof *s->places, room * sizeof *s->places);
        s->places_room = room;
    }
    s->places[s->places_count] = (struct place){.offset = s->end, .state = FREE_HOLE, .size = size};
    s->end += size_bytes(size);
    return s->places_count++;
}

/* A place of that size. It has no object until it is in the index. */
static uint32_t take(struct mr_spill *s, mr_object_id id, uint64_t bytes)
{
    uint32_t size = size_of(written_bytes(bytes));
    uint32_t at = s->free[size];
    if (at == NONE)
        at = place_new(s, size);
    else
        s->free[size] = s->places[at].next;
    struct place *x = &s->places[at];
    if (x->state == FREE) s->stats.free_bytes -= written_bytes(x->bytes);
    x->id = id;
    x->bytes = bytes;
    x->state = USED;
    s->stats.used_bytes += written_bytes(bytes);
    s->taken++;
    return at;
}

static void cut(struct mr_spill *s)
{
    if (ftruncate(s->fd, 0)) return; /* then it is cut another time */
    s->places_count = 0;
    s->end = 0;
    s->stats.free_bytes = 0;
    for (uint32_t i = 0; i < SIZES; i++)
        s->free[i] = NONE;
}

static void punch(struct mr_spill *s)
{
    for (uint32_t i = 0; i < s->places_count && !s->cannot_punch; i++) {
        struct place *x = &s->places[i];
        if (x->state != FREE) continue;
        if (fallocate(s->fd, PUNCH, (off_t)x->offset, (off_t)size_bytes(x->size))) {
            s->cannot_punch = errno == EOPNOTSUPP || errno == ENOSYS;
            continue;
        }
        x->state = FREE_HOLE;
        s->stats.free_bytes -= written_bytes(x->bytes);
    }
}

static void give(struct mr_spill *s, uint32_t at)
{
    struct place *x = &s->places[at];
    mr_assert(x->state == USED || x->state == GONE);
    mr_assert(x->readers == 0);
    uint64_t n = written_bytes(x->bytes);
    s->stats.used_bytes -= n;
    s->stats.free_bytes += n;
    x->state = FREE;
    x->next = s->free[x->size];
    s->free[x->size] = at;
    if (!--s->taken)
        cut(s);
    else if (s->stats.free_bytes > MR_MAX(s->stats.used_bytes, PAGES_KEPT_MAX))
        punch(s);
}

/* Out of the index; the place goes when its last reader has. */
static bool erase(struct mr_spill *s, mr_object_id id)
{
    uint32_t at = find(s, id);
    if (at == MR_INDEX_NONE) return false;
    (void)mr_index_remove(&s->by_id, mr_object_id_hash(id), at);
    s->stats.objects--;
    s->places[at].state = GONE;
    if (!s->places[at].readers) give(s, at);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------*/

/* What a place has behind the value: its checksums if the head is the object's. */
static int read_tail(const struct mr_spill *s, const struct place *x, uint64_t **checksums)
{
    struct mr_extent_head head;
    uint64_t at = x->offset + x->bytes, n = chunks_of(x->bytes) * sizeof(uint64_t);
    MR_AUTO(mr_free_ptr) uint64_t *read = mr_alloc(n ? n : 1);
    int err = mr_disk_read(s->fd, &head, sizeof head, at);
    if (!err) err = mr_disk_read(s->fd, read, n, at + sizeof head);
    bool same = !err && mr_extent_head_is_valid(&head) && head.maker == x->id.maker &&
                head.number == x->id.number && head.bytes == x->bytes;
    if (!same) return MR_EFORMAT;
    *checksums = MR_STEAL(read);
    return MR_OK;
}

static int read_piece(const struct mr_spill *s, const struct place *x, const uint64_t *checksums,
    uint64_t at, void *out, uint64_t n)
{
    int err = mr_disk_read(s->fd, out, n, x->offset + at);
    if (err) return err;
    return XXH3_64bits(out, n) == checksums[at / MR_CHUNK_BYTES] ? MR_OK : MR_EFORMAT;
}

/* The place as it was found; the caller releases it. MR_ENOENT. */
static int enter(struct mr_spill *s, mr_object_id id, uint32_t *at, struct place *out)
{
    mr_monitor_enter(s->monitor);
    *at = find(s, id);
    if (*at != MR_INDEX_NONE) {
        s->places[*at].readers++;
        *out = s->places[*at];
    }
    mr_monitor_leave(s->monitor);
    return *at == MR_INDEX_NONE ? MR_ENOENT : MR_OK;
}

static void leave(struct mr_spill *s, uint32_t at)
{
    mr_monitor_enter(s->monitor);
    struct place *x = &s->places[at];
    mr_assert(x->readers > 0);
    if (!--x->readers && x->state == GONE) give(s, at);
    mr_monitor_leave(s->monitor);
}

int mr_spill_read(
    struct mr_spill *s, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e)
{
    uint32_t at;
    struct place x;
    int err = enter(s, id, &at, &x);
    if (err) return err;
    MR_AUTO(mr_free_ptr) uint64_t *checksums = NULL;
    err = x.bytes == bytes ? read_tail(s, &x, &checksums) : MR_EFORMAT;
    for (uint64_t i = 0; i < bytes && !err; i += MR_CHUNK_BYTES)
        err = read_piece(s, &x, checksums, i, (unsigned char *)out + i,
            MR_MIN(bytes - i, (uint64_t)MR_CHUNK_BYTES));
    leave(s, at);
    if (!err) return MR_OK;
    return mr_fail(e, MR_EFORMAT, "%s: what lies at %llu is not what was written there", s->path,
        (unsigned long long)x.offset);
}

int mr_spill_peek(struct mr_spill *s, mr_object_id id, void *out, uint64_t room, uint64_t *n,
    uint64_t *bytes, struct mr_error *e)
{
    uint32_t at;
    struct place x;
    int err = enter(s, id, &at, &x);
    if (err) return err;
    *bytes = x.bytes;
    *n = MR_MIN(x.bytes, room);
    err = mr_disk_read(s->fd, out, *n, x.offset);
    leave(s, at);
    return err ? mr_fail(e, err, "cannot read %s: %s", s->path, strerror(errno)) : MR_OK;
}

/* ---- writing ----------------------------------------------------------------------------------*/

static int write_all(int fd, struct iovec *v, int count, uint64_t from)
{
    while (count) {
        ssize_t w = pwritev(fd, v, count, (off_t)from);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return mr_file_write_error(errno);
        from += (uint64_t)w;
        while (count && (size_t)w >= v->iov_len) {
            w -= (ssize_t)v->iov_len;
            v++;
            count--;
        }
        if (!count) break;
        v->iov_base = (char *)v->iov_base + w;
        v->iov_len -= (size_t)w;
    }
    return MR_OK;
}

/* In whole pages: each chunk by itself, the tail and what fills its last page with the last. */
static int write_place(int fd, const struct place *x, const void *p)
{
    uint64_t chunks = chunks_of(x->bytes);
    uint64_t tail = written_bytes(x->bytes) - x->bytes; /* with what fills the page */
    MR_AUTO(mr_free_ptr) unsigned char *behind = mr_alloc(tail);
    uint64_t *checksums = (uint64_t *)(void *)(behind + sizeof(struct mr_extent_head));
    mr_extent_head_fill((void *)behind, x->id, x->bytes, (mr_job_id){0}, 0, 0);
    int err = MR_OK;
    for (uint64_t i = 0; i < MR_MAX(chunks, (uint64_t)1) && !err; i++) {
        uint64_t at = i * MR_CHUNK_BYTES;
        uint64_t n = MR_MIN(x->bytes - at, (uint64_t)MR_CHUNK_BYTES);
        struct iovec v[] = {{(void *)((uintptr_t)p + at), n}, {behind, tail}};
        if (n) checksums[i] = XXH3_64bits(v[0].iov_base, n);
        err = write_all(fd, v, i + 1 < chunks ? 1 : 2, x->offset + at);
    }
    return err;
}

bool mr_spill_give_pages(struct mr_spill *s)
{
    mr_monitor_enter(s->monitor);
    uint64_t had = s->stats.free_bytes;
    punch(s);
    bool gave = s->stats.free_bytes < had;
    mr_monitor_leave(s->monitor);
    return gave;
}

int mr_spill_write(
    struct mr_spill *s, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e)
{
    mr_monitor_enter(s->monitor);
    uint32_t at = take(s, id, bytes);
    struct place x = s->places[at];
    mr_monitor_leave(s->monitor);
    int err = write_place(s->fd, &x, p);
    if (err == MR_EDISKFULL && mr_spill_give_pages(s)) err = write_place(s->fd, &x, p);
    int why = errno;
    mr_monitor_enter(s->monitor);
    if (err) {
        give(s, at);
        punch(s); /* what was written of it, too */
    } else {
        (void)erase(s, id); /* an earlier one: the same bytes, by the id */
        mr_index_add(&s->by_id, mr_object_id_hash(id), at, hash_of, s);
        s->stats.objects++;
    }
    mr_monitor_leave(s->monitor);
    return err ? mr_fail(e, err, "cannot write %s: %s", s->path, strerror(why)) : MR_OK;
}

struct keeper {
    const struct mr_spill *s;
    const struct place *x;
    const uint64_t *checksums;
    void *buffer;
};

static const void *next_piece(void *ctx, uint64_t at, uint64_t n)
{
    struct keeper *k = ctx;
    return read_piece(k->s, k->x, k->checksums, at, k->buffer, n) ? NULL : k->buffer;
}

int mr_spill_keep(struct mr_spill *s, mr_object_id id, const char *path, struct mr_error *e)
{
    uint32_t at;
    struct place x;
    int err = enter(s, id, &at, &x);
    if (err) return err;
    MR_AUTO(mr_free_ptr) uint64_t *checksums = NULL;
    MR_AUTO(mr_free_ptr) void *buffer = mr_alloc(MR_CHUNK_BYTES);
    err = read_tail(s, &x, &checksums);
    struct keeper k = {s, &x, checksums, buffer};
    if (!err) err = mr_disk_file_copy(path, id, x.bytes, next_piece, &k, e);
    leave(s, at);
    if (!err) (void)mr_spill_erase(s, id);
    return err;
}

bool mr_spill_erase(struct mr_spill *s, mr_object_id id)
{
    mr_monitor_enter(s->monitor);
    bool was_here = erase(s, id);
    mr_monitor_leave(s->monitor);
    return was_here;
}

/* ---- all --------------------------------------------------------------------------------------*/

int mr_spill_open(const char *path, struct mr_spill **out, struct mr_error *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return mr_fail(e, MR_EIO, "cannot write %s: %s", path, strerror(errno));
    struct mr_spill *s = mr_alloc(sizeof *s);
    s->fd = fd;
    s->path = mr_copy_text(path);
    s->monitor = mr_monitor_new();
    mr_index_init(&s->by_id, 64);
    for (uint32_t i = 0; i < SIZES; i++)
        s->free[i] = NONE;
    *out = s;
    return MR_OK;
}

void mr_spill_close(struct mr_spill **ps)
{
    struct mr_spill *s = MR_STEAL(*ps);
    if (!s) return;
    (void)unlink(s->path);
    close(s->fd);
    mr_monitor_free(&s->monitor);
    mr_index_fini(&s->by_id);
    mr_release(s->places);
    mr_release(s->path);
    mr_release(s);
}

void mr_spill_stats(struct mr_spill *s, struct mr_spill_stats *out)
{
    mr_monitor_enter(s->monitor);
    *out = s->stats;
    out->file_bytes = s->end;
    mr_monitor_leave(s->monitor);
}

void mr_spill_check(struct mr_spill *s)
{
    uint64_t end = 0, used = 0, with_pages = 0;
    uint32_t taken = 0, known = 0, free_count = 0;
    mr_monitor_enter(s->monitor);
    for (uint32_t i = 0; i < s->places_count; i++) {
        const struct place *x = &s->places[i];
        mr_assert(x->offset == end);
        mr_assert(written_bytes(x->bytes) <= size_bytes(x->size));
        bool is_taken = x->state == USED || x->state == GONE;
        end += size_bytes(x->size);
        taken += is_taken;
        known += x->state == USED && find(s, x->id) == i;
        used += is_taken ? written_bytes(x->bytes) : 0;
        with_pages += x->state == FREE ? written_bytes(x->bytes) : 0;
        mr_assert(is_taken || !x->readers);
    }
    for (uint32_t i = 0; i < SIZES; i++)
        for (uint32_t at = s->free[i]; at != NONE; at = s->places[at].next) {
            mr_assert(s->places[at].size == i);
            free_count++;
        }
    mr_assert(end == s->end);
    mr_assert(taken == s->taken);
    mr_assert(taken + free_count == s->places_count);
    mr_assert(known == s->stats.objects);
    mr_assert(known == s->by_id.count);
    mr_assert(used == s->stats.used_bytes);
    mr_assert(with_pages == s->stats.free_bytes);
    mr_monitor_leave(s->monitor);
}
