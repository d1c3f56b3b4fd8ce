/* Parses requests of reflection, looks names up, and encodes the answers. */
#include "rpc/server/reflection_answer.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"

#define ANSWER_BYTES_MAX MR_MESSAGE_BYTES_MAX

enum { /* fields of ServerReflectionRequest */
    ASK_HOST = 1,
    ASK_FILE = 3,
    ASK_SYMBOL = 4,
    ASK_EXTENSION = 5,
    ASK_EXTENSION_NUMBERS = 6,
    ASK_SERVICES = 7,
};

enum { /* fields of ServerReflectionResponse */
    SAY_HOST = 1,
    SAY_REQUEST = 2,
    SAY_FILES = 4,
    SAY_EXTENSION_NUMBERS = 5,
    SAY_SERVICES = 6,
    SAY_ERROR = 7,
};

struct question {
    uint32_t kind; /* number of the field that is set; 0: none */
    struct mr_str host;
    struct mr_str text;
};

static int parse(struct mr_str bytes, struct question *q)
{
    *q = (struct question){0};
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    struct mr_protowire_field f;
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f)) {
        if (f.type != MR_PROTOWIRE_BYTES) continue;
        if (f.number == ASK_HOST) q->host = f.bytes;
        if (f.number < ASK_FILE || f.number > ASK_SERVICES) continue;
        q->kind = f.number;
        q->text = f.bytes;
    }
    return err == MR_ENOENT ? MR_OK : err;
}

static void say_error(struct mr_buf *out, int code, struct mr_str words, struct mr_str about)
{
    struct mr_buf b;
    mr_buf_init(&b, ANSWER_BYTES_MAX);
    mr_protowire_add_varint(&b, 1, (uint64_t)mr_err_grpc(code));
    struct mr_error e;
    (void)mr_fail(&e, code, "%.*s \"%.*s\"", MR_STR_ARG(words), MR_STR_ARG(about));
    mr_protowire_add_bytes(&b, 2, mr_str(e.text));
    mr_protowire_add_bytes(out, SAY_ERROR, mr_buf_str(&b));
    mr_buf_fini(&b);
}

/* Appends the file and all files that it imports (field 3 of a file's descriptor), so that clients
 * need no second request. */
static void say_file(struct mr_buf *out, const struct mr_descriptors *d, uint32_t file)
{
    struct mr_buf b;
    mr_buf_init(&b, ANSWER_BYTES_MAX);
    MR_AUTO(mr_free_ptr) bool *seen = mr_alloc_array(d->files_count, sizeof *seen);
    MR_AUTO(mr_free_ptr) uint32_t *todo = mr_alloc_array(d->files_count, sizeof *todo);
    uint32_t todo_count = 1;
    todo[0] = file;
    seen[file] = true;
    for (uint32_t i = 0; i < todo_count; i++) {
        struct mr_str bytes = d->files[todo[i]].bytes;
        mr_protowire_add_bytes(&b, 1, bytes);
        struct mr_protowire_reader r = mr_protowire_read(bytes);
        struct mr_protowire_field f;
        while (!mr_protowire_next(&r, &f)) {
            if (f.number != 3 || f.type != MR_PROTOWIRE_BYTES) continue;
            uint32_t import = mr_descriptors_file(d, f.bytes);
            if (import == MR_INDEX_NONE || seen[import]) continue;
            seen[import] = true;
            todo[todo_count++] = import;
        }
    }
    mr_protowire_add_bytes(out, SAY_FILES, mr_buf_str(&b));
    mr_buf_fini(&b);
}

static void say_extension_file(
    struct mr_buf *out, const struct mr_descriptors *d, struct mr_str request)
{
    struct mr_str type = {0};
    uint64_t number = 0;
    struct mr_protowire_reader r = mr_protowire_read(request);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f)) {
        if (f.number == 1 && f.type == MR_PROTOWIRE_BYTES) type = f.bytes;
        if (f.number == 2 && f.type == MR_PROTOWIRE_VARINT) number = f.value;
    }
    uint32_t file = mr_descriptors_extension_file(d, type, (uint32_t)number);
    if (file == MR_INDEX_NONE)
        say_error(out, MR_ENOENT, MR_STR("no such extension of"), type);
    else
        say_file(out, d, file);
}

static void say_extension_numbers(
    struct mr_buf *out, const struct mr_descriptors *d, struct mr_str type)
{
    if (mr_descriptors_symbol_file(d, type) == MR_INDEX_NONE) {
        say_error(out, MR_ENOENT, MR_STR("unknown type"), type);
        return;
    }
    struct mr_buf b;
    mr_buf_init(&b, ANSWER_BYTES_MAX);
    mr_protowire_add_bytes(&b, 1, type);
    for (uint32_t i = 0; i < d->extensions_count; i++)
        if (mr_str_eq(mr_str(d->extensions[i].extendee), type))
            mr_protowire_add_varint(&b, 2, d->extensions[i].number);
    mr_protowire_add_bytes(out, SAY_EXTENSION_NUMBERS, mr_buf_str(&b));
    mr_buf_fini(&b);
}

/* Appends the names of the services of this server, which may be fewer than those in the
 * descriptors. */
static void say_services(struct mr_buf *out, const struct mr_str *services, size_t services_count)
{
    struct mr_buf b;
    mr_buf_init(&b, ANSWER_BYTES_MAX);
    for (size_t i = 0; i < services_count; i++) {
        struct mr_buf one;
        mr_buf_init(&one, ANSWER_BYTES_MAX);
        mr_protowire_add_bytes(&one, 1, services[i]);
        mr_protowire_add_bytes(&b, 1, mr_buf_str(&one));
        mr_buf_fini(&one);
    }
    mr_protowire_add_bytes(out, SAY_SERVICES, mr_buf_str(&b));
    mr_buf_fini(&b);
}

static void answer(const struct mr_descriptors *d, const struct mr_str *services,
    size_t services_count, const struct question *q, struct mr_buf *out)
{
    uint32_t file = MR_INDEX_NONE;
    switch (q->kind) {
    case ASK_FILE: file = mr_descriptors_file(d, q->text); break;
    case ASK_SYMBOL: file = mr_descriptors_symbol_file(d, q->text); break;
    case ASK_EXTENSION: say_extension_file(out, d, q->text); return;
    case ASK_EXTENSION_NUMBERS: say_extension_numbers(out, d, q->text); return;
    case ASK_SERVICES: say_services(out, services, services_count); return;
    default: say_error(out, MR_EINVAL, MR_STR("unknown question"), MR_STR("")); return;
    }
    if (file == MR_INDEX_NONE)
        say_error(out, MR_ENOENT,
            q->kind == ASK_FILE ? MR_STR("unknown file") : MR_STR("unknown symbol"), q->text);
    else
        say_file(out, d, file);
}

int mr_reflection_answer(const struct mr_descriptors *d, const struct mr_str *services,
    size_t services_count, struct mr_str bytes, struct mr_buf *out)
{
    struct question q;
    int err = parse(bytes, &q);
    if (err) return err;
    mr_protowire_add_bytes(out, SAY_HOST, q.host);
    mr_protowire_add_bytes(out, SAY_REQUEST, bytes);
    answer(d, services, services_count, &q, out);
    return mr_buf_status(out);
}
