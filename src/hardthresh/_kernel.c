/* The local search of `hardthresh.solvers.working_set.tableau`, the search by refits of a model, and products with packed
 * genotypes, compiled.
 *
 * The functions on a tableau make the same moves as the NumPy methods of a `Tableau`, which document them and which run
 * where this module was not built. The notation is that of the class: S are the chosen columns, A is the inverse of
 * G_SS, b are the coefficients, g is the slope of each column, h what S leaves of it unexplained, and U = A G_S. are the
 * regressions of all columns on S. A move changes b, A, g and h by one product of a row of A, or of the regression of
 * the new column, with the rows of G: it reads s rows and writes one. U, which takes s rows to write, is only needed to
 * compare exchanges; it is computed at the first comparison, and updated from there on. With several right-hand sides b
 * and g have a row for each, gains and costs are sums over these, and there are no bounds.
 *
 * C11 on the limited API of CPython 3.11. The GIL is released within a search.
 */
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The loader takes the first of these clones that the processor can run. The levels of x86-64 are sets of features,
 * which processors of every maker report. The name of a processor, such as "haswell", would leave the others with the
 * slowest clone; it does not compile here, because instruction_set() asks for the same text as a feature. Clones need
 * GCC 12 and, for the choice at load time, glibc. arm64 has vectors of one width. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE "x86-64-v4"
#define MIDDLE "x86-64-v3"
#define VECTORISED __attribute__((target_clones("arch=" WIDE, "arch=" MIDDLE, "default")))
#else
#define VECTORISED
#endif
#if defined(_MSC_VER)
#define INLINE static __forceinline
#define restrict __restrict
#else
#define INLINE static inline __attribute__((always_inline))
#endif

typedef int64_t index_t;

/* The constants of tableau.py, which says where they come from. */
static const double TIE = 1 - 1e-7, DEPENDENT = 1e-9, DOUBTFUL = 1e-3, ERROR = 1e-10;

/* ---- vectors -------------------------------------------------------------------------------------------------- */

/* y += sum_i f[i] rows[i][first:]; four rows at a time, so that y is read and written once for four. */
VECTORISED static void add_rows(double *restrict y, const double *const *rows, index_t first, const double *restrict f,
                                index_t count, index_t n)
{
    index_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const double *restrict r0 = rows[i] + first, *restrict r1 = rows[i + 1] + first,
                     *restrict r2 = rows[i + 2] + first, *restrict r3 = rows[i + 3] + first;
        const double f0 = f[i], f1 = f[i + 1], f2 = f[i + 2], f3 = f[i + 3];
        for (index_t t = 0; t < n; t++) y[t] += (f0 * r0[t] + f1 * r1[t]) + (f2 * r2[t] + f3 * r3[t]);
    }
    for (; i < count; i++) {
        const double *restrict r = rows[i] + first;
        const double fi = f[i];
        for (index_t t = 0; t < n; t++) y[t] += fi * r[t];
    }
}

/* y += factor x */
VECTORISED static void add_scaled(double *restrict y, const double *restrict x, double factor, index_t n)
{
    for (index_t t = 0; t < n; t++) y[t] += factor * x[t];
}

VECTORISED static void divide(double *restrict y, double divisor, index_t n)
{
    for (index_t t = 0; t < n; t++) y[t] /= divisor;
}

/* y += scale row^2 */
VECTORISED static void add_squares(double *restrict y, const double *restrict row, double scale, index_t n)
{
    for (index_t t = 0; t < n; t++) y[t] += row[t] * (row[t] * scale);
}

enum { LANES = 16 };

/* Twice the gain of a step of column t from zero along its slope: to the minimum, or to a bound on the way. */
INLINE double twice_gain(double slope, double rest, const double *bounds, index_t m, index_t t)
{
    const double step = slope / rest, whole = slope * step;
    if (!bounds) return whole;
    const double low = bounds[t], high = bounds[m + t], above = step < low ? low : step;
    const double inside = above > high ? high : above, part = inside * (2.0 * slope - rest * inside);
    return inside == step ? whole : part; /* the part is not a number where the rest is infinite */
}

/* The gain of adding each column, and the largest of them; NaN if one of them is. */
INLINE double gains_of(const double *restrict slope, const double *restrict unexplained,
                       const double *restrict dependent, const double *restrict excluded, const double *bounds,
                       double *restrict gain, index_t m)
{
    double best[LANES] = {0.0}, sum[LANES] = {0.0}, largest = 0.0, total = 0.0;
    index_t t = 0;
    for (; t + LANES <= m; t += LANES)
        for (int l = 0; l < LANES; l++) {
            const double rest = unexplained[t + l] > dependent[t + l] ? unexplained[t + l] : (double)INFINITY;
            const double g = 0.5 * twice_gain(slope[t + l], rest + excluded[t + l], bounds, m, t + l);
            gain[t + l] = g;
            best[l] = g > best[l] ? g : best[l];
            sum[l] += g;
        }
    for (; t < m; t++) {
        const double rest = unexplained[t] > dependent[t] ? unexplained[t] : (double)INFINITY;
        gain[t] = 0.5 * twice_gain(slope[t], rest + excluded[t], bounds, m, t);
        largest = gain[t] > largest ? gain[t] : largest;
        total += gain[t];
    }
    for (int l = 0; l < LANES; l++) {
        largest = best[l] > largest ? best[l] : largest;
        total += sum[l]; /* gains are not negative: NaN is the only way to NaN */
    }
    return isnan(total) ? total : largest;
}

VECTORISED static double unbounded_gains(const double *slope, const double *unexplained, const double *dependent,
                                         const double *excluded, double *gain, index_t m)
{
    return gains_of(slope, unexplained, dependent, excluded, NULL, gain, m);
}

/* The same for several right-hand sides, whose slopes are one row after the other. */
VECTORISED static double gains_of_sides(const double *restrict slope, index_t sides, const double *restrict unexplained,
                                        const double *restrict dependent, const double *restrict excluded,
                                        double *restrict gain, index_t m)
{
    double largest = 0.0, total = 0.0;
    for (index_t t = 0; t < m; t++) gain[t] = 0.0;
    for (index_t r = 0; r < sides; r++)
        for (index_t t = 0; t < m; t++) gain[t] += slope[r * m + t] * slope[r * m + t];
    for (index_t t = 0; t < m; t++) {
        const double rest = unexplained[t] > dependent[t] ? unexplained[t] : (double)INFINITY;
        gain[t] = 0.5 * (gain[t] / (rest + excluded[t]));
    }
    for (index_t t = 0; t < m; t++) {
        largest = gain[t] > largest ? gain[t] : largest;
        total += gain[t];
    }
    return isnan(total) ? total : largest;
}

VECTORISED static double bounded_gains(const double *slope, const double *unexplained, const double *dependent,
                                       const double *excluded, const double *bounds, double *gain, index_t m)
{
    return gains_of(slope, unexplained, dependent, excluded, bounds, gain, m);
}

/* A chosen column that is dropped: its row, of U or the one by which it would be shifted, its scale, its coefficient
 * in units of that, and 1 if what is left of other columns unexplained grows, or 0 if the column is held. */
typedef struct {
    const double *row;
    double scale, shift, widens;
} Dropped;

/* Twice the gain of column t once a chosen one is dropped. */
INLINE double exchange_gain(Dropped it, const double *slope, const double *rest, const double *bounds, index_t m,
                            index_t t)
{
    const double u = it.row[t] * it.scale;
    return twice_gain(slope[t] + u * it.shift, rest[t] + it.widens * (u * u), bounds, m, t);
}

/* The largest of these gains over the columns. */
INLINE double largest_exchange_gain(Dropped it, const double *restrict slope, const double *restrict rest,
                                    const double *bounds, index_t m)
{
    double best[LANES], largest = -(double)INFINITY;
    index_t t = 0;
    for (int l = 0; l < LANES; l++) best[l] = -(double)INFINITY;
    for (; t + LANES <= m; t += LANES)
        for (int l = 0; l < LANES; l++) {
            const double g = exchange_gain(it, slope, rest, bounds, m, t + l);
            best[l] = g > best[l] ? g : best[l];
        }
    for (; t < m; t++) {
        const double g = exchange_gain(it, slope, rest, bounds, m, t);
        largest = g > largest ? g : largest;
    }
    for (int l = 0; l < LANES; l++) largest = best[l] > largest ? best[l] : largest;
    return largest;
}

VECTORISED static double unbounded_exchange(Dropped it, const double *slope, const double *rest, index_t m)
{
    it.widens = 1.0;
    return largest_exchange_gain(it, slope, rest, NULL, m);
}

/* Twice the gains of the columns for several right-hand sides, once a chosen column is dropped; returns the largest. */
VECTORISED static double exchanges_of_sides(const double *restrict row, const double *restrict slope, index_t sides,
                                            const double *restrict rest, double scale, const double *restrict shift,
                                            double *restrict gain, index_t m)
{
    double largest = -(double)INFINITY;
    for (index_t t = 0; t < m; t++) gain[t] = 0.0;
    for (index_t r = 0; r < sides; r++) {
        const double by = shift[r] * scale;
        for (index_t t = 0; t < m; t++) {
            const double s = slope[r * m + t] + row[t] * by;
            gain[t] += s * s;
        }
    }
    for (index_t t = 0; t < m; t++) {
        const double u = row[t] * scale;
        gain[t] /= rest[t] + u * u;
    }
    for (index_t t = 0; t < m; t++) largest = gain[t] > largest ? gain[t] : largest;
    return largest;
}

VECTORISED static double bounded_exchange(Dropped it, const double *slope, const double *rest, const double *bounds,
                                          index_t m)
{
    return largest_exchange_gain(it, slope, rest, bounds, m);
}

/* ---- genotypes ------------------------------------------------------------------------------------------------ */

/* A byte holds four genotypes of two bits, the first in the lowest; 1 is a missing one. `hardthresh.designs.genotypes`
 * says what these functions compute. A table has the sum over four genotypes for each of 256 bytes: an addition for
 * four genotypes. Sums are in double precision and in a fixed order. */

enum { LINE = 64, GROUP = 8, COLUMNS = 256 };

/* table[b] = the sum over the four genotypes of byte b of value x number. */
INLINE void fill_table(double *restrict table, const double *value, const double *number)
{
    for (int code = 0; code < 4; code++) table[code] = value[code] * number[0];
    for (int place = 1, size = 4; place < 4; place++, size *= 4)
        for (int code = 3; code >= 0; code--) {
            const double term = value[code] * number[place];
            for (int b = 0; b < size; b++) table[code * size + b] = table[b] + term;
        }
}

/* Copy a line of each column, or its end; bytes beyond the columns are read as 0, and their numbers are 0. */
static void copy_lines(uint8_t *restrict lines, const uint8_t *packed, index_t columns, index_t width, index_t first)
{
    const index_t size = width - first < LINE ? width - first : LINE;
    for (index_t j = 0; j < columns; j++) {
        memcpy(lines + j * LINE, packed + j * width + first, (size_t)size);
        if (size < LINE) memset(lines + j * LINE + size, 0, (size_t)(LINE - size));
    }
}

/* A block of at most COLUMNS columns of n genotypes, `width` bytes each; the value of each code; and for some right-hand
 * sides a number for each example and a sum for each column, of all blocks: `stride` numbers and `total` sums for each
 * side. Beyond the examples the numbers are 0, for whole lines. */
typedef struct {
    const uint8_t *packed;
    index_t columns, width, n, sides, stride, total;
    const double *value, *number;
    double *sums;
    index_t *counts;
} Genotypes;

/* sums[r, j] += sum_i value[code of i in column j] number[r, i] */
VECTORISED static void sum_genotypes(const Genotypes *g)
{
    uint8_t lines[COLUMNS * LINE];
    double tables[GROUP][256];
    for (index_t first = 0; first < g->width; first += LINE) {
        copy_lines(lines, g->packed, g->columns, g->width, first);
        for (index_t group = 0; group < LINE && first + group < g->width; group += GROUP)
            for (index_t r = 0; r < g->sides; r++) {
                const double *number = g->number + r * g->stride + 4 * (first + group);
                double *restrict sums = g->sums + r * g->total;
                for (int i = 0; i < GROUP; i++) fill_table(tables[i], g->value, number + 4 * i);
                for (index_t j = 0; j < g->columns; j++) {
                    const uint8_t *b = lines + j * LINE + group;
                    sums[j] += ((tables[0][b[0]] + tables[1][b[1]]) + (tables[2][b[2]] + tables[3][b[3]]))
                               + ((tables[4][b[4]] + tables[5][b[5]]) + (tables[6][b[6]] + tables[7][b[7]]));
                }
            }
    }
}

/* Eight bytes of a column, or those that are left, as 32 genotypes. */
INLINE uint64_t word_of(const uint8_t *b, index_t left)
{
    uint64_t word = 0;
    if (left >= 8)
        for (int k = 0; k < 8; k++) word |= (uint64_t)b[k] << (8 * k);
    else
        for (index_t k = 0; k < left; k++) word |= (uint64_t)b[k] << (8 * k);
    return word;
}

/* out[j, i] = value[j, code of i in column j] for 4 * width examples i. */
VECTORISED static void unpack_genotypes(const uint8_t *packed, index_t columns, index_t width, const double *value,
                                        double *restrict out)
{
    for (index_t j = 0; j < columns; j++) {
        const uint8_t *restrict b = packed + j * width;
        const double *of = value + 4 * j;
        for (index_t t = 0; t < width; t++, out += 4)
            for (int place = 0; place < 4; place++) out[place] = of[(b[t] >> (2 * place)) & 3];
    }
}

/* sums[r, j] += the sum of number[r, i] over the missing genotypes of column j, by increasing i. */
static void sum_missing(const Genotypes *g)
{
    for (index_t j = 0; j < g->columns; j++)
        for (index_t first = 0; first < g->width; first += 8) {
            const uint64_t word = word_of(g->packed + j * g->width + first, g->width - first);
            uint64_t missing = word & ~(word >> 1) & 0x5555555555555555u;
            for (index_t i = 4 * first; missing; i++, missing >>= 2) {
                while (!(missing & 0xFF)) missing >>= 8, i += 4;
                if (missing & 1)
                    for (index_t r = 0; r < g->sides; r++)
                        g->sums[r * g->total + j] += g->number[r * g->stride + i];
            }
        }
}

