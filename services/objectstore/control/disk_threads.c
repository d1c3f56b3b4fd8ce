/* Writers and fetchers. All writes, moves and erasures of one object go to the same writer, in
 * order, so that its file has the state that the core expects. A fetcher may read a file while a
 * writer moves that file. */
#include "services/objectstore/control/disk_threads.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/thread.h"
#include "services/objectstore/disk/object_file.h"
#include "services/objectstore/disk/spill_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOBS_MAX 16384u
#define ROOM_WAIT (60 * MR_SECOND)
#define WRITERS 3u /* number of writers, and so of writes at the same time */
/* number of fetchers: more than writers, since some fetchers wait for room and not for the disk */
#define FETCHERS 6u

enum job_type {
    JOB_WRITE,
    JOB_ERASE,
    JOB_MOVE,
    JOB_RESTORE,
    JOB_DRAFT,
};

struct job {
    enum job_type type;
    uint32_t flags;
    mr_object_id id;
    uint64_t bytes;
    struct mr_draft_ask *draft;
};

struct disk_thread {
    struct mr_disk *disk;
    struct mr_inbox *jobs;
    struct mr_thread *thread;
};

struct mr_disk {
    struct mr_ostore_shell *sh;
    struct mr_store *self;
    char *objects;                    /* the folder "objects" in --dir; NULL: no disk */
    char *held;                       /* the folder "held" in --dir */
    struct mr_spill *spills[WRITERS]; /* one for each writer; NULL: no disk */
    struct disk_thread writers[WRITERS];
    struct disk_thread fetchers[FETCHERS];
    /* atomic, since the control thread and the gRPC thread give jobs to fetchers */
    _Atomic uint32_t fetcher_next;
};

static char *path_of(const char *folder, mr_object_id id)
{
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    return mr_format("%s/%s", folder, text);
}

static struct mr_spill *spill_of(const struct mr_disk *d, mr_object_id id)
{
    return d->spills[mr_object_id_hash(id) % WRITERS];
}

/* ---- writer -----------------------------------------------------------------------------------*/

static char *kept_path(const struct mr_disk *d, mr_object_id id, uint32_t flags)
{
    return path_of(flags & MR_OSTORE_BY_HOLDERS ? d->held : d->objects, id);
}

/* Gives the disk space of free slots of the spill files back to the file system. False: there was
 * no such space. */
static bool give_pages(struct mr_disk *d)
{
    bool gave = false;
    for (uint32_t i = 0; i < WRITERS; i++)
        gave |= mr_spill_give_pages(d->spills[i]);
    return gave;
}

static int write_once(struct mr_disk *d, const struct job *job, struct mr_error *e)
{
    bool keep = job->flags & MR_OSTORE_PERSISTED;
    struct mr_spill *spill = spill_of(d, job->id);
    MR_AUTO(mr_free_ptr) char *kept = keep ? kept_path(d, job->id, job->flags) : NULL;
    struct mr_store_view view;
    int err = mr_store_get(d->self, job->id, NULL, 0, &view, e);
    if (err == MR_EAGAIN && keep) return mr_spill_keep(spill, job->id, kept, e);
    if (err) return err;
    err = keep ? mr_disk_file_write(kept, job->id, view.p, view.bytes, e)
               : mr_spill_write(spill, job->id, view.p, view.bytes, e);
    mr_store_release(d->self, &view);
    if (!err && keep) (void)mr_spill_erase(spill, job->id);
    return err;
}

static int write_object(struct mr_disk *d, const struct job *job, struct mr_error *e)
{
    int err = write_once(d, job, e);
    return err == MR_EDISKFULL && give_pages(d) ? write_once(d, job, e) : err;
}

/* Removes the object from the disk. The object is in a spill file or in one of the two folders. */
static void erase(struct mr_disk *d, mr_object_id id)
{
    if (mr_spill_erase(spill_of(d, id), id)) return;
    MR_AUTO(mr_free_ptr) char *kept = path_of(d->objects, id);
    MR_AUTO(mr_free_ptr) char *held = path_of(d->held, id);
    (void)unlink(kept);
    (void)unlink(held);
}

