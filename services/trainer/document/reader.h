/* Fields of a document, one after another: checked, and given their default when they are not there
 * (so that the JSON becomes the canonical one). Private to document*.c. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <yyjson.h>

struct mr_doc_read {
    yyjson_mut_doc *doc;
    struct mr_error *e;
    int err; /* the first one; after it nothing is read any more */
};

/* An object of the document and its path; at == NULL: it is not there. */
struct mr_doc_part {
    yyjson_mut_val *at;
    const char *path; /* "" for the whole */
};

int mr_doc_refuse(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    const char *fmt, ...) MR_PRINTF(4, 5);
/* The object `field` of `of`. `known`: its fields, separated by blanks; others are refused.
 * `make`: an empty one is added when it is not there. `path` is to be a literal. */
struct mr_doc_part mr_doc_object(struct mr_doc_read *r, const struct mr_doc_part *of,
    const char *field, const char *path, const char *known, bool make);
void mr_doc_known(struct mr_doc_read *r, const struct mr_doc_part *p, const char *known);
yyjson_mut_val *mr_doc_field(const struct mr_doc_part *p, const char *field);

/* Without a field, the default, which is added to the JSON. */
uint64_t mr_doc_uint(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    uint64_t fallback, uint64_t least, uint64_t most);
double mr_doc_number(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    double fallback, double least, double most);
bool mr_doc_bool(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, bool fallback);
/* 1 to bytes_max bytes, no control characters. `fallback` may be NULL: required; "": left out, and
 * n = 0 is returned. */
struct mr_str mr_doc_text(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    const char *fallback, size_t bytes_max);
/* A list of 1 to `most` texts; absent is fine. */
void mr_doc_texts(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, size_t most);
/* Which of the words (separated by blanks) it is; the first is the default. */
uint32_t mr_doc_word(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, const char *words);
