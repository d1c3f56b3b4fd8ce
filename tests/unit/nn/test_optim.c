/* lib/nn/optim: optimizers compared with PyTorch, with closed forms, and with a reference in double
 * precision. Several gradients applied at once give the same as one after another. Gradients are
 * clipped. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/optim/clip.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("%.9g, but %.9g is right", got, want);
}

static struct mr_nn_optim optim(const char *json)
{
    struct mr_nn_optim o;
    struct mr_error e = {0};
    if (mr_nn_optim_parse(mr_str(json), &o, &e)) fail_msg("%s", e.text);
    return o;
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

enum { SMALL = 4, STEPS = 10 };

/* Checks the parameters after ten steps. The numbers in `want` are from PyTorch 1.13 (Debian's
 * python3-torch, CPU): torch.optim.SGD, Adam, AdamW and RMSprop with the same arguments and
 * gradients. */
static void ten_steps(const char *json, const float want[SMALL])
{
    struct mr_nn_optim o = optim(json);
    float p[SMALL] = {0.5f, -1.25f, 2.0f, -0.75f}, g[SMALL], a[SMALL] = {0}, b[SMALL] = {0};
    float *slots[] = {a, b};
    struct mr_nn_range r = {p, p, slots, 0, SMALL, SMALL};
    for (int t = 1; t <= STEPS; t++) {
        for (int i = 0; i < SMALL; i++)
            g[i] = (float)((7 * i + 3 * t) % 11 - 5) / 4.0f;
        mr_nn_optim_apply(&o, (uint64_t)t, &r, g, 1);
    }
    for (int i = 0; i < SMALL; i++)
        near((double)p[i], (double)want[i], 1e-6);
}

static void sgd_moves_as_pytorchs(void **state)
{
    (void)state;
    ten_steps("{\"type\":\"sgd\",\"learning_rate\":0.1}",
        (float[]){0.375f, -1.20000005f, 1.95000005f, -0.625f});
    ten_steps("{\"type\":\"sgd\",\"learning_rate\":0.1,\"momentum\":0.9}",
        (float[]){0.235445917f, -1.34751606f, 1.41880667f, 0.0199723877f});
    ten_steps("{\"type\":\"sgd\",\"learning_rate\":0.1,\"momentum\":0.9,\"nesterov\":true,"
              "\"weight_decay\":0.01}",
        (float[]){0.113454379f, -1.22044444f, 1.34429109f, 0.0883694887f});
}

static void adam_and_adamw_move_as_pytorchs(void **state)
{
    (void)state;
    ten_steps("{\"type\":\"adam\",\"learning_rate\":0.01}",
        (float[]){0.503236175f, -1.26251078f, 1.97029448f, -0.716192245f});
    ten_steps("{\"type\":\"adam\",\"learning_rate\":0.01,\"beta1\":0.8,\"beta2\":0.99,"
              "\"epsilon\":1e-6,\"weight_decay\":0.1}",
        (float[]){0.494032681f, -1.24584615f, 1.95319259f, -0.711168647f});
    ten_steps("{\"type\":\"adam\",\"learning_rate\":0.01,\"weight_decay\":0.1,\"decoupled\":true}",
        (float[]){0.498178482f, -1.24994254f, 1.95057738f, -0.708931029f});
}

static void rmsprop_moves_as_pytorchs(void **state)
{
    (void)state;
    ten_steps("{\"type\":\"rmsprop\",\"learning_rate\":0.01,\"rho\":0.9}",
        (float[]){0.483194202f, -1.25289702f, 1.95091403f, -0.718084276f});
    ten_steps("{\"type\":\"rmsprop\",\"learning_rate\":0.01,\"rho\":0.9,\"momentum\":0.5}",
        (float[]){0.479040682f, -1.26357234f, 1.88992572f, -0.681738615f});
}

/* ---- closed forms ---------------------------------------------------------------------------- */

/* For p²/2 the gradient is p, so each step multiplies p by 1 - rate. */
static void sgd_on_a_parabola_shrinks_geometrically(void **state)
{
    (void)state;
    struct mr_nn_optim o = optim("{\"type\":\"sgd\",\"learning_rate\":0.125}");
    float p = 1;
    struct mr_nn_range r = {&p, &p, NULL, 0, 1, 1};
    for (uint64_t t = 1; t <= 20; t++) {
        float g = p;
        mr_nn_optim_apply(&o, t, &r, &g, 1);
    }
    near((double)p, pow(0.875, 20), 1e-6);
}

