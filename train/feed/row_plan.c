/* Makes the row plan. Partitions with copies on the same set of nodes form one group. A maximum
 * flow (Edmonds and Karp, 1972) from groups to nodes says how many rows of each group each node
 * trains on. An edge exists where the node has the group's partitions. Rows without flow are moved
 * to the nodes that lack rows. Then partitions are chosen: first those that move; the others are
 * dealt to the nodes that have them. Within a node, rows are dealt to its workers, which share a
 * store and so may share a partition. */
#include "train/feed/row_plan.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>

#define NODES MR_ROW_PLAN_NODES_MAX
/* Limit of groups, which are different sets of nodes. With more sets, only the first copy of each
 * partition counts. */
#define GROUPS_MAX 256u
#define NOBODY UINT32_MAX

struct group {
    uint64_t nodes;
    uint64_t left;         /* number of rows that no node has got yet */
    uint32_t first, count; /* range of planner.sorted */
};

struct piece { /* rows of one partition that one node trains on */
    uint32_t node;
    uint64_t first, count;
};

struct planner {
    const struct mr_row_part *parts;
    uint32_t parts_count;
    const uint32_t *node_of;
    uint32_t workers;
    uint64_t rows;
    uint64_t lacks[NODES]; /* number of rows that each node still needs */
    uint64_t *nodes;       /* for each partition, the nodes whose copies the plan considers */
    uint64_t *starts;      /* for each partition, its first row */
    uint64_t *left;        /* for each partition, how many of its last rows are not dealt yet */
    uint64_t *touched;     /* for each partition, the nodes that read it */
    uint32_t *sorted;      /* partitions in the order of their groups */
    struct group *groups;
    uint32_t groups_count;
    uint64_t *flow; /* for each group and node, how many of the group's rows the node trains on */
    struct piece *pieces;
    uint32_t pieces_count, pieces_room;
};

uint64_t mr_row_plan_quota(uint64_t rows, uint32_t worker, uint32_t workers, uint64_t *first)
{
    uint64_t from = rows * worker / workers;
    if (first) *first = from;
    return rows * (worker + 1) / workers - from;
}

