/* A bounded buffer of lines under one lock (tail.h). */
#include "host/tail.h"

#include "base/assert.h"

#include <string.h>

void mr_tail_init(struct mr_tail *t, size_t bytes_max)
{
    *t = (struct mr_tail){.bytes_max = bytes_max};
    int failed = pthread_mutex_init(&t->lock, NULL);
    mr_assert(!failed);
    mr_buf_init(&t->text, bytes_max * 2);
}

void mr_tail_fini(struct mr_tail *t)
{
    mr_buf_fini(&t->text);
    (void)pthread_mutex_destroy(&t->lock);
}

bool mr_tail_add(struct mr_tail *t, const uint64_t tag[MR_TAIL_TAG], struct mr_str line)
{
    (void)pthread_mutex_lock(&t->lock);
    bool is_first = !t->text.n;
    size_t skip = line.n < t->bytes_max ? 0 : line.n - t->bytes_max + 1;
    size_t over = t->text.n + line.n - skip + 1;
    /* When the buffer is full, at least half of its text is dropped at once, so that most calls do
     * not move the text. */
    if (over > t->bytes_max) {
        size_t from = MR_MIN(t->text.n, MR_MAX(over - t->bytes_max, t->bytes_max / 2));
        memmove(t->text.p, t->text.p + from, t->text.n - from);
        t->text.n -= from;
        t->lost += from;
    }
    t->lost += skip;
    memcpy(t->tag, tag, sizeof t->tag);
    mr_buf_add(&t->text, line.p + skip, line.n - skip);
    mr_buf_add_byte(&t->text, '\n');
    (void)pthread_mutex_unlock(&t->lock);
    return is_first;
}

bool mr_tail_end(struct mr_tail *t, size_t *left, uint64_t *lost)
{
    (void)pthread_mutex_lock(&t->lock);
    bool was_taken = t->was_taken;
    *left = t->text.n;
    *lost = t->lost;
    mr_buf_clear(&t->text);
    t->lost = 0;
    t->was_taken = false;
    (void)pthread_mutex_unlock(&t->lock);
    return was_taken;
}

bool mr_tail_take(struct mr_tail *t, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost)
{
    (void)pthread_mutex_lock(&t->lock);
    bool is_any = t->text.n > 0;
    if (is_any) {
        memcpy(tag, t->tag, sizeof t->tag);
        mr_buf_add_str(out, mr_buf_str(&t->text));
        *lost = t->lost;
        mr_buf_clear(&t->text);
        t->lost = 0;
        t->was_taken = true;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return is_any;
}
