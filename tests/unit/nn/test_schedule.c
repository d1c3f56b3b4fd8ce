/* lib/nn: learning-rate schedules compared with their closed forms. */
#include "nn/optim/optim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("%.15g, but %.15g is right", got, want);
}

/* Returns the learning rate of update number `version` + 1. The base rate is 0.5. */
static double rate(const char *schedule, uint64_t version)
{
    char json[512];
    (void)snprintf(
        json, sizeof json, "{\"type\":\"sgd\",\"learning_rate\":0.5,\"schedule\":%s}", schedule);
    struct mr_nn_optim o;
    struct mr_error e = {0};
    if (mr_nn_optim_parse(mr_str(json), &o, &e)) fail_msg("%s", e.text);
    return mr_nn_optim_rate(&o, version + 1);
}

static void a_constant_rate_stays(void **state)
{
    (void)state;
    near(rate("{\"type\":\"constant\"}", 0), 0.5);
    near(rate("{\"type\":\"constant\"}", UINT64_MAX - 1), 0.5);
}

static void steps_come_every_so_many_versions(void **state)
{
    (void)state;
    const char *s = "{\"type\":\"step\",\"every\":10,\"factor\":0.1}";
    near(rate(s, 9), 0.5);
    near(rate(s, 10), 0.05);
    near(rate(s, 39), 0.0005);
}

static void exponential_and_inverse_time_fall_smoothly(void **state)
{
    (void)state;
    near(rate("{\"type\":\"exponential\",\"every\":10,\"factor\":0.25}", 5), 0.25);
    near(rate("{\"type\":\"exponential\",\"every\":10,\"factor\":0.25}", 20), 0.5 / 16);
    near(rate("{\"type\":\"inverse_time\",\"every\":10,\"factor\":0.5}", 0), 0.5);
    near(rate("{\"type\":\"inverse_time\",\"every\":10,\"factor\":0.5}", 20), 0.25);
}

static void a_cosine_ends_at_its_final_share(void **state)
{
    (void)state;
    const char *s = "{\"type\":\"cosine\",\"steps\":100,\"final\":0.2}";
    near(rate(s, 0), 0.5);
    near(rate(s, 50), 0.3);
    near(rate(s, 25), 0.5 * (0.2 + 0.8 * 0.5 * (1 + sqrt(0.5))));
    near(rate(s, 100), 0.1);
    near(rate(s, 1000000), 0.1);
}

static void warmup_climbs_and_then_gives_way(void **state)
{
    (void)state;
    const char *s = "{\"type\":\"warmup\",\"steps\":4}";
    near(rate(s, 0), 0.125);
    near(rate(s, 3), 0.5);
    near(rate(s, 4), 0.5);
    const char *both = "{\"type\":\"step\",\"every\":3,\"factor\":0.5,\"warmup\":4}";
    near(rate(both, 1), 0.25);
    near(rate(both, 3), 0.25);
    near(rate(both, 6), 0.125);
}

static void pieces_have_rates_of_their_own(void **state)
{
    (void)state;
    const char *s = "{\"type\":\"piecewise\",\"at\":[10,20],\"rates\":[1,0.3,0]}";
    near(rate(s, 0), 1);
    near(rate(s, 9), 1);
    near(rate(s, 10), 0.3);
    near(rate(s, 20), 0);
}

static void refused(const char *schedule, const char *words)
{
    char json[512];
    (void)snprintf(json, sizeof json, "{\"type\":\"sgd\",\"schedule\":%s}", schedule);
    struct mr_nn_optim o;
    struct mr_error e = {0};
    int err = mr_nn_optim_parse(mr_str(json), &o, &e);
    if (err != MR_EINVAL || !strstr(e.text, words)) fail_msg("%s: %d %s", json, err, e.text);
}

static void what_is_wrong_is_said_with_its_field(void **state)
{
    (void)state;
    refused("7", "field \"schedule\" must be an object");
    refused("{\"type\":\"step\",\"factor\":0.5}", "\"every\" is missing");
    refused("{\"type\":\"step\",\"every\":0,\"factor\":0.5}", "\"every\" must be a whole number");
    refused("{\"type\":\"step\",\"every\":1,\"factor\":0}", "\"factor\" must be a number above 0");
    refused("{\"type\":\"cosine\",\"steps\":5,\"final\":2}", "\"final\" must be a number from 0");
    refused("{\"type\":\"cosine\",\"every\":5}", "cosine has no field \"every\"");
    refused("{\"type\":\"warmup\",\"steps\":5,\"warmup\":5}", "warmup has no field \"warmup\"");
    refused("{\"type\":\"piecewise\",\"at\":[2,2],\"rates\":[1,2,3]}", "growing versions");
    refused("{\"type\":\"piecewise\",\"at\":[2],\"rates\":[1,2,3]}", "one longer than \"at\"");
    refused("{\"type\":\"piecewise\",\"at\":[2],\"rates\":[1,-2]}", "learning rates");
    refused("{\"type\":\"piecewise\",\"at\":[2]}", "\"rates\" is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_rate_stays),
        cmocka_unit_test(steps_come_every_so_many_versions),
        cmocka_unit_test(exponential_and_inverse_time_fall_smoothly),
        cmocka_unit_test(a_cosine_ends_at_its_final_share),
        cmocka_unit_test(warmup_climbs_and_then_gives_way),
        cmocka_unit_test(pieces_have_rates_of_their_own),
        cmocka_unit_test(what_is_wrong_is_said_with_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
