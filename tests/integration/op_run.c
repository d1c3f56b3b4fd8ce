/* mr-op-run: runs operators for a test in another language. The program reads requests from its
 * input and writes answers to its output, in the same order. Numbers are u32, little endian. The
 * length in bytes stands before the name of the operator, the arguments, and the bytes of an input
 * or an answer.
 *
 *   request: operator, arguments (a pack), count of inputs; each input: kind, bytes
 *            kinds: 'p' pack, 'n' npy, 'e' extent
 *   answer:  code (i32), kind, bytes
 *            kinds: 'p' pack, 'e' extent, 'i' number of an input (u32), 'x' error text
 *
 *   mr-op-run [--plugin LIBRARY] [--data-root DIR] [--list '']
 *
 * With --list, prints the names of the operators and ends. */
#include "support/op_host.h"

#include "base/alloc.h"
#include "store/object/format/npy.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUTS_MAX 4096

static bool read_all(void *p, size_t n)
{
    return fread(p, 1, n, stdin) == n;
}

static bool read_u32(uint32_t *out)
{
    return read_all(out, sizeof *out);
}

static bool read_blob(struct mr_str *out)
{
    uint32_t n = 0;
    if (!read_u32(&n)) return false;
    char *p = mr_alloc(n + 1);
    *out = mr_str_of(p, n);
    return read_all(p, n);
}

static bool read_input(struct mr_op_input *in, void **extent)
{
    char kind = 0;
    struct mr_str blob = {0};
    *in = (struct mr_op_input){0};
    if (!read_all(&kind, 1) || !read_blob(&blob)) return false;
    *extent = (void *)(uintptr_t)blob.p;
    if (kind == 'p') {
        in->pack = blob;
        return true;
    }
    if (kind == 'e') {
        *extent = mr_alloc_aligned(blob.n, 64);
        memcpy(*extent, blob.p, blob.n);
        mr_release((void *)(uintptr_t)blob.p);
        in->extent = mr_str_of(*extent, blob.n);
        return true;
    }
    void *made = NULL;
    struct mr_value_alloc a = {.alloc = mr_value_heap_alloc, .ctx = &made};
    struct mr_error e = {0};
    struct mr_value v;
    if (mr_npy_import(blob, &a, &e)) {
        (void)fprintf(stderr, "%s\n", e.text);
        return false;
    }
    mr_release(*extent);
    *extent = made;
    const struct mr_value_header *h = made;
    in->extent = mr_str_of(made, (size_t)h->nbytes);
    return mr_value_check(in->extent, &v, &e) == MR_OK;
}

static void answer(int code, char kind, struct mr_str bytes)
{
    uint32_t n = (uint32_t)bytes.n;
    (void)fwrite(&code, 1, sizeof code, stdout);
    (void)fwrite(&kind, 1, 1, stdout);
    (void)fwrite(&n, 1, sizeof n, stdout);
    (void)fwrite(bytes.p, 1, bytes.n, stdout);
    (void)fflush(stdout);
}

static void answer_result(const struct mr_op_result *r)
{
    if (r->kind == MR_OP_RESULT_PACK) answer(0, 'p', r->pack);
    if (r->kind == MR_OP_RESULT_EXTENT) answer(0, 'e', r->extent);
    if (r->kind == MR_OP_RESULT_INPUT) answer(0, 'i', mr_str_of(&r->input, sizeof r->input));
}

static bool serve_one(struct op_host *h)
{
    static struct mr_op_input inputs[INPUTS_MAX];
    static void *memory[INPUTS_MAX];
    struct mr_str op;
    struct mr_str args;
    uint32_t count = 0;
    if (!read_blob(&op)) return false;
    if (!read_blob(&args) || !read_u32(&count) || count > INPUTS_MAX) return false;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++)
        ok = read_input(&inputs[i], &memory[i]);
    struct mr_op_result r = {0};
    struct mr_error e = {0};
    if (ok) {
        int err = op_host_call(h, op.p, args, inputs, count, &r, &e);
        if (err)
            answer(err, 'x', mr_str(e.text));
        else
            answer_result(&r);
    }
    for (uint32_t i = 0; i < count && ok; i++)
        mr_release(memory[i]);
    mr_release((void *)(uintptr_t)op.p);
    mr_release((void *)(uintptr_t)args.p);
    return ok;
}

static void list_ops(const struct op_host *h)
{
    for (uint32_t i = 0; i < mr_registry_count(h->registry); i++)
        (void)printf("%s\n", mr_registry_at(h->registry, i)->name);
}

int main(int argc, char **argv)
{
    struct op_host h;
    struct mr_error e = {0};
    op_host_init(&h);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--list") == 0) {
            list_ops(&h);
            op_host_fini(&h);
            return EXIT_SUCCESS;
        }
        int err = strcmp(argv[i], "--plugin") == 0
                      ? mr_registry_load_plugin(h.registry, argv[i + 1], &e)
                      : mr_roots_add(&h.roots, argv[i + 1], &e);
        if (!err) continue;
        (void)fprintf(stderr, "%s\n", e.text);
        op_host_fini(&h);
        return EXIT_FAILURE;
    }
    while (serve_one(&h)) {
    }
    op_host_fini(&h);
    return EXIT_SUCCESS;
}