static void move(struct mr_disk *d, const struct job *job)
{
    MR_AUTO(mr_free_ptr) char *to = kept_path(d, job->id, job->flags);
    MR_AUTO(mr_free_ptr) char *from = kept_path(d, job->id, job->flags ^ MR_OSTORE_BY_HOLDERS);
    if (rename(from, to) && errno != ENOENT)
        mr_log(MR_WARN, "disk.rename_failed", "file=%s what=\"%s\"", from, strerror(errno));
}

static void run_write(struct mr_disk *d, const struct job *job)
{
    if (job->type == JOB_ERASE) {
        erase(d, job->id);
        return;
    }
    if (job->type == JOB_MOVE) {
        move(d, job);
        return;
    }
    struct mr_error e;
    int err = write_object(d, job, &e);
    /* the shell logs a full disk, and only once */
    if (err && err != MR_EAGAIN && err != MR_EAWAY && err != MR_EDISKFULL)
        mr_log(MR_WARN, "disk.write_failed", "what=\"%s\"", e.text);
    mr_ostore_shell_post(
        d->sh, &(struct mr_ostore_event){
                   .type = MR_OE_WRITTEN, .id = job->id, .err = err, .flags = job->flags});
}

static void writer_run(void *ctx)
{
    struct disk_thread *h = ctx;
    struct job job;
    for (;;) {
        if (mr_inbox_wait(h->jobs, MR_NEVER, &job, 1))
            run_write(h->disk, &job);
        else if (mr_inbox_is_closed(h->jobs))
            return;
    }
}

static int write_job(struct mr_disk *d, const struct job *job)
{
    return mr_inbox_push(d->writers[mr_object_id_hash(job->id) % WRITERS].jobs, job);
}

/* ---- fetchers ---------------------------------------------------------------------------------*/

static int restore_into(
    struct mr_disk *d, const struct job *job, struct mr_store_draft *draft, struct mr_error *e)
{
    int err = mr_spill_read(spill_of(d, job->id), job->id, draft->p, job->bytes, e);
    if (err != MR_ENOENT) return err;
    MR_AUTO(mr_free_ptr) char *kept = path_of(d->objects, job->id);
    MR_AUTO(mr_free_ptr) char *held = path_of(d->held, job->id);
    /* each folder is tried twice, since a writer may move the file between two attempts */
    const char *paths[] = {kept, held, kept, held};
    for (size_t i = 0; i < MR_ARRAY_LEN(paths) && err == MR_ENOENT; i++)
        err = mr_disk_file_read(paths[i], job->id, draft->p, job->bytes, e);
    return err == MR_ENOENT ? MR_ELOST : err;
}

static void run_restore(struct mr_disk *d, const struct job *job)
{
    struct mr_store_draft draft;
    struct mr_error e;
    int err = mr_store_create_copy(d->self, job->id, job->bytes, ROOM_WAIT, &draft, &e);
    if (!err) {
        err = restore_into(d, job, &draft, &e);
        if (err)
            mr_store_abort(d->self, &draft);
        else
            err = mr_store_seal_copy(d->self, &draft, &e);
    }
    if (!err) return; /* the core gets the seal as the answer to the restore */
    mr_log(MR_WARN, "disk.restore_failed", "err=%s what=\"%s\"", mr_err_name(err), e.text);
    mr_ostore_shell_post(
        d->sh, &(struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = job->id, .err = err});
}

static void run_draft(struct mr_disk *d, struct mr_draft_ask *ask)
{
    ask->err =
        mr_store_create_copy(d->self, ask->id, ask->bytes, ask->timeout, &ask->draft, &ask->error);
    ask->done(ask);
}

