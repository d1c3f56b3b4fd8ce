/* The loops over rows; kernel.h defines eta and the families. Rows are taken in blocks that stay in
 * the L1 cache: first eta of all rows of a block, then loss and residuals of the family, then the
 * block again for the gradient. Inside a block, loops take eight rows together. Dot products take
 * eight numbers at a time, and so read beyond the end of a row into the next row; the coefficients
 * for these numbers are 0. The last rows of a chunk are copied to memory with room behind them. A
 * NaN or an infinity also spoils the row before its own, which does no harm, because such a chunk
 * is refused. */
#include "ops/glm/kernel.h"

#include "ops/glm/exp_log.h"
#include "ops/kernel/macros.h"

#include <string.h>

#define LANES 8u
#define BLOCK_ROWS 128u
#define BLOCK_NUMBERS 1536u /* numbers of X in a block: 12 KiB */
#define TAIL_ROWS 16u
#define CANCEL_NUMBERS ((uint64_t)1 << 20) /* numbers of X between two checks for cancellation */
/* numbers of X in a block of mr_glm_pass_block: about 45 us of work */
#define PART_NUMBERS ((uint64_t)49152)
/* With a Hessian, a row of p columns costs 1 + p / HESSIAN_COLUMNS times as much as without. */
#define HESSIAN_COLUMNS 8u
/* numbers in the sums of all blocks of mr_glm_pass_block: 2 MiB */
#define SUMS_NUMBERS_MAX ((uint64_t)1 << 18)

struct work {
    double *eta;      /* one number for each row of a block: BLOCK_ROWS */
    double *residual; /* mean - y, times the weight; padded with 0 to a multiple of eight */
    double *variance;
    double *coef; /* the coefficients, padded with 0 to a multiple of eight */
    double *tail; /* the last rows: TAIL_ROWS × columns numbers, and eight more */
    double *full; /* the Hessian as a matrix with row length `pitch`, and a row for the intercept */
    uint32_t pitch;
};

struct block {
    const double *x;
    const double *y;
    const double *weights;
    const double *offset;
    uint32_t rows;
};

static uint32_t pitch_of(uint32_t columns)
{
    return (columns + LANES - 1) / LANES * LANES;
}

size_t mr_glm_work_bytes(uint32_t columns, bool hessian)
{
    size_t pitch = pitch_of(columns);
    size_t tail = (TAIL_ROWS * (size_t)columns + LANES + LANES - 1) / LANES * LANES;
    return (3 * BLOCK_ROWS + pitch + tail + (hessian ? (pitch + 1) * pitch : 0)) * sizeof(double);
}

static void lay_out(void *memory, uint32_t columns, bool hessian, struct work *w)
{
    double *p = memory;
    w->pitch = pitch_of(columns);
    w->eta = p;
    w->residual = p + BLOCK_ROWS;
    w->variance = p + 2 * BLOCK_ROWS;
    w->coef = p + 3 * BLOCK_ROWS;
    w->tail = w->coef + w->pitch;
    w->full = w->tail + (TAIL_ROWS * (size_t)columns + LANES + LANES - 1) / LANES * LANES;
    if (!hessian) w->full = NULL;
}

/* ---- a block ---- */

/* Computes eta[i] = b + x_i · w for a number of rows that is a multiple of eight. */
MR_CLONES static void dots(const double *restrict x, uint32_t rows, uint32_t columns,
    const double *restrict w, double b, double *restrict eta)
{
    uint32_t pitch = (columns + LANES - 1) / LANES * LANES;
    for (uint32_t i = 0; i < rows; i += LANES) {
        double sums[LANES][LANES] = {{0}};
        for (uint32_t k = 0; k < LANES; k++) {
            const double *row = x + (size_t)(i + k) * columns;
            double lane[LANES] = {0};
            for (uint32_t j = 0; j < pitch; j += LANES)
                for (uint32_t l = 0; l < LANES; l++)
                    lane[l] += row[j + l] * w[j + l];
            for (uint32_t l = 0; l < LANES; l++)
                sums[k][l] = lane[l];
        }
        for (uint32_t k = 0; k < LANES; k++) {
            const double *s = sums[k];
            eta[i + k] = b + (((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])));
        }
    }
}

