/* Objects.List over HTTP goes through all object stores, one after the other: a page token says
 * which store is meant, "2~token of that store". Pure. */
#pragma once

#include "base/buf.h"
#include "millrace/v1/objects.pb-c.h"

/* Takes the store off the token in a packed request, appending what the store itself is to see.
 * A token without a store begins with the first. */
uint32_t mr_pages_begin(struct mr_buf *request);

/* Puts the store into the answer's token; at the end of one store the next begins. `text` holds the
 * token as long as the message is used. */
void mr_pages_next(Millrace__V1__ListObjectsResponse *page, uint32_t store, uint32_t stores_count,
    struct mr_buf *text);
