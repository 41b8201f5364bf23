#include "reference/linear.h"

#include <math.h>
#include <stdlib.h>

static const double norm_epsilon = 1e-3;

static double *zeros(ptrdiff_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    if (!x) {
        abort();
    }
    return x;
}

static double dot(const double *a, const double *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double length(const double *x, ptrdiff_t n)
{
    return sqrt(dot(x, x, n));
}

static ptrdiff_t seen(const ref_linear *x, ptrdiff_t i)
{
    return x->causal ? i + 1 : x->tokens;
}

void ref_features(
    double *phi, const double *x, const double *w, const double *sigma, ptrdiff_t d, ptrdiff_t D)
{
    const double norm = length(x, d);
    for (ptrdiff_t r = 0; r < D; r++) {
        double angle = 0;
        for (ptrdiff_t c = 0; c < d; c++) {
            angle += w[r * d + c] * sigma[c] * x[c] / (norm + norm_epsilon);
        }
        phi[r] = sin(angle) / sqrt((double)D);
        phi[D + r] = cos(angle) / sqrt((double)D);
    }
}

// [tokens][2 D]
static double *features_of(const double *rows, const ref_linear *x)
{
    double *phi = zeros(x->tokens * 2 * x->D);
    for (ptrdiff_t i = 0; i < x->tokens; i++) {
        ref_features(phi + i * 2 * x->D, rows + i * x->d, x->w, x->sigma, x->d, x->D);
    }
    return phi;
}

// [tokens][tokens], 0 where query i doesn't see key j.
static double *kernel_of(const double *phi_q, const double *phi_k, const ref_linear *x)
{
    const ptrdiff_t n = x->tokens, F = 2 * x->D;
    double *kernel = zeros(n * n);
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < seen(x, i); j++) {
            kernel[i * n + j] = dot(phi_q + i * F, phi_k + j * F, F);
        }
    }
    return kernel;
}

// out, den and clamped [tokens] from the kernel.
static void
divide(double *out, double *den, bool *clamped, const double *kernel, const ref_linear *x)
{
    const ptrdiff_t n = x->tokens, d = x->d;
    for (ptrdiff_t i = 0; i < n; i++) {
        double sum = 0;
        for (ptrdiff_t c = 0; c < d; c++) {
            out[i * d + c] = 0;
        }
        for (ptrdiff_t j = 0; j < seen(x, i); j++) {
            sum += kernel[i * n + j];
            for (ptrdiff_t c = 0; c < d; c++) {
                out[i * d + c] += kernel[i * n + j] * x->v[j * d + c];
            }
        }
        clamped[i] = sum <= x->floor;
        den[i] = clamped[i] ? x->floor : sum;
        for (ptrdiff_t c = 0; c < d; c++) {
            out[i * d + c] /= den[i];
        }
    }
}

ptrdiff_t ref_linear_forward(double *out, double *den, const ref_linear *x)
{
    double *phi_q = features_of(x->q, x), *phi_k = features_of(x->k, x);
    double *kernel = kernel_of(phi_q, phi_k, x);
    bool *clamped = calloc((size_t)(x->tokens > 0 ? x->tokens : 1), sizeof *clamped);
    divide(out, den, clamped, kernel, x);
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < x->tokens; i++) {
        count += clamped[i];
    }
    free(phi_q);
    free(phi_k);
    free(kernel);
    free(clamped);
    return count;
}

// dx = J^T du with J = I / r - x x^T / (|x| r^2), r = |x| + eps.
static void unit_backward(double *dx, const double *du, const double *x, ptrdiff_t d)
{
    const double norm = length(x, d), r = norm + norm_epsilon;
    for (ptrdiff_t c = 0; c < d; c++) {
        dx[c] = 0;
        for (ptrdiff_t e = 0; e < d; e++) {
            const double across = norm > 0 ? x[c] * x[e] / (norm * r * r) : 0;
            dx[c] += ((c == e) / r - across) * du[e];
        }
    }
}

// Gradients of one side's rows: turn[i][r] = sum over the other side of g sin(delta_r); sign is
// that of delta's dependence on this side.
static void side_backward(double *dx,
                          double *dsigma,
                          const double *turn,
                          double sign,
                          const double *rows,
                          const ref_linear *x)
{
    const ptrdiff_t d = x->d, D = x->D;
    double *du = zeros(d);
    for (ptrdiff_t i = 0; i < x->tokens; i++) {
        const double *row = rows + i * d, r = length(row, d) + norm_epsilon;
        for (ptrdiff_t c = 0; c < d; c++) {
            double along = 0;
            for (ptrdiff_t p = 0; p < D; p++) {
                along -= sign * turn[i * D + p] * x->w[p * d + c] / (double)D;
            }
            du[c] = along * x->sigma[c];
            dsigma[c] += along * row[c] / r;
        }
        unit_backward(dx + i * d, du, row, d);
    }
    free(du);
}