/* Computes g += sum of r_i x_i for a number of rows that is a multiple of eight. */
MR_CLONES static void gather(const double *restrict x, uint32_t rows, uint32_t columns,
    const double *restrict r, double *restrict g)
{
    for (uint32_t i = 0; i < rows; i += LANES) {
        const double *a = x + (size_t)i * columns;
        /* The address of the next block, for prefetching. The block need not exist. */
        const double *next = a + (size_t)rows * columns;
        for (uint32_t l = 0; l < LANES * columns; l += LANES)
            __builtin_prefetch(next + l);
        const double *b = a + columns;
        const double *c = b + columns;
        const double *d = c + columns;
        const double *e = d + columns;
        const double *f = e + columns;
        const double *m = f + columns;
        const double *n = m + columns;
        double ra = r[i], rb = r[i + 1], rc = r[i + 2], rd = r[i + 3];
        double re = r[i + 4], rf = r[i + 5], rm = r[i + 6], rn = r[i + 7];
        for (uint32_t j = 0; j < columns; j++)
            g[j] += ((ra * a[j] + rb * b[j]) + (rc * c[j] + rd * d[j])) +
                    ((re * e[j] + rf * f[j]) + (rm * m[j] + rn * n[j]));
    }
}

/* Computes the lower triangle of h += sum of v_i x_i x_i^T for a number of rows that is a multiple
 * of four. Numbers right of the diagonal are undefined. */
MR_CLONES static void square(const double *restrict x, uint32_t rows, uint32_t columns,
    const double *restrict v, double *restrict h, uint32_t pitch)
{
    for (uint32_t i = 0; i < rows; i += 4) {
        const double *a = x + (size_t)i * columns;
        const double *b = a + columns;
        const double *c = b + columns;
        const double *d = c + columns;
        for (uint32_t k = 0; k < columns; k++) {
            double va = v[i] * a[k];
            double vb = v[i + 1] * b[k];
            double vc = v[i + 2] * c[k];
            double vd = v[i + 3] * d[k];
            double *row = h + (size_t)k * pitch;
            for (uint32_t j = 0; j <= k; j++)
                row[j] += (va * a[j] + vb * b[j]) + (vc * c[j] + vd * d[j]);
        }
    }
}

/* Computes loss (`part`), mean and variance (`spread`) of a row from its eta (h) and its y (t). */
#define LOGISTIC_ROW(h, t)                                                                         \
    double size = (h) < 0 ? (h) : -(h);                                                            \
    double e = mr_glm_exp(size);                                                                   \
    double q = 1.0 / (1.0 + e);                                                                    \
    double mean = (h) < 0 ? e * q : q;                                                             \
    double part = mr_glm_log1p(e) + ((h) < 0 ? 0.0 : (h)) - (t) * (h);                             \
    double spread = e * q * q
#define NORMAL_ROW(h, t)                                                                           \
    double mean = (h);                                                                             \
    double part = 0.5 * ((h) - (t)) * ((h) - (t));                                                 \
    double spread = 1.0
#define POISSON_ROW(h, t)                                                                          \
    double mean = mr_glm_exp(h);                                                                   \
    double part = mean - (t) * (h);                                                                \
    double spread = mean

#define FAMILY(name, ROW)                                                                          \
    MR_CLONES static double name(const double *restrict eta, const double *restrict y,             \
        const double *restrict weights, uint32_t rows, double *restrict residual,                  \
        double *restrict variance)                                                                 \
    {                                                                                              \
        double lane[LANES] = {0};                                                                  \
        double losses[BLOCK_ROWS];                                                                 \
        for (uint32_t i = 0; i < rows; i++) {                                                      \
            double h = eta[i];                                                                     \
            double t = y[i];                                                                       \
            ROW(h, t);                                                                             \
            losses[i] = part;                                                                      \
            residual[i] = mean - t;                                                                \
            variance[i] = spread;                                                                  \
        }                                                                                          \
        if (weights)                                                                               \
            for (uint32_t i = 0; i < rows; i++) {                                                  \
                losses[i] *= weights[i];                                                           \
                residual[i] *= weights[i];                                                         \
                variance[i] *= weights[i];                                                         \
            }                                                                                      \
        uint32_t i = 0;                                                                            \
        for (; i + LANES <= rows; i += LANES)                                                      \
            for (uint32_t l = 0; l < LANES; l++)                                                   \
                lane[l] += losses[i + l];                                                          \
        for (; i < rows; i++)                                                                      \
            lane[0] += losses[i];                                                                  \
        return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +                                       \
               ((lane[2] + lane[6]) + (lane[3] + lane[7]));                                        \
    }

FAMILY(logistic_rows, LOGISTIC_ROW)
FAMILY(normal_rows, NORMAL_ROW)
FAMILY(poisson_rows, POISSON_ROW)

static double family_rows(enum mr_glm_family family, const struct block *b, struct work *w)
{
    switch (family) {
    case MR_GLM_LOGISTIC:
        return logistic_rows(w->eta, b->y, b->weights, b->rows, w->residual, w->variance);
    case MR_GLM_POISSON:
        return poisson_rows(w->eta, b->y, b->weights, b->rows, w->residual, w->variance);
    case MR_GLM_NORMAL:
    case MR_GLM_FAMILIES: break;
    }
    return normal_rows(w->eta, b->y, b->weights, b->rows, w->residual, w->variance);
}

