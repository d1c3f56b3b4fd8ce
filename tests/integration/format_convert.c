/* Converts one value from a format to another, from standard input to standard output, for tests
 * that compare our formats with other programs: format_convert FROM TO [option=value …]. On an
 * error, writes to standard error and exits with status 1. */
#include "base/alloc.h"
#include "store/object/format/format.h"
#include "store/object/value_text.h"

#include <stdio.h>

static int fail(const char *what, const struct mr_error *e)
{
    (void)fprintf(stderr, "format_convert: %s: %s\n", what, e->text);
    return 1;
}

static void read_all(FILE *f, struct mr_buf *out)
{
    size_t got = 0;
    do {
        size_t step = (size_t)1 << 20;
        void *at = mr_buf_extend(out, step);
        got = at ? fread(at, 1, step, f) : 0;
        out->n -= step - got;
    } while (got);
}

static int write_out(void *ctx, const void *p, size_t n)
{
    return fwrite(p, 1, n, ctx) == n ? MR_OK : MR_EIO;
}

static int convert(enum mr_format from, enum mr_format to, const struct mr_format_options *o,
    struct mr_str in, void **extent)
{
    struct mr_error e = {0};
    struct mr_value_alloc a = {mr_value_heap_alloc, extent};
    if (mr_format_import(from, in, o, &a, &e)) return fail("import", &e);
    struct mr_value_header h;
    memcpy(&h, *extent, sizeof h);
    struct mr_value v;
    if (mr_value_check_deep(mr_str_of(*extent, h.nbytes), &v, &e)) return fail("check", &e);
    char text[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, text);
    (void)fprintf(stderr, "%s\n", text);
    if (mr_format_export(&v, to, o, (struct mr_sink){write_out, stdout}, &e))
        return fail("export", &e);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct mr_error e = {0};
    enum mr_format from = MR_FORMAT_VALUE;
    enum mr_format to = MR_FORMAT_VALUE;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: format_convert FROM TO [option=value ...]\n");
        return 2;
    }
    if (mr_format_find(mr_str(argv[1]), &from, &e)) return fail("first argument", &e);
    if (mr_format_find(mr_str(argv[2]), &to, &e)) return fail("second argument", &e);
    struct mr_format_options o = {0};
    for (int i = 3; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        struct mr_str name = mr_str(argv[i]);
        if (equals) name.n = (size_t)(equals - argv[i]);
        if (mr_format_option(&o, name, mr_str(equals ? equals + 1 : ""), &e))
            return fail("option", &e);
    }
    struct mr_buf in;
    mr_buf_init(&in, (size_t)1 << 33);
    read_all(stdin, &in);
    void *extent = NULL;
    int status = convert(from, to, &o, mr_buf_str(&in), &extent);
    mr_release(extent);
    mr_buf_fini(&in);
    return status;
}