void mr_row_plan_fini(struct mr_row_plan *p)
{
    mr_release(p->ranges);
    mr_release(p->ends);
    *p = (struct mr_row_plan){0};
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct key {
    uint64_t nodes;
    uint32_t part;
};

static int by_nodes(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->nodes != y->nodes) return x->nodes < y->nodes ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* Forms the groups. False: there would be more than GROUPS_MAX. */
static bool groups_fill(struct planner *p)
{
    struct key *keys = mr_alloc_array(p->parts_count + 1, sizeof *keys);
    for (uint32_t i = 0; i < p->parts_count; i++)
        keys[i] = (struct key){p->nodes[i], i};
    qsort(keys, p->parts_count, sizeof *keys, by_nodes);
    p->groups_count = 0;
    bool fits = true;
    for (uint32_t i = 0; i < p->parts_count && fits; i++) {
        if (!i || keys[i].nodes != keys[i - 1].nodes) {
            fits = p->groups_count < GROUPS_MAX;
            if (fits)
                p->groups[p->groups_count++] = (struct group){.nodes = keys[i].nodes, .first = i};
        }
        struct group *g = &p->groups[p->groups_count - 1];
        p->sorted[i] = keys[i].part;
        g->count++;
        g->left += p->parts[keys[i].part].rows;
    }
    mr_release(keys);
    return fits;
}

static void first_copies_only(struct planner *p)
{
    for (uint32_t i = 0; i < p->parts_count; i++)
        p->nodes[i] &= ~p->nodes[i] + 1;
}

/* ---- the flow -------------------------------------------------------------------------------- */

static uint64_t *flow_of(struct planner *p, uint32_t group, uint32_t node)
{
    return &p->flow[(size_t)group * NODES + node];
}

/* Tells how the search reached a node: through `group`, from node `from` (NOBODY: from the
 * start). */
struct step {
    uint32_t group, from;
};

/* Searches for an augmenting path from group `g`, breadth first. Returns the first node found that
 * still needs rows, or NOBODY. */
static uint32_t search(struct planner *p, uint32_t g, struct step *steps)
{
    uint32_t queue[NODES], head = 0, tail = 0;
    uint64_t seen = p->groups[g].nodes;
    for (uint32_t k = 0; k < NODES; k++) {
        if (!(seen >> k & 1)) continue;
        steps[k] = (struct step){g, NOBODY};
        queue[tail++] = k;
    }
    for (; head < tail; head++) {
        uint32_t at = queue[head];
        if (p->lacks[at]) return at;
        for (uint32_t i = 0; i < p->groups_count; i++) {
            if (!*flow_of(p, i, at)) continue;
            for (uint32_t k = 0; k < NODES; k++) {
                if (!(p->groups[i].nodes >> k & 1) || seen >> k & 1) continue;
                seen |= (uint64_t)1 << k;
                steps[k] = (struct step){i, at};
                queue[tail++] = k;
            }
        }
    }
    return NOBODY;
}

/* Increases the flow along the path to `end`: each node on the path gives rows to the next node and
 * gets as many from the node before. */
static void augment(struct planner *p, uint32_t g, uint32_t end, const struct step *steps)
{
    uint64_t n = MR_MIN(p->groups[g].left, p->lacks[end]);
    for (uint32_t k = end; steps[k].from != NOBODY; k = steps[k].from)
        n = MR_MIN(n, *flow_of(p, steps[k].group, steps[k].from));
    for (uint32_t k = end; k != NOBODY; k = steps[k].from) {
        *flow_of(p, steps[k].group, k) += n;
        if (steps[k].from != NOBODY) *flow_of(p, steps[k].group, steps[k].from) -= n;
    }
    p->groups[g].left -= n;
    p->lacks[end] -= n;
}

static void flow_fill(struct planner *p)
{
    struct step steps[NODES];
    for (uint32_t g = 0; g < p->groups_count; g++)
        while (p->groups[g].left) {
            uint32_t end = search(p, g, steps);
            if (end == NOBODY) break;
            augment(p, g, end, steps);
        }
}

/* ---- which parts ----------------------------------------------------------------------------- */

static void deal(struct planner *p, uint32_t part, uint32_t node, uint64_t count)
{
    mr_assert(count <= p->left[part]);
    if (p->pieces_count == p->pieces_room) {
        uint32_t room = MR_MAX(p->pieces_room * 2, 64u);
        p->pieces =
            mr_grow(p->pieces, p->pieces_room * sizeof *p->pieces, room * sizeof *p->pieces);
        p->pieces_room = room;
    }
    uint64_t dealt = p->parts[part].rows - p->left[part];
    p->pieces[p->pieces_count++] = (struct piece){node, p->starts[part] + dealt, count};
    p->left[part] -= count;
    p->touched[part] |= (uint64_t)1 << node;
}

struct candidate {
    uint64_t rows, bytes;
    uint32_t part;
};

static int larger_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->rows != y->rows) return x->rows > y->rows ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* Chooses partitions with `n` rows in all that have few bytes, greedily. `c` is sorted, the largest
 * first. Takes the largest partitions that fit, and then perhaps a part of one more: the smallest
 * partition that is larger than what is still missing. Returns how many partitions are taken as a
 * whole. `*last`: the partition of which a part is taken, or NOBODY. */
static uint32_t choose(const struct candidate *c, uint32_t count, uint64_t n, uint32_t *last)
{
    uint64_t cost = 0, best = UINT64_MAX;
    uint32_t taken = 0, best_taken = 0, larger = NOBODY;
    *last = NOBODY;
    for (uint32_t i = 0; i <= count; i++) {
        if (larger != NOBODY && n && cost + c[larger].bytes < best) {
            best = cost + c[larger].bytes;
            best_taken = taken;
            *last = larger;
        }
        if (i == count || !n) break;
        if (c[i].rows > n) {
            larger = i;
            continue;
        }
        n -= c[i].rows;
        cost += c[i].bytes;
        taken++;
    }
    if (n || cost > best) return best_taken;
    *last = NOBODY;
    return taken;
}

