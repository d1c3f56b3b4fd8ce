/* Measures puts of one large object: with mr_store_put, where several threads copy as in Ray's
 * client, and with one thread that copies. Each object is deleted before the next put, as in
 * bench/peer_ray.py.
 *     put_bench MR-OBJECTSTORE [json] */
#include "bench/c/store_nodes.h"

#include "base/limits.h"
#include "host/pool/thread_pool.h"

#define BYTES ((uint64_t)64 << 20)
#define PUTS 8

static mr_object_id put_by_all(struct mr_store *st, const void *data)
{
    mr_object_id id = {0};
    struct mr_error e;
    if (mr_store_put(st, data, BYTES, NULL, WAIT, &id, &e)) die("put", &e);
    return id;
}

static double puts_per_run(struct mr_store *st, const void *data, bool alone)
{
    mr_time from = mr_clock_now();
    for (int i = 0; i < PUTS; i++)
        drop(st, alone ? put(st, data, BYTES) : put_by_all(st, data));
    return gb_per_s(PUTS * BYTES, from);
}

struct plain {
    unsigned char *to;
    const char *from;
};

static void copy_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    const struct plain *p = ctx;
    (void)worker;
    memcpy(p->to + ((size_t)piece << 20), p->from + ((size_t)piece << 20), (size_t)1 << 20);
}

/* Returns the GB/s of copying the same bytes into plain memory whose pages are warm. */
static double copies_per_run(struct mr_thread_pool *pool, struct plain *p)
{
    mr_time from = mr_clock_now();
    for (int i = 0; i < PUTS; i++)
        mr_thread_pool_run(pool, copy_piece, p, (uint32_t)(BYTES >> 20));
    return gb_per_s(PUTS * BYTES, from);
}

int main(int argc, char **argv)
{
    char *data = begin(argc, argv, BYTES);
    double runs[RUNS], alone[RUNS], plain[RUNS];
    struct node a;
    start(&a, argv[1], 1);
    struct mr_store *st = client(&a);
    struct mr_thread_pool *pool = mr_thread_pool_new(mr_thread_pool_workers_here(MR_PUT_THREADS));
    struct plain warm = {mr_alloc(BYTES), data};
    (void)puts_per_run(st, data, false); /* warms the pages of the store */
    (void)copies_per_run(pool, &warm);
    for (int r = 0; r < RUNS; r++) {
        runs[r] = puts_per_run(st, data, false);
        alone[r] = puts_per_run(st, data, true);
        plain[r] = copies_per_run(pool, &warm);
    }
    row("put and delete, 64 MiB, warm pages, 4 threads", "GB/s", runs);
    row("put and delete, 64 MiB, warm pages, 1 thread", "GB/s", alone);
    row("memcpy, 64 MiB, warm pages, 4 threads", "GB/s", plain);
    mr_thread_pool_free(&pool);
    mr_store_close(&st);
    stop(&a);
    clean_up();
    mr_release(warm.to);
    mr_release(data);
    return 0;
}
