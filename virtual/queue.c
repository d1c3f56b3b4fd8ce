/* The queue is a binary heap. */
#include "virtual/queue.h"

#include "base/alloc.h"
#include "virtual/message.h"

static bool is_before(const struct mr_virtual_event *a, const struct mr_virtual_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void mr_virtual_push(struct mr_virtual_queue *q, mr_time t, struct mr_virtual_event ev)
{
    ev.at = t;
    ev.order = ++q->order;
    if (q->count == q->room) {
        uint32_t room = q->room ? 2 * q->room : 1024;
        q->heap = mr_grow(q->heap, q->room * sizeof ev, room * sizeof ev);
        q->room = room;
    }
    uint32_t at = q->count++;
    for (; at && is_before(&ev, &q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        q->heap[at] = q->heap[(at - 1) / 2];
    q->heap[at] = ev;
}

bool mr_virtual_pop(struct mr_virtual_queue *q, struct mr_virtual_event *out)
{
    if (!q->count) return false;
    *out = q->heap[0];
    struct mr_virtual_event last = q->heap[--q->count];
    uint32_t at = 0;
    for (uint32_t down = 1; down < q->count; down = 2 * at + 1) {
        if (down + 1 < q->count && is_before(&q->heap[down + 1], &q->heap[down])) down++;
        if (!is_before(&q->heap[down], &last)) break;
        q->heap[at] = q->heap[down];
        at = down;
    }
    if (q->count) q->heap[at] = last;
    return true;
}

void mr_virtual_queue_fini(struct mr_virtual_queue *q)
{
    for (uint32_t i = 0; i < q->count; i++)
        mr_virtual_message_free(&q->heap[i].msg);
    mr_release(q->heap);
    *q = (struct mr_virtual_queue){0};
}