/* Moves `n` rows of a group to a node that has none of the group's partitions. */
static void move_rows(struct planner *p, const struct group *g, uint32_t node, uint64_t n)
{
    struct candidate *c = mr_alloc_array(g->count, sizeof *c);
    uint32_t count = 0, last = NOBODY;
    for (uint32_t i = 0; i < g->count; i++) {
        uint32_t part = p->sorted[g->first + i];
        if (p->left[part])
            c[count++] = (struct candidate){p->left[part], p->parts[part].bytes, part};
    }
    qsort(c, count, sizeof *c, larger_first);
    uint32_t taken = choose(c, count, n, &last);
    for (uint32_t i = 0; i < count && taken; i++) {
        if (c[i].rows > n) continue;
        deal(p, c[i].part, node, c[i].rows);
        n -= c[i].rows;
        taken--;
    }
    if (last != NOBODY) deal(p, c[last].part, node, n);
    mr_assert(last != NOBODY || !n);
    mr_release(c);
}

static void move_all(struct planner *p)
{
    for (uint32_t i = 0; i < p->groups_count; i++) {
        struct group *g = &p->groups[i];
        for (uint32_t k = 0; k < NODES && g->left; k++) {
            uint64_t n = MR_MIN(g->left, p->lacks[k]);
            if (!n) continue;
            move_rows(p, g, k, n);
            g->left -= n;
            p->lacks[k] -= n;
        }
        mr_assert(!g->left);
    }
}

