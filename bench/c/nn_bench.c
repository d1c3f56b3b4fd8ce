/* Measures training steps in one thread: forward, backward, Adam.
 *     nn_bench cnn|mlp [batch]
 * Reads numbers from its input. For each number, does this number of steps and prints two lines:
 * the seconds of forward and backward, and the seconds of Adam. bench/nn_peer.py lets this program
 * and PyTorch take turns. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/net/net.h"
#include "nn/optim/optim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const cnn =
    "{\"input\":[28,28,1],\"layers\":["
    "{\"type\":\"Conv2D\",\"filters\":32,\"kernel\":3,\"activation\":\"relu\"},"
    "{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":128,\"activation\":\"relu\"},"
    "{\"type\":\"Dense\",\"units\":10,\"activation\":\"softmax\"}]}";
static const char *const mlp =
    "{\"input\":[784],\"layers\":[{\"type\":\"Dense\",\"units\":100,\"activation\":\"relu\"},"
    "{\"type\":\"Dense\",\"units\":10,\"activation\":\"softmax\"}]}";

enum { ROWS = 4096 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "nn_bench: %s\n", what);
    exit(1);
}

struct job {
    struct mr_nn_model *m;
    struct mr_nn_net *net;
    struct mr_nn_optim optim;
    float *params, *grads, *slots[2], *x;
    int32_t y[ROWS];
    uint32_t batch;
    uint64_t t;
};

static void job_open(struct job *j, const char *json)
{
    struct mr_error e = {0};
    if (mr_nn_model_new(mr_str(json), &j->m, &e)) die(e.text);
    if (mr_nn_net_new(j->m, j->batch, &j->net, &e)) die(e.text);
    if (mr_nn_optim_parse(MR_STR("{\"type\":\"adam\"}"), &j->optim, &e)) die(e.text);
    float **all[] = {&j->params, &j->grads, &j->slots[0], &j->slots[1]};
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        *all[i] = mr_alloc_aligned(j->m->count * sizeof(float), 64);
    mr_nn_model_init(j->m, 1, j->params);
    j->x = mr_alloc_aligned(ROWS * 784 * sizeof(float), 64);
    struct mr_rng r;
    mr_rng_init(&r, 1);
    for (size_t i = 0; i < (size_t)ROWS * 784; i++)
        j->x[i] = mr_rng_below(&r, 5) ? 0.0f : (float)mr_rng_below(&r, 256) / 255.0f;
    for (int i = 0; i < ROWS; i++)
        j->y[i] = (int32_t)mr_rng_below(&r, 10);
}

static void steps(struct job *j, uint64_t n, double *learn_s, double *adam_s)
{
    struct mr_nn_range range = {
        j->params, j->params, j->slots, 0, j->m->count, j->m->trainable_count};
    struct mr_nn_score score = {0};
    struct mr_error e = {0};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = j->t * j->batch % (ROWS - j->batch + 1);
        struct mr_nn_batch b = {.x = j->x + at * 784, .y.index = j->y + at, .step = j->t};
        double start = now_s();
        if (mr_nn_net_learn(j->net, MR_NN_CROSS_ENTROPY, j->params, &b, j->grads, &score, &e))
            die(e.text);
        double middle = now_s();
        mr_nn_optim_apply(&j->optim, ++j->t, &range, j->grads, 1);
        *learn_s += middle - start;
        *adam_s += now_s() - middle;
    }
}

int main(int argc, char **argv)
{
    bool known = argc > 1 && (strcmp(argv[1], "cnn") == 0 || strcmp(argv[1], "mlp") == 0);
    long batch = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
    if (!known || batch < 1 || batch > ROWS) die("cnn or mlp, then the batch, 1 to 4096");
    static struct job j;
    j.batch = (uint32_t)batch;
    job_open(&j, argv[1][0] == 'c' ? cnn : mlp);
    uint64_t n = 0;
    while (scanf("%" SCNu64, &n) == 1) {
        double learn_s = 0, adam_s = 0;
        steps(&j, n, &learn_s, &adam_s);
        (void)printf("%.9f\n%.9f\n", learn_s, adam_s);
        (void)fflush(stdout);
    }
    mr_nn_net_free(&j.net);
    mr_nn_model_free(&j.m);
    return 0;
}
