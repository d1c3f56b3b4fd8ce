/* Tests the real mr-objectstore with real clients, some of them in processes of their own: sharing,
 * waiting, the death of a client or the store, spilling, pulls, and many threads that make and drop
 * objects. */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/limits.h"
#include "store/arena/client_link.h"
#include "store/arena/control.h"
#include "store/arena/layout.h"
#include "store_node.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct mr_store_holder job_5 = {MR_HOLD_JOB, 5};

static void another_process_reads_an_object_and_cannot_write_it(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 256 * MIB, false);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t reader = fork(); /* forks before this process has threads */
    if (reader == 0) {
        mr_object_id ids[2];
        if (read(pipe_fds[0], ids, sizeof ids) != sizeof ids) _exit(10);
        struct mr_store *st = node_client(&n);
        struct mr_store_view view;
        for (int round = 0; round < 3; round++) {
            if (!holds(st, ids[0], NULL, 1000, 1)) _exit(11);
            if (!holds(st, ids[1], NULL, 3 * MIB, 2)) _exit(12);
        }
        if (mr_store_get(st, ids[1], NULL, 0, &view, NULL)) _exit(13);
        char *page = (char *)((uintptr_t)view.p & ~(uintptr_t)4095);
        if (!mprotect(page, 4096, PROT_READ | PROT_WRITE)) _exit(14);
        mr_store_release(st, &view);
        mr_store_close(&st);
        _exit(0);
    }
    struct mr_store *st = node_client(&n);
    mr_object_id ids[2] = {make(st, 1000, 1, 5), make(st, 3 * MIB, 2, 5)};
    assert_int_equal(write(pipe_fds[1], ids, sizeof ids), sizeof ids);
    int status = 0;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    mr_store_close(&st);
    node_fini(&n);
}

struct waiting {
    struct mr_store *st;
    mr_object_id id;
    int err;
    struct mr_store_view view;
};

static void *wait_for_it(void *ctx)
{
    struct waiting *w = ctx;
    w->err = mr_store_get(w->st, w->id, NULL, WAIT, &w->view, NULL);
    return NULL;
}

static void a_get_waits_for_the_seal_of_another_client(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 256 * MIB, false);
    struct mr_store *maker = node_client(&n);
    struct mr_store *reader = node_client(&n);
    struct mr_store_draft draft;
    assert_int_equal(mr_store_create(maker, 5000, WAIT, &draft, NULL), MR_OK);
    struct waiting w = {.st = reader, .id = draft.id};
    struct mr_store_view view;
    assert_int_equal(mr_store_get(reader, draft.id, NULL, 0, &view, NULL), MR_EAGAIN);
    assert_int_equal(mr_store_get(reader, draft.id, NULL, 20 * MR_MS, &view, NULL), MR_ETIMEOUT);
    assert_int_equal(mr_store_get_start(reader, draft.id, NULL, WAIT, 77, &view, NULL), MR_EAGAIN);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_it, &w);
    nap_ms(30);
    fill(draft.p, 5000, 9);
    assert_int_equal(mr_store_seal(maker, &draft, NULL, &view, NULL), MR_OK);
    assert_true(is_filled(view.p, 5000, 9)); /* the maker can read its object at once */
    pthread_join(thread, NULL);
    assert_int_equal(w.err, MR_OK);
    assert_true(is_filled(w.view.p, 5000, 9));
    struct mr_store_completion done;
    while (!mr_store_completions(reader, &done, 1))
        nap_ms(1);
    assert_int_equal(done.token, 77);
    assert_int_equal(done.err, MR_OK);
    mr_store_release(reader, &done.view);
    mr_store_release(reader, &w.view);
    mr_store_release(maker, &view);
    mr_store_close(&maker);
    mr_store_close(&reader);
    node_fini(&n);
}