INLINE index_t bits_of(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (index_t)((((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u) >> 56);
}

/* counts[j, code] = how many of the n genotypes of column j have the code. */
VECTORISED static void count_genotypes(const Genotypes *g)
{
    for (index_t j = 0; j < g->columns; j++) {
        index_t low = 0, high = 0, both = 0;
        for (index_t first = 0; first < g->width; first += 8) {
            const index_t left = g->n - 4 * first;
            const uint64_t word = word_of(g->packed + j * g->width + first, g->width - first)
                                  & (left < 32 ? ((uint64_t)1 << (2 * left)) - 1 : ~(uint64_t)0);
            const uint64_t l = word & 0x5555555555555555u, h = (word >> 1) & 0x5555555555555555u;
            low += bits_of(l);
            high += bits_of(h);
            both += bits_of(l & h);
        }
        const index_t found[4] = {g->n - low - high + both, low - both, high - both, both};
        memcpy(g->counts + 4 * j, found, sizeof found);
    }
}

/* out[i] += sum_j value[j, code of i in column j] over the columns in their order; `out` has 4 * width entries. */
VECTORISED static void add_genotypes(const uint8_t *packed, index_t columns, index_t width, const double *value,
                                     double *restrict out)
{
    double table[256][4];
    for (index_t j = 0; j < columns; j++) {
        const uint8_t *restrict b = packed + j * width;
        for (int code = 0; code < 256; code++)
            for (int place = 0; place < 4; place++) table[code][place] = value[4 * j + ((code >> (2 * place)) & 3)];
        for (index_t t = 0; t < width; t++)
            for (int place = 0; place < 4; place++) out[4 * t + place] += table[b[t]][place];
    }
}

/* ---- the tableau ---------------------------------------------------------------------------------------------- */

typedef struct {
    const double *gram;
    index_t gram_size;
    const index_t *gram_rows; /* the row of gram for each column, or NULL if column t is row t */
    index_t m, sides; /* the right-hand sides: start_slope and start_coef have a row for each */
    const double *norms, *dependent, *start_slope, *start_coef, *bounds; /* lower ones, then upper ones, or NULL */
    const index_t *is_free;
    const double **rows; /* of each column over all columns: NULL until it is needed, then of gram or of gathered */
    double *gathered;
    double *row, *rest, *point, *cholesky, *factor, *regression, *shift; /* scratch, never live across a move */
    const double **chosen_rows;
    index_t *wanted, *order; /* scratch of `enter` and `leave`, and of `replace` */
} Problem;

typedef struct {
    const Problem *problem;
    double *inverse, *coef, *slope, *unexplained, *excluded; /* A (slots x slots), b (sides x slots), g (sides x m), h;
                                                                infinite for S, else 0 */
    double *regressions;                                     /* U (slots x m), if has_regressions */
    double *level;                                           /* the coefficient of held columns, else 0 (m) */
    index_t *chosen, *held, slots, size, n_held, n_free, kept_out; /* a column that may not be chosen for now, or -1 */
    int has_regressions;
    double decrease;
} Tableau;

/* The row of G for a column, over the columns of the tableau. */
static const double *row_of(const Problem *p, index_t j)
{
    if (p->rows[j] == NULL) {
        const double *restrict row = p->gram + (p->gram_rows ? p->gram_rows[j] : j) * p->gram_size;
        if (p->gram_rows) {
            double *restrict out = p->gathered + j * p->m;
            for (index_t t = 0; t < p->m; t++) out[t] = row[p->gram_rows[t]];
            row = out;
        }
        p->rows[j] = row;
    }
    return p->rows[j];
}

static const double **rows_of_chosen(const Tableau *T)
{
    for (index_t i = 0; i < T->size; i++) T->problem->chosen_rows[i] = row_of(T->problem, T->chosen[i]);
    return T->problem->chosen_rows;
}

/* Copy a tableau, all but its regressions, into one that may have another number of slots. */
static void copy_to(Tableau *to, const Tableau *from)
{
    const size_t m = (size_t)from->problem->m, size = (size_t)from->size;
    for (index_t i = 0; i < from->size; i++)
        memcpy(to->inverse + i * to->slots, from->inverse + i * from->slots, sizeof(double) * size);
    for (index_t r = 0; r < from->problem->sides; r++)
        memcpy(to->coef + r * to->slots, from->coef + r * from->slots, sizeof(double) * size);
    memcpy(to->slope, from->slope, sizeof(double) * m * (size_t)from->problem->sides);
    memcpy(to->unexplained, from->unexplained, sizeof(double) * m);
    memcpy(to->excluded, from->excluded, sizeof(double) * m);
    memcpy(to->chosen, from->chosen, sizeof(index_t) * size);
    if (from->problem->bounds) {
        memcpy(to->held, from->held, sizeof(index_t) * (size_t)from->n_held);
        memcpy(to->level, from->level, sizeof(double) * m);
    }
    to->size = from->size;
    to->n_held = from->n_held;
    to->n_free = from->n_free;
    to->kept_out = from->kept_out;
    to->decrease = from->decrease;
    to->has_regressions = 0;
}

static void swap(Tableau *a, Tableau *b)
{
    const Tableau kept = *a;
    *a = *b;
    *b = kept;
}

/* Compute U = A G_S., by blocks of columns whose rows stay in the first cache. */
static void compute_regressions(Tableau *T)
{
    enum { BLOCK = 64 };
    const index_t m = T->problem->m;
    if (T->has_regressions) return;
    const double **rows = rows_of_chosen(T);
    memset(T->regressions, 0, sizeof(double) * (size_t)(T->size * m));
    for (index_t first = 0; first < m; first += BLOCK) {
        const index_t n = first + BLOCK < m ? BLOCK : m - first;
        for (index_t i = 0; i < T->size; i++)
            add_rows(T->regressions + i * m + first, rows, first, T->inverse + i * T->slots, T->size, n);
    }
    T->has_regressions = 1;
}

/* Copy a tableau that only a few moves will change: its regressions too, which cost O(s^2 m) to compute, O(s m) to copy
 * and O(s m) to update in each move. */
static void copy_for_few_moves(Tableau *to, Tableau *from)
{
    compute_regressions(from); /* once for all copies */
    copy_to(to, from);
    memcpy(to->regressions, from->regressions, sizeof(double) * (size_t)(from->size * from->problem->m));
    to->has_regressions = 1;
}

/* Compute everything from the Gram matrix for some columns besides the held ones, without combinations of earlier
 * ones. */
static void compute(Tableau *T, const index_t *wanted, index_t count)
{
    const Problem *p = T->problem;
    const index_t m = p->m, slots = T->slots;
    double *L = p->cholesky, *z = p->factor, *f = p->regression;
    const double **half = p->chosen_rows; /* the rows of L^-1 G_S., then of L^-1 and A */
    index_t size = 0, n_free = 0;
    for (index_t w = 0; w < count; w++) {
        const index_t j = wanted[w];
        const double norm = p->norms[j], scale = norm > 0 ? sqrt(norm) : 1.0;
        double *line = L + size * slots, unexplained = norm / scale / scale;
        for (index_t i = 0; i < size; i++) {
            double product = row_of(p, T->chosen[i])[j] / sqrt(p->norms[T->chosen[i]]) / scale;
            for (index_t k = 0; k < i; k++) product -= L[i * slots + k] * line[k];
            line[i] = product / L[i * slots + i];
            unexplained -= line[i] * line[i];
        }
        if (!(unexplained > DEPENDENT)) continue;
        line[size] = sqrt(unexplained);
        T->chosen[size++] = j;
        n_free += p->is_free[j] != 0;
    }
    for (index_t k = 0; k < T->n_held; k++) n_free += p->is_free[T->held[k]] != 0;
    T->size = size;
    T->n_free = n_free;
    memset(T->excluded, 0, sizeof(double) * (size_t)m);
    for (index_t i = 0; i < size; i++) T->excluded[T->chosen[i]] = (double)INFINITY;

    double rise = 0.0; /* at the start, with their levels for the columns that do not move */
    memcpy(T->slope, p->start_slope, sizeof(double) * (size_t)(m * p->sides));
    for (index_t r = 0; r < p->sides; r++) {
        const double *before = p->start_slope + r * m, *coef = p->start_coef + r * m;
        double *slope = T->slope + r * m;
        for (index_t j = 0; j < m; j++)
            if (coef[j] != T->level[j] && T->excluded[j] == 0.0)
                add_scaled(slope, row_of(p, j), coef[j] - T->level[j], m);
        for (index_t j = 0; j < m; j++)
            if (coef[j] != T->level[j] && T->excluded[j] == 0.0)
                rise += (coef[j] - T->level[j]) * 0.5 * (before[j] + slope[j]);
    }

    for (index_t k = 0; k < T->n_held; k++) T->excluded[T->held[k]] = (double)INFINITY;
    if (T->kept_out >= 0) T->excluded[T->kept_out] = (double)INFINITY; /* only now: its coefficient has become zero */
    T->decrease = -rise;
    memcpy(T->unexplained, p->norms, sizeof(double) * (size_t)m);
    for (index_t i = 0; i < size; i++) { /* L^-1 G_S., in the memory of U, and z = L^-1 g_S for each side */
        const index_t j = T->chosen[i];
        const double scale = sqrt(p->norms[j]), pivot = L[i * slots + i];
        double *row = T->regressions + i * m;
        for (index_t k = 0; k < i; k++) f[k] = -L[i * slots + k] / pivot;
        for (index_t r = 0; r < p->sides; r++) {
            double *of_side = z + r * slots;
            of_side[i] = T->slope[r * m + j] / scale;
            for (index_t k = 0; k < i; k++) of_side[i] -= L[i * slots + k] * of_side[k];
            of_side[i] /= pivot;
            T->decrease += 0.5 * of_side[i] * of_side[i];
        }
        memset(row, 0, sizeof(double) * (size_t)m);
        add_scaled(row, row_of(p, j), 1.0 / (scale * pivot), m);
        add_rows(row, half, 0, f, i, m);
        half[i] = row;
        add_squares(T->unexplained, row, -1.0, m);
    }
    for (index_t r = 0; r < p->sides; r++) {
        for (index_t i = 0; i < size; i++) f[i] = -z[r * slots + i];
        add_rows(T->slope + r * m, half, 0, f, size, m);
    }
    for (index_t i = 0; i < size; i++) { /* L^-1 in the place of A, and b = start + (L^-1)' z */
        double *row = T->inverse + i * slots;
        for (index_t k = 0; k < i; k++) f[k] = -L[i * slots + k] / L[i * slots + i];
        memset(row, 0, sizeof(double) * (size_t)size);
        row[i] = 1.0 / (L[i * slots + i] * sqrt(p->norms[T->chosen[i]]));
        add_rows(row, half, 0, f, i, i);
        half[i] = row;
        for (index_t r = 0; r < p->sides; r++) T->coef[r * slots + i] = p->start_coef[r * m + T->chosen[i]];
    }
    for (index_t r = 0; r < p->sides; r++) add_rows(T->coef + r * slots, half, 0, z + r * slots, size, size);
    for (index_t i = 0; i < size; i++) half[i] = T->inverse + i * slots;
    for (index_t i = size - 1; i >= 0; i--) { /* A = L^-T L^-1, from the last row */
        double *row = T->inverse + i * slots;
        for (index_t k = i + 1; k < size; k++) f[k] = -L[k * slots + i];
        add_rows(row, half + i + 1, 0, f + i + 1, size - i - 1, size);
        divide(row, L[i * slots + i], size);
    }
    for (index_t i = 0; i < size; i++) divide(T->inverse + i * slots, sqrt(p->norms[T->chosen[i]]), size);
    T->has_regressions = 0;
}

/* The error of a regression of column j at the others, where it must be zero, as a share of a coefficient. */
static double error_of(const Tableau *T, const double *row, double divisor, index_t except, index_t j)
{
    double worst = 0.0;
    for (index_t i = 0; i < T->size; i++) {
        const index_t other = T->chosen[i];
        const double norms = T->problem->norms[j] / T->problem->norms[other];
        const double error = fabs(row[other] / divisor) * sqrt(norms);
        if (i != except && !(error <= worst)) worst = error; /* NaN counts */
    }
    return worst;
}

/* Write minus the regression of a column on those that move, and its products with what they leave of all columns. */
static void regress(const Tableau *T, index_t j, double *regression, double *row)
{
    const Problem *p = T->problem;
    const index_t size = T->size;
    const double *own = row_of(p, j), **rows = rows_of_chosen(T);
    double *f = p->factor;
    for (index_t i = 0; i < size; i++) f[i] = -own[T->chosen[i]];
    memset(regression, 0, sizeof(double) * (size_t)size);
    for (index_t i = 0; i < size; i++) add_scaled(regression, T->inverse + i * T->slots, f[i], size);
    memcpy(row, own, sizeof(double) * (size_t)p->m);
    add_rows(row, rows, 0, regression, size, p->m);
}

/* Let a column move whose coefficient is `from` now. */
static void enter(Tableau *T, index_t j, double from)
{
    const Problem *p = T->problem;
    const index_t slots = T->slots, size = T->size, m = p->m;
    double *row = p->row, *regression = p->regression;
    regress(T, j, regression, row);
    const double unexplained = T->unexplained[j];
    if (unexplained < DOUBTFUL * p->norms[j] && !(error_of(T, row, unexplained, -1, j) <= ERROR)) {
        memcpy(p->wanted, T->chosen, sizeof(index_t) * (size_t)size);
        p->wanted[size] = j;
        compute(T, p->wanted, size + 1);
        if (T->excluded[j] == 0.0) T->unexplained[j] = 0.0; /* a combination of the others, up to rounding */
        return;
    }
    divide(row, unexplained, m);
    add_squares(T->unexplained, row, -unexplained, m);
    for (index_t r = 0; r < p->sides; r++) {
        double *slope = T->slope + r * m, *of_side = T->coef + r * slots;
        const double coef = slope[j] / unexplained;
        T->decrease += 0.5 * slope[j] * coef;
        add_scaled(slope, row, -coef * unexplained, m);
        add_scaled(of_side, regression, coef, size);
        of_side[size] = from + coef;
    }
    for (index_t i = 0; i < size; i++) {
        const double scaled = regression[i] / unexplained;
        add_scaled(T->inverse + i * slots, regression, scaled, size);
        T->inverse[i * slots + size] = T->inverse[size * slots + i] = scaled;
        if (T->has_regressions) add_scaled(T->regressions + i * m, row, regression[i], m);
    }
    T->inverse[size * slots + size] = 1.0 / unexplained;
    if (T->has_regressions) memcpy(T->regressions + size * m, row, sizeof(double) * (size_t)m);
    T->chosen[size] = j;
    T->excluded[j] = (double)INFINITY;
    T->size = size + 1;
}

/* Set the coefficient in a slot to a value, from where it does not move; unless that is zero, or the column is free,
 * it is held there. The last column that moves takes its slot. */
static void leave(Tableau *T, index_t slot, double value)
{
    const Problem *p = T->problem;
    const index_t slots = T->slots, last = T->size - 1, j = T->chosen[slot], m = p->m;
    double *row = p->row, *f = p->factor, *A = T->inverse;
    const int is_held = value != 0.0 || p->is_free[j];
    if (is_held) {
        T->held[T->n_held++] = j;
        T->level[j] = value;
    }
    const double diagonal = A[slot * slots + slot];
    if (T->has_regressions) {
        memcpy(row, T->regressions + slot * m, sizeof(double) * (size_t)m);
    } else {
        memset(row, 0, sizeof(double) * (size_t)m);
        add_rows(row, rows_of_chosen(T), 0, A + slot * slots, last + 1, m);
    }
    if (!(diagonal * p->norms[j] < 1.0 / DOUBTFUL) && !(error_of(T, row, 1.0, slot, j) <= ERROR)) {
        memcpy(p->wanted, T->chosen, sizeof(index_t) * (size_t)last);
        if (slot < last) p->wanted[slot] = T->chosen[last];
        compute(T, p->wanted, last);
        return;
    }
    divide(row, diagonal, m);
    add_squares(T->unexplained, row, diagonal, m);
    memcpy(f, A + slot * slots, sizeof(double) * (size_t)(last + 1));
    for (index_t r = 0; r < p->sides; r++) {
        double *of_side = T->coef + r * slots;
        const double coef = of_side[slot] - value;
        T->decrease -= 0.5 * coef * (coef / diagonal);
        add_scaled(T->slope + r * m, row, coef, m);
        add_scaled(of_side, f, -coef / diagonal, last + 1);
    }
    for (index_t i = 0; i <= last; i++) {
        if (i == slot) continue;
        add_scaled(A + i * slots, f, -f[i] / diagonal, last + 1);
        if (T->has_regressions) add_scaled(T->regressions + i * m, row, -f[i], m);
    }
    T->excluded[j] = is_held ? (double)INFINITY : 0.0;
    if (slot < last) {
        for (index_t i = 0; i < last; i++) A[i * slots + slot] = A[i * slots + last];
        memcpy(A + slot * slots, A + last * slots, sizeof(double) * (size_t)last);
        A[slot * slots + slot] = A[last * slots + last];
        for (index_t r = 0; r < p->sides; r++) T->coef[r * slots + slot] = T->coef[r * slots + last];
        T->chosen[slot] = T->chosen[last];
        if (T->has_regressions)
            memcpy(T->regressions + slot * m, T->regressions + last * m, sizeof(double) * (size_t)m);
    }
    T->size = last;
}

/* Set the coefficient of a column that does not move to a value. */
static void shift(Tableau *T, index_t j, double value)
{
    const Problem *p = T->problem;
    const double by = value - T->level[j];
    if (by == 0.0) return;
    regress(T, j, p->regression, p->row);
    T->decrease += by * (T->slope[j] - 0.5 * by * T->unexplained[j]);
    add_scaled(T->slope, p->row, -by, p->m);
    add_scaled(T->coef, p->regression, by, T->size);
    T->level[j] = value;
}

/* Take a held column out of those; its level stays. */
static index_t not_held(Tableau *T, index_t k)
{
    const index_t j = T->held[k];
    T->held[k] = T->held[--T->n_held];
    T->excluded[j] = 0.0;
    return j;
}

/* Let a held column move. */
static void release(Tableau *T, index_t k)
{
    const index_t j = not_held(T, k);
    const double from = T->level[j];
    T->level[j] = 0.0;
    enter(T, j, from);
}

/* Hold a column that is not chosen at a value. */
static void hold(Tableau *T, index_t j, double value)
{
    shift(T, j, value);
    T->held[T->n_held++] = j;
    T->excluded[j] = (double)INFINITY;
}

/* The columns that are chosen have places: those that move have their slots, and then come the held ones. */
static index_t size_of(const Tableau *T) { return T->size + T->n_held; }

static index_t column_at(const Tableau *T, index_t place)
{
    return place < T->size ? T->chosen[place] : T->held[place - T->size];
}

static index_t place_among(const index_t *columns, index_t count, index_t j)
{
    index_t place = 0;
    while (place < count && columns[place] != j) place++;
    return place;
}

static index_t place_of_column(const Tableau *T, index_t j)
{
    index_t place = 0;
    while (place < size_of(T) && column_at(T, place) != j) place++;
    return place;
}

/* Put the coefficients into a point over all columns. */
static void to_point(const Tableau *T, double *point)
{
    memcpy(point, T->level, sizeof(double) * (size_t)T->problem->m);
    for (index_t i = 0; i < T->size; i++) point[T->chosen[i]] = T->coef[i];
}

/* Go from a point within the bounds towards the minimiser, and leave each coefficient at the bound that it meets. */
static void go_within_bounds(Tableau *T, double *point)
{
    const double *low = T->problem->bounds, *high = low + T->problem->m;
    for (;;) {
        double reach = (double)INFINITY, bound = 0.0;
        index_t slot = -1;
        for (index_t i = 0; i < T->size; i++) {
            const index_t j = T->chosen[i];
            const double here = point[j], coef = T->coef[i];
            if (!(coef < low[j] || coef > high[j])) continue;
            const double met = coef < low[j] ? low[j] : high[j], part = (here - met) / (here - coef);
            if (slot < 0 || part < reach) reach = part, slot = i, bound = met;
        }
        if (slot < 0) return;
        for (index_t i = 0; i < T->size; i++) {
            double *here = point + T->chosen[i];
            *here += reach * (T->coef[i] - *here);
        }
        point[T->chosen[slot]] = bound;
        leave(T, slot, bound);
    }
}

/* The held column whose release lowers q most, -1 if none does. */
static index_t best_release(const Tableau *T)
{
    const Problem *p = T->problem;
    const double *low = p->bounds, *high = low + p->m;
    double best = 0.0;
    index_t found = -1;
    for (index_t k = 0; k < T->n_held; k++) {
        const index_t j = T->held[k];
        const double level = T->level[j], rest = T->unexplained[j];
        if (!(rest > p->dependent[j])) continue;
        double to = level + T->slope[j] / rest;
        to = to < low[j] ? low[j] : to > high[j] ? high[j] : to;
        const double by = to - level, gain = by * (T->slope[j] - 0.5 * by * rest);
        if (fabs(by) > ERROR * fabs(level) && gain > best) best = gain, found = k;
    }
    return found;
}

/* Go from a point within the bounds to the minimiser within them. */
static void settle(Tableau *T, double *point)
{
    for (;;) {
        go_within_bounds(T, point);
        const double decrease = T->decrease;
        const index_t k = best_release(T);
        if (k < 0) return;
        to_point(T, point);
        release(T, k);
        go_within_bounds(T, point);
        if (!(T->decrease > decrease)) return; /* rounding */
    }
}

/* Add a column, unless it is a combination of those chosen, and return whether q has fallen. */
static int add(Tableau *T, index_t j)
{
    const Problem *p = T->problem;
    const double decrease = T->decrease;
    if (!(T->unexplained[j] > p->dependent[j])) return 0;
    if (p->bounds) to_point(T, p->point);
    enter(T, j, 0.0);
    if (p->bounds) settle(T, p->point);
    return T->decrease > decrease;
}

static void drop(Tableau *T, index_t place)
{
    const Problem *p = T->problem;
    if (p->bounds) to_point(T, p->point);
    if (place < T->size)
        leave(T, place, 0.0);
    else
        shift(T, not_held(T, place - T->size), 0.0);
    if (p->bounds) settle(T, p->point);
}

static double diagonal_of(const Tableau *T, index_t slot) { return T->inverse[slot * T->slots + slot]; }

static double cost_of(const Tableau *T, index_t place)
{
    const index_t j = column_at(T, place);
    double cost = 0.0;
    if (T->problem->is_free[j]) return (double)INFINITY;
    if (place >= T->size) return T->level[j] * (T->slope[j] + 0.5 * T->level[j] * T->unexplained[j]);
    const double diagonal = diagonal_of(T, place);
    if (!(diagonal > 0)) return (double)INFINITY;
    for (index_t r = 0; r < T->problem->sides; r++) {
        const double coef = T->coef[r * T->slots + place];
        cost += 0.5 * coef * (coef / diagonal);
    }
    return cost;
}

/* The gain that a chosen column would have if it were not chosen, and alone in changing. */
static double score_of(const Tableau *T, index_t place)
{
    const Problem *p = T->problem;
    const index_t j = column_at(T, place);
    if (place >= T->size)
        return 0.5 * twice_gain(T->slope[j] + T->level[j] * T->unexplained[j], p->norms[j], p->bounds, p->m, j);
    const double diagonal = diagonal_of(T, place) > 0 ? diagonal_of(T, place) : 1.0;
    return cost_of(T, place) / (diagonal * p->norms[j]);
}

/* ---- moves ---------------------------------------------------------------------------------------------------- */

/* The column whose addition lowers q most; of equal gains the one with the largest unexplained share, then the first. */
static index_t best_addition(const Tableau *T, double *gain_of_it)
{
    const Problem *p = T->problem;
    const double *slope = T->slope;
    double *gain = p->rest;
    const double largest =
        p->sides > 1 ? gains_of_sides(slope, p->sides, T->unexplained, p->dependent, T->excluded, gain, p->m)
        : p->bounds  ? bounded_gains(slope, T->unexplained, p->dependent, T->excluded, p->bounds, gain, p->m)
                     : unbounded_gains(slope, T->unexplained, p->dependent, T->excluded, gain, p->m);
    double share = 0.0;
    index_t best = -1;
    *gain_of_it = 0.0;
    if (!(largest > 0.0)) return 0;
    for (int pass = 0; pass < 2; pass++)
        for (index_t j = 0; j < p->m && (pass == 0 || best < 0); j++) {
            if (!(gain[j] >= TIE * largest)) continue;
            const double unexplained = T->unexplained[j] / p->norms[j];
            if (pass == 0)
                share = unexplained > share ? unexplained : share;
            else if (unexplained >= TIE * share)
                best = j;
        }
    if (best < 0) return 0;
    *gain_of_it = gain[best];
    return best;
}

static void grow(Tableau *T, index_t size, double rounding)
{
    while (size_of(T) < size) {
        double gain;
        const index_t j = best_addition(T, &gain);
        if (!(gain > rounding) || !add(T, j)) return;
    }
}

static void shrink(Tableau *T, index_t size)
{
    while (size_of(T) > size && size_of(T) > T->n_free) {
        index_t cheapest = -1;
        double least = (double)INFINITY;
        for (index_t i = 0; i < size_of(T); i++) {
            const double cost = cost_of(T, i);
            if (cheapest < 0 ? !T->problem->is_free[column_at(T, i)] : cost < least) least = cost, cheapest = i;
        }
        drop(T, cheapest);
    }
}

/* Write the scaled coefficients of a column that moves, one for each side. */
static void shifts(const Tableau *T, index_t slot, double scale, double *shift)
{
    for (index_t r = 0; r < T->problem->sides; r++) shift[r] = T->coef[r * T->slots + slot] * scale;
}

/* What is dropped at a place, and twice its cost; the row of a held column is scratch, and the shift of the first side
 * is that of all if there are more. */
static Dropped dropped_at(const Tableau *T, index_t place, double *loss)
{
    const Problem *p = T->problem;
    if (place >= T->size) {
        const index_t j = T->held[place - T->size];
        regress(T, j, p->regression, p->row);
        *loss = 2.0 * cost_of(T, place);
        return (Dropped){.row = p->row, .scale = 1.0, .shift = T->level[j], .widens = 0.0};
    }
    const double scale = 1.0 / sqrt(diagonal_of(T, place));
    *loss = 0.0;
    shifts(T, place, scale, p->shift);
    for (index_t r = 0; r < p->sides; r++) *loss += p->shift[r] * p->shift[r];
    return (Dropped){.row = T->regressions + place * p->m, .scale = scale, .shift = p->shift[0], .widens = 1.0};
}

/* The place of a chosen column and its replacement that lower q most; returns by how much. */
static double best_exchange(Tableau *T, index_t *place, index_t *column)
{
    const Problem *p = T->problem;
    const index_t m = p->m;
    const double *slope = T->slope;
    double *rest = p->rest, best = -(double)INFINITY, largest = -1.0, loss;
    if (size_of(T) == T->n_free || m == 0) return 0.0;
    compute_regressions(T);
    for (index_t t = 0; t < m; t++) {
        const double unexplained = T->unexplained[t];
        rest[t] = (unexplained > p->dependent[t] ? unexplained : p->dependent[t]) + T->excluded[t];
    }
    for (index_t i = 0; i < size_of(T); i++) {
        if (isinf(cost_of(T, i))) continue; /* free, or cancelled by rounding */
        const Dropped it = dropped_at(T, i, &loss);
        const double gain = p->sides > 1 ? exchanges_of_sides(it.row, slope, p->sides, rest, it.scale, p->shift, p->row, m)
                            : p->bounds  ? bounded_exchange(it, slope, rest, p->bounds, m)
                                         : unbounded_exchange(it, slope, rest, m);
        if (gain - loss > best) best = gain - loss, *place = i;
    }
    if (!(best > 0.0)) return best;
    const Dropped it = dropped_at(T, *place, &loss);
    if (p->sides > 1) {
        (void)exchanges_of_sides(it.row, slope, p->sides, rest, it.scale, p->shift, p->row, m);
        memcpy(rest, p->row, sizeof(double) * (size_t)m);
    } else {
        for (index_t t = 0; t < m; t++) rest[t] = exchange_gain(it, slope, rest, p->bounds, m, t);
    }
    for (index_t t = 0; t < m; t++)
        if (rest[t] > largest) largest = rest[t];
    for (index_t t = m - 1; t >= 0; t--)
        if (rest[t] >= TIE * largest) *column = t; /* of copies the first */
    return 0.5 * best;
}

/* Make the best exchanges as long as one lowers q by more than a negligible amount. */
static void descend(Tableau *T, Tableau *spare, index_t size, double rounding, double negligible)
{
    index_t place = 0, column = 0;
    while (best_exchange(T, &place, &column) > negligible) {
        const double before = T->decrease;
        copy_to(spare, T);
        drop(T, place);
        add(T, column);
        grow(T, size, rounding); /* where other columns have met a bound of zero and left */
        if (!(T->decrease > before + negligible)) {
            copy_to(T, spare);
            return;
        }
    }
}

static int same_support(const Tableau *a, const Tableau *b)
{
    if (size_of(a) != size_of(b)) return 0;
    for (index_t i = 0; i < size_of(a); i++)
        if (b->excluded[column_at(a, i)] == 0.0) return 0;
    return 1;
}

/* Make some columns the chosen ones, of which the last ones are held at some levels: by dropping and adding where few
 * differ, else anew. */
static void move_to(Tableau *T, const index_t *wanted, index_t count, index_t n_held, const double *levels)
{
    enum { SHARE = 4 }; /* one move costs O(s m), all anew O(s^2 m) */
    const Problem *p = T->problem;
    const index_t size = count - n_held;
    index_t differing = size_of(T) > count ? size_of(T) - count : 0;
    for (index_t i = 0; i < count; i++) {
        const index_t place = place_of_column(T, wanted[i]);
        differing += place == size_of(T) || (place >= T->size) != (i >= size);
    }
    if (SHARE * differing <= count) {
        for (index_t k = T->n_held - 1; k >= 0; k--) {
            const index_t j = T->held[k], i = place_among(wanted, count, j);
            if (i == count)
                shift(T, not_held(T, k), 0.0);
            else if (i >= size)
                shift(T, j, levels[i - size]);
            else if (T->unexplained[j] > p->dependent[j])
                release(T, k);
        }
        for (index_t slot = T->size - 1; slot >= 0; slot--) {
            if (slot >= T->size) continue; /* combinations of others have left with the last one */
            const index_t i = place_among(wanted, count, T->chosen[slot]);
            if (i < size || (i == count && p->is_free[T->chosen[slot]])) continue;
            leave(T, slot, i < count ? levels[i - size] : 0.0);
        }
        for (index_t i = 0; i < count; i++) {
            const index_t j = wanted[i];
            if (T->excluded[j] != 0.0) continue;
            if (i >= size)
                hold(T, j, levels[i - size]);
            else if (T->unexplained[j] > p->dependent[j])
                enter(T, j, 0.0);
        }
    }
    int same = T->size == size && T->n_held == n_held;
    for (index_t i = 0; i < count && same; i++) {
        const index_t place = place_of_column(T, wanted[i]);
        same = place < size_of(T) && (place >= T->size) == (i >= size);
    }
    if (same) return;
    if (p->bounds) memset(T->level, 0, sizeof(double) * (size_t)p->m);
    for (index_t k = 0; k < n_held; k++) {
        T->held[k] = wanted[size + k];
        T->level[T->held[k]] = levels[k];
    }
    T->n_held = n_held;
    compute(T, wanted, size);
}

/* Add columns and drop as many, and the other way round, as long as one of these moves helps. The counts do not
 * decrease; one that is repeated is left out, and so is 0. */
static void add_drop(Tableau *T, Tableau *trial, Tableau *spare, index_t size, const index_t *counts, index_t n_counts,
                     index_t rounds, double rounding, double negligible)
{
    enum { FEW = 8 }; /* most of these moves lead back to T; the time is the same from 2 to 16 */
    for (index_t round = 0, helped = 1; helped && round < rounds; round++) {
        helped = 0;
        for (index_t move = 0; move < 2 * n_counts; move++) {
            const index_t count = counts[move / 2];
            if (count == 0 || (move > 1 && count == counts[move / 2 - 1])) continue;
            if (FEW * count <= size)
                copy_for_few_moves(trial, T);
            else
                copy_to(trial, T);
            if (move % 2 == 0) {
                grow(trial, size + count, rounding);
                shrink(trial, size);
            } else {
                shrink(trial, size - count);
                grow(trial, size, rounding);
            }
            if (same_support(trial, T)) continue;
            descend(trial, spare, size, rounding, negligible);
            if (trial->decrease > T->decrease + negligible) {
                swap(T, trial);
                helped = 1;
            }
        }
    }
}

/* Leave out each of the cheapest columns in turn, to see what replaces it, as long as that helps. */
static void replace(Tableau *T, Tableau *trial, Tableau *spare, index_t size, index_t most, index_t rounds,
                    double rounding, double negligible)
{
    const Problem *p = T->problem;
    for (index_t round = 0, helped = 1; helped && round < rounds; round++) {
        double *cost = p->row;
        index_t *order = p->order, n = 0;
        for (index_t place = 0; place < size_of(T); place++) { /* sorted by insertion */
            const double own = cost_of(T, place);
            index_t rank = n;
            if (isinf(own)) continue; /* it cannot be dropped */
            for (; rank > 0 && own < cost[rank - 1]; rank--) {
                cost[rank] = cost[rank - 1];
                order[rank] = order[rank - 1];
            }
            cost[rank] = own;
            order[rank] = column_at(T, place);
            n++;
        }
        helped = 0;
        for (index_t i = 0; i < n && i < most; i++) {
            const index_t place = place_of_column(T, order[i]);
            if (place == size_of(T)) continue; /* it has been replaced */
            copy_for_few_moves(trial, T);
            drop(trial, place);
            trial->kept_out = order[i];
            trial->excluded[order[i]] = (double)INFINITY;
            grow(trial, size, rounding);
            descend(trial, spare, size, rounding, negligible);
            trial->kept_out = -1;
            trial->excluded[order[i]] = 0.0;
            grow(trial, size, rounding);
            descend(trial, spare, size, rounding, negligible);
            if (trial->decrease > T->decrease + negligible) {
                swap(T, trial);
                helped = 1;
            }
        }
    }
}

/* ---- refits of a generalised linear model --------------------------------------------------------------------- */

/* `refits`, `local_scores` and `refit_search` of `hardthresh.solvers.working_set` have these functions in NumPy, and
 * document them. */

/* The diagonal of correlations, beyond 1; see local_scores.py. */
static const double REGULAR = 1e-12;

/* out[i] = rows[i]' x */
VECTORISED static void products(double *restrict out, const double *const *rows, const double *restrict x,
                                index_t count, index_t n)
{
    for (index_t i = 0; i < count; i++) {
        const double *restrict row = rows[i];
        double sums[LANES] = {0.0}, sum = 0.0;
        index_t t = 0;
        for (; t + LANES <= n; t += LANES)
            for (int l = 0; l < LANES; l++) sums[l] += row[t + l] * x[t + l];
        for (; t < n; t++) sum += row[t] * x[t];
        for (int l = 0; l < LANES; l++) sum += sums[l];
        out[i] = sum;
    }
}

/* y = a x, by entries */
VECTORISED static void multiply(double *restrict y, const double *restrict a, const double *restrict x, index_t n)
{
    for (index_t t = 0; t < n; t++) y[t] = a[t] * x[t];
}

/* Replace the upper triangle of a matrix by R, where R'R is the matrix; returns whether each pivot is more than a share
 * of the diagonal. `row` and `f` are scratch. */
static int factorise(double *matrix, index_t size, double share, const double **row, double *f)
{
    for (index_t i = 0; i < size; i++) {
        double *own = matrix + i * size;
        const double least = share * own[i];
        for (index_t k = 0; k < i; k++) {
            row[k] = matrix + k * size;
            f[k] = -row[k][i];
        }
        add_rows(own + i, row, i, f, i, size - i);
        if (!(own[i] > least && own[i] > 0.0)) return 0; /* NaN counts */
        divide(own + i, sqrt(own[i]), size - i);
    }
    return 1;
}

/* Multiply rows of n numbers by R'^-1. */
static void solve_lower(const double *R, index_t size, double *rows, index_t n, const double **row, double *f)
{
    for (index_t i = 0; i < size; i++) {
        row[i] = rows + i * n;
        for (index_t k = 0; k < i; k++) f[k] = -R[k * size + i];
        add_rows(rows + i * n, row, 0, f, i, n);
        divide(rows + i * n, R[i * size + i], n);
    }
}

/* Multiply them by R^-1. */
static void solve_upper(const double *R, index_t size, double *rows, index_t n, const double **row, double *f)
{
    for (index_t i = size - 1; i >= 0; i--) {
        row[i] = rows + i * n;
        for (index_t k = i + 1; k < size; k++) f[k] = -R[i * size + k];
        add_rows(rows + i * n, row + i + 1, 0, f + i + 1, size - i - 1, n);
        divide(rows + i * n, R[i * size + i], n);
    }
}

/* The losses: `KERNEL_LOSSES` of kernel_model.py has these numbers. */
enum { LOGISTIC, POISSON, GAMMA, NEGATIVE_BINOMIAL, TWEEDIE, SQUARED_HINGE, HUBER, ORDINAL };

/* A mean loss; see `read_loss`. Ordered classes have thresholds, which are the last coefficients, and their examples are
 * sorted by class. A threshold is no column: its products with columns are sums over the two classes that it divides. */
typedef struct {
    int kind;
    double parameter, log_parameter; /* theta, power, delta, or the number of classes */
    const double *y, *weights;
    double *logs, *constants; /* log y, and what the formula has besides of y alone */
    index_t n_thresholds, *starts;
} Loss;

typedef struct {
    index_t n, size;        /* with the thresholds */
    const double **columns; /* those of the support, without thresholds */
    Loss loss;
    const double *offset, *l2; /* the first may be NULL */
    const double *lower, *upper; /* bounds of the coefficients, or NULL */
} Model;

/* Slopes and curvatures are those of the losses in the prediction, times the weights. With thresholds, the parts of the
 * one above each example are in `upper`, and `outer` has the gradient in the thresholds, the diagonal of their Hessian,
 * and the entries beside it, that of a threshold and the one before. */
typedef struct {
    double *coef, *prediction, *slopes, *curvature, *upper_slopes, *upper_curvature, *outer;
    double value, terms; /* rounding of f is a few units of the last place of its terms */
} Point;

/* e^x, to one unit of the last place, with arithmetic alone so that loops are vectorised: 2^k e^r, where k ln 2 is
 * nearest to x; 0 below -708, because the smallest number of full precision is e^-708.4. `excess` becomes e^x - 1 - x,
 * without cancellation near 0, if x is between -708 and 709. Not for NaN. */
INLINE double exponential(double x, double *excess)
{
    const double per_ln2 = 1.4426950408889634, to_integer = 6755399441055744.0; /* 1.5 * 2^52: its last place is 1 */
    const double ln2 = 45426.0 / 65536.0, ln2_rest = 1.4286068203094172e-6;     /* k times the first part is exact */
    const double within = x > -708.0 ? (x < 709.0 ? x : 709.0) : -708.0;
    const double shifted = to_integer + within * per_ln2, k = shifted - to_integer;
    const double r = (within - k * ln2) - k * ln2_rest; /* at most ln(2) / 2 in size: the polynomial is off by 1e-18 */
    double p = 1.0 / 6227020800.0, scale = 1.0;
    int64_t exponent, bits;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r;
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &scale, sizeof bits);
    bits = (int64_t)((uint64_t)bits + ((uint64_t)exponent << 52)); /* of k, which is in the last places of `shifted` */
    memcpy(&scale, &bits, sizeof scale);
    *excess = scale * p + ((scale - 1.0) + (scale * r - within));
    return x > -708.0 ? scale * (p + r + 1.0) : 0.0;
}

/* e^-a for a >= 0 */
INLINE double exp_minus(double a)
{
    double unused;
    return exponential(-a, &unused);
}

/* log(1 + x): 2 artanh z with z = x / (2 + x), by its series up to the power `last` of z, to two units of the last place.
 * What is left out is 1e-19 of it for 0 <= x <= 1, where |z| <= 1/3, with 35; and for 1/e <= 1 + x <= e, where
 * |z| <= 0.47, with 49. */
INLINE double log_1_plus(double x, int last)
{
    const double z = x / (2.0 + x), square = z * z;
    double p = 1.0 / last;
    for (int i = last - 2; i > 31; i -= 2) p = p * square + 1.0 / i; /* two loops, which are short enough to be unrolled */
    for (int i = 31; i >= 3; i -= 2) p = p * square + 1.0 / i;
    return 2.0 * z + 2.0 * z * (square * p);
}

INLINE double sum_of(const double *restrict x, index_t n)
{
    double sums[LANES] = {0.0}, sum = 0.0;
    index_t t = 0;
    for (; t + LANES <= n; t += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += x[t + l];
    for (; t < n; t++) sum += x[t];
    for (int l = 0; l < LANES; l++) sum += sums[l];
    return sum;
}

/* The loss of an example with its first two derivatives in the prediction u. The functions of a row have the formulas of
 * `hardthresh.losses`, which document them; where these take a difference of exponentials near 0, they take its excess.
 * They have no branches, so that loops over the examples are vectorised, and a prediction that is not a number has such
 * a loss. */
typedef struct {
    double value, slope, curvature;
} Row;

/* That of `exponent_cap` in double precision, and how far u lies beyond it. */
static const double CAP = 319.4022208020228;

INLINE double beyond_cap(double u) { return u > CAP ? u - CAP : 0.0 * u; }
INLINE double at_most_cap(double u) { return u > CAP ? CAP : u; }

/* The second-order polynomial that an exponential goes on as. */
INLINE double taylor(double beyond) { return 1.0 + beyond + 0.5 * beyond * beyond; }

INLINE int is_near(double y, double gap) { return (y > 0.0) & (fabs(gap) < 1.0); }

INLINE Row logistic_row(const Loss *loss, index_t i, double u)
{
    const double y = loss->y[i], small = exp_minus(fabs(u)), p = (u >= 0.0 ? 1.0 : small) / (1.0 + small);
    return (Row){log_1_plus(small, 35) + (u > 0.0 ? 1.0 - y : -y) * u, p - y, p * (1.0 - p)};
}

INLINE Row poisson_row(const Loss *loss, index_t i, double u)
{
    const double y = loss->y[i], gap = y > 0.0 ? u - loss->logs[i] : 0.0 * u, beyond = beyond_cap(u);
    const int near = is_near(y, gap) & (u <= CAP);
    double excess;
    const double e = exponential(near ? gap : at_most_cap(u), &excess), rate = near ? y * e : e;
    const double value = near ? y * excess : rate * taylor(beyond) - y - y * gap;
    return (Row){value, rate * (1.0 + beyond) - y, rate};
}

INLINE Row gamma_row(const Loss *loss, index_t i, double u)
{
    const double gap = loss->logs[i] - u, beyond = beyond_cap(gap);
    double excess;
    const double ratio = exponential(at_most_cap(gap), &excess);
    const double value = fabs(gap) < 1.0 ? excess : ratio * taylor(beyond) - 1.0 - gap;
    return (Row){value, 1.0 - ratio * (1.0 + beyond), ratio};
}

INLINE Row negative_binomial_row(const Loss *loss, index_t i, double u)
{
    const double y = loss->y[i], theta = loss->parameter, sum = y + theta, far = u - loss->log_parameter;
    const double gap = y > 0.0 ? u - loss->logs[i] : 0.0 * u;
    const int near = is_near(y, gap);
    const double tail = exp_minus(fabs(far)), above = (far >= 0.0 ? 1.0 : tail) / (1.0 + tail);
    const double below = (far >= 0.0 ? tail : 1.0) / (1.0 + tail);
    const double softplus = (far > 0.0 ? far : 0.0 * far) + log_1_plus(tail, 35);
    const double step = near ? gap : 0.0;
    double excess;
    exponential(step, &excess);
    const double small = sum * log_1_plus(y / sum * (excess + step), 49) - y * step;
    const double total = loss->constants[i] - y * far + sum * softplus;
    return (Row){near ? (small > 0.0 ? small : 0.0) : total, theta * above - y * below, sum * above * below};
}

INLINE Row tweedie_row(const Loss *loss, index_t i, double u)
{
    const double y = loss->y[i], up = 2.0 - loss->parameter, down = loss->parameter - 1.0;
    const double gap = y > 0.0 ? u - loss->logs[i] : 0.0 * u, fallen = y > 0.0 ? u : 0.0 * u;
    const double above = beyond_cap(up * u), below = beyond_cap(-down * fallen), power = loss->constants[i]; /* y^up */
    const int near = is_near(y, gap) & (up * u <= CAP) & (-down * u <= CAP);
    double rise, fall;
    const double e = exponential(near ? up * gap : at_most_cap(up * u), &rise);
    const double rising = near ? power * e : e;
    const double f = exponential(near ? -down * gap : at_most_cap(-down * fallen), &fall);
    const double falling = near ? power * f : y * f;
    const double small = power * (rise / up + fall / down);
    const double total = rising * taylor(above) / up - power / (up * down) + falling * taylor(below) / down;
    return (Row){near ? small : total, rising * (1.0 + above) - falling * (1.0 + below), up * rising + down * falling};
}

INLINE Row squared_hinge_row(const Loss *loss, index_t i, double u)
{
    const double y = loss->y[i], above = u > -1.0 ? 1.0 + u : 0.0 * u, below = u < 1.0 ? 1.0 - u : 0.0 * u;
    return (Row){0.25 * ((1.0 + y) * below * below + (1.0 - y) * above * above),
                 0.5 * ((1.0 - y) * above - (1.0 + y) * below),
                 0.5 * ((u > -1.0 ? 1.0 - y : 0.0) + (u < 1.0 ? 1.0 + y : 0.0))};
}

INLINE Row huber_row(const Loss *loss, index_t i, double u)
{
    const double delta = loss->parameter, r = u - loss->y[i], size = fabs(r);
    const double within = size < delta ? size : 0.0 * size + delta;
    return (Row){within * (size - 0.5 * within), r < -delta ? -delta : r > delta ? delta : r,
                 size <= delta ? 1.0 : 0.0};
}

#define ALL_ROWS(row)                                                                                                  \
    for (index_t i = 0; i < n; i++) {                                                                                  \
        const Row at = row(&own, i, prediction[i]);                                                                    \
        losses[i] = weights[i] * at.value;                                                                             \
        slopes[i] = weights[i] * at.slope;                                                                             \
        curvature[i] = weights[i] * at.curvature;                                                                      \
    }                                                                                                                  \
    break

/* The mean of such a loss at the prediction of a point, with slopes and curvature. The terms are those of
 * `MeanLoss.terms`. */
VECTORISED static void mean_loss(const Loss *loss, Point *at, double *restrict losses, index_t n)
{
    const Loss own = *loss;
    const double *restrict weights = own.weights, *restrict prediction = at->prediction;
    double *restrict slopes = at->slopes, *restrict curvature = at->curvature;
    switch (own.kind) {
    case LOGISTIC: ALL_ROWS(logistic_row);
    case POISSON: ALL_ROWS(poisson_row);
    case GAMMA: ALL_ROWS(gamma_row);
    case NEGATIVE_BINOMIAL: ALL_ROWS(negative_binomial_row);
    case TWEEDIE: ALL_ROWS(tweedie_row);
    case SQUARED_HINGE: ALL_ROWS(squared_hinge_row);
    default: ALL_ROWS(huber_row);
    }
    at->value = sum_of(losses, n);
    for (index_t i = 0; i < n; i++) losses[i] = fabs(losses[i]) + fabs(slopes[i] * prediction[i]);
    at->terms = sum_of(losses, n);
}

/* The thresholds of the examples of one class, 0 where there is none, and whether there are. */
typedef struct {
    double above, below;
    int has_above, has_below;
} Class;

/* The losses of the examples of one class, with what is written to the same places of the arrays of a point, and without
 * what is the same for all of them. `losses` then has the terms, in which `e` is part of both slopes. */
VECTORISED static double losses_of_class(Class own, double e, const double *restrict weights,
                                         const double *restrict prediction, double *restrict slopes,
                                         double *restrict curvature, double *restrict upper_slopes,
                                         double *restrict upper_curvature, double *restrict losses, index_t n)
{
    const double has_above = own.has_above, has_below = own.has_below;
    for (index_t i = 0; i < n; i++) {
        const double a = own.above + prediction[i], b = own.below + prediction[i], w = weights[i];
        const double small_a = exp_minus(fabs(a)), small_b = exp_minus(fabs(b));
        const double beyond_a = (a >= 0.0 ? small_a : 1.0) / (1.0 + small_a);
        const double beyond_b = (b >= 0.0 ? 1.0 : small_b) / (1.0 + small_b);
        const double loss_a = log_1_plus(small_a, 35) + (a < 0.0 ? -a : 0.0 * a);
        const double loss_b = log_1_plus(small_b, 35) + (b > 0.0 ? b : 0.0 * b);
        losses[i] = w * (has_above * loss_a + has_below * loss_b);
        upper_slopes[i] = -w * has_above * beyond_a;
        slopes[i] = upper_slopes[i] + w * has_below * beyond_b;
        upper_curvature[i] = w * has_above * (small_a / ((1.0 + small_a) * (1.0 + small_a)));
        curvature[i] = upper_curvature[i] + w * has_below * (small_b / ((1.0 + small_b) * (1.0 + small_b)));
    }
    const double value = sum_of(losses, n);
    for (index_t i = 0; i < n; i++) {
        const double of_a = upper_slopes[i], of_b = slopes[i] - of_a, common = weights[i] * e;
        losses[i] = fabs((of_a - common) * (own.above + prediction[i]));
        losses[i] += fabs((of_b + common) * (own.below + prediction[i]));
    }
    return value;
}

/* The mean loss of ordered classes: by the formulas of `hardthresh.losses.Ordinal`, for predictions -u. */
static void ordinal_loss(const Loss *loss, const double *thresholds, Point *at, double *losses, index_t n)
{
    const index_t q = loss->n_thresholds;
    double *const gradient = at->outer, *const diagonal = gradient + q, *const beside = diagonal + q;
    memset(at->outer, 0, sizeof(double) * (size_t)(3 * q));
    at->value = 0.0;
    for (index_t k = 0; k <= q; k++) {
        const index_t first = loss->starts[k], count = loss->starts[k + 1] - first;
        const Class own = {k < q ? thresholds[k] : 0.0, k > 0 ? thresholds[k - 1] : 0.0, k < q, k > 0};
        const double gap = own.above - own.below, weight = sum_of(loss->weights + first, count);
        const int between = own.has_above && own.has_below, ordered = gap > 0.0;
        const double e = between && ordered ? 1.0 / expm1(gap) : 0.0, mixed = e * (1.0 + e);
        at->value += losses_of_class(own, e, loss->weights + first, at->prediction + first, at->slopes + first,
                                     at->curvature + first, at->upper_slopes + first, at->upper_curvature + first,
                                     losses + first, count);
        if (between) at->value -= ordered ? weight * log(-expm1(-gap)) : -(double)INFINITY;
        const double slope = sum_of(at->upper_slopes + first, count), bend = sum_of(at->upper_curvature + first, count);
        if (k < q) {
            gradient[k] += slope - weight * e;
            diagonal[k] += bend + weight * mixed;
        }
        if (k > 0) {
            gradient[k - 1] += sum_of(at->slopes + first, count) - slope + weight * e;
            diagonal[k - 1] += sum_of(at->curvature + first, count) - bend + weight * mixed;
        }
        if (between) beside[k] = -weight * mixed;
    }
    at->terms = at->value + sum_of(losses, n);
}

/* The mean loss at the prediction and the thresholds of a point. */
static void differentiate_loss(const Loss *loss, const double *thresholds, Point *at, double *scratch, index_t n)
{
    if (loss->kind == ORDINAL)
        ordinal_loss(loss, thresholds, at, scratch, n);
    else
        mean_loss(loss, at, scratch, n);
}

static void evaluate(const Model *f, Point *at, double *scratch)
{
    const size_t bytes = sizeof(double) * (size_t)f->n;
    const index_t inner = f->size - f->loss.n_thresholds;
    double ridge = 0.0;
    if (f->offset)
        memcpy(at->prediction, f->offset, bytes);
    else
        memset(at->prediction, 0, bytes);
    add_rows(at->prediction, f->columns, 0, at->coef, inner, f->n);
    for (index_t j = 0; j < f->size; j++) ridge += f->l2[j] * (at->coef[j] * at->coef[j]);
    differentiate_loss(&f->loss, at->coef + inner, at, scratch, f->n);
    at->value += 0.5 * ridge;
    at->terms += 0.5 * ridge;
}

typedef struct {
    Model f;
    Point at, further;
    double *hessian, *gradient, *step, *scaled, *factor, predicted; /* by how much the model of f falls along a step */
    double *whole, *target;                                         /* scratch of `step_within` */
    index_t *moving;
    int *moves;
    const double **row;
} Refit;

typedef struct {
    index_t steps, halvings;
    double armijo, share, rate, least, units, below, damping; /* see `py_refit` and `py_refits` */
} Limits;

/* How a refit ends: at the minimum, at the limit of steps, where it is not expected to lead below a value, where a step
 * does not lower f, or where the Hessian is singular. */
enum { MINIMAL, LIMIT, ABANDONED, STUCK, SINGULAR };

/* Write what the gradient and the upper triangle of the Hessian have of thresholds, without ridges. */
static void differentiate_thresholds(Refit *r)
{
    const Model *f = &r->f;
    const index_t q = f->loss.n_thresholds, size = f->size, inner = size - q;
    const double *outer = r->at.outer;
    double *upper = r->step, *both = r->factor;
    memcpy(r->gradient + inner, outer, sizeof(double) * (size_t)q);
    for (index_t k = 0; k < q; k++) {
        double *row = r->hessian + (inner + k) * size + inner;
        for (index_t i = k; i < q; i++) row[i] = i == k ? outer[q + k] : i == k + 1 ? outer[2 * q + i] : 0.0;
        for (index_t j = 0; j < inner; j++) r->hessian[j * size + inner + k] = 0.0;
    }
    for (index_t k = 0; k <= q; k++) {
        const index_t first = f->loss.starts[k], count = f->loss.starts[k + 1] - first;
        for (index_t j = 0; j < inner; j++) r->row[j] = f->columns[j] + first;
        products(upper, r->row, r->at.upper_curvature + first, inner, count);
        products(both, r->row, r->at.curvature + first, inner, count);
        for (index_t j = 0; j < inner; j++) {
            double *row = r->hessian + j * size + inner;
            if (k < q) row[k] += upper[j];
            if (k > 0) row[k - 1] += both[j] - upper[j];
        }
    }
}

/* Write the system of the step to the minimiser of the model on the coefficients that move, where the others stay. */
static index_t write_system(Refit *r, const double *by, const int *moves)
{
    const index_t size = r->f.size;
    index_t count = 0;
    for (index_t i = 0; i < size; i++)
        if (moves[i]) r->moving[count++] = i;
    for (index_t a = 0; a < count; a++) {
        const double *row = r->whole + r->moving[a] * size;
        r->target[a] = -r->gradient[r->moving[a]];
        for (index_t k = 0; k < size; k++)
            if (!moves[k]) r->target[a] -= row[k] * by[k];
        for (index_t b = a; b < count; b++) r->hessian[a * count + b] = row[r->moving[b]];
    }
    return count;
}

/* The same as `newton_step` for the minimiser of the model within bounds, by the steps of `settle`. */
static int step_within(Refit *r, double *slope)
{
    int *moves = r->moves;
    const Model *f = &r->f;
    const index_t size = f->size;
    double *by = r->step, value = 0.0;
    for (index_t i = 0; i < size; i++) {
        for (index_t k = 0; k < size; k++)
            r->whole[i * size + k] = k < i ? r->hessian[k * size + i] : r->hessian[i * size + k];
        by[i] = 0.0;
        moves[i] = 1;
    }
    for (int released = 0;;) {
        const index_t count = write_system(r, by, moves);
        double reach = 1.0, bound = 0.0, rest = 0.0, best = 0.0;
        index_t met = -1, free = -1;
        if (!factorise(r->hessian, count, DEPENDENT, r->row, r->factor)) return 0;
        solve_lower(r->hessian, count, r->target, 1, r->row, r->factor);
        solve_upper(r->hessian, count, r->target, 1, r->row, r->factor);
        for (index_t a = 0; a < count; a++) {
            const index_t i = r->moving[a];
            const double low = f->lower[i] - r->at.coef[i], high = f->upper[i] - r->at.coef[i], to = r->target[a];
            if (!(to < low || to > high)) continue;
            const double at = to < low ? low : high, part = (at - by[i]) / (to - by[i]);
            if (met < 0 || part < reach) reach = part, met = i, bound = at;
        }
        for (index_t a = 0; a < count; a++) by[r->moving[a]] += reach * (r->target[a] - by[r->moving[a]]);
        if (met >= 0) {
            by[met] = bound;
            moves[met] = 0;
            continue;
        }
        for (index_t i = 0; i < size; i++) {
            double gradient = r->gradient[i];
            for (index_t k = 0; k < size; k++) gradient += r->whole[i * size + k] * by[k];
            rest += 0.5 * by[i] * (r->gradient[i] + gradient);
            if (moves[i]) continue;
            const double low = f->lower[i] - r->at.coef[i], high = f->upper[i] - r->at.coef[i];
            const double curvature = r->whole[i * size + i];
            double to = by[i] - gradient / curvature;
            to = to < low ? low : to > high ? high : to;
            const double further = to - by[i], gain = -further * (gradient + 0.5 * further * curvature);
            if (fabs(further) > ERROR * fabs(r->at.coef[i] + by[i]) && gain > best) best = gain, free = i;
        }
        if (free < 0 || (released && !(rest < value))) break;
        value = rest;
        released = 1;
        moves[free] = 1;
    }
    *slope = 0.0;
    r->predicted = 0.0;
    for (index_t i = 0; i < size; i++) {
        double image = 0.0;
        for (index_t k = 0; k < size; k++) image += r->whole[i * size + k] * by[k];
        *slope -= r->gradient[i] * by[i];
        r->predicted -= by[i] * (r->gradient[i] + 0.5 * image);
    }
    for (index_t i = 0; i < size; i++) by[i] = -by[i];
    return 1;
}

/* The step at a point by some second derivatives of the losses, and by how much f falls along it per length at first;
 * returns whether the Hessian is regular. */
static int newton_step(Refit *r, const double *curvature, double *slope)
{
    const Model *f = &r->f;
    const index_t n = f->n, size = f->size, inner = size - f->loss.n_thresholds;
    products(r->gradient, f->columns, r->at.slopes, inner, n);
    for (index_t j = 0; j < inner; j++) {
        multiply(r->scaled, curvature, f->columns[j], n);
        products(r->hessian + j * size + j, f->columns + j, r->scaled, inner - j, n);
    }
    if (inner < size) differentiate_thresholds(r);
    for (index_t j = 0; j < size; j++) {
        r->hessian[j * size + j] += f->l2[j];
        r->gradient[j] += f->l2[j] * r->at.coef[j];
    }
    if (f->lower) return step_within(r, slope);
    if (!factorise(r->hessian, size, DEPENDENT, r->row, r->factor)) return 0;
    memcpy(r->step, r->gradient, sizeof(double) * (size_t)size);
    solve_lower(r->hessian, size, r->step, 1, r->row, r->factor);
    solve_upper(r->hessian, size, r->step, 1, r->row, r->factor);
    *slope = 0.0;
    for (index_t j = 0; j < size; j++) *slope += r->gradient[j] * r->step[j];
    r->predicted = 0.5 * *slope;
    return 1;
}

/* The same with a number added to all second derivatives, where they leave the Hessian singular; none if infinite. */
static int damped_step(Refit *r, double damping, double *slope)
{
    if (!(damping < (double)INFINITY)) return 0;
    for (index_t i = 0; i < r->f.n; i++)
        r->further.curvature[i] = r->at.curvature[i] + damping * r->f.loss.weights[i];
    return newton_step(r, r->further.curvature, slope);
}

/* Go along a Newton step, halved until f falls enough, up to what may be rounding; returns whether it does. */
static int go_along(Refit *r, double slope, index_t tries, double armijo, double rounding)
{
    double length = 1.0;
    for (index_t i = 0; i < tries; i++) {
        for (index_t j = 0; j < r->f.size; j++) {
            double to = r->at.coef[j] - length * r->step[j];
            if (r->f.lower) to = to < r->f.lower[j] ? r->f.lower[j] : to > r->f.upper[j] ? r->f.upper[j] : to;
            r->further.coef[j] = to;
        }
        evaluate(&r->f, &r->further, r->scaled);
        if (r->further.value <= r->at.value - armijo * length * slope + rounding) {
            const Point before = r->at;
            r->at = r->further;
            r->further = before;
            return 1;
        }
        length *= 0.5;
    }
    return 0;
}

/* Go to the minimum by Newton steps. */
static int refit(Refit *r, const Limits *limits)
{
    double earlier = 0.0, predicted = 0.0;
    evaluate(&r->f, &r->at, r->scaled);
    const double start = r->at.value;
    if (r->f.size == 0) return MINIMAL;
    for (index_t i = 0; i < limits->steps; i++) {
        const double value = r->at.value, before = predicted, units = limits->units * r->at.terms;
        const double least = limits->least > units ? limits->least : units;
        double slope;
        if (!newton_step(r, r->at.curvature, &slope) && !damped_step(r, limits->damping, &slope)) return SINGULAR;
        if (!(slope > 0.0 && slope < (double)INFINITY)) return fabs(slope) <= units ? MINIMAL : STUCK;
        predicted = r->predicted;
        const double fell = earlier - value;
        const int trusted = 0.5 * before <= fell && fell <= 2.0 * before && 4.0 * predicted < before;
        if (trusted && value - 4.0 * predicted > limits->below) return ABANDONED;
        earlier = value;
        if (predicted <= least) { /* the gradient says where the minimum is when f itself no longer does */
            go_along(r, slope, 1, limits->armijo, fmin(units, start - value));
            return MINIMAL;
        }
        const int moved = go_along(r, slope, limits->halvings, limits->armijo, 0.0);
        if (!moved) return STUCK;
        if (predicted <= limits->share * fabs(value) && (i == 0 || predicted <= limits->rate * before)) return MINIMAL;
    }
    return LIMIT;
}

static double *take(double **memory, index_t n)
{
    double *taken = *memory;
    *memory += n;
    return taken;
}

/* How many numbers `read_loss` takes. */
static index_t loss_numbers(index_t n) { return 2 * n + 2; }

/* Compute what a loss needs of its targets; each class has an example. */
static void read_loss(Loss *loss, index_t n, double **memory)
{
    const double theta = loss->parameter, power = loss->parameter;
    double *own = take(memory, loss_numbers(n));
    loss->n_thresholds = 0;
    if (loss->kind == ORDINAL) {
        const index_t classes = (index_t)loss->parameter;
        loss->n_thresholds = classes - 1;
        loss->starts = (index_t *)own;
        for (index_t i = 0, k = 0; k <= classes; loss->starts[k++] = i)
            while (i < n && loss->y[i] < (double)k) i++;
        return;
    }
    loss->logs = own;
    loss->constants = own + n;
    if (loss->kind == LOGISTIC || loss->kind == SQUARED_HINGE || loss->kind == HUBER) return;
    if (loss->kind == NEGATIVE_BINOMIAL) loss->log_parameter = log(theta);
    for (index_t i = 0; i < n; i++) {
        const double y = loss->y[i];
        loss->logs[i] = y > 0.0 ? log(y) : 0.0;
        if (loss->kind == NEGATIVE_BINOMIAL)
            loss->constants[i] = y * log((y > 0.0 ? y : 1.0) / theta) - (y + theta) * log1p(y / theta);
        else if (loss->kind == TWEEDIE)
            loss->constants[i] = pow(y, 2.0 - power);
    }
}

/* How many numbers `prepare` takes. */
static index_t refit_numbers(index_t n, index_t size) { return 11 * n + loss_numbers(n) + 2 * size * size + 16 * size; }

/* Give a refit of up to `size` columns its loss and its memory. */
static void prepare(Refit *r, const Loss *loss, double **memory, index_t n, index_t size)
{
    for (Point *p = &r->at; p; p = p == &r->at ? &r->further : NULL) {
        p->coef = take(memory, size);
        p->prediction = take(memory, n);
        p->slopes = take(memory, n);
        p->curvature = take(memory, n);
        p->upper_slopes = take(memory, n);
        p->upper_curvature = take(memory, n);
        p->outer = take(memory, 3 * size);
    }
    r->scaled = take(memory, n);
    r->hessian = take(memory, size * size);
    r->gradient = take(memory, size);
    r->step = take(memory, size);
    r->factor = take(memory, size);
    r->whole = take(memory, size * size);
    r->target = take(memory, size);
    r->moving = (index_t *)take(memory, size);
    r->moves = (int *)take(memory, size);
    r->row = (const double **)take(memory, size);
    r->f = (Model){.n = n, .size = size, .columns = (const double **)take(memory, size), .loss = *loss};
    read_loss(&r->f.loss, n, memory);
}

/* What the quadratic model at a prediction says of all columns: see `RefitSearch.scores`. */
typedef struct {
    index_t n, m, size, n_held; /* the first of the chosen columns are held at their bounds */
    const double *X, *l2; /* a row of X is an example, without thresholds, which are the last of the m columns */
    double *prediction;
    Loss loss;
    const index_t *chosen;
    double *coef, *slope, *unexplained, *regressions, *inverse; /* the first is where the model is, and its minimiser */
} Scores;

enum { EXAMPLES = 16, OUTPUTS = 4 };

/* y_k += sum_i f[k][i] rows[i] for four rows y_k: each entry of the others is read once for four products. */
VECTORISED static void add_rows_to_four(double *restrict y0, double *restrict y1, double *restrict y2,
                                        double *restrict y3, const double *const *rows, const double (*f)[EXAMPLES],
                                        index_t count, index_t n)
{
    for (index_t i = 0; i < count; i += 4) {
        const double *restrict r0 = rows[i], *restrict r1 = rows[i + 1], *restrict r2 = rows[i + 2],
                     *restrict r3 = rows[i + 3];
        const double a0 = f[0][i], a1 = f[0][i + 1], a2 = f[0][i + 2], a3 = f[0][i + 3];
        const double b0 = f[1][i], b1 = f[1][i + 1], b2 = f[1][i + 2], b3 = f[1][i + 3];
        const double c0 = f[2][i], c1 = f[2][i + 1], c2 = f[2][i + 2], c3 = f[2][i + 3];
        const double d0 = f[3][i], d1 = f[3][i + 1], d2 = f[3][i + 2], d3 = f[3][i + 3];
        for (index_t t = 0; t < n; t++) {
            y0[t] += (a0 * r0[t] + a1 * r1[t]) + (a2 * r2[t] + a3 * r3[t]);
            y1[t] += (b0 * r0[t] + b1 * r1[t]) + (b2 * r2[t] + b3 * r3[t]);
            y2[t] += (c0 * r0[t] + c1 * r1[t]) + (c2 * r2[t] + c3 * r3[t]);
            y3[t] += (d0 * r0[t] + d1 * r1[t]) + (d2 * r2[t] + d3 * r3[t]);
        }
    }
}

/* y += sum_i f[i] rows[i]^2 */
VECTORISED static void add_squares_of_rows(double *restrict y, const double *const *rows, const double *restrict f,
                                           index_t count, index_t n)
{
    for (index_t i = 0; i < count; i += 4) {
        const double *restrict r0 = rows[i], *restrict r1 = rows[i + 1], *restrict r2 = rows[i + 2],
                     *restrict r3 = rows[i + 3];
        const double f0 = f[i], f1 = f[i + 1], f2 = f[i + 2], f3 = f[i + 3];
        for (index_t t = 0; t < n; t++)
            y[t] += (r0[t] * (r0[t] * f0) + r1[t] * (r1[t] * f1)) + (r2[t] * (r2[t] * f2) + r3[t] * (r3[t] * f3));
    }
}

/* What the slopes, the diagonal and the rows of the Hessian have of thresholds: these are all chosen, as the last. */
static void differentiate_thresholds_of(const Scores *to, const double *outer, double *diagonal)
{
    const index_t q = to->loss.n_thresholds, m = to->m, inner = m - q, size = to->size;
    for (index_t k = 0; k < q; k++) {
        double *row = to->regressions + (size - q + k) * m;
        to->slope[inner + k] = -outer[k];
        diagonal[inner + k] += outer[q + k];
        for (index_t i = 0; i < q; i++)
            row[inner + i] = i == k ? outer[q + k] : i == k + 1 ? outer[2 * q + i] : i + 1 == k ? outer[2 * q + k] : 0.0;
        for (index_t i = 0; i < size - q; i++) to->regressions[i * m + inner + k] = row[to->chosen[i]];
    }
}

/* Add the part of some examples, all of class k, to the slopes, the diagonal of the Hessian, and its rows of the chosen
 * columns: of the thresholds these are the two that divide the class from others. The last example is repeated with
 * factors of 0 up to a multiple of four. */
static void add_examples(const Scores *to, const Point *at, index_t first, index_t count, index_t k, double *diagonal,
                         double *unused)
{
    const index_t q = to->loss.n_thresholds, inner = to->m - q, moving = to->size - q, padded = (count + 3) / 4 * 4;
    const index_t lowest = k > 0 ? k - 1 : 0, n_outputs = 1 + moving + (k < q ? k + 1 : q) - lowest;
    const double *rows[EXAMPLES];
    double weights[EXAMPLES];
    for (index_t t = 0; t < padded; t++) {
        rows[t] = to->X + (first + (t < count ? t : count - 1)) * inner;
        weights[t] = t < count ? at->curvature[first + t] : 0.0;
    }
    add_squares_of_rows(diagonal, rows, weights, padded, inner);
    for (index_t i = 0; i < n_outputs; i += OUTPUTS) {
        double factors[OUTPUTS][EXAMPLES] = {{0.0}}, *out[OUTPUTS];
        for (index_t o = 0; o < OUTPUTS; o++) {
            const index_t place = i + o - 1, threshold = place - moving + lowest; /* the first output is the slopes */
            if (i + o >= n_outputs) {
                out[o] = unused;
            } else if (place < 0) {
                out[o] = to->slope;
                for (index_t t = 0; t < count; t++) factors[o][t] = -at->slopes[first + t];
            } else if (place < moving) {
                out[o] = to->regressions + place * to->m;
                for (index_t t = 0; t < count; t++) factors[o][t] = weights[t] * rows[t][to->chosen[place]];
            } else {
                const double *upper = at->upper_curvature + first;
                out[o] = to->regressions + (moving + threshold) * to->m;
                for (index_t t = 0; t < count; t++) factors[o][t] = threshold == k ? upper[t] : weights[t] - upper[t];
            }
        }
        if (i + 1 == n_outputs)
            add_rows(out[0], rows, 0, factors[0], padded, inner);
        else
            add_rows_to_four(out[0], out[1], out[2], out[3], rows, (const double(*)[EXAMPLES])factors, padded, inner);
    }
}

/* The slopes, the diagonal of the Hessian, and its rows of the chosen columns in the place of the regressions: by blocks
 * of examples that stay in the first cache. */
static void differentiate(const Scores *to, double *diagonal, double *memory)
{
    const index_t n = to->n, m = to->m, size = to->size, q = to->loss.n_thresholds;
    Point at = {.prediction = to->prediction};
    at.slopes = take(&memory, n);
    at.curvature = take(&memory, n);
    at.upper_slopes = take(&memory, n);
    at.upper_curvature = take(&memory, n);
    at.outer = take(&memory, 3 * size);
    double *losses = take(&memory, n), *unused = take(&memory, m);
    differentiate_loss(&to->loss, to->coef + size - q, &at, losses, n);
    memset(to->slope, 0, sizeof(double) * (size_t)m);
    memset(to->regressions, 0, sizeof(double) * (size_t)(size * m));
    memset(unused, 0, sizeof(double) * (size_t)m);
    memcpy(diagonal, to->l2, sizeof(double) * (size_t)m);
    for (index_t k = 0; k <= q; k++) { /* without thresholds, there is one class */
        const index_t end = q ? to->loss.starts[k + 1] : n;
        for (index_t first = q ? to->loss.starts[k] : 0; first < end; first += EXAMPLES)
            add_examples(to, &at, first, end - first < EXAMPLES ? end - first : EXAMPLES, k, diagonal, unused);
    }
    differentiate_thresholds_of(to, at.outer, diagonal);
}

static void score(const Scores *to, double *memory)
{
    const index_t n_held = to->n_held, size = to->size - n_held, m = to->m, *chosen = to->chosen + n_held;
    double *regressions = to->regressions + n_held * m, *coef = to->coef + n_held; /* of the columns that move */
    double *diagonal = take(&memory, m), *R = take(&memory, size * size), *scale = take(&memory, size);
    double *factor = take(&memory, size);
    const double **row = (const double **)take(&memory, size);
    differentiate(to, diagonal, memory);
    for (index_t i = 0; i < size; i++) {
        regressions[i * m + chosen[i]] += to->l2[chosen[i]];
        scale[i] = sqrt(diagonal[chosen[i]] > DBL_MIN ? diagonal[chosen[i]] : DBL_MIN);
        divide(regressions + i * m, scale[i], m);
    }
    for (index_t i = 0; i < size; i++) {
        for (index_t k = 0; k < size; k++) R[i * size + k] = regressions[i * m + chosen[k]] / scale[k];
        R[i * size + i] += REGULAR;
    }
    if (!factorise(R, size, 0.0, row, factor)) R[0] = (double)NAN; /* all scores are then not numbers */
    memcpy(to->unexplained, diagonal, sizeof(double) * (size_t)m);
    solve_lower(R, size, regressions, m, row, factor);
    for (index_t i = 0; i < size; i++) add_squares(to->unexplained, regressions + i * m, -1.0, m);
    for (index_t j = 0; j < m; j++)
        if (!(to->unexplained[j] > DEPENDENT * diagonal[j])) to->unexplained[j] = (double)INFINITY;
    solve_upper(R, size, regressions, m, row, factor);
    memset(to->inverse, 0, sizeof(double) * (size_t)(size * size));
    for (index_t i = 0; i < size; i++) to->inverse[i * size + i] = 1.0 / scale[i];
    solve_lower(R, size, to->inverse, size, row, factor);
    solve_upper(R, size, to->inverse, size, row, factor);
    for (index_t i = 0; i < size; i++) {
        to->unexplained[chosen[i]] = (double)INFINITY;
        divide(regressions + i * m, scale[i], m);
        divide(to->inverse + i * size, scale[i], size);
    }
    for (index_t i = 0; i < size; i++) { /* a Newton step on the chosen columns: to the minimiser of the model */
        const index_t j = chosen[i];
        row[i] = regressions + i * m;
        factor[i] = to->l2[j] * coef[i] - to->slope[j];
    }
    for (index_t i = 0; i < n_held; i++) to->slope[to->chosen[i]] -= to->l2[to->chosen[i]] * to->coef[i];
    add_rows(to->slope, row, 0, factor, size, m);
    for (index_t i = 0; i < size; i++) to->slope[chosen[i]] = 0.0;
    for (index_t i = 0; i < size; i++)
        for (index_t k = 0; k < size; k++) coef[i] -= to->inverse[i * size + k] * factor[k];
    for (index_t i = 0; i < n_held; i++) { /* what the columns that move leave of the held ones' rows of the Hessian */
        const index_t j = to->chosen[i];
        double *own = to->regressions + i * m;
        own[j] += to->l2[j];
        for (index_t k = 0; k < size; k++) factor[k] = -own[chosen[k]];
        add_rows(own, row, 0, factor, size, m);
        to->unexplained[j] = (double)INFINITY;
    }
}

/* ---- search by refits ----------------------------------------------------------------------------------------- */

/* The moves of `RefitSearch`, which documents them. Every support that is refitted is kept, with what the quadratic
 * model says there once that has been needed. */

enum { TRIED = 5, BUCKETS = 1 << 12 };

typedef struct Node Node;

struct Node {
    Node *next, *exchanged;
    uint64_t key;
    index_t size, *chosen; /* increasing places */
    double *coef, *costs, value;
    int singular, has_costs, has_moves;
    index_t added[2], n_exchanges, dropped[TRIED], entered[TRIED]; /* the two best additions; exchanges, best first */
    double gains[2];
};

typedef struct {
    Refit refit; /* of as many columns as a support may have */
    Limits limits;
    index_t m, n_fixed, target; /* the size that is wanted, with the fixed columns */
    const double *X, *columns, *l2; /* X by examples, and the same by columns */
    const index_t *fixed;           /* of each column, whether it stays */
    const double *bounds;           /* as those of a `Problem` */
    double negligible, nearly, separated, work, most_work, *scratch, *own_l2, *gain;
    Scores scores;
    index_t *wanted, *places, *order, *arranged; /* the chosen columns with held ones first, by place and by number */
    double *own_bounds;
    int doubtful;
    jmp_buf out_of_memory;
    Node *nodes[BUCKETS];
} Search;

static void forget(Search *s)
{
    for (index_t i = 0; i < BUCKETS; i++)
        for (Node *node = s->nodes[i], *next; node; node = next) {
            next = node->next;
            free(node);
        }
}

/* A different number of 64 bits for each column; that of a support is their sum. (SplitMix64, Steele et al. 2014.) */
static uint64_t key_of(index_t column)
{
    uint64_t z = ((uint64_t)column + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The node of the first `size` columns of s->wanted, increasing; if it is new, its value is not a number. */
static Node *node_of(Search *s, index_t size)
{
    uint64_t key = 0;
    for (index_t i = 0; i < size; i++) key += key_of(s->wanted[i]);
    Node **bucket = &s->nodes[key % BUCKETS];
    const size_t bytes = sizeof(double) * (size_t)size;
    for (Node *node = *bucket; node; node = node->next)
        if (node->key == key && node->size == size && memcmp(node->chosen, s->wanted, bytes) == 0) return node;
    Node *node = malloc(sizeof *node + 3 * bytes);
    if (node == NULL) longjmp(s->out_of_memory, 1);
    *node = (Node){.next = *bucket, .key = key, .size = size, .chosen = (index_t *)(node + 1), .value = (double)NAN};
    node->coef = (double *)(node->chosen + size);
    node->costs = node->coef + size;
    *bucket = node;
    memcpy(node->chosen, s->wanted, bytes);
    return node;
}

/* The minimiser on these columns, by Newton steps from those coefficients of another one. */
static Node *fit(Search *s, index_t size, const Node *near)
{
    Node *node = node_of(s, size);
    if (!isnan(node->value)) return node;
    Model *f = &s->refit.f;
    f->size = size;
    for (index_t i = 0, k = 0; i < size; i++) {
        const index_t j = node->chosen[i];
        while (k < near->size && near->chosen[k] < j) k++;
        s->refit.at.coef[i] = k < near->size && near->chosen[k] == j ? near->coef[k] : 0.0;
        if (i < size - f->loss.n_thresholds) f->columns[i] = s->columns + j * f->n;
        s->own_l2[i] = s->l2[j];
        if (s->bounds) {
            const double low = s->bounds[j], high = s->bounds[s->m + j], coef = s->refit.at.coef[i];
            s->refit.at.coef[i] = coef < low ? low : coef > high ? high : coef;
            s->own_bounds[i] = low;
            s->own_bounds[size + i] = high;
        }
    }
    f->lower = s->bounds ? s->own_bounds : NULL;
    f->upper = s->bounds ? s->own_bounds + size : NULL;
    node->singular = refit(&s->refit, &s->limits) == SINGULAR; /* f at the last point is an upper bound */
    memcpy(node->coef, s->refit.at.coef, sizeof(double) * (size_t)size);
    node->value = isfinite(s->refit.at.value) ? s->refit.at.value : (double)INFINITY;
    const int separated = size <= s->target && node->value < s->separated;
    s->work += separated ? (double)INFINITY : 2.0 * (double)f->n * (double)(size * size);
    return node;
}

static Node *fit_without(Search *s, const Node *node, index_t place)
{
    for (index_t i = 0; i < node->size; i++)
        if (i != place) s->wanted[i - (i > place)] = node->chosen[i];
    return fit(s, node->size - 1, node);
}

/* With one more column, and without that at a place unless it is negative. */
static Node *fit_with(Search *s, const Node *node, index_t place, index_t column)
{
    index_t size = 0, entered = 0;
    for (index_t i = 0; i < node->size; i++) {
        if (!entered && node->chosen[i] > column) {
            s->wanted[size++] = column;
            entered = 1;
        }
        if (i != place) s->wanted[size++] = node->chosen[i];
    }
    if (!entered) s->wanted[size++] = column;
    return fit(s, size, node);
}

/* The prediction, the order and the coefficients of a node, for its scores: the first in memory of the refit, whose points change
 * places. */
static void predict(Search *s, const Node *node)
{
    const Model *f = &s->refit.f;
    const index_t inner = node->size - f->loss.n_thresholds;
    double *prediction = s->refit.further.prediction;
    for (index_t i = 0; i < inner; i++) f->columns[i] = s->columns + node->chosen[i] * f->n;
    if (f->offset)
        memcpy(prediction, f->offset, sizeof(double) * (size_t)f->n);
    else
        memset(prediction, 0, sizeof(double) * (size_t)f->n);
    add_rows(prediction, f->columns, 0, node->coef, inner, f->n);
    s->scores.prediction = prediction;
    s->scores.size = node->size;
    s->scores.n_held = 0;
    for (index_t held = 1, at = 0; held >= 0; held--) {
        for (index_t i = 0; i < node->size; i++) {
            const index_t j = node->chosen[i];
            const int moves = !s->bounds || (s->bounds[j] < node->coef[i] && node->coef[i] < s->bounds[s->m + j]);
            if (moves == held) continue;
            s->order[at] = i;
            s->arranged[at] = j;
            s->scores.coef[at++] = node->coef[i];
        }
        if (held) s->scores.n_held = at;
    }
}

static void set_costs(const Scores *to, const Search *s, Node *node)
{
    const index_t n_held = to->n_held, size = to->size - n_held;
    for (index_t i = 0; i < to->size; i++) {
        const index_t place = s->order[i], slot = i - n_held, j = to->chosen[i];
        const double b = to->coef[i];
        node->costs[place] = s->fixed[node->chosen[place]] ? (double)INFINITY
                             : slot < 0 ? b * (to->slope[j] + 0.5 * b * to->regressions[i * to->m + j])
                                        : 0.5 * b * (b / to->inverse[slot * size + slot]);
    }
    node->has_costs = 1;
}

/* By how much the model rises when each column is dropped. */
static const double *costs(Search *s, Node *node)
{
    if (node->has_costs) return node->costs;
    const index_t n = s->refit.f.n, size = node->size, inner = size - s->refit.f.loss.n_thresholds;
    double *memory = s->scratch, *rows = take(&memory, n * inner);
    predict(s, node);
    for (index_t i = 0; i < size; i++) {
        const double *column = s->columns + s->arranged[i] * n;
        for (index_t t = 0; i < inner && t < n; t++) rows[t * inner + i] = column[t];
        s->places[i] = i;
        s->own_l2[i] = s->l2[s->arranged[i]];
    }
    Scores few = s->scores;
    few.m = size;
    few.X = rows;
    few.l2 = s->own_l2;
    few.chosen = s->places;
    score(&few, memory);
    set_costs(&few, s, node);
    return node->costs;
}

/* The gain of each column in the place of a chosen one with coefficient b and diagonal a of the inverse. */
VECTORISED static double gains_in_place(const double *restrict slope, const double *restrict unexplained,
                                        const double *restrict regressions, double b, double a, double *restrict gain,
                                        index_t m)
{
    double largest = 0.0;
    for (index_t j = 0; j < m; j++) {
        const double along = regressions[j] / a, g = slope[j] + b * along, h = unexplained[j] + regressions[j] * along;
        gain[j] = 0.5 * g * (g / h);
    }
    for (index_t j = 0; j < m; j++) largest = gain[j] > largest ? gain[j] : largest;
    return largest;
}

/* The same where columns have bounds; `widens` is 1 / a, or 0 in the place of a held column, whose row is of products. */
VECTORISED static double bounded_gains_in_place(const double *restrict slope, const double *restrict unexplained,
                                                const double *restrict row, double by, double widens,
                                                const double *bounds, double *restrict gain, index_t m)
{
    double largest = 0.0;
    for (index_t j = 0; j < m; j++)
        gain[j] = 0.5 * twice_gain(slope[j] + row[j] * by, unexplained[j] + row[j] * (row[j] * widens), bounds, m, j);
    for (index_t j = 0; j < m; j++) largest = gain[j] > largest ? gain[j] : largest;
    return largest;
}

static index_t place_of(const double *x, double value, index_t n)
{
    index_t i = 0;
    while (i + 1 < n && !(x[i] == value)) i++;
    return i;
}

/* The gain of each column that is added, by the last scores. */
static void gains_of_additions(Search *s)
{
    const double *slope = s->scores.slope, *unexplained = s->scores.unexplained;
    for (index_t j = 0; j < s->m; j++) s->gain[j] = 0.5 * twice_gain(slope[j], unexplained[j], s->bounds, s->m, j);
}

/* Compute which additions and exchanges the model says are best. */
static void find_moves(Search *s, Node *node)
{
    if (node->has_moves) return;
    Scores *to = &s->scores;
    const index_t m = s->m, size = node->size;
    double rise[TRIED];
    predict(s, node);
    to->chosen = s->arranged;
    score(to, s->scratch);
    s->work += (double)to->n * (double)m * (double)(size + 2);
    set_costs(to, s, node);
    gains_of_additions(s);
    for (int i = 0; i < 2; i++) {
        double best = -1.0;
        node->added[i] = 0;
        for (index_t j = 0; j < m; j++)
            if (s->gain[j] > best) {
                best = s->gain[j];
                node->added[i] = j;
            }
        node->gains[i] = best;
        if (m) s->gain[node->added[i]] = -2.0;
    }
    for (index_t i = 0; i < size; i++) {
        const double cost = node->costs[s->order[i]], *row = to->regressions + i * m, b = to->coef[i];
        if (!(cost < (double)INFINITY)) continue;
        const index_t slot = i - to->n_held;
        const double a = slot < 0 ? 1.0 : to->inverse[slot * (size - to->n_held) + slot];
        const double *slope = to->slope, *rest = to->unexplained;
        const double gain =
            s->bounds ? bounded_gains_in_place(slope, rest, row, b / a, slot < 0 ? 0.0 : 1.0 / a, s->bounds, s->gain, m)
                      : gains_in_place(slope, rest, row, b, a, s->gain, m);
        if (!(gain >= s->nearly * cost)) continue;
        index_t at = node->n_exchanges;
        while (at > 0 && rise[at - 1] > cost - gain) at--;
        if (at == TRIED) continue;
        if (node->n_exchanges < TRIED) node->n_exchanges++;
        for (index_t k = node->n_exchanges - 1; k > at; k--) {
            rise[k] = rise[k - 1];
            node->dropped[k] = node->dropped[k - 1];
            node->entered[k] = node->entered[k - 1];
        }
        rise[at] = cost - gain;
        node->dropped[at] = s->order[i];
        node->entered[at] = place_of(s->gain, gain, m);
    }
    node->has_moves = 1;
}

static int is_lower(const Search *s, const Node *a, const Node *b) { return a->value < b->value - s->negligible; }

static Node *lower_of(const Search *s, Node *other, Node *node) { return is_lower(s, other, node) ? other : node; }

/* The best exchanges, as long as one of them lowers f. */
static Node *exchange(Search *s, Node *start)
{
    if (start->exchanged) return start->exchanged;
    Node *node = start;
    for (int moved = 1; moved && s->work < s->most_work;) {
        moved = 0;
        find_moves(s, node);
        for (index_t i = 0; i < node->n_exchanges && !moved; i++) {
            Node *other = fit_with(s, node, node->dropped[i], node->entered[i]);
            if (is_lower(s, other, node)) {
                node = other;
                moved = 1;
            }
        }
    }
    return start->exchanged = node;
}

static Node *grown(Search *s, Node *node, index_t size)
{
    while (node->size < size + s->n_fixed) {
        find_moves(s, node);
        if (!(node->gains[0] > 0.0)) break;
        node = fit_with(s, node, -1, node->added[0]);
    }
    return node;
}

static index_t cheapest(const double *cost, index_t size)
{
    index_t best = 0;
    for (index_t i = 1; i < size; i++)
        if (cost[i] < cost[best]) best = i;
    return best;
}

static Node *shrunk(Search *s, Node *node, index_t size)
{
    while (node->size > size + s->n_fixed) node = fit_without(s, node, cheapest(costs(s, node), node->size));
    return node;
}

/* The minimiser on the columns with the largest gains at the minimiser on the fixed ones. */
static Node *best_alone(Search *s, Node *start, index_t size)
{
    Node *node = shrunk(s, start, 0);
    const index_t n_fixed = node->size, m = s->m;
    node->has_moves = node->n_exchanges = 0; /* so that the scores are those of this node */
    find_moves(s, node);
    gains_of_additions(s);
    memcpy(s->wanted, node->chosen, sizeof(index_t) * (size_t)n_fixed);
    index_t count = n_fixed;
    for (; count < n_fixed + size; count++) {
        index_t best = 0, at = count;
        for (index_t j = 1; j < m; j++)
            if (s->gain[j] > s->gain[best]) best = j;
        if (!(s->gain[best] > 0.0)) break;
        s->gain[best] = 0.0;
        for (; at > 0 && s->wanted[at - 1] > best; at--) s->wanted[at] = s->wanted[at - 1];
        s->wanted[at] = best;
    }
    return fit(s, count, node);
}

/* What to search: see `RefitSearch`. */
typedef struct {
    index_t size, least, most, rounds, n_counts;
    const index_t *counts;
    double ratio;
    int deep; /* if not, only the first exchanges are made */
} Plan;

/* The best minimiser of each size from `least` on, and whether its neighbours are yet to be searched from there. */
typedef struct {
    Node *best;
    int up, down;
} BestOfSize;

static void keep_best(const Search *s, BestOfSize *of_size, Node *node)
{
    if (of_size->best == NULL || is_lower(s, node, of_size->best)) *of_size = (BestOfSize){node, 1, 1};
}

static void reach_best(Search *s, BestOfSize *best_of, index_t least, index_t at, Node *from)
{
    keep_best(s, &best_of[at], exchange(s, grown(s, shrunk(s, from, least + at), least + at)));
}

/* Search neighbouring budgets together: from each go to the next, as long as one becomes lower. */
static Node *sweep_sizes(Search *s, Node *start, BestOfSize *best_of, const Plan *plan)
{
    const index_t least = plan->least, last = plan->most - least, own = plan->size - least;
    index_t rounds = plan->rounds;
    memset(best_of, 0, sizeof *best_of * (size_t)(last + 1));
    keep_best(s, &best_of[own], start);
    reach_best(s, best_of, least, 0, shrunk(s, start, 0));
    for (int found = 1; found && rounds > 0; rounds--) {
        found = 0;
        for (index_t i = 0; i < last; i++)
            if (best_of[i].up && s->work < s->most_work) {
                best_of[i].up = 0;
                reach_best(s, best_of, least, i + 1, best_of[i].best);
                found = 1;
            }
        for (index_t i = last; i > 0; i--)
            if (best_of[i].best && best_of[i].down && s->work < s->most_work) {
                best_of[i].down = 0;
                reach_best(s, best_of, least, i - 1, best_of[i].best);
                found = 1;
            }
    }
    return best_of[own].best;
}

/* The first lower one of those where a column is replaced, the cheapest first. */
static Node *replaced(Search *s, Node *node)
{
    const double *cost = costs(s, node);
    double last = -1.0;
    for (index_t done = 0, at = -1; done < node->size; done++) {
        index_t next = -1;
        for (index_t i = 0; i < node->size; i++) /* in the order of costs, then of places */
            if ((cost[i] > last || (cost[i] == last && i > at)) && (next < 0 || cost[i] < cost[next])) next = i;
        if (next < 0 || !(cost[next] < (double)INFINITY) || s->work >= s->most_work) break;
        last = cost[next];
        at = next;
        Node *rest = fit_without(s, node, at);
        find_moves(s, rest);
        const int best = rest->added[0] == node->chosen[at];
        if (!(rest->gains[best] > 0.0)) continue;
        Node *other = exchange(s, fit_with(s, rest, -1, rest->added[best]));
        if (is_lower(s, other, node)) return other;
    }
    return node;
}

/* Whether there may be lower minimisers: an exchange has been tried in vain, or f, without the less useful half of the
 * columns, rises by more than a multiple of what the model says. */
static int is_doubtful(Search *s, Node *node, double ratio)
{
    if (ratio == (double)INFINITY || s->work >= s->most_work) return 0;
    if (ratio == 0.0 || node->n_exchanges || s->bounds) return 1;
    const index_t size = node->size;
    index_t kept = 0, dropped = 0, *places = s->places;
    node->has_costs = 0; /* so that the scores are those of this node */
    const double *cost = costs(s, node), *inverse = s->scores.inverse;
    for (index_t i = 0; i < size; i++) dropped += cost[i] < (double)INFINITY;
    dropped = (dropped + 1) / 2;
    double *block = s->scratch, *coef = block + dropped * dropped, *factor = coef + size, rise = 0.0;
    const double **row = (const double **)(factor + size);
    index_t count = 0;
    for (index_t i = 0; i < size; i++) { /* those with fewer than `dropped` cheaper ones, ties by place */
        index_t cheaper = 0;
        for (index_t k = 0; k < size; k++) cheaper += cost[k] < cost[i] || (cost[k] == cost[i] && k < i);
        if (cheaper < dropped)
            places[count++] = i;
        else
            s->wanted[kept++] = node->chosen[i];
    }
    for (index_t i = 0; i < dropped; i++) {
        coef[i] = s->scores.coef[places[i]];
        for (index_t k = 0; k < dropped; k++) block[i * dropped + k] = inverse[places[i] * size + places[k]];
    }
    if (!factorise(block, dropped, 0.0, row, factor)) return 1;
    solve_lower(block, dropped, coef, 1, row, factor);
    for (index_t i = 0; i < dropped; i++) rise += 0.5 * coef[i] * coef[i];
    return fit(s, kept, node)->value - node->value > ratio * rise;
}

/* The lowest minimiser on the columns of a size, besides the fixed ones, that the search leads to. */
static Node *search_from(Search *s, Node *start, BestOfSize *best_of, const Plan *plan)
{
    const index_t size = plan->size;
    Node *node;
    if (!plan->deep) {
        node = exchange(s, grown(s, shrunk(s, start, size), size));
        s->doubtful = is_doubtful(s, node, plan->ratio);
        return node;
    }
    node = exchange(s, grown(s, best_alone(s, start, size), size));
    if (start->size > s->n_fixed) node = lower_of(s, node, exchange(s, grown(s, shrunk(s, start, size), size)));
    if (s->work >= s->most_work) return node;
    node = sweep_sizes(s, node, best_of, plan);
    for (index_t round = 0; round < plan->rounds; round++) {
        Node *const before = node;
        for (index_t i = 0; i < plan->n_counts && s->work < s->most_work; i++) {
            const index_t count = plan->counts[i];
            Node *const wide = shrunk(s, grown(s, node, size + count), size);
            Node *const narrow = grown(s, shrunk(s, node, size > count ? size - count : 0), size);
            node = lower_of(s, exchange(s, wide), node);
            node = lower_of(s, exchange(s, narrow), node);
        }
        node = replaced(s, node);
        if (node == before) break;
    }
    return node;
}

/* The same from a given minimiser; NULL if there is no memory. */
static const Node *search(Search *s, const Node *given, BestOfSize *best_of, const Plan *plan)
{
    if (setjmp(s->out_of_memory)) return NULL;
    if (given->size) memcpy(s->wanted, given->chosen, sizeof(index_t) * (size_t)given->size);
    Node *start = node_of(s, given->size);
    if (given->size) memcpy(start->coef, given->coef, sizeof(double) * (size_t)given->size);
    start->value = given->value;
    return search_from(s, start, best_of, plan);
}

/* ---- what the outside sees ------------------------------------------------------------------------------------ */

enum { SIZE, N_FREE, DECREASE, LOWEST_SCORE, LOWEST_COST, N_HELD, N_FACTS };

static void report(const Tableau *T, index_t *chosen, double *coef, index_t width, double *facts)
{
    double score = (double)INFINITY, least = (double)INFINITY;
    for (index_t i = 0; i < size_of(T); i++) chosen[i] = column_at(T, i);
    for (index_t r = 0; r < T->problem->sides; r++)
        memcpy(coef + r * width, T->coef + r * T->slots, sizeof(double) * (size_t)T->size);
    for (index_t k = 0; k < T->n_held; k++) coef[T->size + k] = T->level[T->held[k]]; /* there is one side */
    for (index_t i = 0; i < size_of(T); i++) {
        if (T->problem->is_free[column_at(T, i)]) continue;
        const double cost = cost_of(T, i), outside = score_of(T, i);
        score = outside < score ? outside : score;
        least = cost < least ? cost : least;
    }
    facts[SIZE] = (double)size_of(T);
    facts[N_FREE] = (double)T->n_free;
    facts[DECREASE] = T->decrease;
    facts[LOWEST_SCORE] = size_of(T) > T->n_free ? score : 0.0;
    facts[LOWEST_COST] = least;
    facts[N_HELD] = (double)T->n_held;
}

enum { N_ARRAYS = 14, TABLE = 8, N_OTHERS = 3 };

typedef struct {
    Py_buffer views[N_ARRAYS + 5];
    int count;
    double *memory;
    Problem problem;
    double *table, *unexplained, *excluded; /* of the caller: [-b, g] for each side, then [A_i., U_i.] */
    double *level;
    index_t *chosen, *held, slots;
    Tableau tableau, others[N_OTHERS];
} Call;

static void finish(Call *call)
{
    while (call->count) PyBuffer_Release(&call->views[--call->count]);
    free(call->memory);
    call->memory = NULL;
}

static void *view(Call *call, PyObject *array, int writable)
{
    Py_buffer *buffer = &call->views[call->count];
    if (PyObject_GetBuffer(array, buffer, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0) return NULL;
    call->count++;
    return buffer->buf;
}

/* Read the arrays of a tableau (see `Tableau.arrays`), of which only the held columns are taken, and allocate everything,
 * with room for `most` columns or those of the caller. */
static int begin(Call *call, PyObject *arrays, index_t n_held, index_t n_free, index_t most)
{
    Problem *p = &call->problem;
    void *at[N_ARRAYS];
    Py_ssize_t length[N_ARRAYS];
    call->count = 0;
    call->memory = NULL;
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != N_ARRAYS) {
        PyErr_Format(PyExc_TypeError, "the arrays of a tableau must be a tuple of %d", N_ARRAYS);
        return -1;
    }
    for (int i = 0; i < N_ARRAYS; i++) {
        PyObject *array = PyTuple_GetItem(arrays, i);
        at[i] = NULL;
        length[i] = 0;
        if (array == NULL || (array != Py_None && !(at[i] = view(call, array, i >= TABLE)))) {
            finish(call);
            return -1;
        }
        if (at[i]) length[i] = call->views[call->count - 1].len / 8; /* all are of float64 or int64 */
    }
    const index_t m = length[2];
    call->table = at[TABLE];
    call->unexplained = at[TABLE + 1];
    call->excluded = at[TABLE + 2];
    call->chosen = at[TABLE + 3];
    call->held = at[TABLE + 4];
    call->level = at[TABLE + 5];
    call->slots = length[TABLE + 3];
    p->gram = at[0];
    p->gram_size = (index_t)llround(sqrt((double)length[0]));
    p->gram_rows = at[1];
    p->m = m;
    p->norms = at[2];
    p->dependent = at[3];
    p->start_slope = at[4];
    p->start_coef = at[5];
    p->bounds = at[6];
    p->is_free = at[7];
    p->sides = m > 0 ? length[4] / m : 1;
    const index_t room = most < m ? most : m, slots = room > call->slots ? room : call->slots, sides = p->sides;
    const index_t each = slots * slots + (2 + sides) * slots + (3 + sides) * m + slots * m;
    const index_t gathered = p->gram_rows ? m * m : 0;
    const index_t scratch = 4 * m + slots * slots + (4 + sides) * (slots + 1) + sides + gathered;
    double *memory = call->memory = malloc(sizeof(double) * (size_t)(scratch + (1 + N_OTHERS) * each));
    if (memory == NULL) {
        finish(call);
        PyErr_NoMemory();
        return -1;
    }
    p->row = take(&memory, m);
    p->rest = take(&memory, m);
    p->point = take(&memory, m);
    p->rows = (const double **)take(&memory, m);
    p->cholesky = take(&memory, slots * slots);
    p->factor = take(&memory, sides * (slots + 1));
    p->regression = take(&memory, slots + 1);
    p->shift = take(&memory, sides);
    p->chosen_rows = (const double **)take(&memory, slots + 1);
    p->wanted = (index_t *)take(&memory, slots + 1);
    p->order = (index_t *)take(&memory, slots + 1);
    p->gathered = take(&memory, gathered);
    for (index_t j = 0; j < m; j++) p->rows[j] = NULL;
    for (int i = 0; i <= N_OTHERS; i++) {
        Tableau *T = i ? &call->others[i - 1] : &call->tableau;
        *T = (Tableau){.problem = p, .slots = slots, .n_free = n_free, .kept_out = -1};
        T->inverse = take(&memory, slots * slots);
        T->coef = take(&memory, sides * slots);
        T->chosen = (index_t *)take(&memory, slots);
        T->slope = take(&memory, sides * m);
        T->unexplained = take(&memory, m);
        T->excluded = take(&memory, m);
        T->regressions = take(&memory, slots * m);
        T->held = (index_t *)take(&memory, slots);
        T->level = take(&memory, m);
        memset(T->level, 0, sizeof(double) * (size_t)m); /* where there are no bounds nothing else writes there */
    }
    memcpy(call->tableau.held, call->held, sizeof(index_t) * (size_t)n_held);
    memcpy(call->tableau.level, call->level, sizeof(double) * (size_t)m);
    call->tableau.n_held = n_held;
    return 0;
}

/* Begin with the tableau of the caller. */
static int load(Call *call, PyObject *arrays, index_t size, index_t n_held, index_t n_free, double decrease,
                index_t most)
{
    if (begin(call, arrays, n_held, n_free, most) < 0) return -1;
    Tableau *T = &call->tableau;
    const index_t m = call->problem.m, slots = call->slots, sides = call->problem.sides, stride = slots + m;
    for (index_t r = 0; r < sides; r++) {
        const double *row = call->table + r * stride;
        for (index_t i = 0; i < size; i++) T->coef[r * T->slots + i] = -row[i];
        memcpy(T->slope + r * m, row + slots, sizeof(double) * (size_t)m);
    }
    for (index_t i = 0; i < size; i++)
        memcpy(T->inverse + i * T->slots, call->table + (sides + i) * stride, sizeof(double) * (size_t)size);
    memcpy(T->unexplained, call->unexplained, sizeof(double) * (size_t)m);
    memcpy(T->excluded, call->excluded, sizeof(double) * (size_t)m);
    memcpy(T->chosen, call->chosen, sizeof(index_t) * (size_t)size);
    T->size = size;
    T->decrease = decrease;
    return 0;
}

/* Write the tableau of the call into the arrays of the caller, and return what is no array. */
static PyObject *answer(Call *call)
{
    Tableau *T = &call->tableau;
    const index_t m = call->problem.m, slots = call->slots, size = T->size, stride = slots + m;
    const index_t sides = call->problem.sides;
    compute_regressions(T);
    memset(call->table, 0, sizeof(double) * (size_t)((sides + slots) * stride));
    for (index_t r = 0; r < sides; r++) {
        double *row = call->table + r * stride;
        for (index_t i = 0; i < size; i++) row[i] = -T->coef[r * T->slots + i];
        memcpy(row + slots, T->slope + r * m, sizeof(double) * (size_t)m);
    }
    for (index_t i = 0; i < size; i++) {
        double *row = call->table + (sides + i) * stride;
        memcpy(row, T->inverse + i * T->slots, sizeof(double) * (size_t)size);
        memcpy(row + slots, T->regressions + i * m, sizeof(double) * (size_t)m);
    }
    memcpy(call->unexplained, T->unexplained, sizeof(double) * (size_t)m);
    memcpy(call->excluded, T->excluded, sizeof(double) * (size_t)m);
    memcpy(call->chosen, T->chosen, sizeof(index_t) * (size_t)size);
    memcpy(call->held, T->held, sizeof(index_t) * (size_t)T->n_held);
    memcpy(call->level, T->level, sizeof(double) * (size_t)m);
    PyObject *found =
        Py_BuildValue("nnnd", (Py_ssize_t)size, (Py_ssize_t)T->n_held, (Py_ssize_t)T->n_free, T->decrease);
    finish(call);
    return found;
}

static index_t largest(const index_t *counts, index_t n)
{
    index_t most = 0;
    for (index_t i = 0; i < n; i++) most = counts[i] > most ? counts[i] : most;
    return most;
}

/* compute(arrays, n_held, n_free, wanted): fill a tableau, but for the held columns and their levels, which it has; the
 * other functions begin with one that is filled. */
static PyObject *py_compute(PyObject *module, PyObject *args)
{
    PyObject *arrays, *wanted;
    Py_ssize_t n_held, n_free;
    Call call;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnnO", &arrays, &n_held, &n_free, &wanted)) return NULL;
    if (begin(&call, arrays, n_held, n_free, 0) < 0) return NULL;
    Py_buffer columns;
    if (PyObject_GetBuffer(wanted, &columns, PyBUF_C_CONTIGUOUS) < 0) {
        finish(&call);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    compute(&call.tableau, columns.buf, columns.len / (Py_ssize_t)sizeof(index_t));
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&columns);
    return answer(&call);
}

/* settle(arrays, size, n_held, n_free, decrease, point): from a point of all columns, within the bounds, to the minimiser
 * within them. */
static PyObject *py_settle(PyObject *module, PyObject *args)
{
    PyObject *arrays, *point;
    Py_ssize_t size, n_held, n_free;
    double decrease;
    Call call;
    Py_buffer start;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnnndO", &arrays, &size, &n_held, &n_free, &decrease, &point)) return NULL;
    if (load(&call, arrays, size, n_held, n_free, decrease, 0) < 0) return NULL;
    if (PyObject_GetBuffer(point, &start, PyBUF_C_CONTIGUOUS) < 0) {
        finish(&call);
        return NULL;
    }
    memcpy(call.problem.point, start.buf, sizeof(double) * (size_t)call.problem.m);
    PyBuffer_Release(&start);
    Py_BEGIN_ALLOW_THREADS
    settle(&call.tableau, call.problem.point);
    Py_END_ALLOW_THREADS
    return answer(&call);
}

/* grow(arrays, size, n_held, n_free, decrease, target, rounding) */
static PyObject *py_grow(PyObject *module, PyObject *args)
{
    PyObject *arrays;
    Py_ssize_t size, n_held, n_free, target;
    double decrease, rounding;
    Call call;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onnndnd", &arrays, &size, &n_held, &n_free, &decrease, &target, &rounding)) return NULL;
    if (load(&call, arrays, size, n_held, n_free, decrease, 0) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    grow(&call.tableau, target, rounding);
    Py_END_ALLOW_THREADS
    return answer(&call);
}

/* shrink(arrays, size, n_held, n_free, decrease, target) */
static PyObject *py_shrink(PyObject *module, PyObject *args)
{
    PyObject *arrays;
    Py_ssize_t size, n_held, n_free, target;
    double decrease;
    Call call;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onnndn", &arrays, &size, &n_held, &n_free, &decrease, &target)) return NULL;
    if (load(&call, arrays, size, n_held, n_free, decrease, 0) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    shrink(&call.tableau, target);
    Py_END_ALLOW_THREADS
    return answer(&call);
}

/* descend(arrays, size, n_held, n_free, decrease, target, counts, rounds, rounding, negligible): exchanges, then
 * add-drop moves by each of the counts. */
static PyObject *py_descend(PyObject *module, PyObject *args)
{
    PyObject *arrays, *counts;
    Py_ssize_t size, n_held, n_free, target, rounds;
    double decrease, rounding, negligible;
    Call call;
    Py_buffer moves;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnnndnOndd", &arrays, &size, &n_held, &n_free, &decrease, &target, &counts, &rounds, &rounding,
                          &negligible))
        return NULL;
    if (PyObject_GetBuffer(counts, &moves, PyBUF_C_CONTIGUOUS) < 0) return NULL;
    const index_t n_counts = moves.len / (Py_ssize_t)sizeof(index_t);
    if (load(&call, arrays, size, n_held, n_free, decrease, target + largest(moves.buf, n_counts)) < 0) {
        PyBuffer_Release(&moves);
        return NULL;
    }
    Tableau *T = &call.tableau, *trial = &call.others[0], *spare = &call.others[1];
    Py_BEGIN_ALLOW_THREADS
    descend(T, spare, target, rounding, negligible);
    add_drop(T, trial, spare, target, moves.buf, n_counts, rounds, rounding, negligible);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&moves);
    return answer(&call);
}

enum { NEW_BELOW = 1, NEW_ABOVE = 2 }; /* a best choice that no smaller, or larger, size has been searched from */

typedef struct {
    index_t n_sizes, n_counts, width, rounds, replaced;
    const index_t *sizes, *counts;
    double rounding, negligible;
    index_t *chosen;
    double *coef, *facts; /* of the best choice of each size */
    int *new;
} Targets;

/* Make the choice the best one of a size, if it is better. */
static void keep(const Targets *to, index_t i, const Tableau *T)
{
    double *facts = to->facts + i * N_FACTS;
    if (!isinf(facts[DECREASE]) && !(T->decrease > facts[DECREASE] + to->negligible)) return;
    report(T, to->chosen + i * to->width, to->coef + i * to->width * T->problem->sides, to->width, facts);
    to->new[i] = NEW_BELOW | NEW_ABOVE;
}

static void move_to_best(const Targets *to, index_t i, Tableau *T)
{
    const double *facts = to->facts + i * N_FACTS;
    const index_t count = (index_t)facts[SIZE], n_held = (index_t)facts[N_HELD], first = i * to->width;
    const double *levels = to->coef + first * T->problem->sides + count - n_held;
    move_to(T, to->chosen + first, count, n_held, levels);
}

/* Go to a size from a larger or a smaller one. */
static void reach(const Targets *to, index_t i, Tableau *T, Tableau *spare)
{
    const index_t size = to->sizes[i];
    shrink(T, size);
    grow(T, size, to->rounding); /* when columns are dropped, too: others may have met a bound of zero and left */
    descend(T, spare, size, to->rounding, to->negligible);
    keep(to, i, T);
}

/* Go to each size from the next smaller (step 1) or larger one (step -1), where the best choice there is new. */
static int sweep(const Targets *to, index_t step, int new, Tableau *T, Tableau *spare)
{
    int any = 0;
    for (index_t i = step > 0 ? 0 : to->n_sizes - 1; i + step >= 0 && i + step < to->n_sizes; i += step) {
        if (!(to->new[i] & new)) continue;
        to->new[i] &= ~new;
        move_to_best(to, i, T);
        reach(to, i + step, T, spare);
        any = 1;
    }
    return any;
}

/* The best choice of each size: see `local_search.forward_backward`. */
static void forward_backward(const Targets *to, const Tableau *start, Tableau *others)
{
    Tableau *T = &others[0], *trial = &others[1], *spare = &others[2];
    if (to->n_sizes == 0) return;
    for (index_t i = 0; i < to->n_sizes; i++) {
        to->facts[i * N_FACTS + DECREASE] = -(double)INFINITY;
        to->new[i] = 0;
        if (to->sizes[i] == size_of(start)) keep(to, i, start);
    }
    copy_to(T, start);
    reach(to, 0, T, spare);
    sweep(to, 1, NEW_ABOVE, T, spare);
    sweep(to, -1, NEW_BELOW, T, spare);
    for (index_t i = 0; i < to->n_sizes; i++) {
        const index_t *counts = to->counts + i * to->n_counts;
        if (to->n_counts == 0 || counts[to->n_counts - 1] == 0) continue;
        move_to_best(to, i, T);
        add_drop(T, trial, spare, to->sizes[i], counts, to->n_counts, to->rounds, to->rounding, to->negligible);
        replace(T, trial, spare, to->sizes[i], to->replaced, to->rounds, to->rounding, to->negligible);
        keep(to, i, T);
    }
    for (index_t round = 0, any = 1; any && round < to->rounds; round++) {
        any = sweep(to, 1, NEW_ABOVE, T, spare);
        any |= sweep(to, -1, NEW_BELOW, T, spare);
    }
}

/* forward_backward(arrays, size, n_held, n_free, decrease, sizes, most, counts, replaced, rounds, rounding, negligible,
 * chosen, coef, facts): `counts` has a row for each size, and so have the three arrays that it fills; no move has more
 * than `most` columns. */
static PyObject *py_forward_backward(PyObject *module, PyObject *args)
{
    PyObject *arrays, *given[5];
    Py_ssize_t size, n_held, n_free, most, replaced, rounds;
    Call call;
    Targets to;
    double decrease;
    void *at[5];
    (void)module;
    if (!PyArg_ParseTuple(args, "OnnndOnOnnddOOO", &arrays, &size, &n_held, &n_free, &decrease, &given[0], &most,
                          &given[1], &replaced, &rounds, &to.rounding, &to.negligible, &given[2], &given[3],
                          &given[4]))
        return NULL;
    if (load(&call, arrays, size, n_held, n_free, decrease, most) < 0) return NULL;
    for (int i = 0; i < 5; i++)
        if (!(at[i] = view(&call, given[i], i > 1))) {
            finish(&call);
            return NULL;
        }
    const Py_buffer *last = &call.views[call.count - 5];
    to.sizes = at[0];
    to.counts = at[1];
    to.chosen = at[2];
    to.coef = at[3];
    to.facts = at[4];
    to.n_sizes = last[0].len / (Py_ssize_t)sizeof(index_t);
    to.n_counts = to.n_sizes ? last[1].len / (Py_ssize_t)sizeof(index_t) / to.n_sizes : 0;
    to.width = to.n_sizes ? last[2].len / (Py_ssize_t)sizeof(index_t) / to.n_sizes : 0;
    to.rounds = rounds;
    to.replaced = replaced;
    to.new = malloc(sizeof(int) * (size_t)(to.n_sizes + 1));
    if (to.new == NULL) {
        finish(&call);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    forward_backward(&to, &call.tableau, call.others);
    Py_END_ALLOW_THREADS
    free(to.new);
    finish(&call);
    Py_RETURN_NONE;
}

/* View the arrays of a call, those from `first_written` on for writing; None is NULL. Each has 8 bytes per number. */
static int view_all(Call *call, PyObject *const *arrays, int count, int first_written, void **at, index_t *length)
{
    for (int i = 0; i < count; i++) {
        at[i] = NULL;
        length[i] = 0;
        if (arrays[i] == Py_None) continue;
        if (!(at[i] = view(call, arrays[i], i >= first_written))) {
            finish(call);
            return -1;
        }
        length[i] = call->views[call->count - 1].len / 8;
    }
    return 0;
}

/* View the bounds of coefficients, lower ones and then upper ones; None is NULL. */
static int view_bounds(Call *call, PyObject *given, const double **bounds)
{
    *bounds = NULL;
    if (given == Py_None || (*bounds = view(call, given, 0))) return 0;
    finish(call);
    return -1;
}

static double *allocate(Call *call, index_t n)
{
    call->memory = malloc(sizeof(double) * (size_t)(n + 1)); /* not of 0 bytes, which may be NULL */
    if (call->memory == NULL) {
        finish(call);
        PyErr_NoMemory();
    }
    return call->memory;
}

/* refit(loss, columns, offset, l2, coef, prediction, bounds, steps, halvings, armijo, share, least, units, below, damping):
 * f at the last point, and how the refit has ended. `bounds`, here and below, has the lower bounds of the coefficients and
 * then the upper ones, or is None; `coef` is within them. A loss, here and below, is its number, its parameter, y, and the weights; that of
 * ordered classes has the thresholds as the last coefficients, for which there are no columns, and y increases. A row of
 * `columns` is a column of the data, and the offset may be None; `coef` is the start and becomes the last point, and
 * `prediction` its prediction. It ends with the step whose predicted decrease is at most `share` of f, `least`, or so many
 * `units` of the terms of f; of the last two only the whole step is tried. `below` is that of `subspace.refine`, and
 * `damping` is added to the second derivatives of all losses where the Hessian is singular: if infinite, the refit ends. */
static PyObject *py_refit(PyObject *module, PyObject *args)
{
    PyObject *given[7], *limited;
    const double *bounds;
    Py_ssize_t steps, halvings;
    Limits limits = {.rate = (double)INFINITY};
    Loss loss;
    Call call = {.count = 0, .memory = NULL};
    Refit r;
    void *at[7];
    index_t length[7];
    int end;
    (void)module;
    if (!PyArg_ParseTuple(args, "(idOO)OOOOOOnndddddd", &loss.kind, &loss.parameter, &given[0], &given[1], &given[2],
                          &given[3], &given[4], &given[5], &given[6], &limited, &steps, &halvings, &limits.armijo,
                          &limits.share, &limits.least, &limits.units, &limits.below, &limits.damping))
        return NULL;
    if (view_all(&call, given, 7, 5, at, length) < 0 || view_bounds(&call, limited, &bounds) < 0) return NULL;
    limits.steps = steps;
    limits.halvings = halvings;
    loss.y = at[0];
    loss.weights = at[1];
    const index_t n = length[0], size = length[5];
    double *memory = allocate(&call, refit_numbers(n, size));
    if (memory == NULL) return NULL;
    prepare(&r, &loss, &memory, n, size);
    r.f.offset = at[3];
    r.f.l2 = at[4];
    r.f.lower = bounds;
    r.f.upper = bounds ? bounds + size : NULL;
    for (index_t i = 0; i < size - r.f.loss.n_thresholds; i++) r.f.columns[i] = (const double *)at[2] + i * n;
    memcpy(r.at.coef, at[5], sizeof(double) * (size_t)size);
    Py_BEGIN_ALLOW_THREADS
    end = refit(&r, &limits);
    Py_END_ALLOW_THREADS
    memcpy(at[5], r.at.coef, sizeof(double) * (size_t)size);
    memcpy(at[6], r.at.prediction, sizeof(double) * (size_t)n);
    finish(&call);
    return Py_BuildValue("di", r.at.value, end);
}

/* refits(loss, columns, offset, penalties, null_coef, supports, ends, starts, ridges, coefs, ended, bounds, steps,
 * halvings, armijo, share, rate, units, damping): refits of many supports, one after the other. A row of `columns` is a column of
 * the data. Refit i is that of the columns supports[ends[i]:ends[i + 1]], which increase, with the ridge ridges[i] times the
 * penalty of each column. It starts from refit starts[i] < i, where columns that this one does not have are zero, or
 * from `null_coef` if that is negative. Its coefficients are written to the same places of `coefs`, and how it ends to
 * ended[i]. The step that ends a refit must also predict no more than `rate` times the decrease of the step before. */
static PyObject *py_refits(PyObject *module, PyObject *args)
{
    enum { GIVEN = 12 };
    PyObject *given[GIVEN], *limited;
    const double *bounds;
    Py_ssize_t steps, halvings;
    Limits limits = {.least = 0.0, .below = (double)INFINITY};
    Loss loss;
    Call call = {.count = 0, .memory = NULL};
    Refit r;
    void *at[GIVEN];
    index_t length[GIVEN], width = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "(idOO)OOOOOOOOOOOnnddddd", &loss.kind, &loss.parameter, &given[0], &given[1], &given[2],
                          &given[3], &given[4], &given[5], &given[6], &given[7], &given[8], &given[9], &given[10],
                          &given[11], &limited, &steps, &halvings, &limits.armijo, &limits.share, &limits.rate, &limits.units,
                          &limits.damping))
        return NULL;
    if (view_all(&call, given, GIVEN, 10, at, length) < 0 || view_bounds(&call, limited, &bounds) < 0) return NULL;
    limits.steps = steps;
    limits.halvings = halvings;
    loss.y = at[0];
    loss.weights = at[1];
    const double *X = at[2], *penalties = at[4], *null_coef = at[5], *ridges = at[9];
    const index_t n = length[0], m = length[4], *supports = at[6], *ends = at[7], *starts = at[8];
    const index_t n_refits = length[9];
    double *coefs = at[10];
    index_t *ended = at[11];
    for (index_t i = 0; i < n_refits; i++) width = ends[i + 1] - ends[i] > width ? ends[i + 1] - ends[i] : width;
    double *memory = allocate(&call, refit_numbers(n, width) + 3 * width + m);
    if (memory == NULL) return NULL;
    prepare(&r, &loss, &memory, n, width);
    double *l2 = take(&memory, width), *all = take(&memory, m); /* the start, by column */
    r.f.offset = at[3];
    r.f.l2 = l2;
    double *lower = take(&memory, width), *upper = take(&memory, width);
    r.f.lower = bounds ? lower : NULL;
    r.f.upper = bounds ? upper : NULL;
    Py_BEGIN_ALLOW_THREADS
    for (index_t i = 0; i < n_refits; i++) {
        const index_t *support = supports + ends[i], size = ends[i + 1] - ends[i], from = starts[i];
        if (from < 0) {
            memcpy(all, null_coef, sizeof(double) * (size_t)m);
        } else {
            memset(all, 0, sizeof(double) * (size_t)m);
            for (index_t k = ends[from]; k < ends[from + 1]; k++) all[supports[k]] = coefs[k];
        }
        r.f.size = size;
        for (index_t k = 0; k < size; k++) {
            if (k < size - r.f.loss.n_thresholds) r.f.columns[k] = X + support[k] * n;
            l2[k] = ridges[i] * penalties[support[k]];
            r.at.coef[k] = all[support[k]];
            if (!bounds) continue;
            lower[k] = bounds[support[k]];
            upper[k] = bounds[m + support[k]];
            r.at.coef[k] = r.at.coef[k] < lower[k] ? lower[k] : r.at.coef[k] > upper[k] ? upper[k] : r.at.coef[k];
        }
        ended[i] = refit(&r, &limits);
        memcpy(coefs + ends[i], r.at.coef, sizeof(double) * (size_t)size);
    }
    Py_END_ALLOW_THREADS
    finish(&call);
    Py_RETURN_NONE;
}

/* scores(loss, X, chosen, l2, prediction, coef, slope, unexplained, regressions, inverse): the last four become what the
 * quadratic model at the coefficients and their prediction says, and `coef` its minimiser. */
static PyObject *py_scores(PyObject *module, PyObject *args)
{
    enum { GIVEN = 11 };
    PyObject *given[GIVEN];
    Loss loss;
    Call call = {.count = 0, .memory = NULL};
    void *at[GIVEN];
    index_t length[GIVEN];
    (void)module;
    if (!PyArg_ParseTuple(args, "(idOO)OOOOOOOOO", &loss.kind, &loss.parameter, &given[0], &given[1], &given[2],
                          &given[3], &given[4], &given[5], &given[6], &given[7], &given[8], &given[9], &given[10]))
        return NULL;
    if (view_all(&call, given, GIVEN, 6, at, length) < 0) return NULL;
    loss.y = at[0];
    loss.weights = at[1];
    const index_t n = length[0], size = length[3], m = length[4];
    double *memory = allocate(&call, 5 * n + loss_numbers(n) + 2 * m + size * size + 6 * size);
    if (memory == NULL) return NULL;
    read_loss(&loss, n, &memory);
    const Scores to = {.n = n, .m = m, .size = size, .X = at[2], .l2 = at[4], .prediction = at[5], .loss = loss,
                       .chosen = at[3], .coef = at[6], .slope = at[7], .unexplained = at[8], .regressions = at[9],
                       .inverse = at[10]};
    Py_BEGIN_ALLOW_THREADS
    score(&to, memory);
    Py_END_ALLOW_THREADS
    finish(&call);
    Py_RETURN_NONE;
}

/* search(loss, X, columns, offset, l2, fixed, start, start_coef, counts, chosen, coef, bounds, value, size, least, most,
 * rounds, steps, halvings, armijo, share, damping, nearly, negligible, separated, ratio, most_work, deep): how many columns the search of
 * `RefitSearch` ends with, f there, whether there may be lower minimisers, and whether no Hessian of its refit was
 * singular, without which the answer does not count. The columns and their coefficients are written to `chosen` and
 * `coef`. The search begins at a minimiser, on the columns `start` with f = `value`; if not `deep`, it ends with the first
 * exchanges. X has a row for each example, `columns` one for each column; `fixed` is 1 for those that stay. */
static PyObject *py_search(PyObject *module, PyObject *args)
{
    enum { GIVEN = 12 };
    PyObject *given[GIVEN], *limited;
    const double *bounds;
    Py_ssize_t size, least, most, rounds, steps, halvings;
    Plan plan;
    Limits limits = {.rate = (double)INFINITY, .least = 0.0, .units = 0.0, .below = (double)INFINITY};
    double value, nearly, negligible, separated, most_work;
    Loss loss;
    Call call = {.count = 0, .memory = NULL};
    void *at[GIVEN];
    index_t length[GIVEN];
    PyObject *found = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "(idOO)OOOOOOOOOOOdnnnnnnddddddddi", &loss.kind, &loss.parameter, &given[0], &given[1],
                          &given[2], &given[3], &given[4], &given[5], &given[6], &given[7], &given[8], &given[9],
                          &given[10], &given[11], &limited, &value, &size, &least, &most, &rounds, &steps, &halvings,
                          &limits.armijo, &limits.share, &limits.damping, &nearly, &negligible, &separated, &plan.ratio,
                          &most_work, &plan.deep))
        return NULL;
    if (view_all(&call, given, GIVEN, 10, at, length) < 0 || view_bounds(&call, limited, &bounds) < 0) return NULL;
    limits.steps = steps;
    limits.halvings = halvings;
    plan.size = size;
    plan.least = least;
    plan.most = most;
    plan.rounds = rounds;
    plan.counts = at[9];
    plan.n_counts = length[9];
    loss.y = at[0];
    loss.weights = at[1];
    const index_t n = length[0], m = length[5], *fixed = at[6];
    index_t n_fixed = 0, width = most > size ? most : size;
    for (index_t j = 0; j < m; j++) n_fixed += fixed[j] != 0;
    for (index_t i = 0; i < plan.n_counts; i++) width = size + plan.counts[i] > width ? size + plan.counts[i] : width;
    width = width + n_fixed < m ? width + n_fixed : m;
    width = width > length[7] ? width : length[7];
    const index_t n_sizes = most - least + 1;
    const index_t scratch = (n + width + 6) * width + 5 * n + 2 * m + width;
    double *memory = allocate(&call, refit_numbers(n, width) + scratch + 3 * m + width * (m + width + 8)
                                         + n_sizes * (index_t)(sizeof(BestOfSize) / sizeof(double)));
    if (memory == NULL) return NULL;
    Search *s = calloc(1, sizeof *s);
    if (s == NULL) {
        finish(&call);
        return PyErr_NoMemory();
    }
    prepare(&s->refit, &loss, &memory, n, width);
    s->refit.f.offset = at[4];
    s->refit.f.l2 = s->own_l2 = take(&memory, width);
    s->limits = limits;
    s->m = m;
    s->n_fixed = n_fixed;
    s->target = size + n_fixed;
    s->X = at[2];
    s->columns = at[3];
    s->l2 = at[5];
    s->fixed = fixed;
    s->bounds = bounds;
    s->negligible = negligible;
    s->nearly = nearly;
    s->separated = separated;
    s->most_work = most_work;
    s->gain = take(&memory, m);
    s->wanted = (index_t *)take(&memory, width);
    s->places = (index_t *)take(&memory, width);
    s->order = (index_t *)take(&memory, width);
    s->arranged = (index_t *)take(&memory, width);
    s->own_bounds = take(&memory, 2 * width);
    s->scores = (Scores){.n = n, .m = m, .X = at[2], .l2 = at[5], .loss = s->refit.f.loss};
    s->scores.coef = take(&memory, width);
    s->scores.slope = take(&memory, m);
    s->scores.unexplained = take(&memory, m);
    s->scores.regressions = take(&memory, width * m);
    s->scores.inverse = take(&memory, width * width);
    BestOfSize *const best_of = (BestOfSize *)take(&memory, n_sizes * (index_t)(sizeof(BestOfSize) / sizeof(double)));
    s->scratch = memory;
    const Node start = {.size = length[7], .chosen = at[7], .coef = at[8], .value = value}, *node;
    Py_BEGIN_ALLOW_THREADS
    node = search(s, &start, best_of, &plan);
    Py_END_ALLOW_THREADS
    if (node) {
        memcpy(at[10], node->chosen, sizeof(index_t) * (size_t)node->size);
        memcpy(at[11], node->coef, sizeof(double) * (size_t)node->size);
        found = Py_BuildValue("ndii", (Py_ssize_t)node->size, node->value, s->doubtful, !node->singular);
    } else {
        PyErr_NoMemory();
    }
    forget(s);
    free(s);
    finish(&call);
    return found;
}

