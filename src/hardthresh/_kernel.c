/* Compiled forms of NumPy code that spends its time on passes over short arrays.
 *
 * Every function has a NumPy equivalent, which it is tested against and which runs where this file was not compiled;
 * only core/compiled.py imports the module. It is written in C11 on the limited API of CPython 3.11, so that one wheel
 * serves every later Python, and takes arrays by the buffer protocol, so that it needs no header but Python's.
 *
 * The build sets -ffp-contract=off: an expression has the same bits in every clone and with every compiler.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The loader takes the first of these clones that the processor can run. The levels of x86-64 are sets of features,
 * which processors of every maker report. The name of a processor, such as "haswell", would leave the others with the
 * slowest clone; it does not compile here, because instruction_set() asks for the same text as a feature. Clones need
 * GCC 12 and, for the choice at load time, glibc. arm64 has vectors of one width. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE "x86-64-v4"
#define MIDDLE "x86-64-v3"
#define CLONED __attribute__((target_clones("arch=" WIDE, "arch=" MIDDLE, "default")))
#else
#define CLONED
#endif

/* Return the level of the clone that runs, or "baseline" if the compiler made no clones. */
static PyObject *instruction_set(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    const char *name = "baseline";
#ifdef WIDE
    name = __builtin_cpu_supports(WIDE) ? WIDE : __builtin_cpu_supports(MIDDLE) ? MIDDLE : "default";
#endif
    return PyUnicode_FromString(name);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* What an argument must be. */
typedef struct {
    const char *name;
    int ndim;
    enum { FLOAT64, INT64 } type;
    enum { READ, WRITE, READ_OR_NONE } use;
} Argument;

/* Get a view of an array, whose entries must be adjacent along the last axis. A view of None is all zeros. */
static int get_array(PyObject *object, Py_buffer *view, const Argument *wanted) {
    if (wanted->use == READ_OR_NONE && object == Py_None) {
        memset(view, 0, sizeof *view);
        return 0;
    }
    const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (wanted->use == WRITE ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return -1;
    const char *letters = wanted->type == FLOAT64 ? "d" : "lq"; /* "l" or "q" is int64, which depends on the platform */
    const char *format = view->format == NULL ? "B" : view->format;
    const int last = wanted->ndim - 1;
    if (view->ndim != wanted->ndim) {
        PyErr_Format(PyExc_ValueError, "%s must have %d axes, not %d", wanted->name, wanted->ndim, view->ndim);
    } else if (strlen(format) != 1 || strchr(letters, *format) == NULL || view->itemsize != 8) {
        const char *type = wanted->type == FLOAT64 ? "float64" : "int64";
        PyErr_Format(PyExc_TypeError, "%s must hold %s, not items of the format '%s'", wanted->name, type, format);
    } else if (view->shape[last] > 1 && view->strides[last] != 8) {
        PyErr_Format(PyExc_ValueError, "the entries of %s must be adjacent along its last axis", wanted->name);
    } else {
        return 0;
    }
    PyBuffer_Release(view);
    return -1;
}

static void release(Py_buffer *views, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) PyBuffer_Release(&views[i]);
}

static int get_arrays(PyObject *const *objects, Py_ssize_t given, Py_buffer *views, const Argument *wanted,
                      Py_ssize_t count) {
    if (given != count) {
        PyErr_Format(PyExc_TypeError, "%zd arrays are needed, not %zd", count, given);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (get_array(objects[i], &views[i], &wanted[i]) < 0) {
            release(views, i);
            return -1;
        }
    }
    return 0;
}

static int check_length(const Py_buffer *view, const Argument *wanted, Py_ssize_t length) {
    if (view->obj == NULL || view->shape[0] == length) return 0; /* None, or as it has to be */
    PyErr_Format(PyExc_ValueError, "%s must have %zd entries, not %zd", wanted->name, length, view->shape[0]);
    return -1;
}

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

/* The number of maxima that run side by side: one alone would wait for the comparison before it. On an AMD EPYC, for
 * 80 rows of 400 or 1600, 16 takes at most a sixth more than the best of 8, 16 and 32 with vectors of 256 or 512 bits,
 * and the worst takes up to 1.4 times as long as the best. */
#define LANES 16

/* Return the gain of a column, (g + t u)^2 / (h + u^2); 0 if a sign is given and g + t u has the other. */
static inline double gain_of(double u, double shift, double slope, double unexplained, const double *sign) {
    double g = u * shift + slope;
    if (sign != NULL && g * *sign < 0.0) g = 0.0;
    return g / (u * u + unexplained) * g;
}

/* Find the largest gain of a row and the first column that has it. NaN counts as the largest, as in NumPy. */
CLONED static void best_of_row(const double *restrict row, const double *restrict slope,
                               const double *restrict unexplained, const double *restrict signs, double scale,
                               double shift, Py_ssize_t m, double *largest, long long *place) {
    double best[LANES] = {0.0}, sum[LANES] = {0.0}, overall = 0.0, total = 0.0;
    long long where[LANES] = {0}, column = 0;
    const Py_ssize_t whole = m - m % LANES;
    for (Py_ssize_t start = 0; start < whole; start += LANES) {
        for (int i = 0; i < LANES; i++) {
            const Py_ssize_t j = start + i;
            const double gain = gain_of(row[j] * scale, shift, slope[j], unexplained[j], signs ? &signs[j] : NULL);
            const int better = gain > best[i];
            best[i] = better ? gain : best[i];
            where[i] = better ? j : where[i];
            sum[i] += gain;
        }
    }
    for (int i = 0; i < LANES; i++) {
        total += sum[i];
        if (best[i] > overall || (best[i] == overall && where[i] < column)) overall = best[i], column = where[i];
    }
    for (Py_ssize_t j = whole; j < m; j++) {
        const double gain = gain_of(row[j] * scale, shift, slope[j], unexplained[j], signs ? &signs[j] : NULL);
        if (gain > overall) overall = gain, column = j;
        total += gain;
    }
    for (Py_ssize_t j = 0; isnan(total) && j < m; j++) { /* gains are >= 0: their sum is NaN if one of them is */
        const double gain = gain_of(row[j] * scale, shift, slope[j], unexplained[j], signs ? &signs[j] : NULL);
        if (isnan(gain)) overall = gain, column = j, total = 0.0;
    }
    *largest = overall;
    *place = column;
}

static const Argument EXCHANGE[] = {
    {"regressions", 2, FLOAT64, READ}, {"scale", 1, FLOAT64, READ},       {"shift", 1, FLOAT64, READ},
    {"slope", 1, FLOAT64, READ},       {"unexplained", 1, FLOAT64, READ}, {"signs", 1, FLOAT64, READ_OR_NONE},
    {"gains", 1, FLOAT64, WRITE},      {"columns", 1, INT64, WRITE},
};
enum { REGRESSIONS, SCALE, SHIFT, SLOPE, UNEXPLAINED, SIGNS, GAINS, COLUMNS, EXCHANGE_ARGUMENTS };

/* Find the best replacement of each chosen column; best_replacements() of tableau.py has the formula. The lock of the
 * interpreter is kept: the scan takes microseconds, and getting the lock back from a busy thread takes milliseconds. */
static PyObject *best_replacements(PyObject *module, PyObject *const *objects, Py_ssize_t given) {
    (void)module;
    Py_buffer a[EXCHANGE_ARGUMENTS];
    if (get_arrays(objects, given, a, EXCHANGE, EXCHANGE_ARGUMENTS) < 0) return NULL;
    const Py_ssize_t s = a[REGRESSIONS].shape[0], m = a[REGRESSIONS].shape[1];
    const Py_ssize_t lengths[] = {[SCALE] = s, [SHIFT] = s, [SLOPE] = m, [UNEXPLAINED] = m,
                                  [SIGNS] = m, [GAINS] = s, [COLUMNS] = s};
    for (int i = SCALE; i < EXCHANGE_ARGUMENTS; i++) {
        if (check_length(&a[i], &EXCHANGE[i], lengths[i]) < 0) {
            release(a, EXCHANGE_ARGUMENTS);
            return NULL;
        }
    }
    const double *scale = a[SCALE].buf, *shift = a[SHIFT].buf;
    double *gains = a[GAINS].buf;
    long long *columns = a[COLUMNS].buf;
    for (Py_ssize_t i = 0; i < s; i++) {
        const double *row = (const double *)((const char *)a[REGRESSIONS].buf + i * a[REGRESSIONS].strides[0]);
        best_of_row(row, a[SLOPE].buf, a[UNEXPLAINED].buf, a[SIGNS].buf, scale[i], shift[i], m, &gains[i], &columns[i]);
    }
    release(a, EXCHANGE_ARGUMENTS);
    Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"instruction_set", instruction_set, METH_NOARGS,
     "instruction_set()\n--\n\n"
     "Return the level of x86-64 of the clones that run, such as \"x86-64-v3\"; \"default\" is the lowest one.\n\n"
     "It is \"baseline\" if the compiler made no clones, as on other processors."},
    {"best_replacements", (PyCFunction)(void (*)(void))best_replacements, METH_FASTCALL,
     "best_replacements(regressions, scale, shift, slope, unexplained, signs, gains, columns, /)\n--\n\n"
     "Find the best replacement of each chosen column, and write its gain and its number into the last two arrays.\n\n"
     "For s chosen columns and m columns: `regressions` of shape (s, m), `scale` and `shift` of shape (s,), `slope`,\n"
     "`unexplained` and `signs` (or None) of shape (m,), `gains` and `columns` of shape (s,); all are float64, and\n"
     "`columns` is int64. Entries must be adjacent along the last axis."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hardthresh._kernel",
    .m_doc = "Compiled forms of NumPy code that spends its time on passes over short arrays.",
    .m_size = 0,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
