/* Which requests of Jobs.WhatIf are refused, and with which sentence. */
#include "services/scheduler/predict/request.h"

#include "base/alloc.h"
#include "virtual/whatif/whatif.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static const struct mr_str ops[] = {MR_STR_INIT("inc"), MR_STR_INIT("array.matmul")};

static int check(const Millrace__V1__WhatIfRequest *m, struct mr_error *e)
{
    return mr_predict_check(m, ops, MR_ARRAY_LEN(ops), e);
}

static void refused(const Millrace__V1__WhatIfRequest *m, const char *sentence)
{
    struct mr_error e = {0};
    assert_int_equal(check(m, &e), MR_EINVAL);
    if (strncmp(e.text, sentence, strlen(sentence))) fail_msg("%s, not %s", e.text, sentence);
}

static void a_request_without_a_change_is_accepted(void **state)
{
    (void)state;
    const Millrace__V1__WhatIfRequest m = MILLRACE__V1__WHAT_IF_REQUEST__INIT;
    struct mr_error e = {0};
    assert_int_equal(check(&m, &e), MR_OK);
}

static void slots_and_bandwidth_have_bounds(void **state)
{
    (void)state;
    Millrace__V1__WhatIfRequest m = MILLRACE__V1__WHAT_IF_REQUEST__INIT;
    m.slots = MR_PREDICT_SLOTS_MAX + 1;
    refused(&m, "slots: expected 1 to 1048576, not 1048577");
    m.slots = MR_PREDICT_SLOTS_MAX;
    m.processors = MR_PREDICT_PROCESSORS_MAX + 1;
    refused(&m, "processors: expected 1 to 1048576, not 1048577");
    m.processors = MR_PREDICT_PROCESSORS_MAX;
    const double wrong[] = {-1, 1e-7, 1e7, NAN, INFINITY};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
        m.bandwidth = wrong[i];
        refused(&m, "bandwidth: expected 0.000001 to 1000000");
    }
    m.bandwidth = 2;
    assert_int_equal(check(&m, NULL), MR_OK);
}

static void a_class_that_cannot_be_free_is_refused(void **state)
{
    (void)state;
    char *names[] = {(char[]){"transfer"}, (char[]){"compute"}};
    Millrace__V1__WhatIfRequest m = MILLRACE__V1__WHAT_IF_REQUEST__INIT;
    m.free = names;
    m.n_free = 1;
    assert_int_equal(check(&m, NULL), MR_OK);
    m.n_free = 2;
    refused(&m, "free: expected scheduler, decide, report");
    m.n_free = MR_PREDICT_FREE_MAX + 1;
    refused(&m, "free: at most 16 are allowed");
}

static void the_names_are_those_that_predictions_know(void **state)
{
    (void)state;
    size_t listed = 0;
    for (; mr_predict_free_name(listed); listed++) {
        assert_int_not_equal(mr_whatif_free_of(mr_str(mr_predict_free_name(listed))), 0);
        assert_non_null(strstr(mr_whatif_free_names(), mr_predict_free_name(listed)));
    }
    size_t known = 2; /* the names in the text are separated by commas, and the last two by "or" */
    for (const char *p = mr_whatif_free_names(); *p; p++)
        known += *p == ',';
    assert_int_equal(listed, known);
}

static void the_speed_of_an_operator_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {{"inc", "op_speed: expected NAME=F"}, {"inc=", "op_speed: expected NAME=F"},
        {"inc=fast", "op_speed: expected NAME=F"}, {"inc=0", "op_speed: expected NAME=F"},
        {"inc=-2", "op_speed: expected NAME=F"}, {"inc=nan", "op_speed: expected NAME=F"},
        {"inc=2x", "op_speed: expected NAME=F"}, {"=2", "op_speed: no task of the job has"},
        {"dec=2", "op_speed: no task of the job has the operator \"dec\""}};
    Millrace__V1__WhatIfRequest m = MILLRACE__V1__WHAT_IF_REQUEST__INIT;
    char text[64];
    char *texts[] = {text};
    m.op_speed = texts;
    m.n_op_speed = 1;
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        memcpy(text, cases[i].text, strlen(cases[i].text) + 1);
        refused(&m, cases[i].sentence);
    }
    char *longer = memset(mr_alloc(1000), '0', 999);
    memcpy(longer, "inc=2.", 6);
    texts[0] = longer;
    refused(&m, "op_speed: expected NAME=F");
    mr_release(longer);
    texts[0] = text;
    memcpy(text, "array.matmul=0.5", sizeof "array.matmul=0.5");
    assert_int_equal(check(&m, NULL), MR_OK);
    m.n_op_speed = MR_PREDICT_OP_SPEEDS_MAX + 1;
    refused(&m, "op_speed: at most 64 are allowed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_a_change_is_accepted),
        cmocka_unit_test(slots_and_bandwidth_have_bounds),
        cmocka_unit_test(a_class_that_cannot_be_free_is_refused),
        cmocka_unit_test(the_names_are_those_that_predictions_know),
        cmocka_unit_test(the_speed_of_an_operator_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
