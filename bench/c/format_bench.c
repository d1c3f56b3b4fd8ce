/* Measures how fast values are checked, hashed, imported and exported in one thread, compared with
 * memcpy:
 *     format_bench [filter]
 * Each row is the best of several runs over warm memory. GB/s count the bytes of the value for
 * tensors, and the bytes of the text for tables in CSV and JSON. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/rng.h"
#include "store/object/format/format.h"

#include <stdio.h>
#include <time.h>
#include <xxhash.h>

#define REPEATS 5
#define ROWS 4096
#define COLUMNS 4096 /* columns of the tensors, which have 64 MiB as f32 */
#define TEXT_ROWS 400000

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct {
    void *memory; /* kept warm from run to run, as in a store's arena */
    uint64_t bytes;
} result;

static void *alloc_result(void *ctx, uint64_t bytes)
{
    (void)ctx;
    if (bytes > result.bytes) {
        mr_release(result.memory);
        result.memory = mr_alloc_aligned(bytes, MR_VALUE_ALIGN);
        result.bytes = bytes;
    }
    return result.memory;
}

static const struct mr_value_alloc allocator = {alloc_result, NULL};

static uint64_t sunk; /* sum over written bytes, so that the compiler removes no work */

static int sink_write(void *ctx, const void *p, size_t n)
{
    (void)ctx;
    const unsigned char *bytes = p;
    sunk += n + bytes[n / 2];
    return MR_OK;
}

static const struct mr_sink sink = {sink_write, NULL};

struct bench {
    const char *name;
    enum mr_format format;
    const struct mr_format_options *options;
    struct mr_str bytes;    /* for an import: the bytes */
    struct mr_value *value; /* for an export: the value */
    uint64_t counted;       /* number of bytes from which the GB/s are computed */
};

static const char *filter;

static void report(const char *name, double best_s, uint64_t bytes)
{
    (void)printf("%-32s %8.2f ms %8.3f GB/s\n", name, best_s * 1e3, (double)bytes / best_s * 1e-9);
}

static void run(const struct bench *b)
{
    if (filter && !strstr(b->name, filter)) return;
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        struct mr_error e = {0};
        double start = now_s();
        int err = b->value ? mr_format_export(b->value, b->format, b->options, sink, &e)
                           : mr_format_import(b->format, b->bytes, b->options, &allocator, &e);
        double took = now_s() - start;
        if (err) MR_PANIC("%s: %s", b->name, e.text);
        if (took < best) best = took;
    }
    report(b->name, best, b->counted);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void bench_npy(const char *name, const char *descr, bool fortran, const unsigned char *data)
{
    size_t width = (size_t)(descr[2] - '0');
    size_t bytes = (size_t)ROWS * COLUMNS * width;
    struct mr_buf file;
    mr_buf_init(&file, bytes + 1024);
    mr_buf_printf(&file, "%cNUMPY%c%c%c%c", 0x93, 1, 0, 118, 0);
    mr_buf_printf(&file, "{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }", descr,
        fortran ? "True" : "False", ROWS, COLUMNS);
    while (file.n < 128)
        mr_buf_add_byte(&file, ' ');
    mr_buf_add(&file, data, bytes);
    run(&(struct bench){
        .name = name, .format = MR_FORMAT_NPY, .bytes = mr_buf_str(&file), .counted = bytes});
    mr_buf_fini(&file);
}

static void bench_bytes(const unsigned char *data, size_t bytes)
{
    unsigned char *to = mr_alloc_aligned(bytes, 64);
    double copy = 1e9;
    double hash = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_s();
        memcpy(to, data, bytes);
        double took = now_s() - start;
        if (took < copy) copy = took;
        sunk += to[bytes / 2];
        start = now_s();
        for (size_t at = 0; at < bytes; at += MR_CHUNK_BYTES)
            sunk += XXH3_64bits(to + at, MR_MIN(bytes - at, MR_CHUNK_BYTES));
        took = now_s() - start;
        if (took < hash) hash = took;
    }
    report("memcpy", copy, bytes);
    report("XXH3 of 1 MiB chunks", hash, bytes);
    mr_release(to);
}

static void bench_check(void)
{
    unsigned char extent[256] __attribute__((aligned(64)));
    (void)mr_tensor_build(extent, MR_DTYPE_F32, 2, (uint64_t[]){4, 8});
    int rounds = 1000000;
    double start = now_s();
    for (int i = 0; i < rounds; i++) {
        struct mr_value v;
        sunk += (uint64_t)(mr_value_check(mr_str_of(extent, sizeof extent), &v, NULL) == MR_OK);
    }
    (void)printf(
        "%-32s %8.1f ns\n", "check of a tensor's header", (now_s() - start) * 1e9 / rounds);
}

