/* A model checker for the pin protocol of store/arena/catalog.c. Two readers and an evictor, which
 * reuses the memory of the object, run step by step in every possible order. The model's memory is
 * weaker than that of real processors: each processor has a store buffer, and stores to different
 * variables leave the buffer in any order. So the checker finds every missing fence, and tests on
 * real hardware might not find it. A sequentially consistent store is modelled as a store followed
 * by a fence. At each read of the bytes the checker asserts that the reader does not see reused
 * memory. The checker must also find planted bugs. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { READERS = 2, EVICTOR = READERS, PROCESSES, EVICTIONS = 2, READS = 2, DEPTH = 2 };
/* Shared memory: the entry's state and generation (WORD), the place of the object (META), the
 * object's bytes (BYTES), and the pin of each reader (SLOT, SLOT_2). */
enum variable { WORD, META, BYTES, SLOT, SLOT_2, VARIABLES };
/* State of an object, in the two low bits of WORD; the generation is above them. */
enum { SEALED = 1, EVICTING, AWAY };

enum bug {
    NO_BUG,
    READER_WITHOUT_FENCE,
    EVICTOR_WITHOUT_FENCE,
    READER_DOES_NOT_READ_AGAIN,
    EVICTOR_SCANS_BEFORE_IT_MARKS,
    GENERATION_STAYS,
    PIN_CLEARED_BEFORE_THE_LAST_READ,
    BUGS
};

struct model_state {
    uint8_t memory[VARIABLES];
    /* Store buffers, one for each process and variable: stores that are not in memory yet. */
    uint8_t waiting[PROCESSES][VARIABLES][DEPTH];
    uint8_t waiting_count[PROCESSES][VARIABLES];
    uint8_t at[PROCESSES]; /* the next step of each process */
    uint8_t rounds[PROCESSES];
    uint8_t word[PROCESSES]; /* registers: the WORD and the META that each process has read */
    uint8_t meta[PROCESSES];
};

struct explorer {
    enum bug bug;
    /* The states found so far; those from `next` on have not been expanded. */
    struct model_state *states;
    uint32_t *table;
    uint32_t count;
    uint32_t next;
    uint32_t count_max;
    uint64_t pins; /* number of confirmed pins; 0 would mean that the model's readers never read */
    bool failed;
};

/* ---- the machine ------------------------------------------------------------------------------*/

static uint8_t load(const struct model_state *s, int p, enum variable v)
{
    uint8_t n = s->waiting_count[p][v];
    return n ? s->waiting[p][v][n - 1] : s->memory[v];
}

static bool store(struct model_state *s, int p, enum variable v, uint8_t value)
{
    uint8_t *n = &s->waiting_count[p][v];
    if (*n == DEPTH) return false; /* the process waits until a store leaves its buffer */
    s->waiting[p][v][(*n)++] = value;
    return true;
}

static bool is_drained(const struct model_state *s, int p)
{
    for (int v = 0; v < VARIABLES; v++)
        if (s->waiting_count[p][v]) return false;
    return true;
}

/* Stores a value that reaches memory after all earlier stores of the process; later stores may
 * overtake it. Returns false if the process must wait. */
static bool store_release(struct model_state *s, int p, enum variable v, uint8_t value)
{
    return is_drained(s, p) && store(s, p, v, value);
}

static void leave(struct model_state *s, int p, int v)
{
    s->memory[v] = s->waiting[p][v][0];
    memmove(&s->waiting[p][v][0], &s->waiting[p][v][1], DEPTH - 1);
    s->waiting_count[p][v]--;
    s->waiting[p][v][s->waiting_count[p][v]] = 0; /* equal states must have equal bytes */
}

/* ---- reader: mr_catalog_pin and mr_store_release, one memory access a step ------------------- */

static uint8_t pin_of(uint8_t word)
{
    return (uint8_t)(1 + (word >> 2)); /* never 0, because 0 means no pin */
}

static void reader_ends(struct model_state *s, int p)
{
    s->rounds[p]++;
    s->at[p] = 0;
    s->word[p] = s->meta[p] = 0;
}

static bool look_at_bytes(struct explorer *x, struct model_state *s, int p)
{
    if (load(s, p, BYTES) != s->meta[p]) x->failed = true;
    s->at[p]++;
    return true;
}

static bool go_on(struct model_state *s, int p, bool done)
{
    if (done) s->at[p]++;
    return done;
}

static bool confirm(struct explorer *x, struct model_state *s, int p)
{
    bool same = load(s, p, WORD) == s->word[p] || x->bug == READER_DOES_NOT_READ_AGAIN;
    x->pins += same;
    s->at[p] = same ? (x->bug == PIN_CLEARED_BEFORE_THE_LAST_READ ? 9 : 5) : 7;
    return true;
}

static bool step_reader(struct explorer *x, struct model_state *s, int p)
{
    enum variable slot = p ? SLOT_2 : SLOT;
    if (s->rounds[p] == READS) return false;
    switch (s->at[p]) {
    case 0: /* reads WORD; only a sealed object is pinned */
        s->word[p] = load(s, p, WORD);
        if ((s->word[p] & 3) == SEALED)
            s->at[p]++;
        else
            reader_ends(s, p);
        return true;
    case 1: s->meta[p] = load(s, p, META); return go_on(s, p, true);
    case 2: return go_on(s, p, store(s, p, slot, pin_of(s->word[p])));
    case 3: return go_on(s, p, x->bug == READER_WITHOUT_FENCE || is_drained(s, p));
    case 4: return confirm(x, s, p);
    case 5:
    case 6: return look_at_bytes(x, s, p);
    case 7:
        if (!store_release(s, p, slot, 0)) return false;
        reader_ends(s, p);
        return true;
    case 9: return go_on(s, p, store_release(s, p, slot, 0));
    case 10: return look_at_bytes(x, s, p);
    case 11: reader_ends(s, p); return true;
    }
    return false;
}

