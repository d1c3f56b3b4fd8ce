/* Replies of Redis. A reply belongs to the connection unless it is taken. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_reply;

enum mr_reply_type { MR_REPLY_NIL, MR_REPLY_INT, MR_REPLY_TEXT, MR_REPLY_LIST, MR_REPLY_ERROR };

enum mr_reply_type mr_reply_type(const struct mr_reply *r);
int64_t mr_reply_int(const struct mr_reply *r); /* 0 if the reply's type is not INT */
/* Returns the text of a reply of type TEXT or ERROR, borrowed from `r`; empty for other types. */
struct mr_str mr_reply_text(const struct mr_reply *r);
size_t mr_reply_count(const struct mr_reply *r); /* returns the number of items of a LIST; 0 for
                                                  * other types */
const struct mr_reply *mr_reply_at(const struct mr_reply *r, size_t i);
/* To be called in a reply's callback: the caller takes the whole reply and may free it on any
 * thread. */
struct mr_reply *mr_reply_take(const struct mr_reply *r);
/* True: the reply is an error that says that Redis cannot serve now. */
bool mr_reply_is_away(const struct mr_reply *r);
/* Frees a reply of mr_redis_call or mr_reply_take. */
void mr_reply_free(struct mr_reply **r);
