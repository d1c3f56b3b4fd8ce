/* Writes {"results": {"z": 3}, "places": {…}, "errors": {…}}. */
#include "gateway/http/collect.h"

#include "gateway/json/json_out.h"
#include "gateway/json/status.h"
#include "store/object/format/json.h"

void mr_collect_init(struct mr_collect *c)
{
    *c = (struct mr_collect){.results_count = 0};
    mr_buf_init(&c->places, MR_COLLECT_REST_BYTES_MAX);
    mr_buf_init(&c->errors, MR_COLLECT_REST_BYTES_MAX);
}

void mr_collect_fini(struct mr_collect *c)
{
    mr_buf_fini(&c->places);
    mr_buf_fini(&c->errors);
}

void mr_collect_begin(struct mr_buf *out)
{
    mr_buf_add_text(out, "{\"results\":{");
}

static void member(struct mr_buf *out, const char *key, bool first)
{
    if (!first) mr_buf_add_byte(out, ',');
    mr_json_text(out, mr_str(key));
    mr_buf_add_byte(out, ':');
}

/* Writes the value of a row. False: the message does not have the value. `at` is the offset in
 * `packs` of the row's pack, a value in MessagePack. */
static bool add_value(
    const Millrace__V1__ResultItem *item, size_t row, size_t at, bool first, struct mr_buf *out)
{
    if (row < item->n_json && item->json[row][0]) {
        member(out, item->keys[row], first);
        mr_buf_add_text(out, item->json[row]);
        return true;
    }
    uint32_t n = row < item->n_pack_bytes ? item->pack_bytes[row] : 0;
    if (!n || n > item->packs.len || at > item->packs.len - n) return false;
    member(out, item->keys[row], first);
    size_t before = out->n;
    if (!mr_json_from_pack(mr_str_of(item->packs.data + at, n), out, NULL)) return true;
    out->n = before;
    mr_buf_add_text(out, "null");
    return true;
}

static void add_places(struct mr_collect *c, const Millrace__V1__ResultItem *item)
{
    for (size_t i = 0; i < item->n_places; i++) {
        const Millrace__V1__ValuePlace *p = item->places[i];
        if (p->row >= item->n_keys) continue;
        member(&c->places, item->keys[p->row], c->places.n == 0);
        (void)mr_json_from_message(&p->base, &c->places);
    }
    for (size_t i = 0; i < item->n_errors; i++) {
        const Millrace__V1__ResultError *r = item->errors[i];
        if (r->row >= item->n_keys) continue;
        member(&c->errors, item->keys[r->row], c->errors.n == 0);
        mr_status_json(r->code, mr_str(r->message), mr_str_of(NULL, 0), &c->errors);
    }
}

void mr_collect_add(struct mr_collect *c, const Millrace__V1__ResultItem *item, struct mr_buf *out)
{
    size_t at = 0;
    for (size_t row = 0; row < item->n_keys; row++) {
        if (add_value(item, row, at, c->results_count == 0, out)) c->results_count++;
        if (row < item->n_pack_bytes) at += item->pack_bytes[row];
    }
    add_places(c, item);
}

void mr_collect_end(struct mr_collect *c, struct mr_str status, struct mr_buf *out)
{
    mr_buf_add_text(out, "},\"places\":{");
    mr_buf_add_str(out, mr_buf_str(&c->places));
    mr_buf_add_text(out, "},\"errors\":{");
    mr_buf_add_str(out, mr_buf_str(&c->errors));
    mr_buf_add_byte(out, '}');
    if (status.n) {
        mr_buf_add_text(out, ",\"error\":");
        mr_buf_add_str(out, status);
    }
    mr_buf_add_byte(out, '}');
}

void mr_collect_one(const Millrace__V1__ResultItem *item, struct mr_buf *out)
{
    struct mr_collect c;
    mr_collect_init(&c);
    mr_collect_begin(out);
    mr_collect_add(&c, item, out);
    mr_collect_end(&c, mr_str_of(NULL, 0), out);
    mr_collect_fini(&c);
}
