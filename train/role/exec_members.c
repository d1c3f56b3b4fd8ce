/* Writes the list of members to a JSON file, and holds programs back until all roles are ready to
 * start theirs. */
#include "train/role/exec_members.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/file.h"
#include "host/os/subprocess.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define MEET_WAIT_S 1.0 /* time that the trainer may hold one call of Barrier */
#define CALL_TIMEOUT (5 * MR_SECOND)

static const char *const kinds[] = {"", "ps", "worker", "scorer"};

static const char *kind_of(const Millrace__V1__TrainingMember *m)
{
    return m->role > 0 && (size_t)m->role < MR_ARRAY_LEN(kinds) ? kinds[m->role] : "";
}

static void add_cluster(
    yyjson_mut_doc *doc, yyjson_mut_val *root, const Millrace__V1__JoinResponse *j)
{
    yyjson_mut_val *cluster = yyjson_mut_obj_add_obj(doc, root, "cluster");
    for (size_t k = 1; k < MR_ARRAY_LEN(kinds); k++) {
        yyjson_mut_val *list = NULL;
        for (size_t i = 0; i < j->n_members; i++) {
            const Millrace__V1__TrainingMember *m = j->members[i];
            if ((size_t)m->role != k) continue;
            if (!list) list = yyjson_mut_obj_add_arr(doc, cluster, kinds[k]);
            (void)yyjson_mut_arr_add_str(doc, list, m->address);
        }
    }
}

static char *members_text(const Millrace__V1__JoinResponse *j, size_t *n)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    (void)yyjson_mut_obj_add_uint(doc, root, "generation", j->generation);
    add_cluster(doc, root, j);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "members");
    for (size_t i = 0; i < j->n_members; i++) {
        const Millrace__V1__TrainingMember *m = j->members[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
        (void)yyjson_mut_obj_add_str(doc, o, "role", kind_of(m));
        (void)yyjson_mut_obj_add_uint(doc, o, "index", m->index);
        (void)yyjson_mut_obj_add_str(doc, o, "address", m->address);
        (void)yyjson_mut_obj_add_str(doc, o, "task", m->task);
        (void)yyjson_mut_obj_add_str(doc, o, "state", m->state);
    }
    char *text = yyjson_mut_write(doc, 0, n);
    yyjson_mut_doc_free(doc);
    return text;
}

int mr_exec_members_write(const struct mr_role *r, const char *dir, struct mr_error *e)
{
    size_t n = 0;
    char *text = members_text(r->members->m, &n);
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", dir, MR_EXEC_MEMBERS);
    MR_AUTO(mr_free_ptr) char *fresh = mr_format("%s.new", path);
    mr_process_files_begin();
    FILE *file = fopen(fresh, "we");
    bool done = file && text && fwrite(text, 1, n, file) == n;
    if (file && fclose(file)) done = false;
    done = done && !rename(fresh, path);
    int problem = errno;
    mr_process_files_end();
    free(text); /* yyjson has allocated the text */
    if (done) return MR_OK;
    return mr_fail(e, mr_file_write_error(problem), "cannot write %s: %s", path, strerror(problem));
}

uint64_t mr_exec_team(const struct mr_role *r)
{
    const Millrace__V1__JoinResponse *j = r->members->m;
    uint64_t h = j->n_members;
    for (size_t i = 0; i < j->n_members; i++)
        for (const char *p = j->members[i]->task;; p++) {
            h = mr_hash_u64(h ^ (unsigned char)*p);
            if (!*p) break;
        }
    return h;
}

static uint32_t parties(const struct mr_role *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->members->m->n_members; i++)
        n += strcmp(r->members->m->members[i]->state, "finished") != 0;
    return n;
}

int mr_exec_meet(struct mr_role *r)
{
    for (;;) {
        int err = mr_role_look(r, NULL);
        if (!err && !mr_role_is_current(r)) err = mr_role_await_members(r);
        if (err || r->view.phase != MR_ROLE_RUN) return err;
        if (!mr_role_is_current(r)) continue;
        char name[32];
        (void)snprintf(name, sizeof name, "exec-%u", r->view.generation);
        Millrace__V1__BarrierRequest q = MILLRACE__V1__BARRIER_REQUEST__INIT;
        q.session = r->session;
        q.name = name;
        q.role = (Millrace__V1__TrainingRole)r->kind;
        q.index = r->index;
        q.incarnation = mr_role_place(r, r->kind, r->index).incarnation;
        q.parties = parties(r);
        q.wait_s = MEET_WAIT_S;
        struct mr_error e;
        err = mr_role_call(r->link, "/millrace.v1.Trainings/Barrier", &q.base, CALL_TIMEOUT,
            mr_role_stop_of(r), NULL, NULL, NULL, &e);
        if (!err || err == MR_ECANCELED) return err;
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
}