static void what_is_put_in_one_call_is_read_by_others(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 256 * MIB, false);
    struct mr_store *maker = node_client(&n);
    struct mr_store *reader = node_client(&n);
    static const uint64_t sizes[] = {0, 100, MIB, 4 * MIB + 1, 33 * MIB + 7};
    for (unsigned i = 0; i < MR_ARRAY_LEN(sizes); i++) {
        unsigned char *bytes = mr_alloc(sizes[i] + 1);
        fill(bytes, sizes[i], i);
        /* The first round writes into fresh pages, the second round into used ones. */
        for (int twice = 0; twice < 2; twice++) {
            mr_object_id id = {0};
            struct mr_store_view view;
            assert_int_equal(mr_store_put(maker, bytes, sizes[i], NULL, WAIT, &id, NULL), MR_OK);
            assert_int_equal(mr_store_get(reader, id, NULL, WAIT, &view, NULL), MR_OK);
            assert_int_equal(view.bytes, sizes[i]);
            assert_true(is_filled(view.p, sizes[i], i));
            mr_store_release(reader, &view);
            assert_int_equal(mr_store_delete(maker, &id, 1, false, NULL), MR_OK);
        }
        mr_release(bytes);
    }
    struct mr_error e;
    mr_object_id none = {0};
    assert_int_equal(mr_store_put(maker, &e, 1000 * MIB, NULL, WAIT, &none, &e), MR_ETOOBIG);
    mr_store_close(&maker);
    mr_store_close(&reader);
    node_fini(&n);
}

static struct mr_store_stats stats_of(struct mr_store *st)
{
    struct mr_store_stats s;
    assert_int_equal(mr_store_stats(st, &s, NULL), MR_OK);
    return s;
}

static void a_killed_client_leaves_what_jobs_hold(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 256 * MIB, false);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t maker = fork();
    if (maker == 0) {
        struct mr_store *st = node_client(&n);
        mr_object_id ids[2] = {make(st, 2 * MIB, 1, 5), make(st, 2 * MIB, 2, 0)};
        struct mr_store_view view;
        /* The maker dies while it has a pin. */
        if (mr_store_get(st, ids[0], NULL, WAIT, &view, NULL)) _exit(1);
        if (write(pipe_fds[1], ids, sizeof ids) != sizeof ids) _exit(2);
        for (;;)
            nap_ms(1000);
    }
    mr_object_id ids[2];
    assert_int_equal(read(pipe_fds[0], ids, sizeof ids), sizeof ids);
    struct mr_store *st = node_client(&n);
    assert_true(holds(st, ids[1], NULL, 2 * MIB, 2));
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
    struct mr_store_view view;
    for (int i = 0; i < 200 && stats_of(st).objects > 1; i++)
        nap_ms(10);
    assert_true(holds(st, ids[0], NULL, 2 * MIB, 1));
    assert_int_not_equal(mr_store_get(st, ids[1], NULL, 0, &view, NULL), MR_OK);
    assert_true(stats_of(st).memory_bytes > 0);
    mr_store_unhold(st, ids, 1, job_5);
    for (int i = 0; i < 200 && stats_of(st).memory_bytes > 0; i++)
        nap_ms(10);
    assert_int_equal(stats_of(st).memory_bytes, 0); /* the segments of the dead maker are freed */
    mr_store_close(&st);
    node_fini(&n);
}

static void a_killed_store_is_noticed_and_views_stay_readable(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 256 * MIB, true);
    struct mr_store *st = node_client(&n);
    mr_object_id id = make(st, MIB, 3, 5);
    struct mr_store_view view;
    assert_int_equal(mr_store_get(st, id, NULL, WAIT, &view, NULL), MR_OK);
    struct waiting w = {.st = st, .id = {1, 2}};
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_it, &w);
    nap_ms(30);
    node_kill(&n, SIGKILL);
    pthread_join(thread, NULL);
    assert_int_equal(w.err, MR_EAWAY);
    assert_false(mr_store_is_alive(st));
    assert_true(is_filled(view.p, MIB, 3));
    struct mr_store_draft draft;
    assert_int_equal(mr_store_create(st, 100 * MIB, WAIT, &draft, NULL), MR_EAWAY);
    mr_store_release(st, &view);
    mr_store_close(&st);
    node_start(&n); /* the new store listens at the socket that the dead one left */
    st = node_client(&n);
    assert_true(holds(st, make(st, MIB, 4, 5), NULL, MIB, 4));
    mr_store_close(&st);
    node_fini(&n);
}