/* With a constant gradient g, the velocity after t steps is g (1 - m^t) / (1 - m). */
static void momentum_sums_a_constant_gradient_as_a_series(void **state)
{
    (void)state;
    struct mr_nn_optim o = optim("{\"type\":\"sgd\",\"learning_rate\":0.5,\"momentum\":0.75}");
    float p = 0, v = 0, g = 2;
    float *slots[] = {&v};
    struct mr_nn_range r = {&p, &p, slots, 0, 1, 1};
    double want = 0;
    for (uint64_t t = 1; t <= 12; t++) {
        mr_nn_optim_apply(&o, t, &r, &g, 1);
        want -= 0.5 * 2 * (1 - pow(0.75, (double)t)) / 0.25;
    }
    near((double)v, 2 * (1 - pow(0.75, 12)) / 0.25, 1e-5);
    near((double)p, want, 1e-4);
}

/* With a constant gradient both bias-corrected moments are exact, so each step is the rate times
 * the gradient's sign. */
static void adam_steps_by_its_rate_along_a_constant_gradient(void **state)
{
    (void)state;
    struct mr_nn_optim o = optim("{\"type\":\"adam\",\"learning_rate\":0.25}");
    float p[2] = {0, 0}, m[2] = {0}, v[2] = {0};
    const float g[2] = {1000, -0.01f};
    float *slots[] = {m, v};
    struct mr_nn_range r = {p, p, slots, 0, 2, 2};
    for (uint64_t t = 1; t <= 8; t++)
        mr_nn_optim_apply(&o, t, &r, g, 1);
    near((double)p[0], -2, 1e-5);
    near((double)p[1], 2, 1e-5);
}

static void decoupled_decay_leaves_the_gradient_alone(void **state)
{
    (void)state;
    struct mr_nn_optim o =
        optim("{\"type\":\"adam\",\"learning_rate\":0.5,\"weight_decay\":0.25,\"decoupled\":true}");
    float p = 8, m = 0, v = 0, g = 0;
    float *slots[] = {&m, &v};
    struct mr_nn_range r = {&p, &p, slots, 0, 1, 1};
    for (uint64_t t = 1; t <= 3; t++)
        mr_nn_optim_apply(&o, t, &r, &g, 1);
    near((double)p, 8 * pow(1 - 0.5 * 0.25, 3), 1e-6);
}

/* ---- a reference in double precision --------------------------------------------------------- */

/* COUNT is more than one block of the implementation and not a multiple of the block's size. */
enum { COUNT = 5000, TRAINED = 4700 };

struct vectors {
    float *p, *out, *slots[2], *grads[5];
    double *want, *moments[2];
};

static float unit(struct mr_rng *r)
{
    return (float)(mr_rng_next(r) >> 40) * 0x1p-23f - 1;
}

static struct vectors vectors_open(uint64_t seed)
{
    struct vectors v = {0};
    struct mr_rng r;
    mr_rng_init(&r, seed);
    v.p = mr_alloc_array(COUNT, sizeof(float));
    v.out = mr_alloc_array(COUNT, sizeof(float));
    v.want = mr_alloc_array(COUNT, sizeof(double));
    for (int k = 0; k < 2; k++) {
        v.slots[k] = mr_alloc_array(COUNT, sizeof(float));
        v.moments[k] = mr_alloc_array(COUNT, sizeof(double));
    }
    for (size_t k = 0; k < MR_ARRAY_LEN(v.grads); k++) {
        v.grads[k] = mr_alloc_array(COUNT, sizeof(float));
        for (int i = 0; i < COUNT; i++)
            v.grads[k][i] = unit(&r);
    }
    for (int i = 0; i < COUNT; i++) {
        v.p[i] = unit(&r);
        v.want[i] = (double)v.p[i];
    }
    return v;
}

static void vectors_close(struct vectors *v)
{
    mr_release(v->p);
    mr_release(v->out);
    mr_release(v->want);
    for (int k = 0; k < 2; k++) {
        mr_release(v->slots[k]);
        mr_release(v->moments[k]);
    }
    for (size_t k = 0; k < MR_ARRAY_LEN(v->grads); k++)
        mr_release(v->grads[k]);
}

