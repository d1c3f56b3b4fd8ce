/* Reads single fields. Each error names the path of the field. This file knows none of the
 * document's fields. */
#include "services/trainer/document/reader.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define VALUE_TEXT_MAX 64 /* limit of the part of a value that an error text shows, in bytes */

void mr_doc_refuse(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, const char *fmt, ...)
{
    if (r->err) return;
    char words[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    const char *dot = p->path[0] && field[0] ? "." : "";
    r->err = mr_fail(r->e, MR_EINVAL, "%s%s%s: %s", p->path, dot, field, words);
}

/* Writes the field's value as JSON, shortened, for an error text. */
static void value_text(yyjson_mut_val *v, char *out, size_t bytes)
{
    size_t n = 0;
    char *json = yyjson_mut_val_write(v, 0, &n);
    mr_utf8_printable(json ? json : "?", json ? n : 1, out, bytes);
    free(json); /* yyjson has allocated the text */
}

static bool is_among(const char *words, const char *name, size_t n)
{
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && !memcmp(p, name, n)) return true;
        p += len + (p[len] != 0);
    }
    return false;
}

void mr_doc_known(struct mr_doc_read *r, const struct mr_doc_part *p, const char *known)
{
    yyjson_mut_obj_iter it;
    if (!yyjson_mut_obj_iter_init(p->at, &it)) return;
    for (yyjson_mut_val *key; (key = yyjson_mut_obj_iter_next(&it)) && !r->err;) {
        const char *name = yyjson_mut_get_str(key);
        size_t n = yyjson_mut_get_len(key);
        char shown[80];
        mr_utf8_printable(name, n, shown, sizeof shown);
        if (!is_among(known, name, n))
            mr_doc_refuse(r, p, shown, "unknown field; known are %s", known);
        else if (yyjson_mut_obj_getn(p->at, name, n) != yyjson_mut_obj_iter_get_val(key))
            mr_doc_refuse(r, p, shown, "given twice");
    }
}

yyjson_mut_val *mr_doc_field(const struct mr_doc_part *p, const char *field)
{
    return p->at ? yyjson_mut_obj_get(p->at, field) : NULL;
}

struct mr_doc_part mr_doc_object(struct mr_doc_read *r, const struct mr_doc_part *of,
    const char *field, const char *path, const char *known, bool make)
{
    struct mr_doc_part p = {mr_doc_field(of, field), path};
    if (!p.at && make && of->at) {
        p.at = yyjson_mut_obj(r->doc);
        (void)yyjson_mut_obj_add_val(r->doc, of->at, field, p.at);
    }
    if (p.at && !yyjson_mut_is_obj(p.at)) {
        mr_doc_refuse(r, of, field, "expected an object with %s", known);
        p.at = NULL;
    }
    if (p.at) mr_doc_known(r, &p, known);
    return p;
}

uint64_t mr_doc_uint(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    uint64_t fallback, uint64_t least, uint64_t most)
{
    yyjson_mut_val *v = mr_doc_field(p, field);
    if (!v) {
        /* if p->at is NULL, yyjson adds nothing */
        (void)yyjson_mut_obj_add_uint(r->doc, p->at, field, fallback);
        return fallback;
    }
    uint64_t n = yyjson_mut_get_uint(v);
    if (yyjson_mut_is_uint(v) && n >= least && n <= most) return n;
    char got[VALUE_TEXT_MAX];
    value_text(v, got, sizeof got);
    mr_doc_refuse(r, p, field, "expected a whole number from %llu to %llu, got %s",
        (unsigned long long)least, (unsigned long long)most, got);
    return fallback;
}

double mr_doc_number(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    double fallback, double least, double most)
{
    yyjson_mut_val *v = mr_doc_field(p, field);
    if (!v) {
        if (!isnan(fallback)) (void)yyjson_mut_obj_add_real(r->doc, p->at, field, fallback);
        return fallback;
    }
    double n = yyjson_mut_get_num(v);
    if (yyjson_mut_is_num(v) && n >= least && n <= most) return n;
    char got[VALUE_TEXT_MAX];
    value_text(v, got, sizeof got);
    mr_doc_refuse(r, p, field, "expected a number from %g to %g, got %s", least, most, got);
    return fallback;
}

void mr_doc_bool(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, bool fallback)
{
    yyjson_mut_val *v = mr_doc_field(p, field);
    if (!v) (void)yyjson_mut_obj_add_bool(r->doc, p->at, field, fallback);
    if (v && !yyjson_mut_is_bool(v)) mr_doc_refuse(r, p, field, "expected true or false");
}

static struct mr_str text_of(yyjson_mut_val *v)
{
    return mr_str_of(yyjson_mut_get_str(v), yyjson_mut_get_len(v));
}

struct mr_str mr_doc_text(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    const char *fallback, size_t bytes_max)
{
    yyjson_mut_val *v = mr_doc_field(p, field);
    if (!v && fallback) {
        if (!fallback[0] || !p->at) return (struct mr_str){0};
        v = yyjson_mut_strcpy(r->doc, fallback);
        (void)yyjson_mut_obj_add_val(r->doc, p->at, field, v);
    }
    if (v && yyjson_mut_is_str(v) && mr_utf8_is_key(text_of(v), bytes_max)) return text_of(v);
    mr_doc_refuse(
        r, p, field, "expected a text of 1 to %zu bytes without control characters", bytes_max);
    return (struct mr_str){0};
}

void mr_doc_texts(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, size_t most)
{
    yyjson_mut_val *list = mr_doc_field(p, field);
    if (!list) return;
    size_t n = yyjson_mut_arr_size(list);
    bool good = yyjson_mut_is_arr(list) && n && n <= most;
    yyjson_mut_arr_iter it;
    (void)yyjson_mut_arr_iter_init(list, &it);
    while (good && yyjson_mut_arr_iter_has_next(&it)) {
        yyjson_mut_val *v = yyjson_mut_arr_iter_next(&it);
        good = yyjson_mut_is_str(v) && !memchr(yyjson_mut_get_str(v), 0, yyjson_mut_get_len(v));
    }
    if (!good) mr_doc_refuse(r, p, field, "expected a list of 1 to %zu texts", most);
}

uint32_t mr_doc_word(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, const char *words)
{
    yyjson_mut_val *v = mr_doc_field(p, field);
    if (!v) {
        (void)yyjson_mut_obj_add_strncpy(r->doc, p->at, field, words, strcspn(words, " "));
        return 0;
    }
    uint32_t i = 0;
    for (const char *w = words; *w && yyjson_mut_is_str(v); i++) {
        size_t len = strcspn(w, " ");
        if (yyjson_mut_equals_strn(v, w, len)) return i;
        w += len + (w[len] != 0);
    }
    mr_doc_refuse(r, p, field, "expected one of %s", words);
    return 0;
}