#define MANY 60

static void a_full_store_spills_and_restores(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, true);
    struct mr_store *st = node_client(&n);
    struct mr_store *other = node_client(&n);
    mr_object_id ids[MANY];
    uint64_t bytes[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        bytes[i] = i % 3 ? 4 * MIB : 100000;
        ids[i] = make(i % 2 ? st : other, bytes[i], i, 5);
    }
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < MANY; i++)
            assert_true(holds(i % 3 ? st : other, ids[i], NULL, bytes[i], i));
    mr_duration restored = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        struct mr_store_view view;
        assert_int_equal(mr_store_get(st, ids[i], NULL, WAIT, &view, NULL), MR_OK);
        restored += view.restored_ns;
        mr_store_release(st, &view);
    }
    assert_true(restored > 0);
    struct mr_store_stats s = stats_of(st);
    assert_true(s.spills > 0);
    assert_true(s.restores > 0);
    assert_true(s.memory_bytes <= 64 * MIB);
    assert_int_equal(s.objects, MANY);
    mr_store_unhold(st, ids, MANY, job_5);
    for (int i = 0; i < 300 && stats_of(st).objects > 0; i++)
        nap_ms(10);
    s = stats_of(st);
    assert_int_equal(s.objects, 0);
    assert_int_equal(s.spilled_bytes, 0);
    mr_store_close(&st);
    mr_store_close(&other);
    node_fini(&n);
}

static void a_stopped_client_does_not_stop_the_others(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, true);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t stopped = fork();
    if (stopped == 0) {
        struct mr_store *st = node_client(&n);
        mr_object_id ids[3];
        for (uint64_t i = 0; i < 3; i++)
            ids[i] = make(st, 4 * MIB, i, 5);
        if (!holds(st, ids[2], NULL, 4 * MIB, 2)) _exit(1);
        if (write(pipe_fds[1], ids, sizeof ids) != sizeof ids) _exit(2);
        kill(getpid(), SIGSTOP);
        bool ok = holds(st, ids[0], NULL, 4 * MIB, 0); /* the objects are there as before */
        mr_store_close(&st);
        _exit(ok ? 0 : 3);
    }
    mr_object_id ids[3];
    mr_object_id mine[20];
    assert_int_equal(read(pipe_fds[0], ids, sizeof ids), sizeof ids);
    struct mr_store *st = node_client(&n);
    for (uint64_t i = 0; i < 20; i++)
        mine[i] = make(st, 4 * MIB, i, 5);
    for (uint64_t i = 0; i < 20; i++)
        assert_true(holds(st, mine[i], NULL, 4 * MIB, i));
    for (uint64_t i = 0; i < 3; i++)
        assert_true(holds(st, ids[i], NULL, 4 * MIB, i));
    kill(stopped, SIGCONT);
    int status = 0;
    assert_int_equal(waitpid(stopped, &status, 0), stopped);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    mr_store_close(&st);
    node_fini(&n);
}

static void a_held_object_names_its_holder(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, false);
    struct mr_store *st = node_client(&n);
    mr_object_id id = make(st, 1000, 1, (uint64_t)1 << 32 | 7);
    struct mr_error e = {0};
    assert_int_equal(mr_store_delete(st, &id, 1, false, &e), MR_ESTATE);
    assert_non_null(strstr(e.text, "job j1-7"));
    assert_int_equal(mr_store_delete(st, &id, 1, true, &e), MR_OK);
    struct mr_store_view view;
    assert_int_not_equal(mr_store_get(st, id, NULL, 0, &view, NULL), MR_OK);
    mr_store_close(&st);
    node_fini(&n);
}

struct puller {
    struct mr_store *st;
    mr_object_id id;
    const char *source;
    bool ok, is_told;
};

