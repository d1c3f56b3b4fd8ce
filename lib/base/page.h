/* Pages of lists that stand in the order of their names. A page token is "~" and the last name of
 * the page before, so it outlives every process, and what comes or goes meanwhile moves no row. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

#define MR_PAGE_ROWS_MAX 1000u

struct mr_page {
    uint32_t rows_max;   /* 1 to MR_PAGE_ROWS_MAX */
    struct mr_str after; /* the page begins after this name, borrowed; "": with the first */
};

/* What a request asks for; a size of 0 is `rows_init`. MR_EINVAL names the field and its bounds. */
int mr_page_read(uint32_t page_size, const char *page_token, uint32_t rows_init,
    struct mr_page *out, struct mr_error *e);

/* Does a row of this name stand on the page, or on one after it? */
bool mr_page_has(const struct mr_page *p, const char *name);
char *mr_page_token(const char *last); /* mr_release */
