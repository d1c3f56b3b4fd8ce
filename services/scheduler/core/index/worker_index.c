/* The slots of the table of workers; workers by name and by incarnation. */
#include "services/scheduler/core/index/worker_index.h"

#include "services/scheduler/core/state/lookup.h"

static uint64_t worker_name_hash(const void *ctx, uint32_t item)
{
    return text_hash(mr_str(((const struct mr_sched *)ctx)->workers[item].facts->name));
}

static bool worker_name_eq(const void *ctx, uint32_t item, const void *key)
{
    return mr_str_eq(*(const struct mr_str *)key,
        mr_str(((const struct mr_sched *)ctx)->workers[item].facts->name));
}

static uint64_t incarnation_hash(const void *ctx, uint32_t item)
{
    return mr_hash_u64(((const struct mr_sched *)ctx)->workers[item].incarnation);
}

static bool incarnation_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_sched *)ctx)->workers[item].incarnation == *(const uint64_t *)key;
}

uint32_t mr_sched__worker_find(const struct mr_sched *s, uint64_t incarnation)
{
    return mr_index_find(
        &s->worker_list.by_incarnation, mr_hash_u64(incarnation), incarnation_eq, s, &incarnation);
}

struct worker *mr_sched__worker_new(struct mr_sched *s, uint32_t slot, uint64_t incarnation)
{
    struct worker *w = &s->workers[slot];
    *w = (struct worker){.facts = &s->worker_list.facts[slot],
        .incarnation = incarnation,
        .sent_head = NONE,
        .sent_tail = NONE,
        .probation = NONE,
        .held_head = NONE,
        .bucket = NONE};
    *w->facts = (struct worker_facts){0};
    mr_index_add(
        &s->worker_list.by_incarnation, mr_hash_u64(incarnation), slot, incarnation_hash, s);
    return w;
}

uint32_t mr_sched__worker_find_name(const struct mr_sched *s, struct mr_str name)
{
    return mr_index_find(&s->worker_list.by_name, text_hash(name), worker_name_eq, s, &name);
}

static void drop_name(struct mr_sched *s, uint32_t slot)
{
    if (s->workers[slot].facts->name[0])
        (void)mr_index_remove(&s->worker_list.by_name, worker_name_hash(s, slot), slot);
}

void mr_sched__worker_name(struct mr_sched *s, uint32_t slot, struct mr_str name)
{
    drop_name(s, slot);
    copy_name(s->workers[slot].facts->name, name);
    uint64_t hash = worker_name_hash(s, slot);
    s->workers[slot].name_hash = (uint32_t)hash;
    if (s->workers[slot].facts->name[0])
        mr_index_add(&s->worker_list.by_name, hash, slot, worker_name_hash, s);
}

uint32_t mr_sched__worker_place(struct mr_sched *s)
{
    uint32_t i = s->worker_list.free_at;
    while (i < s->worker_list.top && s->workers[i].state != W_FREE)
        i++;
    s->worker_list.free_at = i;
    if (i < s->worker_list.top) return i;
    return i < s->config.workers_max ? s->worker_list.top++ : NONE;
}

void mr_sched__worker_free(struct mr_sched *s, uint32_t slot)
{
    struct worker *w = &s->workers[slot];
    drop_name(s, slot);
    (void)mr_index_remove(&s->worker_list.by_incarnation, mr_hash_u64(w->incarnation), slot);
    w->state = W_FREE;
    s->worker_list.free_at = MR_MIN(s->worker_list.free_at, slot);
}
