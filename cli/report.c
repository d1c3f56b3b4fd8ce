/* `millrace report`: a job's account, timeline, critical path and operators as one HTML file. */
#include "cli/trace/report.h"
#include "cli/internal.h"
#include "cli/trace/profile_answer.h"
#include "cli/trace/timeline_export.h"
#include "host/os/file.h"

#include <string.h>
#include <sys/stat.h>

#define STEPS_MAX 5000u
#define WIDTH 1000u /* pixels of a row of the timeline */
#define PAGE_BYTES_MAX ((size_t)256 << 20)

struct report_config {
    struct mr_client_options client;
    const char *html;
    struct mr_offline_options offline;
};

static const struct mr_option report_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "html",
        .type = MR_OPTION_TEXT,
        .value = "FILE",
        .help = "path of the HTML file to write; -: stdout",
        .at = offsetof(struct report_config, html),
        .not_with = "json",
        .required = true},
    MR_OFFLINE_OPTIONS(struct report_config, offline),
};

const struct mr_config_spec mr_report_spec = {.program = "millrace report",
    .summary = "Writes a report about a job as one HTML file that needs no other file.",
    .usage = "[flags] JOB",
    .examples =
        "  millrace report j1kq07ab-7 --html job.html\n"
        "  millrace report j1kq07ab-7 --html job.html --offline --dir ~/.millrace/cluster\n",
    .options = report_options,
    .options_count = MR_ARRAY_LEN(report_options),
    .rest_min = 1,
    .rest_max = 1};

static int write_page(const char *path, struct mr_str page, struct mr_error *e)
{
    struct stat about;
    if (!strcmp(path, "-")) {
        (void)fwrite(page.p, 1, page.n, stdout); /* main() reports errors of stdout */
        return MR_OK;
    }
    if (!stat(path, &about) && !S_ISREG(about.st_mode))
        return mr_fail(e, MR_EINVAL, "--html: %s is not a regular file", path);
    return mr_file_write(path, page, 0644, e);
}

static int make(const struct report_config *k, const char *job, struct mr_error *e)
{
    const struct mr_profile_source source = {&k->client, &k->offline};
    struct mr_raster raster;
    struct mr_buf page;
    yyjson_doc *doc = NULL;
    int err = mr_profile_answer(&source, job, STEPS_MAX, &doc, e);
    if (err) return err;
    yyjson_val *profile = yyjson_doc_get_root(doc);
    uint64_t from = mr_json_get_u64(profile, "from_ns");
    uint64_t until = mr_json_get_u64(profile, "until_ns");
    const struct mr_timeline_export spans = {
        .client = &k->client, .offline = &k->offline, .job = job, .raster = &raster};
    mr_raster_init(&raster, from, MR_MAX(until, from + 1), WIDTH);
    mr_buf_init(&page, PAGE_BYTES_MAX);
    err = mr_timeline_export(&spans, e);
    if (!err) mr_report_write(job, profile, &raster, &page);
    if (!err && mr_buf_status(&page)) err = mr_fail(e, MR_ELIMIT, "the page is too large");
    if (!err) err = write_page(k->html, mr_buf_str(&page), e);
    mr_buf_fini(&page);
    mr_raster_fini(&raster);
    yyjson_doc_free(doc);
    return err;
}

int mr_command_report(int argc, char **argv)
{
    struct report_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    mr_config_load(&mr_report_spec, argc, argv, &k, &rest);
    int err = make(&k, rest.items[0], &e);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_report_spec, &k);
    return err ? mr_client_fail("report", &e) : MR_EXIT_OK;
}
