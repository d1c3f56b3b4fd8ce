/* exp and log(1 + e) without branches, tables or calls, so that the compiler vectorises loops over
 * them. Errors against the exact value: exp at most 2 ulp on [-708, 709], log1p at most 3 ulp on
 * [0, 1] (tests/unit/ops/test_glm_kernel.c). */
#pragma once

#include <stdint.h>
#include <string.h>

#define MR_GLM_EXP_MIN (-708.0)
#define MR_GLM_EXP_MAX 709.0

/* Computes exp(x) = 2^n exp(r) with |r| <= ln 2 / 2 (argument reduction of Cody and Waite 1980).
 * exp(r) is the sum of 13 terms of its series; the terms left out change no bit. x is clamped to
 * the range in which 2^n is a normal number; NaN stays NaN. */
static inline double mr_glm_exp(double x)
{
    /* 1.5 * 2^52: adding this number rounds to an integer. */
    const double shift = 6755399441055744.0;
    x = x < MR_GLM_EXP_MIN ? MR_GLM_EXP_MIN : x;
    x = x > MR_GLM_EXP_MAX ? MR_GLM_EXP_MAX : x;
    double t = x * 1.4426950408889634 + shift;
    uint64_t n;
    /* The low bits of t are the integer n of 2^n. The shift by 52 below drops the other bits. */
    memcpy(&n, &t, sizeof n);
    t -= shift;
    /* ln 2 is split in two parts, so that t times the first part is exact. */
    double r = x - t * 0x1.62e42fefa3800p-1;
    r = r - t * 0x1.ef35793c76730p-45;
    double r2 = r * r;
    double r4 = r2 * r2;
    double a = (1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    double b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    double c = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    double d = 1.0 / 479001600 + r * (1.0 / 6227020800);
    double e = a + r4 * (b + r4 * (c + r4 * d));
    uint64_t bits;
    memcpy(&bits, &e, sizeof bits);
    bits += n << 52;
    memcpy(&e, &bits, sizeof e);
    return e;
}

/* Computes log(1 + e) for 0 <= e <= 1 as the series of 2 atanh(f / (2 + f)), where f = e for small
 * e. For large e, f = (e - 1) / 2, and ln 2 is added. So the argument of atanh is at most
 * 0.1716. */
static inline double mr_glm_log1p(double e)
{
    double large = e > 0.41421356237309503 ? 1.0 : 0.0;
    double f = e > 0.41421356237309503 ? 0.5 * (e - 1.0) : e;
    double s = f / (2.0 + f);
    double z = s * s;
    double z2 = z * z;
    double z4 = z2 * z2;
    double a = (1.0 / 3 + z * (1.0 / 5)) + z2 * (1.0 / 7 + z * (1.0 / 9));
    double b = (1.0 / 11 + z * (1.0 / 13)) + z2 * (1.0 / 15 + z * (1.0 / 17));
    double c = 1.0 / 19 + z * (1.0 / 21);
    double tail = s * z * (a + z4 * (b + z4 * c));
    return large * 0.6931471805599453 + 2.0 * (s + tail);
}
