/* Reads the fields of a document: checks each field and adds the default of a missing one to the
 * JSON. So the JSON becomes canonical. Private to this folder. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <yyjson.h>

struct mr_doc_read {
    yyjson_mut_doc *doc;
    struct mr_error *e;
    int err; /* the first error; fields after it are not checked */
};

/* An object of the document and its path. at = NULL: the object is missing. */
struct mr_doc_part {
    yyjson_mut_val *at;
    const char *path; /* "" for the whole document */
};

/* Refuses the document because of a field, unless it was refused before. */
void mr_doc_refuse(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    const char *fmt, ...) MR_PRINTF(4, 5);
/* Returns the object `field` of `of`. `known`: names of its fields, separated by blanks; other
 * fields are refused. `make`: if the object is missing, an empty one is added to the JSON. `path`
 * must be a literal. */
struct mr_doc_part mr_doc_object(struct mr_doc_read *r, const struct mr_doc_part *of,
    const char *field, const char *path, const char *known, bool make);
void mr_doc_known(struct mr_doc_read *r, const struct mr_doc_part *p, const char *known);
yyjson_mut_val *mr_doc_field(const struct mr_doc_part *p, const char *field);

/* Returns the field's value. A missing field gets the default `fallback`, which is added to the
 * JSON. The same holds for mr_doc_number. */
uint64_t mr_doc_uint(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    uint64_t fallback, uint64_t least, uint64_t most);
double mr_doc_number(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    double fallback, double least, double most);
/* Checks a field that is true or false, and adds the default of a missing one to the JSON. */
void mr_doc_bool(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, bool fallback);
/* Returns a text of 1 to bytes_max bytes without control characters. `fallback` NULL: the field is
 * required. `fallback` "": a missing field stays missing, and n = 0 is returned. */
struct mr_str mr_doc_text(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    const char *fallback, size_t bytes_max);
/* Checks a list of 1 to `most` texts. The field may be missing. */
void mr_doc_texts(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, size_t most);
/* Returns the index of the field's text among `words`, which are separated by blanks. The first
 * word is the default. Any other text is an error of the document. */
uint32_t mr_doc_word(
    struct mr_doc_read *r, const struct mr_doc_part *p, const char *field, const char *words);
