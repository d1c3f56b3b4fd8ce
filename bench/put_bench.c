/* Putting one large object as Ray's client does, with several threads copying: a draft is plain
 * memory, so its writer may fill it as it likes. put_bench MR-OBJECTSTORE [json]. Rows by one
 * thread: store_bench. */
#include "bench/store_nodes.h"

#include <pthread.h>

#define BYTES ((uint64_t)64 << 20)
#define THREADS 4

struct part {
    unsigned char *to;
    const unsigned char *from;
};

static void *copy(void *ctx)
{
    const struct part *p = ctx;
    memcpy(p->to, p->from, BYTES / THREADS);
    return NULL;
}

static void copy_all(unsigned char *to, const unsigned char *from)
{
    pthread_t thread[THREADS];
    struct part part[THREADS];
    for (int i = 0; i < THREADS; i++) {
        uint64_t at = (uint64_t)i * (BYTES / THREADS);
        part[i] = (struct part){to + at, from + at};
        if (i && pthread_create(&thread[i], NULL, copy, &part[i])) die("thread", NULL);
    }
    (void)copy(&part[0]);
    for (int i = 1; i < THREADS; i++)
        (void)pthread_join(thread[i], NULL);
}

static void put_by_all(struct mr_store *st, const void *data)
{
    struct mr_store_draft draft;
    struct mr_error e;
    if (mr_store_create(st, BYTES, WAIT, &draft, &e)) die("create", &e);
    copy_all(draft.p, data);
    mr_object_id id = draft.id;
    if (mr_store_seal(st, &draft, NULL, NULL, &e)) die("seal", &e);
    drop(st, id);
}

int main(int argc, char **argv)
{
    char *data = begin(argc, argv, BYTES);
    double runs[RUNS];
    double plain[RUNS];
    struct node a;
    start(&a, argv[1], 1);
    struct mr_store *st = client(&a);
    unsigned char *warm = mr_alloc(BYTES);
    memset(warm, 1, BYTES);
    drop(st, put(st, data, BYTES)); /* its pages are the warm ones */
    for (int r = 0; r < RUNS; r++) {
        mr_time from = mr_clock_now();
        for (int i = 0; i < 8; i++)
            put_by_all(st, data);
        runs[r] = gb_per_s(8 * BYTES, from);
        from = mr_clock_now();
        for (int i = 0; i < 8; i++)
            copy_all(warm, (const unsigned char *)data);
        plain[r] = gb_per_s(8 * BYTES, from);
    }
    row("put and delete, 64 MiB, warm pages, 4 threads", "GB/s", runs);
    row("memcpy, 64 MiB, warm pages, 4 threads", "GB/s", plain);
    mr_store_close(&st);
    stop(&a);
    clean_up();
    mr_release(warm);
    mr_release(data);
    return 0;
}