static void bench_tensors(void)
{
    size_t bytes = (size_t)ROWS * COLUMNS * 8;
    unsigned char *data = mr_alloc_aligned(bytes, 64);
    struct mr_rng rng;
    mr_rng_init(&rng, 1);
    for (size_t i = 0; i < bytes; i += 8) {
        /* The mask makes numbers that are finite as f32 and f64. */
        uint64_t v = mr_rng_next(&rng) & 0x3fffffff3fffffffu;
        memcpy(data + i, &v, sizeof v);
    }
    bench_bytes(data, bytes / 2);
    bench_check();
    bench_npy("npy in, <f4", "<f4", false, data);
    bench_npy("npy in, >i2", ">i2", false, data);
    bench_npy("npy in, >f4", ">f4", false, data);
    bench_npy("npy in, >f8", ">f8", false, data);
    bench_npy("npy in, |u1 Fortran", "|u1", true, data);
    bench_npy("npy in, <f4 Fortran", "<f4", true, data);
    bench_npy("npy in, <f8 Fortran", "<f8", true, data);

    struct mr_value v = {.kind = MR_VALUE_TENSOR};
    mr_tensor_init(&v.tensor, MR_DTYPE_F32, 2, (uint64_t[]){ROWS, COLUMNS}, data);
    struct bench b = {.name = "idx out, f32", .format = MR_FORMAT_IDX, .value = &v};
    b.counted = mr_tensor_data_bytes(&v.tensor);
    run(&b);
    v.tensor.shape[0] = 512; /* fewer rows, because the texts are long */
    b.counted = (uint64_t)512 * COLUMNS * 4;
    b.format = MR_FORMAT_JSON;
    b.name = "json out, f32 (of elements)";
    run(&b);
    mr_tensor_init(&v.tensor, MR_DTYPE_F64, 2, (uint64_t[]){256, COLUMNS}, data);
    b.name = "json out, f64 (of elements)";
    run(&b);
    mr_tensor_init(&v.tensor, MR_DTYPE_I32, 2, (uint64_t[]){512, COLUMNS}, data);
    b.name = "json out, i32 (of elements)";
    run(&b);
    mr_release(data);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void bench_texts(void)
{
    struct mr_buf csv;
    mr_buf_init(&csv, (size_t)1 << 30);
    struct mr_rng rng;
    mr_rng_init(&rng, 2);
    mr_buf_add_text(&csv, "id,price,name,flag,when\n");
    for (int i = 0; i < TEXT_ROWS; i++)
        mr_buf_printf(&csv, "%d,%.4f,name number %u,%s,2024-01-%02u 12:00:00\n", i,
            (double)mr_rng_below(&rng, 1000000) / 777, (unsigned)mr_rng_below(&rng, 9999),
            i % 3 ? "true" : "false", (unsigned)mr_rng_below(&rng, 28) + 1);
    struct bench b = {
        .name = "csv in", .format = MR_FORMAT_CSV, .bytes = mr_buf_str(&csv), .counted = csv.n};
    run(&b);
    (void)mr_format_import(MR_FORMAT_CSV, b.bytes, NULL, &allocator, NULL);
    struct mr_value v;
    struct mr_value_header h;
    memcpy(&h, result.memory, sizeof h);
    int err = mr_value_check(mr_str_of(result.memory, h.nbytes), &v, NULL);
    mr_assert(!err);
    b.value = &v;
    b.name = "csv out";
    run(&b);
    struct mr_buf json;
    mr_buf_init(&json, (size_t)1 << 30);
    err = mr_format_export(&v, MR_FORMAT_JSON, NULL, mr_sink_to_buf(&json), NULL);
    mr_assert(!err);
    b = (struct bench){.name = "json out, table (of text)",
        .format = MR_FORMAT_JSON,
        .value = &v,
        .counted = json.n};
    run(&b);
    b = (struct bench){
        .name = "json in", .format = MR_FORMAT_JSON, .bytes = mr_buf_str(&json), .counted = json.n};
    run(&b);
    mr_buf_fini(&csv);
    mr_buf_fini(&json);
}

int main(int argc, char **argv)
{
    filter = argc > 1 ? argv[1] : NULL;
    bench_tensors();
    bench_texts();
    mr_release(result.memory);
    return sunk == 0;
}
