/* Measures the object store of one node, with the real program in a process of its own:
 *     store_bench MR-OBJECTSTORE [json]
 * Rows: local gets; creating a small object; a put of 64 MiB into warm pages and of 1 GiB into cold
 * ones, compared with memcpy. Each row is the median of 5 with min and max. store_pull_bench
 * measures transfers between nodes. */
#include "bench/c/store_nodes.h"

#include <sys/mman.h>

#define GETS 200000
#define WARM_BYTES ((uint64_t)64 << 20)
#define COLD_BYTES ((uint64_t)1 << 30)

static void bench_get(struct mr_store *st, struct mr_store *other, const void *data)
{
    double runs[RUNS];
    uint64_t sizes[] = {1000, WARM_BYTES};
    for (size_t s = 0; s < 2; s++) {
        mr_object_id id = put(st, data, sizes[s]);
        for (int r = 0; r < RUNS; r++) {
            mr_time from = mr_clock_now();
            for (int i = 0; i < GETS; i++) {
                struct mr_store_view view;
                if (mr_store_get(other, id, NULL, WAIT, &view, NULL)) die("get", NULL);
                mr_store_release(other, &view);
            }
            runs[r] = (double)(mr_clock_now() - from) / GETS;
        }
        row(s ? "local get and release, 64 MiB" : "local get and release, 1 kB", "ns", runs);
        drop(st, id);
    }
    for (int r = 0; r < RUNS; r++) {
        mr_time from = mr_clock_now();
        for (int i = 0; i < 20000; i++) {
            struct mr_store_draft draft;
            if (mr_store_create(st, 1000, WAIT, &draft, NULL)) die("create", NULL);
            mr_object_id id = draft.id;
            if (mr_store_seal(st, &draft, NULL, NULL, NULL)) die("seal", NULL);
            mr_store_unhold(st, &id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
        }
        runs[r] = (double)(mr_clock_now() - from) / 20000;
    }
    row("create, seal and unhold, 1 kB", "ns", runs);
}

static void bench_put(struct mr_store *st, const void *data)
{
    double runs[RUNS];
    double plain[RUNS];
    unsigned char *warm = mr_alloc(WARM_BYTES);
    memset(warm, 1, WARM_BYTES);
    mr_object_id first = put(st, data, WARM_BYTES); /* warms the pages of the store */
    drop(st, first);
    for (int r = 0; r < RUNS; r++) {
        mr_time from = mr_clock_now();
        for (int i = 0; i < 8; i++)
            drop(st, put(st, data, WARM_BYTES));
        runs[r] = gb_per_s(8 * WARM_BYTES, from);
        from = mr_clock_now();
        for (int i = 0; i < 8; i++) {
            memcpy(warm, data, WARM_BYTES);
            __asm__ volatile("" : : "r"(warm) : "memory");
        }
        plain[r] = gb_per_s(8 * WARM_BYTES, from);
    }
    row("put and delete, 64 MiB, warm pages", "GB/s", runs);
    row("memcpy, 64 MiB, warm pages", "GB/s", plain);
    mr_release(warm);
}

static void bench_cold(const struct node *n, const void *data)
{
    double runs[RUNS];
    double plain[RUNS];
    for (int r = 0; r < RUNS; r++) {
        struct mr_store *st = client(n); /* a new client has no warm pages */
        mr_time from = mr_clock_now();
        mr_object_id id = put(st, data, COLD_BYTES);
        runs[r] = gb_per_s(COLD_BYTES, from);
        drop(st, id);
        mr_store_close(&st);
        from = mr_clock_now();
        void *fresh =
            mmap(NULL, COLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mr_assert(fresh != MAP_FAILED);
        memcpy(fresh, data, COLD_BYTES);
        plain[r] = gb_per_s(COLD_BYTES, from);
        munmap(fresh, COLD_BYTES);
    }
    row("put, 1 GiB, cold pages", "GB/s", runs);
    row("memcpy, 1 GiB, cold pages", "GB/s", plain);
}

int main(int argc, char **argv)
{
    char *data = begin(argc, argv, COLD_BYTES);
    struct node a;
    start(&a, argv[1], 1);
    struct mr_store *on_a = client(&a);
    struct mr_store *also_on_a = client(&a);
    bench_get(on_a, also_on_a, data);
    bench_put(on_a, data);
    bench_cold(&a, data);
    mr_store_close(&on_a);
    mr_store_close(&also_on_a);
    stop(&a);
    clean_up();
    mr_release(data);
    return 0;
}