/* ---- evictor: mark, fence, scan, commit; then the bytes are reused and published ------------- */

static bool scan(struct model_state *s, int p)
{
    uint8_t pin = pin_of(s->word[p]);
    bool seen = load(s, p, SLOT) == pin || load(s, p, SLOT_2) == pin;
    return seen;
}

static uint8_t word_of(uint8_t generation, uint8_t state)
{
    return (uint8_t)(generation << 2 | state);
}

static bool scan_and_turn(struct explorer *x, struct model_state *s, int p)
{
    bool pinned = x->bug == EVICTOR_SCANS_BEFORE_IT_MARKS ? s->meta[p] : scan(s, p);
    s->at[p] = pinned ? 9 : 4;
    return true;
}

static bool evict_first_steps(struct explorer *x, struct model_state *s, int p)
{
    switch (s->at[p]) {
    case 0:
        s->word[p] = load(s, p, WORD);
        if (x->bug == EVICTOR_SCANS_BEFORE_IT_MARKS) s->meta[p] = scan(s, p);
        return go_on(s, p, true);
    case 1: return go_on(s, p, store_release(s, p, WORD, word_of(s->word[p] >> 2, EVICTING)));
    case 2: return go_on(s, p, x->bug == EVICTOR_WITHOUT_FENCE || is_drained(s, p));
    case 3: return scan_and_turn(x, s, p);
    }
    return false;
}

static bool step_evictor(struct explorer *x, struct model_state *s, int p)
{
    if (s->rounds[p] == EVICTIONS) return false;
    uint8_t next = (uint8_t)((s->word[p] >> 2) + (x->bug != GENERATION_STAYS));
    switch (s->at[p]) {
    case 4: return go_on(s, p, store_release(s, p, WORD, word_of(next, AWAY)));
    case 5: return go_on(s, p, store(s, p, BYTES, (uint8_t)(load(s, p, BYTES) + 1)));
    case 6: return go_on(s, p, store(s, p, META, (uint8_t)(load(s, p, META) + 1)));
    case 7: return go_on(s, p, store_release(s, p, WORD, word_of(next, SEALED)));
    case 9: /* the evictor backs off, because a reader has pinned the entry */
        if (!store_release(s, p, WORD, s->word[p])) return false;
        break;
    case 8: break;
    default: return evict_first_steps(x, s, p);
    }
    s->rounds[p]++;
    s->at[p] = s->word[p] = s->meta[p] = 0;
    return true;
}

/* ---- every order ------------------------------------------------------------------------------*/

static void found(struct explorer *x, const struct model_state *s)
{
    uint64_t hash = 0;
    const unsigned char *bytes = (const unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++)
        hash = mr_hash_u64(hash ^ bytes[i]);
    uint32_t mask = x->count_max * 2 - 1;
    uint32_t at = (uint32_t)hash & mask;
    for (; x->table[at]; at = (at + 1) & mask)
        if (!memcmp(&x->states[x->table[at] - 1], s, sizeof *s)) return;
    mr_assert(x->count < x->count_max);
    x->states[x->count++] = *s;
    x->table[at] = x->count;
}

static void explore(struct explorer *x, enum bug bug)
{
    *x = (struct explorer){.bug = bug, .count_max = 1u << 21};
    x->states = mr_alloc_array(x->count_max, sizeof *x->states);
    x->table = mr_alloc_array((size_t)x->count_max * 2, sizeof *x->table);
    struct model_state first = {.memory = {[WORD] = 4 | SEALED, [META] = 1, [BYTES] = 1}};
    found(x, &first);
    while (x->next < x->count && !x->failed) {
        struct model_state from = x->states[x->next++];
        for (int p = 0; p < PROCESSES; p++) {
            struct model_state s = from;
            bool moved = p == EVICTOR ? step_evictor(x, &s, p) : step_reader(x, &s, p);
            if (moved) found(x, &s);
            for (int v = 0; v < VARIABLES; v++) {
                if (!from.waiting_count[p][v]) continue;
                s = from;
                leave(&s, p, v);
                found(x, &s);
            }
        }
    }
    mr_release(x->states);
    mr_release(x->table);
}

static void no_reader_ever_sees_reused_memory(void **state)
{
    (void)state;
    struct explorer x;
    explore(&x, NO_BUG);
    assert_false(x.failed);
    assert_int_equal(x.next, x.count); /* every state has been expanded */
    assert_true(x.pins > 1000);
    print_message("%u states\n", x.count);
}

static void each_planted_bug_is_caught(void **state)
{
    (void)state;
    for (int bug = 1; bug < BUGS; bug++) {
        struct explorer x;
        explore(&x, (enum bug)bug);
        if (!x.failed) print_message("bug %d was not caught in %u states\n", bug, x.count);
        assert_true(x.failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reader_ever_sees_reused_memory),
        cmocka_unit_test(each_planted_bug_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
