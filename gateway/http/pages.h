/* Page tokens of Objects.List over HTTP. The gateway asks one object store after the other, so a
 * token names a store and has the store's own token: "2~TOKEN". No I/O. */
#pragma once

#include "base/buf.h"
#include "millrace/v1/objects.pb-c.h"

/* Returns the number of the store that the request's page token names; 0 if it names none. Appends
 * the store's own token to the request, which is in wire format. */
uint32_t mr_pages_begin(struct mr_buf *request);

/* Puts the number of the store to ask next in front of `page->next_page_token`, the own token of
 * `store`. While `store` has more pages, the next store to ask is `store` itself; else it is
 * store + 1. After the last page of the last store the token stays empty. With fewer than two
 * stores the token does not change. `text` holds the new token and has to outlive the use of
 * `page`. */
void mr_pages_next(Millrace__V1__ListObjectsResponse *page, uint32_t store, uint32_t stores_count,
    struct mr_buf *text);