/* (packed, columns, n, value, number, out): packed columns of n genotypes, and what is computed of them; see `Genotypes`.
 * `out` has a row of sums for each side, or the four counts of each column. */
static PyObject *of_genotypes(PyObject *args, void (*of_block)(const Genotypes *))
{
    PyObject *given[4];
    Py_ssize_t columns, n;
    Call call = {.count = 0, .memory = NULL};
    void *at[4];
    index_t length[4];
    if (!PyArg_ParseTuple(args, "OnnOOO", &given[0], &columns, &n, &given[1], &given[2], &given[3])) return NULL;
    if (view_all(&call, given, 4, 3, at, length) < 0) return NULL;
    const index_t width = (n + 3) / 4, sides = columns ? length[3] / columns : 0;
    Py_BEGIN_ALLOW_THREADS
    for (index_t first = 0; first < columns; first += COLUMNS) {
        const Genotypes block = {.packed = (const uint8_t *)at[0] + first * width,
                                 .columns = columns - first < COLUMNS ? columns - first : COLUMNS,
                                 .width = width, .n = n, .sides = sides, .stride = sides ? length[2] / sides : 0,
                                 .total = columns, .value = at[1], .number = at[2], .sums = (double *)at[3] + first,
                                 .counts = (index_t *)at[3] + first * 4};
        of_block(&block);
    }
    Py_END_ALLOW_THREADS
    finish(&call);
    Py_RETURN_NONE;
}