static void reference_adam(struct vectors *v, const struct mr_nn_optim *o, int t, const float *g)
{
    for (int i = 0; i < TRAINED; i++) {
        double d = (double)g[i] * 0.5 + o->weight_decay * v->want[i];
        v->moments[0][i] = o->beta1 * v->moments[0][i] + (1 - o->beta1) * d;
        v->moments[1][i] = o->beta2 * v->moments[1][i] + (1 - o->beta2) * d * d;
        double m = v->moments[0][i] / (1 - pow(o->beta1, t));
        double s = v->moments[1][i] / (1 - pow(o->beta2, t));
        v->want[i] -= mr_nn_optim_rate(o, (uint64_t)t) * m / (sqrt(s) + o->epsilon);
    }
    for (int i = TRAINED; i < COUNT; i++)
        v->want[i] -= 0.5 * (double)g[i];
}

static void adam_keeps_to_the_reference_over_blocks_and_state(void **state)
{
    (void)state;
    struct mr_nn_optim o =
        optim("{\"type\":\"adam\",\"learning_rate\":0.01,\"weight_decay\":0.01,\"schedule\":"
              "{\"type\":\"exponential\",\"every\":10,\"factor\":0.5}}");
    struct vectors v = vectors_open(1);
    for (int t = 1; t <= 40; t++) {
        const float *g = v.grads[t % 5];
        /* The parameters are stepped in three uneven pieces, like shards of parameters. */
        const uint64_t cuts[] = {0, 1500, 4800, COUNT};
        for (int k = 0; k < 3; k++) {
            uint64_t at = cuts[k];
            float *slots[] = {v.slots[0] + at, v.slots[1] + at};
            struct mr_nn_range r = {v.p + at, v.p + at, slots, at, cuts[k + 1] - at, TRAINED};
            mr_nn_optim_apply(&o, (uint64_t)t, &r, g + at, 0.5f);
        }
        reference_adam(&v, &o, t, g);
    }
    for (int i = 0; i < COUNT; i++)
        near((double)v.p[i], v.want[i], i < TRAINED ? 2e-6 : 1e-5);
    vectors_close(&v);
}

/* ---- several gradients ----------------------------------------------------------------------- */

static const char *const all[] = {
    "{\"type\":\"sgd\"}",
    "{\"type\":\"sgd\",\"momentum\":0.9,\"weight_decay\":0.1}",
    "{\"type\":\"sgd\",\"momentum\":0.9,\"nesterov\":true}",
    "{\"type\":\"adam\",\"schedule\":{\"type\":\"warmup\",\"steps\":4}}",
    "{\"type\":\"adam\",\"weight_decay\":0.1,\"decoupled\":true}",
    "{\"type\":\"rmsprop\"}",
    "{\"type\":\"rmsprop\",\"momentum\":0.5}",
};

static void several_gradients_are_the_same_bits_as_one_after_another(void **state)
{
    (void)state;
    for (size_t k = 0; k < MR_ARRAY_LEN(all); k++) {
        struct mr_nn_optim o = optim(all[k]);
        struct vectors a = vectors_open(k), b = vectors_open(k);
        const float *grads[70]; /* more gradients than the implementation adds at once */
        for (uint32_t i = 0; i < 70; i++)
            grads[i] = a.grads[i % 5];
        struct mr_nn_range one = {a.p, a.p, a.slots, 0, COUNT, TRAINED};
        for (uint32_t i = 0; i < 70; i++)
            mr_nn_optim_apply(&o, 3 + i, &one, grads[i], 0.5f);
        struct mr_nn_range two = {b.p, b.out, b.slots, 0, COUNT, TRAINED};
        mr_nn_optim_apply_each(&o, 3, &two, grads, 70, 0.5f);
        assert_memory_equal(a.p, b.out, COUNT * sizeof(float));
        assert_memory_equal(a.slots[0], b.slots[0], COUNT * sizeof(float));
        assert_memory_equal(a.slots[1], b.slots[1], COUNT * sizeof(float));
        assert_true(b.p[0] != b.out[0]);
        vectors_close(&a);
        vectors_close(&b);
    }
}

