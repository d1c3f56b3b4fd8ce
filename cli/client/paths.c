#include "cli/client/paths.h"

#include "base/alloc.h"
#include "host/os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

char *mr_paths_command(const char *name)
{
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t n = strcspn(path, ":");
        char *full = mr_format("%.*s/%s", (int)n, path, name);
        if (access(full, X_OK) == 0) return full;
        mr_release(full);
        path += n + (path[n] == ':');
    }
    return NULL;
}

char *mr_paths_dashboard(void)
{
    MR_AUTO(mr_free_ptr)
    char *index = mr_file_beside_program("../share/millrace/dashboard/index.html");
    if (access(index, R_OK)) return NULL;
    *strrchr(index, '/') = 0;
    return MR_STEAL(index);
}

char *mr_paths_home(void)
{
    const char *own = getenv("MILLRACE_HOME");
    const char *home = getenv("HOME");
    if (own && own[0]) return mr_copy_text(own);
    return mr_format("%s/.millrace", home && home[0] ? home : "/tmp");
}

static char *last_path(void)
{
    MR_AUTO(mr_free_ptr) char *home = mr_paths_home();
    return mr_format("%s/last.json", home);
}

static char *member(yyjson_val *root, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(root, name));
    return mr_copy_text(text ? text : "");
}

int mr_last_cluster_read(struct mr_last_cluster *out, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *path = last_path();
    struct mr_buf text;
    mr_buf_init(&text, 65536);
    int err = mr_file_read(path, &text, NULL);
    yyjson_doc *doc = err ? NULL : yyjson_read((const char *)text.p, text.n, 0);
    mr_buf_fini(&text);
    if (!doc)
        return mr_fail(e, MR_EAWAY,
            "no cluster is known: start one with `millrace up`, or give its address with --url or MILLRACE_URL");
    yyjson_val *root = yyjson_doc_get_root(doc);
    *out = (struct mr_last_cluster){.url = member(root, "url"),
        .token = member(root, "token"),
        .ca = member(root, "ca"),
        .scheduler = member(root, "scheduler"),
        .directory = member(root, "directory")};
    yyjson_doc_free(doc);
    return MR_OK;
}

int mr_last_cluster_write(const struct mr_last_cluster *c, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *home = mr_paths_home();
    MR_AUTO(mr_free_ptr) char *path = last_path();
    int err = mr_file_make_dirs(home, 0700, e);
    if (err) return err;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    (void)yyjson_mut_obj_add_str(doc, root, "url", c->url);
    if (c->ca) (void)yyjson_mut_obj_add_str(doc, root, "ca", c->ca);
    (void)yyjson_mut_obj_add_str(doc, root, "scheduler", c->scheduler);
    (void)yyjson_mut_obj_add_str(doc, root, "directory", c->directory);
    size_t n = 0;
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY, &n);
    err = mr_file_write(path, mr_str_of(text, n), 0600, e);
    free(text);
    yyjson_mut_doc_free(doc);
    return err;
}

void mr_last_cluster_fini(struct mr_last_cluster *c)
{
    mr_release(c->url);
    mr_release(c->token);
    mr_release(c->ca);
    mr_release(c->scheduler);
    mr_release(c->directory);
    *c = (struct mr_last_cluster){0};
}
