/* The cache of small values. A value of at most 16 bytes is in its record. A longer value is in a
 * chain of blocks of the arena. A value for which there is no room stays at its worker only
 * (V_AWAY). */
#include "services/scheduler/core/state/inline_bytes.h"

#include <string.h>

static uint32_t block_take(struct block_cache *c)
{
    uint32_t b = c->free;
    if (b != NONE)
        c->free = c->at[b].next;
    else
        b = c->top++;
    c->left--;
    return b;
}

void mr_sched__value_uncache(struct block_cache *c, const struct value *v)
{
    if (v->kind != V_BLOCKS) return;
    for (uint32_t b = v->block, next; b != NONE; b = next) {
        next = c->at[b].next;
        c->at[b].next = c->free;
        c->free = b;
        c->left++;
    }
}

/* Stores the bytes of a small value, if there is room. The value of a target (a key whose value the
 * client wants) may use the whole cache. Other values may use three quarters of it. */
void mr_sched__value_set_inline(struct mr_sched *s, struct value *v, struct mr_str bytes)
{
    v->bytes = bytes.n;
    v->kind = V_AWAY;
    if (bytes.n <= INLINE_SMALL) {
        v->kind = V_SMALL;
        if (bytes.n) memcpy(v->small, bytes.p, bytes.n);
        return;
    }
    uint32_t need = (uint32_t)((bytes.n + BLOCK_BYTES - 1) / BLOCK_BYTES);
    bool is_target = s->tasks[v->task].flags & T_TARGET;
    uint32_t spare = is_target ? 0 : s->config.inline_blocks / 4;
    if (bytes.n > MR_INLINE_VALUE_BYTES_MAX || s->blocks.left < need + spare) return;
    v->kind = V_BLOCKS;
    uint32_t *link = &v->block;
    for (size_t at = 0; at < bytes.n; at += BLOCK_BYTES) {
        uint32_t b = block_take(&s->blocks);
        memcpy(s->blocks.at[b].bytes, bytes.p + at, MR_MIN((size_t)BLOCK_BYTES, bytes.n - at));
        *link = b;
        link = &s->blocks.at[b].next;
    }
    *link = NONE;
}

void mr_sched__value_append(const struct block_cache *c, const struct value *v, struct mr_buf *out)
{
    if (v->kind == V_SMALL) mr_buf_add(out, v->small, (size_t)v->bytes);
    if (v->kind != V_BLOCKS) return;
    size_t left = (size_t)v->bytes;
    for (uint32_t b = v->block; b != NONE; b = c->at[b].next) {
        size_t n = MR_MIN(left, (size_t)BLOCK_BYTES);
        mr_buf_add(out, c->at[b].bytes, n);
        left -= n;
    }
}

struct mr_str mr_sched__value_bytes(struct mr_sched *s, const struct value *v)
{
    if (v->kind == V_SMALL) return mr_str_of(v->small, (size_t)v->bytes);
    if (v->kind == V_BLOCKS && v->bytes <= BLOCK_BYTES)
        return mr_str_of(s->blocks.at[v->block].bytes, (size_t)v->bytes);
    mr_buf_clear(&s->scratch);
    mr_sched__value_append(&s->blocks, v, &s->scratch);
    return mr_buf_str(&s->scratch);
}