static void fetcher_run(void *ctx)
{
    struct disk_thread *f = ctx;
    struct job job;
    for (;;) {
        if (!mr_inbox_wait(f->jobs, MR_NEVER, &job, 1)) {
            if (mr_inbox_is_closed(f->jobs)) return;
            continue;
        }
        if (job.type == JOB_DRAFT)
            run_draft(f->disk, job.draft);
        else
            run_restore(f->disk, &job);
    }
}

static int fetch_job(struct mr_disk *d, const struct job *job)
{
    uint32_t next = atomic_fetch_add_explicit(&d->fetcher_next, 1, memory_order_relaxed);
    return mr_inbox_push(d->fetchers[next % FETCHERS].jobs, job);
}

/* ---- from other threads -----------------------------------------------------------------------*/

void mr_disk_write(struct mr_disk *d, const struct mr_ostore_effect *x)
{
    struct job job = {JOB_WRITE, x->flags, x->id, x->bytes, NULL};
    if (!write_job(d, &job)) return;
    mr_ostore_shell_queue(
        d->sh, &(struct mr_ostore_event){
                   .type = MR_OE_WRITTEN, .id = x->id, .err = MR_ELIMIT, .flags = x->flags});
}

void mr_disk_move(struct mr_disk *d, const struct mr_ostore_effect *x)
{
    struct job job = {JOB_MOVE, x->flags, x->id, 0, NULL};
    if (write_job(d, &job)) move(d, &job);
}

void mr_disk_erase(struct mr_disk *d, mr_object_id id)
{
    struct job job = {JOB_ERASE, 0, id, 0, NULL};
    if (write_job(d, &job)) erase(d, id);
}

void mr_disk_restore(struct mr_disk *d, const struct mr_ostore_effect *x)
{
    struct job job = {JOB_RESTORE, 0, x->id, x->bytes, NULL};
    if (!fetch_job(d, &job)) return;
    mr_ostore_shell_queue(d->sh,
        &(struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = x->id, .err = MR_ELIMIT});
}

int mr_disk_draft(struct mr_disk *d, struct mr_draft_ask *ask)
{
    struct job job = {.type = JOB_DRAFT, .draft = ask};
    return fetch_job(d, &job);
}

int mr_disk_peek(
    struct mr_disk *d, mr_object_id id, struct mr_object_start *start, struct mr_error *e)
{
    if (!d || !d->objects) return MR_ENOENT;
    int err = mr_spill_peek(spill_of(d, id), id, start, e);
    if (err != MR_ENOENT) return err;
    MR_AUTO(mr_free_ptr) char *kept = path_of(d->objects, id);
    MR_AUTO(mr_free_ptr) char *held = path_of(d->held, id);
    /* each folder is tried twice, since a writer may move the file between two attempts */
    const char *paths[] = {kept, held, kept, held};
    for (size_t i = 0; i < MR_ARRAY_LEN(paths) && err == MR_ENOENT; i++)
        err = mr_disk_file_peek(paths[i], id, start, e);
    return err;
}

/* ---- start and stop ---------------------------------------------------------------------------*/

static void empty_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *x = readdir(dir); x; x = readdir(dir)) {
        if (x->d_name[0] == '.') continue;
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", folder, x->d_name);
        (void)unlink(path);
    }
    closedir(dir);
}

static void thread_init(struct mr_disk *d, struct disk_thread *h)
{
    *h = (struct disk_thread){.disk = d, .jobs = mr_inbox_new(JOBS_MAX, sizeof(struct job))};
}

static void thread_close(struct disk_thread *h)
{
    mr_inbox_close(h->jobs);
    mr_inbox_wake(h->jobs);
}