static void stay_all(struct planner *p)
{
    for (uint32_t i = 0; i < p->groups_count; i++) {
        const struct group *g = &p->groups[i];
        uint32_t k = 0;
        for (uint32_t at = 0; at < g->count; at++) {
            uint32_t part = p->sorted[g->first + at];
            while (p->left[part]) {
                while (k < NODES && !*flow_of(p, i, k))
                    k++;
                mr_assert(k < NODES);
                uint64_t n = MR_MIN(p->left[part], *flow_of(p, i, k));
                deal(p, part, k, n);
                *flow_of(p, i, k) -= n;
            }
        }
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static int by_node_and_row(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static uint32_t range_add(struct mr_row_plan *out, uint32_t from, uint32_t n, struct piece piece)
{
    struct mr_row_range *last = n > from ? &out->ranges[n - 1] : NULL;
    if (last && last->first + last->count == piece.first) {
        last->count += piece.count;
        return n;
    }
    out->ranges[n] = (struct mr_row_range){piece.first, piece.count};
    return n + 1;
}

/* Deals the rows of each node to its workers, in order. */
static void workers_fill(struct planner *p, struct mr_row_plan *out)
{
    uint32_t at[NODES] = {0}, n = 0;
    qsort(p->pieces, p->pieces_count, sizeof *p->pieces, by_node_and_row);
    for (uint32_t i = p->pieces_count; i-- > 0;)
        at[p->pieces[i].node] = i;
    out->workers = p->workers;
    out->ranges = mr_alloc_array(p->pieces_count + p->workers, sizeof *out->ranges);
    out->ends = mr_alloc_array(p->workers, sizeof *out->ends);
    for (uint32_t w = 0; w < p->workers; w++) {
        uint64_t wanted = mr_row_plan_quota(p->rows, w, p->workers, NULL);
        uint32_t from = n, *next = &at[p->node_of[w]];
        while (wanted) {
            mr_assert(*next < p->pieces_count && p->pieces[*next].node == p->node_of[w]);
            struct piece *piece = &p->pieces[*next];
            struct piece mine = {piece->node, piece->first, MR_MIN(piece->count, wanted)};
            n = range_add(out, from, n, mine);
            piece->first += mine.count;
            piece->count -= mine.count;
            wanted -= mine.count;
            *next += !piece->count;
        }
        out->ends[w] = n;
    }
}

/* ---- what it costs --------------------------------------------------------------------------- */

static uint64_t cost(const struct planner *p, uint32_t *parts)
{
    uint64_t bytes = 0;
    *parts = 0;
    for (uint32_t i = 0; i < p->parts_count; i++) {
        uint32_t copies = (uint32_t)__builtin_popcountll(p->touched[i] & ~p->parts[i].nodes);
        bytes += copies * p->parts[i].bytes;
        *parts += copies;
    }
    return bytes;
}

static uint64_t even_cost(struct planner *p, uint32_t *parts)
{
    uint32_t i = 0;
    for (uint32_t w = 0; w < p->workers; w++) {
        uint64_t first = 0, n = mr_row_plan_quota(p->rows, w, p->workers, &first);
        while (i && p->starts[i] > first)
            i--;
        for (; n && i < p->parts_count && p->starts[i] < first + n; i++)
            if (p->parts[i].rows && p->starts[i] + p->parts[i].rows > first)
                p->touched[i] |= (uint64_t)1 << p->node_of[w];
        i = MR_MIN(i, p->parts_count - 1);
    }
    return cost(p, parts);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void planner_fini(struct planner *p)
{
    mr_release(p->nodes);
    mr_release(p->starts);
    mr_release(p->left);
    mr_release(p->touched);
    mr_release(p->sorted);
    mr_release(p->groups);
    mr_release(p->flow);
    mr_release(p->pieces);
}

static bool planner_init(struct planner *p)
{
    size_t n = (size_t)p->parts_count + 1;
    uint32_t nodes = 0;
    p->nodes = mr_alloc_array(n, sizeof *p->nodes);
    p->starts = mr_alloc_array(n, sizeof *p->starts);
    p->left = mr_alloc_array(n, sizeof *p->left);
    p->touched = mr_alloc_array(n, sizeof *p->touched);
    p->sorted = mr_alloc_array(n, sizeof *p->sorted);
    p->groups = mr_alloc_array(GROUPS_MAX, sizeof *p->groups);
    for (uint32_t i = 0; i < p->parts_count; i++) {
        if (p->parts[i].rows > UINT64_MAX / MR_MAX(p->workers, 1u) - p->rows) return false;
        p->nodes[i] = p->parts[i].nodes;
        p->starts[i] = p->rows;
        p->left[i] = p->parts[i].rows;
        p->rows += p->parts[i].rows;
    }
    for (uint32_t w = 0; w < p->workers; w++) {
        if (p->node_of[w] >= NODES) return false;
        nodes = MR_MAX(nodes, p->node_of[w] + 1);
    }
    uint64_t all = nodes == NODES ? UINT64_MAX : ((uint64_t)1 << nodes) - 1;
    for (uint32_t i = 0; i < p->parts_count; i++)
        p->nodes[i] &= all;
    for (uint32_t w = 0; w < p->workers; w++)
        p->lacks[p->node_of[w]] += mr_row_plan_quota(p->rows, w, p->workers, NULL);
    return nodes > 1 && p->rows;
}

void mr_row_plan_make(const struct mr_row_part *parts, uint32_t parts_count,
    const uint32_t *node_of, uint32_t workers, struct mr_row_plan *out)
{
    *out = (struct mr_row_plan){.is_even = true};
    struct planner p = {
        .parts = parts, .parts_count = parts_count, .node_of = node_of, .workers = workers};
    if (!planner_init(&p)) {
        planner_fini(&p);
        return;
    }
    out->moved_bytes = even_cost(&p, &out->moved_parts);
    memset(p.touched, 0, p.parts_count * sizeof *p.touched);
    if (!groups_fill(&p)) {
        first_copies_only(&p);
        bool fits = groups_fill(&p);
        mr_assert(fits);
    }
    p.flow = mr_alloc_array((size_t)p.groups_count * NODES, sizeof *p.flow);
    flow_fill(&p);
    move_all(&p);
    stay_all(&p);
    uint32_t moved = 0;
    uint64_t bytes = cost(&p, &moved);
    if (bytes < out->moved_bytes && p.pieces_count + workers <= MR_ROW_PLAN_RANGES_MAX) {
        *out = (struct mr_row_plan){.moved_bytes = bytes, .moved_parts = moved};
        workers_fill(&p, out);
    }
    planner_fini(&p);
}
