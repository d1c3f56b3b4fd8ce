/* Floor division of floats and its remainder, as Python and NumPy define them. */
#pragma once

#include <math.h>
#include <stdbool.h>

static inline double mr_mod_f64(double a, double b)
{
    double m = fmod(a, b);
    if (b == 0 || isnan(m)) return m;
    if (m == 0) return copysign(0, b);
    return (b < 0) != (m < 0) ? m + b : m;
}

static inline double mr_floor_div_f64(double a, double b)
{
    if (b == 0) return a / b;
    double m = fmod(a, b);
    double q = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) q -= 1;
    if (q == 0) return copysign(0, a / b);
    double down = floor(q);
    return q - down > 0.5 ? down + 1 : down;
}