void ref_linear_backward(ref_linear_gradient *gradient, const double *dout, const ref_linear *x)
{
    const ptrdiff_t n = x->tokens, d = x->d, D = x->D, F = 2 * D;
    double *phi_q = features_of(x->q, x), *phi_k = features_of(x->k, x);
    double *kernel = kernel_of(phi_q, phi_k, x);
    double *out = zeros(n * d), *den = zeros(n);
    double *turn_q = zeros(n * D), *turn_k = zeros(n * D);
    bool *clamped = calloc((size_t)(n > 0 ? n : 1), sizeof *clamped);
    divide(out, den, clamped, kernel, x);
    for (ptrdiff_t e = 0; e < n * d; e++) {
        gradient->v[e] = 0;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const double mean = clamped[i] ? 0 : dot(dout + i * d, out + i * d, d);
        const double *s_i = phi_q + i * F, *c_i = s_i + D;
        for (ptrdiff_t j = 0; j < seen(x, i); j++) {
            const double g = (dot(dout + i * d, x->v + j * d, d) - mean) / den[i];
            const double *s_j = phi_k + j * F, *c_j = s_j + D;
            for (ptrdiff_t c = 0; c < d; c++) {
                gradient->v[j * d + c] += kernel[i * n + j] / den[i] * dout[i * d + c];
            }
            for (ptrdiff_t p = 0; p < D; p++) { // the features carry D^(-1/2) each
                const double turn = g * (double)D * (s_i[p] * c_j[p] - c_i[p] * s_j[p]);
                turn_q[i * D + p] += turn;
                turn_k[j * D + p] += turn;
            }
        }
    }
    for (ptrdiff_t c = 0; c < d; c++) {
        gradient->sigma[c] = 0;
    }
    side_backward(gradient->q, gradient->sigma, turn_q, 1, x->q, x);
    side_backward(gradient->k, gradient->sigma, turn_k, -1, x->k, x);
    free(phi_q);
    free(phi_k);
    free(kernel);
    free(out);
    free(den);
    free(turn_q);
    free(turn_k);
    free(clamped);
}

static double largest(const double *x, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

static void keep_largest(double *most, double value)
{
    *most = fmax(*most, value);
}

// |phi| = 1, so a kernel entry counts as 1. An error of a kernel entry is one of out by (|v_j| +
// |out_i|) / den_i, and of the score's adjoint g by |dout_i| times that, / den_i once more; a
// clamped den_i has none.
ref_linear_sizes ref_linear_magnitudes(const double *dout, const ref_linear *x)
{
    const ptrdiff_t n = x->tokens, d = x->d;
    double *out = zeros(n * d), *den = zeros(n), *dk = zeros(n), *dv = zeros(n);
    double steep = 0; // of the angles in u
    ref_linear_sizes size = {0};
    ref_linear_forward(out, den, x);
    for (ptrdiff_t c = 0; c < d; c++) {
        double sum = 0;
        for (ptrdiff_t p = 0; p < x->D; p++) {
            sum += fabs(x->w[p * d + c]) / (double)x->D;
        }
        keep_largest(&steep, sum);
    }
    const double bend = steep * largest(x->sigma, d);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *dout_i = dout + i * d, *out_i = out + i * d;
        const double count = (double)seen(x, i), dout_size = length(dout_i, d);
        const bool clamped = den[i] <= x->floor;
        const double condition = clamped ? 1 : 1 + count / den[i];
        const double out_length = clamped ? 0 : length(out_i, d);
        double v_sum = 0, g_sum = 0;
        for (ptrdiff_t j = 0; j < seen(x, i); j++) {
            v_sum += length(x->v + j * d, d);
        }
        const double out_size = (v_sum + count * out_length) / den[i];
        keep_largest(&size.out, out_size);
        for (ptrdiff_t j = 0; j < seen(x, i); j++) {
            const double terms = length(x->v + j * d, d) + out_length;
            const double g = dout_size * (terms * condition + (clamped ? 0 : out_size)) / den[i];
            g_sum += g;
            dk[j] += g;
            dv[j] += largest(dout_i, d) / den[i] * condition;
        }
        size.sigma = hypot(size.sigma, 2 * g_sum * steep); // rows err independently
        keep_largest(&size.q, g_sum * bend / (length(x->q + i * d, d) + norm_epsilon));
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        keep_largest(&size.k, dk[j] * bend / (length(x->k + j * d, d) + norm_epsilon));
        keep_largest(&size.v, dv[j]);
    }
    free(out);
    free(den);
    free(dk);
    free(dv);
    return size;
}