static int open_folders(struct mr_disk *d, const char *dir, struct mr_error *e)
{
    d->objects = mr_format("%s/objects", dir);
    d->held = mr_format("%s/held", dir);
    MR_AUTO(mr_free_ptr) char *spill = mr_format("%s/spill", dir);
    int err = mr_file_make_dirs(d->objects, 0700, e);
    if (!err) err = mr_file_make_dirs(d->held, 0700, e);
    if (!err) err = mr_file_make_dirs(spill, 0700, e);
    if (err) return err;
    empty_folder(spill);
    for (uint32_t i = 0; i < WRITERS && !err; i++) {
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%u", spill, i);
        err = mr_spill_open(path, &d->spills[i], e);
    }
    return err;
}

int mr_disk_open(
    struct mr_ostore_shell *sh, const char *dir, struct mr_disk **out, struct mr_error *e)
{
    struct mr_disk *d = mr_alloc(sizeof *d);
    d->sh = sh;
    int err = dir ? open_folders(d, dir, e) : MR_OK;
    if (err) {
        mr_disk_close(&d);
        return err;
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        thread_init(d, &d->writers[i]);
    for (uint32_t i = 0; i < FETCHERS; i++)
        thread_init(d, &d->fetchers[i]);
    *out = d;
    return MR_OK;
}

static uint64_t recover_folder(struct mr_disk *d, const char *folder, uint32_t flags)
{
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    uint64_t count = 0;
    for (struct dirent *x = readdir(dir); x; x = readdir(dir)) {
        if (x->d_name[0] == '.') continue;
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", folder, x->d_name);
        mr_object_id named;
        mr_object_id id;
        uint64_t bytes = 0;
        struct mr_error e;
        if (mr_object_id_parse(mr_str(x->d_name), &named)) {
            /* a crash interrupted the write of this file */
            if (strstr(x->d_name, ".tmp")) (void)unlink(path);
            continue;
        }
        if (mr_disk_file_stat(path, &id, &bytes, &e) || !mr_object_id_eq(id, named)) {
            mr_log(MR_ERROR, "disk.damaged", "file=%s", path);
            continue;
        }
        mr_ostore_shell_step(
            d->sh, &(struct mr_ostore_event){
                       .type = MR_OE_RECOVERED, .id = id, .bytes = bytes, .flags = flags});
        count++;
    }
    closedir(dir);
    return count;
}

void mr_disk_recover(struct mr_disk *d)
{
    if (!d->objects) return;
    uint64_t count = recover_folder(d, d->objects, 0);
    count += recover_folder(d, d->held, MR_OSTORE_BY_HOLDERS);
    mr_log(MR_INFO, "disk.recovered", "objects=%" PRIu64, count);
}

void mr_disk_start(struct mr_disk *d, struct mr_store *self)
{
    d->self = self;
    for (uint32_t i = 0; i < WRITERS; i++)
        d->writers[i].thread = mr_thread_start("writer", writer_run, &d->writers[i]);
    for (uint32_t i = 0; i < FETCHERS; i++)
        d->fetchers[i].thread = mr_thread_start("fetcher", fetcher_run, &d->fetchers[i]);
}

void mr_disk_stop(struct mr_disk *d)
{
    if (!d) return;
    for (uint32_t i = 0; i < WRITERS; i++)
        thread_close(&d->writers[i]);
    for (uint32_t i = 0; i < FETCHERS; i++)
        thread_close(&d->fetchers[i]);
    for (uint32_t i = 0; i < WRITERS; i++)
        mr_thread_join(&d->writers[i].thread);
    for (uint32_t i = 0; i < FETCHERS; i++)
        mr_thread_join(&d->fetchers[i].thread);
}

void mr_disk_close(struct mr_disk **pd)
{
    struct mr_disk *d = MR_STEAL(*pd);
    if (!d) return;
    for (uint32_t i = 0; i < WRITERS; i++) {
        mr_inbox_free(&d->writers[i].jobs);
        mr_spill_close(&d->spills[i]);
    }
    for (uint32_t i = 0; i < FETCHERS; i++)
        mr_inbox_free(&d->fetchers[i].jobs);
    mr_release(d->objects);
    mr_release(d->held);
    mr_release(d);
}