static void the_mean_of_several_gradients_is_one_update(void **state)
{
    (void)state;
    for (size_t k = 0; k < MR_ARRAY_LEN(all); k++) {
        struct mr_nn_optim o = optim(all[k]);
        struct vectors a = vectors_open(k), b = vectors_open(k);
        for (uint64_t t = 1; t <= 3; t++) {
            for (uint32_t n = 1; n <= 4; n += 3) {
                float mean[COUNT];
                for (int i = 0; i < COUNT; i++) {
                    mean[i] = a.grads[0][i];
                    for (uint32_t j = 1; j < n; j++)
                        mean[i] += a.grads[j][i];
                }
                struct mr_nn_range one = {a.p, a.p, a.slots, 0, COUNT, TRAINED};
                mr_nn_optim_apply(&o, t, &one, mean, 1 / (float)n);
                struct mr_nn_range two = {b.p, b.p, b.slots, 0, COUNT, TRAINED};
                mr_nn_optim_apply_mean(&o, t, &two, (const float *const *)b.grads, n);
            }
        }
        assert_memory_equal(a.p, b.p, COUNT * sizeof(float));
        vectors_close(&a);
        vectors_close(&b);
    }
}

static void state_takes_its_gradient_off_plainly(void **state)
{
    (void)state;
    for (size_t k = 0; k < MR_ARRAY_LEN(all); k++) {
        struct mr_nn_optim o = optim(all[k]);
        float p[4] = {1, 1, 1, 1}, a[4] = {0}, b[4] = {0};
        const float g[4] = {1, 1, 0.25f, -3};
        float *slots[] = {a, b};
        struct mr_nn_range r = {p, p, slots, 98, 4, 100};
        mr_nn_optim_apply(&o, 1, &r, g, 1);
        assert_true(p[0] < 1 && p[0] == p[1] && p[0] > 0.5f);
        assert_true(p[2] == 0.75f && p[3] == 4 && a[2] == 0 && b[3] == 0);
    }
}

/* The momentum of a parameter without gradients decays to 0, and not to denormal numbers, which are
 * slow. */
static void what_decays_ends_at_zero(void **state)
{
    (void)state;
#if defined(__SSE2__)
    struct mr_nn_optim o = optim("{\"type\":\"sgd\",\"momentum\":0.5}");
    float p = 1, m = 1, g = 0;
    float *slots[] = {&m};
    struct mr_nn_range r = {&p, &p, slots, 0, 1, 1};
    for (uint64_t t = 1; t <= 130; t++)
        mr_nn_optim_apply(&o, t, &r, &g, 1);
    assert_true(m == 0);
    volatile float small = 1e-38f; /* the caller's floating-point mode is unchanged */
    assert_true(small * 0.1f > 0);
#endif
}

/* ---- clipping -------------------------------------------------------------------------------- */

static void a_norm_is_cut_to_its_limit_and_no_shorter_one(void **state)
{
    (void)state;
    float g[] = {3, -4, 12, 0};
    near(mr_nn_norm(g, 4), 13, 1e-12);
    near(mr_nn_clip_norm(g, 4, 20), 13, 1e-12);
    assert_true(g[0] == 3 && g[2] == 12);
    near(mr_nn_clip_norm(g, 4, 6.5), 13, 1e-12);
    near((double)g[0], 1.5, 1e-6);
    near((double)g[1], -2, 1e-6);
    near((double)g[2], 6, 1e-6);
    float *many = mr_alloc_array(1001, sizeof *many);
    for (int i = 0; i < 1001; i++)
        many[i] = i % 2 ? 2.0f : -2.0f;
    near(mr_nn_norm(many, 1001), 2 * sqrt(1001), 1e-9);
    mr_release(many);
}

static void a_norm_that_is_no_number_changes_nothing(void **state)
{
    (void)state;
    float g[] = {3, NAN, 12};
    assert_true(isnan(mr_nn_clip_norm(g, 3, 1)));
    assert_true(g[0] == 3 && g[2] == 12);
    g[1] = INFINITY;
    assert_true(isinf(mr_nn_clip_norm(g, 3, 1)));
    assert_true(g[0] == 3);
    float large[] = {3e38f, 3e38f}; /* the sum of squares must not overflow */
    near(mr_nn_norm(large, 2) / 3e38, sqrt(2), 1e-6);
}

