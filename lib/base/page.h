/* Pages of lists that are sorted by name. A page token is "~" followed by the last name of the
 * previous page. So a token needs no state in any process. Rows that are added or removed between
 * two requests do not shift the next page. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

#define MR_PAGE_ROWS_MAX 1000u

struct mr_page {
    uint32_t rows_max;   /* rows on one page, 1 to MR_PAGE_ROWS_MAX */
    struct mr_str after; /* the page begins after this name, borrowed; "": the first page */
};

/* Reads the page that a request asks for into `*out`. A page_size of 0 means `rows_init` rows.
 * MR_EINVAL: a field is wrong; the sentence in `e` names the field and what is allowed. */
int mr_page_read(uint32_t page_size, const char *page_token, uint32_t rows_init,
    struct mr_page *out, struct mr_error *e);

/* True: a row of this name is on the page or on a later page. False: on an earlier page. */
bool mr_page_has(const struct mr_page *p, const char *name);
/* Returns the token of the page that follows a page with the last name `last`. The caller frees the
 * token with mr_release. */
char *mr_page_token(const char *last);