static double sum_of(const double *v, uint32_t n)
{
    double s = 0;
    for (uint32_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

/* Returns the number of rows with a weight above 0 whose eta is 0 or has the wrong sign for y. */
static double wrong_of(const struct block *b, const double *eta)
{
    double wrong = 0;
    for (uint32_t i = 0; i < b->rows; i++)
        if (!b->weights || b->weights[i] > 0) wrong += !(b->y[i] > 0.5 ? eta[i] > 0 : eta[i] < 0);
    return wrong;
}

/* Computes eta of a block. If the rows have offsets and `wrong` is not NULL, adds to `*wrong` the
 * number of rows that X w + b, without the offset, puts in the wrong class. */
static void eta_of(const struct block *b, uint32_t columns, double intercept, struct work *w,
    double *eta, double *wrong)
{
    dots(b->x, (b->rows + LANES - 1) / LANES * LANES, columns, w->coef, intercept, eta);
    if (b->offset && wrong) *wrong += wrong_of(b, eta);
    for (uint32_t i = 0; b->offset && i < b->rows; i++)
        eta[i] += b->offset[i];
}

static void one_block(enum mr_glm_family family, const struct block *b, uint32_t columns,
    double intercept, struct work *w, struct mr_glm_sums *s)
{
    uint32_t whole = (b->rows + LANES - 1) / LANES * LANES;
    eta_of(b, columns, intercept, w, w->eta, family == MR_GLM_LOGISTIC ? &s->wrong : NULL);
    s->loss += family_rows(family, b, w);
    for (uint32_t i = b->rows; i < whole; i++)
        w->residual[i] = w->variance[i] = 0;
    gather(b->x, whole, columns, w->residual, s->gradient);
    s->gradient[columns] += sum_of(w->residual, b->rows);
    if (!w->full) return;
    square(b->x, whole, columns, w->variance, w->full, w->pitch);
    double *last = w->full + (size_t)columns * w->pitch;
    gather(b->x, whole, columns, w->variance, last);
    s->hessian[mr_glm_packed(columns + 1) - 1] += sum_of(w->variance, b->rows);
}

/* ---- a chunk ---- */

/* Returns the number of rows that can be read in place: a multiple of eight, with enough numbers
 * behind the last of these rows for loops that read beyond its end. */
static uint64_t rows_in_place(const struct mr_glm_rows *r, uint32_t pitch)
{
    uint64_t numbers = r->rows * r->columns;
    uint64_t beyond = pitch - r->columns;
    if (!r->columns || numbers < beyond) return 0;
    return MR_MIN((numbers - beyond) / r->columns, r->rows) / LANES * LANES;
}

static struct block block_at(const struct mr_glm_rows *r, uint64_t at, uint64_t rows)
{
    return (struct block){.x = r->x + at * r->columns,
        .y = r->y ? r->y + at : NULL,
        .weights = r->weights ? r->weights + at : NULL,
        .offset = r->offset ? r->offset + at : NULL,
        .rows = (uint32_t)rows};
}

/* Copies the last rows to memory in which reading beyond the last row is harmless. */
static struct block tail_at(const struct mr_glm_rows *r, uint64_t at, struct work *w)
{
    struct block b = block_at(r, at, r->rows - at);
    size_t numbers = (size_t)b.rows * r->columns;
    memset(w->tail, 0, (TAIL_ROWS * (size_t)r->columns + LANES) * sizeof *w->tail);
    if (numbers) memcpy(w->tail, b.x, numbers * sizeof *w->tail);
    b.x = w->tail;
    return b;
}

static uint32_t block_rows(uint32_t columns)
{
    uint32_t rows = BLOCK_NUMBERS / MR_MAX(columns, 1u) / LANES * LANES;
    return MR_MIN(MR_MAX(rows, LANES), BLOCK_ROWS);
}

static void take_coef(struct work *w, const double *coef, uint32_t columns)
{
    memset(w->coef, 0, w->pitch * sizeof *w->coef);
    memcpy(w->coef, coef, columns * sizeof *coef);
}

/* Packs the lower triangle of the Hessian. */
static void pack_hessian(const struct work *w, uint32_t columns, double *packed)
{
    for (uint32_t k = 0; k <= columns; k++)
        memcpy(packed + mr_glm_packed(k), w->full + (size_t)k * w->pitch,
            MR_MIN(k + 1, columns) * sizeof *packed);
}

static void begin(const struct mr_glm_rows *r, const double *coef, void *work, struct work *w,
    struct mr_glm_sums *s)
{
    uint32_t p = r->columns;
    lay_out(work, p, s->hessian, w);
    take_coef(w, coef, p);
    s->loss = 0;
    s->wrong = 0;
    memset(s->gradient, 0, (p + 1) * sizeof *s->gradient);
    if (!s->hessian) return;
    memset(s->hessian, 0, mr_glm_packed(p + 1) * sizeof *s->hessian);
    memset(w->full, 0, ((size_t)w->pitch + 1) * w->pitch * sizeof *w->full);
}

/* Adds the rows from `from` to below `to`. `from` is at most rows_in_place, and so is `to` unless
 * it is the number of rows. */
static void add_rows(enum mr_glm_family family, const struct mr_glm_rows *r, uint64_t from,
    uint64_t to, double intercept, struct work *w, struct mr_glm_sums *s)
{
    uint32_t p = r->columns, step = block_rows(p);
    uint64_t in_place = MR_MIN(rows_in_place(r, w->pitch), to);
    for (uint64_t i = from; i < in_place; i += step) {
        struct block b = block_at(r, i, MR_MIN(in_place - i, (uint64_t)step));
        one_block(family, &b, p, intercept, w, s);
    }
    if (in_place == to) return;
    struct block b = tail_at(r, in_place, w);
    one_block(family, &b, p, intercept, w, s);
}

bool mr_glm_pass(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, struct mr_glm_sums *s, bool (*is_cancelled)(void *ctx), void *ctx)
{
    struct work w;
    begin(r, coef, work, &w, s);
    uint32_t step = block_rows(r->columns);
    uint64_t in_place = rows_in_place(r, w.pitch);
    uint64_t stride = MR_MAX(CANCEL_NUMBERS / MR_MAX(r->columns, 1u) / step, (uint64_t)1) * step;
    for (uint64_t i = 0; i < r->rows; i += stride) {
        uint64_t to = i + stride < in_place ? i + stride : r->rows;
        if (i && is_cancelled(ctx)) return false;
        add_rows(family, r, i, to, coef[r->columns], &w, s);
        if (to == r->rows) break;
    }
    if (s->hessian) pack_hessian(&w, r->columns, s->hessian);
    return true;
}

/* Returns the number of the first row of block `block`, if the rows are cut into `blocks` blocks.
 * This number is at most the result of rows_in_place. For `block` equal to `blocks`, returns the
 * number of rows. */
static uint64_t cut_at(const struct mr_glm_rows *r, uint32_t blocks, uint32_t block)
{
    uint64_t step = block_rows(r->columns);
    uint64_t steps = rows_in_place(r, pitch_of(r->columns)) / step;
    return block == blocks ? r->rows : steps * block / blocks * step;
}

uint32_t mr_glm_blocks(const struct mr_glm_rows *r, bool hessian)
{
    uint64_t p = r->columns, sums = 1 + p + 1 + (hessian ? mr_glm_packed((uint32_t)p + 1) : 0);
    uint64_t numbers = PART_NUMBERS / (hessian ? 1 + p / HESSIAN_COLUMNS : 1);
    uint64_t blocks = MR_MIN(r->rows * p / numbers, SUMS_NUMBERS_MAX / sums);
    return (uint32_t)MR_MAX(blocks, (uint64_t)1);
}

void mr_glm_pass_block(enum mr_glm_family family, const struct mr_glm_rows *r, uint32_t blocks,
    uint32_t block, const double *coef, void *work, struct mr_glm_sums *s)
{
    struct work w;
    begin(r, coef, work, &w, s);
    add_rows(
        family, r, cut_at(r, blocks, block), cut_at(r, blocks, block + 1), coef[r->columns], &w, s);
    if (s->hessian) pack_hessian(&w, r->columns, s->hessian);
}

static void means_of(enum mr_glm_family family, double *eta, uint32_t rows)
{
    for (uint32_t i = 0; i < rows && family == MR_GLM_LOGISTIC; i++) {
        double e = mr_glm_exp(eta[i] < 0 ? eta[i] : -eta[i]);
        eta[i] = (eta[i] < 0 ? e : 1.0) / (1.0 + e);
    }
    for (uint32_t i = 0; i < rows && family == MR_GLM_POISSON; i++)
        eta[i] = mr_glm_exp(eta[i]);
}

void mr_glm_predict(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, bool means, double *eta)
{
    struct work w;
    lay_out(work, r->columns, false, &w);
    take_coef(&w, coef, r->columns);
    uint64_t in_place = rows_in_place(r, w.pitch);
    uint32_t step = block_rows(r->columns);
    for (uint64_t i = 0; i < r->rows;) {
        bool direct = i < in_place;
        struct block b =
            direct ? block_at(r, i, MR_MIN(in_place - i, (uint64_t)step)) : tail_at(r, i, &w);
        eta_of(&b, r->columns, coef[r->columns], &w, w.eta, NULL);
        if (means) means_of(family, w.eta, b.rows);
        memcpy(eta + i, w.eta, b.rows * sizeof *eta);
        i += b.rows;
    }
}