static void values_are_cut_before_the_norm(void **state)
{
    (void)state;
    float g[] = {3, -4, 0.5f, NAN};
    mr_nn_clip_value(g, 4, 1);
    assert_true(g[0] == 1 && g[1] == -1 && g[2] == 0.5f && isnan(g[3]));
    struct mr_nn_optim o = optim("{\"type\":\"sgd\",\"clip_value\":3,\"clip_norm\":2.5}");
    float h[] = {300, -4};
    mr_nn_optim_clip(&o, h, 2);
    near((double)h[0], 2.5 / sqrt(2), 1e-6);
    near((double)h[1], -2.5 / sqrt(2), 1e-6);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void refused(const char *json, const char *words)
{
    struct mr_nn_optim o = {.learning_rate = 42};
    struct mr_error e = {0};
    int err = mr_nn_optim_parse(mr_str(json), &o, &e);
    if (err != MR_EINVAL || !strstr(e.text, words)) fail_msg("%s: %d %s", json, err, e.text);
    assert_true(o.learning_rate == 42);
}

static void defaults_are_pytorchs(void **state)
{
    (void)state;
    struct mr_nn_optim o = optim("{\"type\":\"adam\"}");
    assert_true(o.learning_rate == 0.001 && o.beta1 == 0.9 && o.beta2 == 0.999);
    assert_true(o.epsilon == 1e-8 && o.weight_decay == 0 && o.clip_norm == 0);
    assert_int_equal(mr_nn_optim_slots(&o), 2);
    o = optim("{\"type\":\"sgd\"}");
    assert_true(o.learning_rate == 0.01 && o.momentum == 0);
    assert_int_equal(mr_nn_optim_slots(&o), 0);
    o = optim("{\"type\":\"sgd\",\"momentum\":0.5}");
    assert_int_equal(mr_nn_optim_slots(&o), 1);
    o = optim("{\"type\":\"rmsprop\",\"momentum\":0.5}");
    assert_int_equal(mr_nn_optim_slots(&o), 2);
    assert_string_equal(mr_nn_optim_name(o.type), "rmsprop");
}

static void what_is_wrong_is_said_with_its_field(void **state)
{
    (void)state;
    refused("", "malformed");
    refused("[]", "must be an object");
    refused("{}", "\"type\" must be sgd, adam or rmsprop");
    refused("{\"type\":\"adagrad\"}", "\"type\" must be sgd");
    refused("{\"type\":\"sgd\",\"learning_rate\":0}",
        "\"learning_rate\" must be above 0 and at most 1e6");
    refused("{\"type\":\"sgd\",\"learning_rate\":\"1\"}", "\"learning_rate\" must be");
    refused("{\"type\":\"sgd\",\"momentum\":1}", "\"momentum\" must be from 0 to less than 1");
    refused("{\"type\":\"sgd\",\"beta1\":0.9}", "sgd has no field \"beta1\"");
    refused("{\"type\":\"adam\",\"nesterov\":true}", "adam has no field \"nesterov\"");
    refused("{\"type\":\"sgd\",\"nesterov\":1}", "\"nesterov\" must be true or false");
    refused("{\"type\":\"sgd\",\"nesterov\":true}", "\"momentum\" must be above 0");
    refused("{\"type\":\"adam\",\"decoupled\":true}", "\"weight_decay\" must be above 0");
    refused("{\"type\":\"adam\",\"clip_norm\":-1}",
        "\"clip_norm\" must be a number from 0 (no limit) on");
    refused("{\"type\":\"adam\",\"schedule\":{\"type\":\"cos\"}}",
        "optimizer: field \"schedule\": field \"type\" must be constant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_moves_as_pytorchs),
        cmocka_unit_test(adam_and_adamw_move_as_pytorchs),
        cmocka_unit_test(rmsprop_moves_as_pytorchs),
        cmocka_unit_test(sgd_on_a_parabola_shrinks_geometrically),
        cmocka_unit_test(momentum_sums_a_constant_gradient_as_a_series),
        cmocka_unit_test(adam_steps_by_its_rate_along_a_constant_gradient),
        cmocka_unit_test(decoupled_decay_leaves_the_gradient_alone),
        cmocka_unit_test(adam_keeps_to_the_reference_over_blocks_and_state),
        cmocka_unit_test(several_gradients_are_the_same_bits_as_one_after_another),
        cmocka_unit_test(the_mean_of_several_gradients_is_one_update),
        cmocka_unit_test(state_takes_its_gradient_off_plainly),
        cmocka_unit_test(what_decays_ends_at_zero),
        cmocka_unit_test(a_norm_is_cut_to_its_limit_and_no_shorter_one),
        cmocka_unit_test(a_norm_that_is_no_number_changes_nothing),
        cmocka_unit_test(values_are_cut_before_the_norm),
        cmocka_unit_test(defaults_are_pytorchs),
        cmocka_unit_test(what_is_wrong_is_said_with_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