static void *pull_it(void *ctx)
{
    struct puller *p = ctx;
    struct mr_store_view view;
    if (mr_store_get(p->st, p->id, p->source, WAIT, &view, NULL)) return NULL;
    p->is_told = view.is_pulled;
    mr_store_release(p->st, &view);
    p->ok = holds(p->st, p->id, p->source, 20 * MIB + 24, 8);
    return NULL;
}

static void an_object_of_another_node_is_pulled_once(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    node_init(&a, 256 * MIB, false);
    node_init(&b, 256 * MIB, false);
    struct mr_store *here = node_client(&a);
    struct mr_store *there = node_client(&b);
    mr_object_id id = make(there, 20 * MIB + 24, 8, 5);
    struct puller pulls[8];
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++) {
        pulls[i] = (struct puller){here, id, b.address, false, false};
        pthread_create(&threads[i], NULL, pull_it, &pulls[i]);
    }
    uint32_t told = 0;
    for (size_t i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_true(pulls[i].ok);
        told += pulls[i].is_told;
    }
    /* Exactly one of the eight gets is told that it caused the transfer, so that the transfer is
     * counted once. */
    assert_int_equal(told, 1);
    assert_int_equal(stats_of(here).pulls, 1);
    assert_int_equal(stats_of(here).pulled_bytes, 20 * MIB + 24);
    struct mr_store_view view;
    struct mr_error e = {0};
    mr_object_id lost = {123, 456};
    node_kill(&b, SIGKILL);
    assert_int_equal(mr_store_get(here, lost, b.address, WAIT, &view, &e), MR_EAWAY);
    /* The copy stays although the node that it came from is dead. */
    assert_true(holds(here, id, NULL, 20 * MIB + 24, 8));
    mr_store_close(&here);
    mr_store_close(&there);
    node_start(&b);
    node_fini(&a);
    node_fini(&b);
}

/* ---- churn: threads that make, read, keep and drop objects in a memory that is too small ----- */

struct churn {
    struct mr_store *st;
    uint64_t seed;
    int rounds;
    const char *wrong;
};

#define KEPT 12

static void drop(struct mr_store *st, mr_object_id *id)
{
    if (!mr_object_id_is_none(*id)) mr_store_unhold(st, id, 1, job_5);
    *id = (mr_object_id){0};
}

static void *churn_run(void *ctx)
{
    struct churn *c = ctx;
    struct mr_rng r;
    mr_rng_init(&r, c->seed);
    mr_object_id kept[KEPT] = {0};
    uint64_t bytes[KEPT];
    uint64_t seeds[KEPT];
    for (int i = 0; i < c->rounds && !c->wrong; i++) {
        size_t at = mr_rng_below(&r, KEPT);
        if (mr_rng_below(&r, 2) && !mr_object_id_is_none(kept[at])) {
            struct mr_store_view view;
            if (mr_store_get(c->st, kept[at], NULL, WAIT, &view, NULL)) {
                c->wrong = "a get failed";
                break;
            }
            if (view.bytes != bytes[at] || !is_filled(view.p, view.bytes, seeds[at]))
                c->wrong = "an object changed";
            mr_store_release(c->st, &view);
            continue;
        }
        drop(c->st, &kept[at]);
        bytes[at] = 64 + mr_rng_below(&r, mr_rng_below(&r, 3) ? 100000 : 3 * MIB);
        seeds[at] = mr_rng_next(&r);
        struct mr_store_draft draft;
        if (mr_store_create(c->st, bytes[at], WAIT, &draft, NULL)) {
            c->wrong = "a create failed";
            break;
        }
        fill(draft.p, bytes[at], seeds[at]);
        kept[at] = draft.id;
        struct mr_store_owner owner = {.job = {5}};
        if (mr_store_seal(c->st, &draft, &owner, NULL, NULL)) c->wrong = "a seal failed";
    }
    for (size_t i = 0; i < KEPT; i++)
        drop(c->st, &kept[i]);
    return NULL;
}

