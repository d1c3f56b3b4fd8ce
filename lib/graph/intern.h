/* Interning: each distinct text is kept once, in one array of bytes, and numbered by first
 * appearance. The table is made for millions of short texts. A slot has 8 bytes and holds enough of
 * the hash that the table can grow without reading a text. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

#define MR_INTERN_NONE UINT32_MAX

struct mr_intern {
    char *text; /* all texts, end to end */
    size_t text_bytes;
    size_t text_room;
    uint32_t *at; /* offsets into text; count + 1 of them */
    uint32_t count;
    uint32_t room;
    /* Upper half: the hash; lower half: the text's number + 1; 0: a free slot. */
    uint64_t *slots;
    uint32_t mask;
    uint64_t seed;
};

void mr_intern_init(struct mr_intern *t, uint32_t count_hint);
void mr_intern_fini(struct mr_intern *t);
uint32_t mr_intern_hash(const struct mr_intern *t, struct mr_str s);

/* Adds a text that is not in the table and returns its number. The caller makes sure that
 * text_bytes stays below 4 GiB. */
uint32_t mr_intern_add(struct mr_intern *t, struct mr_str s, uint32_t hash);

/* Adds `count` texts, which stand end to end in `texts`. The caller makes sure that text_bytes
 * stays below 4 GiB. False: one of the texts was in the table already; the table can then only be
 * freed. */
bool mr_intern_add_all(
    struct mr_intern *t, const char *texts, const uint32_t *bytes, uint32_t count);

static inline struct mr_str mr_intern_text(const struct mr_intern *t, uint32_t i)
{
    return mr_str_of(t->text + t->at[i], t->at[i + 1] - t->at[i]);
}

static inline void mr_intern_prefetch(const struct mr_intern *t, uint32_t hash)
{
    __builtin_prefetch(&t->slots[hash & t->mask]);
}

static inline uint32_t mr_intern_find(const struct mr_intern *t, struct mr_str s, uint32_t hash)
{
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        uint64_t slot = t->slots[i];
        if (!slot) return MR_INTERN_NONE;
        if ((uint32_t)(slot >> 32) != hash) continue;
        uint32_t item = (uint32_t)slot - 1;
        if (mr_str_eq(mr_intern_text(t, item), s)) return item;
    }
}
