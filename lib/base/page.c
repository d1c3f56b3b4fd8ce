/* Page tokens of lists, and the test whether a row belongs to a page or comes before it. */
#include "base/page.h"

#include "base/alloc.h"

#include <string.h>

int mr_page_read(uint32_t page_size, const char *page_token, uint32_t rows_init,
    struct mr_page *out, struct mr_error *e)
{
    if (page_size > MR_PAGE_ROWS_MAX)
        return mr_fail(e, MR_EINVAL, "page_size: %u is not within 0 to %u (0: %u)", page_size,
            MR_PAGE_ROWS_MAX, rows_init);
    if (page_token[0] && (page_token[0] != '~' || !page_token[1]))
        return mr_fail(
            e, MR_EINVAL, "page_token: \"%.64s\" is not from an earlier answer", page_token);
    out->rows_max = page_size ? page_size : rows_init;
    out->after = mr_str(page_token[0] ? page_token + 1 : "");
    return MR_OK;
}

bool mr_page_has(const struct mr_page *p, const char *name)
{
    /* `after` points to a text that ends with a NUL, since mr_page_read makes it from a C
     * string. */
    return !p->after.n || strcmp(name, p->after.p) > 0;
}

char *mr_page_token(const char *last)
{
    return mr_format("~%s", last);
}