static PyObject *py_genotype_sums(PyObject *module, PyObject *args)
{
    return (void)module, of_genotypes(args, sum_genotypes);
}

static PyObject *py_genotype_missing(PyObject *module, PyObject *args)
{
    return (void)module, of_genotypes(args, sum_missing);
}

static PyObject *py_genotype_counts(PyObject *module, PyObject *args)
{
    return (void)module, of_genotypes(args, count_genotypes);
}

/* (packed, columns, n, value, out): `value` has the four of each column. */
static PyObject *by_genotype(PyObject *args, void (*of_columns)(const uint8_t *, index_t, index_t, const double *, double *))
{
    PyObject *given[3];
    Py_ssize_t columns, n;
    Call call = {.count = 0, .memory = NULL};
    void *at[3];
    index_t length[3];
    if (!PyArg_ParseTuple(args, "OnnOO", &given[0], &columns, &n, &given[1], &given[2])) return NULL;
    if (view_all(&call, given, 3, 2, at, length) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    of_columns(at[0], columns, (n + 3) / 4, at[1], at[2]);
    Py_END_ALLOW_THREADS
    finish(&call);
    Py_RETURN_NONE;
}

/* The sum of the columns, whose values are multiplied by their coefficients. */
static PyObject *py_genotype_products(PyObject *module, PyObject *args)
{
    return (void)module, by_genotype(args, add_genotypes);
}

static PyObject *py_genotype_unpack(PyObject *module, PyObject *args)
{
    return (void)module, by_genotype(args, unpack_genotypes);
}

/* The level of the clone that runs, or "baseline" if the compiler made no clones. */
static PyObject *instruction_set(PyObject *module, PyObject *unused)
{
    const char *name = "baseline";
    (void)module, (void)unused;
#ifdef WIDE
    name = __builtin_cpu_supports(WIDE) ? WIDE : __builtin_cpu_supports(MIDDLE) ? MIDDLE : "default";
#endif
    return PyUnicode_FromString(name);
}

static PyMethodDef methods[] = {
    {"instruction_set", instruction_set, METH_NOARGS, NULL},
    {"compute", py_compute, METH_VARARGS, NULL},
    {"settle", py_settle, METH_VARARGS, NULL},
    {"grow", py_grow, METH_VARARGS, NULL},
    {"shrink", py_shrink, METH_VARARGS, NULL},
    {"descend", py_descend, METH_VARARGS, NULL},
    {"forward_backward", py_forward_backward, METH_VARARGS, NULL},
    {"refit", py_refit, METH_VARARGS, NULL},
    {"refits", py_refits, METH_VARARGS, NULL},
    {"scores", py_scores, METH_VARARGS, NULL},
    {"search", py_search, METH_VARARGS, NULL},
    {"genotype_sums", py_genotype_sums, METH_VARARGS, NULL},
    {"genotype_missing", py_genotype_missing, METH_VARARGS, NULL},
    {"genotype_counts", py_genotype_counts, METH_VARARGS, NULL},
    {"genotype_products", py_genotype_products, METH_VARARGS, NULL},
    {"genotype_unpack", py_genotype_unpack, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hardthresh._kernel",
    .m_doc = "The compiled parts of hardthresh.solvers.working_set, whose tableau and refits document them.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
