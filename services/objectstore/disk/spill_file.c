/* The spill file consists of slots. The sizes of slots, in pages, are 1 2 3 4, then 5 6 7 8, then
 * 10 12 14 16, and so on. Each size has a list of free slots. If the list is empty, a new slot is
 * added at the end of the file. The unused part of a slot is a hole in the file and costs no space
 * on the disk. */
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
#define SIZES 160u /* number of slot sizes */
/* The pages of all free slots go back to the file system when they are together larger than this
 * limit and larger than the pages of the slots in use. */
#define PAGES_KEPT_MAX ((uint64_t)256 << 20)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

enum state {
    FREE,      /* the slot may have pages on the disk */
    FREE_HOLE, /* the slot has no pages on the disk */
    USED,
    GONE, /* the object was erased while a thread reads it */
};

struct slot {
    mr_object_id id;
    uint64_t offset;
    uint64_t bytes; /* size of the value */
    enum state state;
    uint32_t size; /* index of the slot's size */
    uint32_t readers;
    uint32_t next; /* next slot in the free list */
};

struct mr_spill {
    int fd;
    char *path;
    struct mr_monitor *monitor; /* guards the members below */
    struct mr_index by_id;
    struct slot *slots;
    uint32_t slots_count, slots_room;
    uint32_t free[SIZES];
    uint64_t end;      /* end of the last slot */
    bool cannot_punch; /* the file system cannot make holes */
    uint32_t taken;    /* number of slots that are not free */
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

/* Returns how many bytes of a slot a value of size `bytes` fills. */
static uint64_t written_bytes(uint64_t bytes)
{
    return mr_align_up(bytes + tail_bytes(bytes), MR_ARENA_PAGE);
}

static uint64_t size_bytes(uint32_t size)
{
    if (size < 4) return (size + 1) * (uint64_t)MR_ARENA_PAGE;
    /* pages: 5 6 7 8 10 12 14 16 … */
    return (uint64_t)(size % 4 + 5) * MR_ARENA_PAGE << (size / 4 - 1);
}

static uint32_t size_of(uint64_t bytes)
{
    uint32_t size = 0;
    while (size_bytes(size) < bytes)
        size++;
    return size;
}

/* ---- slots ------------------------------------------------------------------------------------*/

static bool has_id(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_spill *s = ctx;
    return mr_object_id_eq(s->slots[item].id, *(const mr_object_id *)key);
}

static uint64_t hash_of(const void *ctx, uint32_t item)
{
    const struct mr_spill *s = ctx;
    return mr_object_id_hash(s->slots[item].id);
}

static uint32_t find(const struct mr_spill *s, mr_object_id id)
{
    return mr_index_find(&s->by_id, mr_object_id_hash(id), has_id, s, &id);
}

static uint32_t slot_new(struct mr_spill *s, uint32_t size)
{
    if (s->slots_count == s->slots_room) {
        uint32_t room = s->slots_room ? s->slots_room * 2 : 64;
        s->slots = mr_grow(s->slots, s->slots_room * sizeof *s->slots, room * sizeof *s->slots);
        s->slots_room = room;
    }
    s->slots[s->slots_count] = (struct slot){.offset = s->end, .state = FREE_HOLE, .size = size};
    s->end += size_bytes(size);
    return s->slots_count++;
}

/* Takes a slot for the object. Readers find the object only after it is added to the index. */
static uint32_t take(struct mr_spill *s, mr_object_id id, uint64_t bytes)
{
    uint32_t size = size_of(written_bytes(bytes));
    uint32_t at = s->free[size];
    if (at == NONE)
        at = slot_new(s, size);
    else
        s->free[size] = s->slots[at].next;
    struct slot *x = &s->slots[at];
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
    /* a failure does no harm: the file only keeps its size */
    if (ftruncate(s->fd, 0)) return;
    s->slots_count = 0;
    s->end = 0;
    s->stats.free_bytes = 0;
    for (uint32_t i = 0; i < SIZES; i++)
        s->free[i] = NONE;
}

static void punch(struct mr_spill *s)
{
    for (uint32_t i = 0; i < s->slots_count && !s->cannot_punch; i++) {
        struct slot *x = &s->slots[i];
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
    struct slot *x = &s->slots[at];
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

/* Removes the object from the index. Its slot is freed when the last reader has left. False: there
 * is no such object. */
static bool erase(struct mr_spill *s, mr_object_id id)
{
    uint32_t at = find(s, id);
    if (at == MR_INDEX_NONE) return false;
    (void)mr_index_remove(&s->by_id, mr_object_id_hash(id), at);
    s->stats.objects--;
    s->slots[at].state = GONE;
    if (!s->slots[at].readers) give(s, at);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------*/

struct reading {
    struct mr_spill *s;
    uint32_t at;
    struct slot slot; /* a copy of the slot's row */
    uint64_t *checksums;
};

/* Reads what follows the value in the slot: an extent head, then the checksums. MR_EFORMAT: the
 * read failed, or the extent head is damaged or names another object. */
static int read_tail(struct reading *r)
{
    const struct slot *x = &r->slot;
    struct mr_extent_head head;
    uint64_t at = x->offset + x->bytes, n = chunks_of(x->bytes) * sizeof(uint64_t);
    r->checksums = mr_alloc(n ? n : 1);
    int err = mr_disk_read(r->s->fd, &head, sizeof head, at);
    if (!err) err = mr_disk_read(r->s->fd, r->checksums, n, at + sizeof head);
    bool same = !err && mr_extent_head_is_valid(&head) && head.maker == x->id.maker &&
                head.number == x->id.number && head.bytes == x->bytes;
    return same ? MR_OK : MR_EFORMAT;
}

static int read_piece(const struct reading *r, uint64_t at, void *out, uint64_t n)
{
    int err = mr_disk_read(r->s->fd, out, n, r->slot.offset + at);
    if (err) return err;
    return XXH3_64bits(out, n) == r->checksums[at / MR_CHUNK_BYTES] ? MR_OK : MR_EFORMAT;
}

/* Starts to read an object: its slot stays as it is until `leave`. MR_ENOENT: there is no such
 * object. */
static int enter(struct mr_spill *s, mr_object_id id, struct reading *r)
{
    *r = (struct reading){.s = s};
    mr_monitor_enter(s->monitor);
    r->at = find(s, id);
    if (r->at != MR_INDEX_NONE) {
        s->slots[r->at].readers++;
        r->slot = s->slots[r->at];
    }
    mr_monitor_leave(s->monitor);
    return r->at == MR_INDEX_NONE ? MR_ENOENT : MR_OK;
}

static void leave(struct reading *r)
{
    mr_release(r->checksums);
    mr_monitor_enter(r->s->monitor);
    struct slot *x = &r->s->slots[r->at];
    mr_assert(x->readers > 0);
    if (!--x->readers && x->state == GONE) give(r->s, r->at);
    mr_monitor_leave(r->s->monitor);
}

int mr_spill_read(
    struct mr_spill *s, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e)
{
    struct reading r;
    int err = enter(s, id, &r);
    if (err) return err;
    err = r.slot.bytes == bytes ? read_tail(&r) : MR_EFORMAT;
    for (uint64_t i = 0; i < bytes && !err; i += MR_CHUNK_BYTES)
        err = read_piece(
            &r, i, (unsigned char *)out + i, MR_MIN(bytes - i, (uint64_t)MR_CHUNK_BYTES));
    leave(&r);
    if (!err) return MR_OK;
    return mr_fail(e, MR_EFORMAT, "%s is damaged at offset %llu: a checksum does not match",
        s->path, (unsigned long long)r.slot.offset);
}

int mr_spill_peek(
    struct mr_spill *s, mr_object_id id, struct mr_object_start *start, struct mr_error *e)
{
    struct reading r;
    int err = enter(s, id, &r);
    if (err) return err;
    start->bytes = r.slot.bytes;
    start->n = MR_MIN(start->bytes, start->room);
    err = mr_disk_read(s->fd, start->p, start->n, r.slot.offset);
    leave(&r);
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

/* Writes one chunk of the value after the other. The extent head and the checksums are written
 * together with the last chunk, followed by zeros up to the end of a page. */
static int write_slot(int fd, const struct slot *x, const void *p)
{
    uint64_t chunks = chunks_of(x->bytes);
    /* number of bytes from the end of the value to the end of the last page that is written */
    uint64_t tail = written_bytes(x->bytes) - x->bytes;
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
    struct slot x = s->slots[at];
    mr_monitor_leave(s->monitor);
    int err = write_slot(s->fd, &x, p);
    if (err == MR_EDISKFULL && mr_spill_give_pages(s)) err = write_slot(s->fd, &x, p);
    int why = errno;
    mr_monitor_enter(s->monitor);
    if (err) {
        give(s, at);
        punch(s); /* also frees the pages of the failed write */
    } else {
        /* removes an earlier copy; all copies of an id have the same bytes */
        (void)erase(s, id);
        mr_index_add(&s->by_id, mr_object_id_hash(id), at, hash_of, s);
        s->stats.objects++;
    }
    mr_monitor_leave(s->monitor);
    return err ? mr_fail(e, err, "cannot write %s: %s", s->path, strerror(why)) : MR_OK;
}

struct keeper {
    const struct reading *reading;
    void *buffer;
};

static const void *next_piece(void *ctx, uint64_t at, uint64_t n)
{
    const struct keeper *k = ctx;
    return read_piece(k->reading, at, k->buffer, n) ? NULL : k->buffer;
}

int mr_spill_keep(struct mr_spill *s, mr_object_id id, const char *path, struct mr_error *e)
{
    struct reading r;
    int err = enter(s, id, &r);
    if (err) return err;
    MR_AUTO(mr_free_ptr) void *buffer = mr_alloc(MR_CHUNK_BYTES);
    struct keeper k = {&r, buffer};
    const struct mr_disk_source source = {
        .id = id, .bytes = r.slot.bytes, .next = next_piece, .ctx = &k};
    err = read_tail(&r);
    if (!err) err = mr_disk_file_copy(path, &source, e);
    leave(&r);
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
    mr_release(s->slots);
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
    for (uint32_t i = 0; i < s->slots_count; i++) {
        const struct slot *x = &s->slots[i];
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
        for (uint32_t at = s->free[i]; at != NONE; at = s->slots[at].next) {
            mr_assert(s->slots[at].size == i);
            free_count++;
        }
    mr_assert(end == s->end);
    mr_assert(taken == s->taken);
    mr_assert(taken + free_count == s->slots_count);
    mr_assert(known == s->stats.objects);
    mr_assert(known == s->by_id.count);
    mr_assert(used == s->stats.used_bytes);
    mr_assert(with_pages == s->stats.free_bytes);
    mr_monitor_leave(s->monitor);
}