static void churn_of_many_threads_loses_nothing(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, true);
    struct mr_store *clients[2] = {node_client(&n), node_client(&n)};
    struct churn churns[6];
    pthread_t threads[6];
    for (size_t i = 0; i < 6; i++) {
        churns[i] = (struct churn){.st = clients[i % 2], .seed = i + 1, .rounds = 400};
        pthread_create(&threads[i], NULL, churn_run, &churns[i]);
    }
    for (size_t i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        if (churns[i].wrong) fail_msg("%s", churns[i].wrong);
    }
    for (int i = 0; i < 300 && stats_of(clients[0]).objects > 0; i++)
        nap_ms(10);
    struct mr_store_stats s = stats_of(clients[0]);
    assert_int_equal(s.objects, 0);
    assert_int_equal(s.object_bytes, 0);
    mr_store_close(&clients[0]);
    mr_store_close(&clients[1]);
    node_fini(&n);
}

static void a_client_of_another_version_is_refused_in_words(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, false);
    int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", n.control);
    assert_int_equal(connect(s, (const struct sockaddr *)&address, sizeof address), 0);
    const struct mr_ctl_hello hello = {
        .protocol = MR_PROTOCOL_VERSION, .layout = MR_LAYOUT_VERSION, .name = "early"};
    assert_int_equal(mr_ctl_send(s, MR_CTL_HELLO, 0, &hello, NULL, 0, -1), MR_OK);
    static char buffer[MR_CTL_BYTES_MAX];
    size_t bytes = 0;
    int fd = -1;
    struct mr_ctl_message m;
    assert_int_equal(mr_ctl_receive(s, buffer, &bytes, &fd), MR_OK);
    assert_int_equal(mr_ctl_parse(buffer, bytes, false, &m, NULL), MR_OK);
    assert_int_equal(m.type, MR_CTL_DONE);
    assert_non_null(strstr(((const struct mr_ctl_done *)m.fixed)->text, "the client 1:"));
    close(s);
    node_fini(&n);
}

static void *welcome_as_early_stores_did(void *ctx)
{
    static char buffer[MR_CTL_BYTES_MAX];
    const struct mr_ctl_welcome w = {.catalog_bytes = 4096};
    size_t bytes = 0;
    int socket = *(const int *)ctx, pins = -1, fd = memfd_create("catalog", MFD_CLOEXEC);
    if (!mr_ctl_receive(socket, buffer, &bytes, &pins))
        (void)mr_ctl_send(socket, MR_CTL_WELCOME, 0, &w, NULL, 0, fd);
    close(pins);
    close(fd);
    return NULL;
}

static void a_store_of_another_version_is_refused_in_words(void **state)
{
    (void)state;
    int ends[2];
    pthread_t thread;
    struct mr_error e;
    struct mr_store *st = NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    pthread_create(&thread, NULL, welcome_as_early_stores_did, &ends[1]);
    assert_int_equal(mr_store_open_socket(ends[0], "test", false, &st, &e), MR_ESTATE);
    assert_non_null(strstr(e.text, "the object store 1:"));
    pthread_join(thread, NULL);
    close(ends[1]);
}

int main(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_reads_an_object_and_cannot_write_it),
        cmocka_unit_test(a_client_of_another_version_is_refused_in_words),
        cmocka_unit_test(a_store_of_another_version_is_refused_in_words),
        cmocka_unit_test(a_get_waits_for_the_seal_of_another_client),
        cmocka_unit_test(what_is_put_in_one_call_is_read_by_others),
        cmocka_unit_test(a_killed_client_leaves_what_jobs_hold),
        cmocka_unit_test(a_killed_store_is_noticed_and_views_stay_readable),
        cmocka_unit_test(a_full_store_spills_and_restores),
        cmocka_unit_test(a_stopped_client_does_not_stop_the_others),
        cmocka_unit_test(a_held_object_names_its_holder),
        cmocka_unit_test(an_object_of_another_node_is_pulled_once),
        cmocka_unit_test(churn_of_many_threads_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
