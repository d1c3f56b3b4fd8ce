/* Reads and replaces the page token in the messages of Objects.List. */
#include "gateway/http/pages.h"

#include "base/protowire.h"

#include <inttypes.h>

#define TOKEN_FIELD 2 /* number of the field ListObjectsRequest.page_token */
#define STORE_DIGITS_MAX 4

uint32_t mr_pages_begin(struct mr_buf *request)
{
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(request));
    struct mr_protowire_field f;
    struct mr_str token = mr_str_of("", 0);
    while (!mr_protowire_next(&r, &f))
        if (f.number == TOKEN_FIELD && f.type == MR_PROTOWIRE_BYTES) token = f.bytes;

    uint32_t store = 0;
    size_t n = 0;
    while (n < token.n && n < STORE_DIGITS_MAX && token.p[n] >= '0' && token.p[n] <= '9')
        store = store * 10 + (uint32_t)(token.p[n++] - '0');
    if (n == 0 || n == token.n || token.p[n] != '~') return 0;

    struct mr_buf rest; /* a copy, because appending may move the request's memory */
    mr_buf_init(&rest, token.n);
    mr_buf_add(&rest, token.p + n + 1, token.n - n - 1);
    /* The field is appended again, because the last of several values counts. */
    mr_protowire_add_bytes(request, TOKEN_FIELD, mr_buf_str(&rest));
    mr_buf_fini(&rest);
    return store;
}

void mr_pages_next(Millrace__V1__ListObjectsResponse *page, uint32_t store, uint32_t stores_count,
    struct mr_buf *text)
{
    bool is_last = page->next_page_token[0] == 0;
    if (stores_count < 2 || (is_last && store + 1 >= stores_count)) return;
    if (is_last)
        mr_buf_printf(text, "%" PRIu32 "~", store + 1);
    else
        mr_buf_printf(text, "%" PRIu32 "~%s", store, page->next_page_token);
    mr_buf_add_byte(text, 0);
    page->next_page_token = (char *)text->p;
}
