/* The page's Content-Security-Policy allows only the page's own style element, which it names by
 * hash. So nothing that a key or an operator's name contains can load or run anything. The policy
 * also forbids style attributes, so bars are SVG elements with a width. Most colors are from the
 * palette of Okabe and Ito. */
#include "cli/trace/report.h"

#include "base/alloc.h"
#include "base/units.h"
#include "cli/client/client.h"
#include "cli/trace/profile_answer.h"
#include "host/config/help.h"
#include "host/tls/sha256.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define COLORS 8u        /* operators with a color of their own; the others share one */
#define STEPS_SHOWN 200u /* rows in the table of the critical path */
#define BAR 240          /* width of the longest bar */
#define ROW 14           /* height of a row of the timeline */
#define LABEL 150        /* width of the names beside the rows */
#define LEVELS 4         /* number of heights of a pixel, by the share of time with a task */

static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--quiet:#59636e;--line:#d1d9e0;"
    "--panel:#f6f8fa;--bar:#0072b2}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--quiet:#9198a1;"
    "--line:#3d444d;--panel:#151b23;--bar:#56b4e9}}\n"
    "body{margin:2rem auto;max-width:75rem;padding:0 1rem;background:var(--back);color:var(--text);"
    "font:15px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\n"
    "p{max-width:50rem}.quiet{color:var(--quiet)}\n"
    "table{border-collapse:collapse}th,td{padding:.15rem .8rem .15rem 0;text-align:left;"
    "border-bottom:1px solid var(--line);vertical-align:middle}\n"
    "th{font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "tr.sum td{font-weight:600;border-bottom:0}\n"
    ".wide{overflow-x:auto}svg{display:block}svg text{fill:var(--text);font-size:10px}\n"
    ".bar{fill:var(--bar)}.row{fill:var(--panel)}\n"
    ".key{display:inline-block;margin-right:1.2rem;white-space:nowrap}.key svg{display:inline}\n"
    ".c0{fill:#0072b2}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#cc79a7}.c4{fill:#56b4e9}"
    ".c5{fill:#d55e00}.c6{fill:#b5a300}.c7{fill:#7b61c9}.c8{fill:#8b949e}\n";

struct page {
    struct mr_buf *out;
    const char *job;
    yyjson_val *profile;
    const struct mr_raster *raster;
};

/* ---- text ------------------------------------------------------------------------------------ */

static void add(struct page *p, const char *html)
{
    mr_buf_add_text(p->out, html);
}

static void add_escaped(struct page *p, struct mr_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '&': add(p, "&amp;"); break;
        case '<': add(p, "&lt;"); break;
        case '>': add(p, "&gt;"); break;
        case '"': add(p, "&quot;"); break;
        case '\'': add(p, "&#39;"); break;
        default: mr_buf_add_byte(p->out, (unsigned char)s.p[i]); break;
        }
    }
}

static void add_text_cell(struct page *p, const char *text)
{
    add(p, "<td>");
    add_escaped(p, mr_str(text));
    add(p, "</td>");
}

static void add_seconds_cell(struct page *p, double seconds)
{
    mr_buf_printf(p->out, "<td class=\"n\">%.3f</td>", seconds);
}

static double seconds(yyjson_val *row, const char *name)
{
    return (double)mr_json_get_u64(row, name) / 1e9;
}

/* Appends the hash of the style, in the form of a Content-Security-Policy. */
static void add_style_hash(struct page *p)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t hash[MR_SHA256_BYTES + 1] = {0}; /* in base64: 43 digits and a "=" */
    mr_sha256(mr_str(style), hash);
    add(p, "'sha256-");
    for (unsigned i = 0; i < 43; i++) {
        unsigned bit = i * 6, two = (unsigned)hash[bit / 8] << 8 | hash[bit / 8 + 1];
        mr_buf_add_byte(p->out, (unsigned char)digits[two >> (10 - bit % 8) & 63]);
    }
    add(p, "='");
}

/* ---- the account ----------------------------------------------------------------------------- */

/* Appends a table of the times in the member `classes` of `from`, and of their sum. */
static void add_classes(struct page *p, yyjson_val *from, const char *heading)
{
    struct mr_class_time times[MR_PROFILE_CLASSES_MAX];
    size_t n = mr_profile_classes(from, times);
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += times[i].seconds;
    mr_buf_printf(p->out,
        "<table><thead><tr><th scope=\"col\">class</th><th scope=\"col\" class=\"n\">%s</th>"
        "<th scope=\"col\" class=\"n\">share</th><th></th></tr></thead><tbody>\n",
        heading);
    for (size_t i = 0; i < n; i++) {
        double share = times[i].seconds / all;
        add(p, "<tr>");
        add_text_cell(p, times[i].name);
        add_seconds_cell(p, times[i].seconds);
        mr_buf_printf(p->out,
            "<td class=\"n\">%.1f %%</td><td><svg width=\"%d\" height=\"10\" aria-hidden=\"true\">"
            "<rect class=\"bar\" width=\"%.1f\" height=\"10\"/></svg></td></tr>\n",
            share * 100, BAR, share * BAR);
    }
    add(p, "<tr class=\"sum\"><td>all</td>");
    add_seconds_cell(p, all);
    add(p, "<td class=\"n\">100.0 %</td><td></td></tr></tbody></table>\n");
}

static void add_ops(struct page *p)
{
    static const char *const headings[] = {
        "attempts", "wall s", "CPU s", "median us", "p99 us", "queued s", "idle for it s", "made"};
    size_t at = 0, max = 0;
    yyjson_val *row = NULL;
    add(p, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">operator</th>");
    for (unsigned i = 0; i < MR_ARRAY_LEN(headings); i++)
        mr_buf_printf(p->out, "<th scope=\"col\" class=\"n\">%s</th>", headings[i]);
    add(p, "</tr></thead><tbody>\n");
    yyjson_arr_foreach(yyjson_obj_get(p->profile, "ops"), at, max, row)
    {
        char made[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(row, "nbytes"), made);
        add(p, "<tr>");
        add_text_cell(p, mr_json_get_text(row, "op"));
        mr_buf_printf(p->out, "<td class=\"n\">%" PRIu64 "</td>", mr_json_get_u64(row, "tasks"));
        add_seconds_cell(p, seconds(row, "wall_ns"));
        add_seconds_cell(p, seconds(row, "cpu_ns"));
        mr_buf_printf(p->out, "<td class=\"n\">%.1f</td><td class=\"n\">%.1f</td>",
            seconds(row, "median_ns") * 1e6, seconds(row, "p99_ns") * 1e6);
        add_seconds_cell(p, seconds(row, "queue_ns"));
        add_seconds_cell(p, seconds(row, "white_ns"));
        mr_buf_printf(p->out, "<td class=\"n\">%s</td></tr>\n", made);
    }
    add(p, "</tbody></table></div>\n");
}

/* ---- the critical path ----------------------------------------------------------------------- */

static void add_steps(struct page *p, yyjson_val *path)
{
    yyjson_val *steps = yyjson_obj_get(path, "steps"), *step = NULL;
    size_t at = 0, max = 0, count = yyjson_arr_size(steps);
    size_t skipped = count > STEPS_SHOWN ? count - STEPS_SHOWN : 0;
    uint64_t begin = mr_json_get_u64(p->profile, "from_ns");
    mr_buf_printf(p->out, "<details><summary>The last %zu steps</summary>\n", count - skipped);
    add(p, "<div class=\"wide\"><table><thead><tr><th scope=\"col\" class=\"n\">at s</th>"
           "<th scope=\"col\" class=\"n\">time us</th><th scope=\"col\">class</th>"
           "<th scope=\"col\">operator</th><th scope=\"col\">key</th></tr></thead><tbody>\n");
    yyjson_arr_foreach(steps, at, max, step)
    {
        if (at < skipped) continue;
        uint64_t from = mr_json_get_u64(step, "from_ns"), to = mr_json_get_u64(step, "to_ns");
        mr_buf_printf(p->out, "<tr><td class=\"n\">%.6f</td><td class=\"n\">%.1f</td>",
            (double)(int64_t)(from - begin) / 1e9, (double)(int64_t)(to - from) / 1e3);
        add_text_cell(p, mr_json_get_text(step, "class"));
        add_text_cell(p, mr_json_get_text(step, "op"));
        add_text_cell(p, mr_json_get_text(step, "key"));
        add(p, "</tr>\n");
    }
    add(p, "</tbody></table></div></details>\n");
}

static void add_path(struct page *p)
{
    yyjson_val *path = yyjson_obj_get(p->profile, "critical_path");
    add(p, "<h2>Critical path</h2>\n");
    if (!path) {
        add(p, "<p>The job was not over, so it has no critical path yet.</p>\n");
        return;
    }
    add(p, "<p>What the job waited for, from its submission to its end. Time of the class "
           "<code>dependency</code> is the run time of a task.</p>\n");
    add_classes(p, path, "seconds");
    add_steps(p, path);
}

/* ---- the timeline ---------------------------------------------------------------------------- */

/* Returns the number of an operator's color. The operators with the most time, which come first in
 * the profile, have colors of their own. */
static unsigned color_of(const struct page *p, struct mr_str op)
{
    yyjson_val *ops = yyjson_obj_get(p->profile, "ops"), *row = NULL;
    size_t at = 0, max = 0;
    yyjson_arr_foreach(ops, at, max, row)
    {
        if (at == COLORS) break;
        if (mr_str_eq(mr_str(mr_json_get_text(row, "op")), op)) return (unsigned)at;
    }
    return COLORS;
}

static unsigned level_of(const struct mr_raster *r, const struct mr_raster_pixel *pixel)
{
    return pixel->op ? MR_MAX(1u, (unsigned)ceil(mr_raster_fill(r, pixel) * LEVELS)) : 0;
}

/* Appends an SVG path with the pixels of one color. Equal neighbors make one rectangle. */
static void add_runs(struct page *p, const struct mr_raster_pixel *row, const unsigned *colors,
    unsigned color, unsigned y)
{
    const struct mr_raster *r = p->raster;
    bool is_open = false;
    for (uint32_t i = 0, end; i < r->width; i = end) {
        unsigned level = level_of(r, &row[i]);
        end = i + 1;
        if (!level || colors[row[i].op - 1] != color) continue;
        while (end < r->width && row[end].op && colors[row[end].op - 1] == color &&
               level_of(r, &row[end]) == level)
            end++;
        unsigned height = level * (ROW - 2) / LEVELS;
        if (!is_open) mr_buf_printf(p->out, "<path class=\"c%u\" d=\"", color);
        is_open = true;
        mr_buf_printf(
            p->out, "M%u %uh%uv%uh-%uz", LABEL + i, y + ROW - 1 - height, end - i, height, end - i);
    }
    if (is_open) add(p, "\"/>\n");
}

static void add_row(struct page *p, uint32_t lane, const unsigned *colors)
{
    const struct mr_raster *r = p->raster;
    const struct mr_export_lane *l = &r->lanes.lanes[lane];
    char name[MR_EXPORT_LANE_NAME_MAX];
    mr_export_lane_name(l, name);
    mr_buf_printf(p->out,
        "<rect class=\"row\" x=\"%u\" y=\"%u\" width=\"%" PRIu32 "\" height=\"%u\"/>"
        "<text x=\"0\" y=\"%u\">",
        LABEL, lane * ROW + 1, r->width, ROW - 2, lane * ROW + 10);
    add_escaped(p, r->lanes.names.names[l->worker]);
    mr_buf_printf(p->out, ", %s</text>\n", name);
    for (unsigned color = 0; color <= COLORS && r->rows[lane]; color++)
        add_runs(p, r->rows[lane], colors, color, lane * ROW);
}

static void add_key(struct page *p)
{
    yyjson_val *ops = yyjson_obj_get(p->profile, "ops"), *row = NULL;
    size_t at = 0, max = 0;
    add(p, "<p>");
    yyjson_arr_foreach(ops, at, max, row)
    {
        mr_buf_printf(p->out,
            "<span class=\"key\"><svg width=\"10\" height=\"10\" aria-hidden=\"true\"><rect "
            "class=\"c%zu\" width=\"10\" height=\"10\"/></svg> ",
            MR_MIN(at, (size_t)COLORS));
        add_escaped(p, at < COLORS ? mr_str(mr_json_get_text(row, "op")) : MR_STR("others"));
        add(p, "</span>\n");
        if (at == COLORS) break;
    }
    add(p, "</p>\n");
}

static void add_timeline(struct page *p)
{
    const struct mr_raster *r = p->raster;
    uint32_t rows = mr_raster_rows(r);
    unsigned *colors = mr_alloc_array(r->ops.count + 1, sizeof *colors);
    for (uint32_t i = 0; i < r->ops.count; i++)
        colors[i] = color_of(p, r->ops.names[i]);
    add(p,
        "<h2>Timeline</h2>\n<p>A row is a slot. A color is the operator with the most time in the "
        "pixel; the height is the share of the pixel's time in which the slot ran a task.</p>\n");
    add_key(p);
    mr_buf_printf(p->out,
        "<div class=\"wide\"><svg role=\"img\" width=\"%" PRIu32 "\" height=\"%" PRIu32
        "\" aria-label=\"Timeline of %" PRIu32 " slots\">\n",
        LABEL + r->width, rows * ROW + 16, rows);
    for (uint32_t i = 0; i < rows; i++)
        add_row(p, i, colors);
    mr_buf_printf(p->out, "<text x=\"%u\" y=\"%" PRIu32 "\">0 s</text>", LABEL, rows * ROW + 12);
    mr_buf_printf(p->out,
        "<text x=\"%" PRIu32 "\" y=\"%" PRIu32
        "\" text-anchor=\"end\">%.3f s</text>\n</svg></div>\n",
        LABEL + r->width, rows * ROW + 12, (double)(r->until - r->from) / 1e9);
    if (r->lanes.count > rows)
        mr_buf_printf(
            p->out, "<p>%" PRIu32 " more rows are not drawn.</p>\n", r->lanes.count - rows);
    mr_release(colors);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void add_head(struct page *p)
{
    add(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ");
    add_style_hash(p);
    add(p, "; base-uri 'none'; form-action 'none'\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Job ");
    add_escaped(p, mr_str(p->job));
    add(p, "</title>\n<style>");
    add(p, style);
    add(p, "</style></head>\n<body>\n<h1>Job ");
    add_escaped(p, mr_str(p->job));
    add(p, "</h1>\n");
}

static void add_summary(struct page *p)
{
    char date[64];
    struct tm utc;
    time_t begin = (time_t)(mr_json_get_u64(p->profile, "from_ns") / 1000000000u);
    uint64_t lost = mr_json_get_u64(p->profile, "not_recorded");
    (void)gmtime_r(&begin, &utc);
    (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &utc);
    mr_buf_printf(p->out,
        "<p>Submitted %s. %.3f s on %" PRIu64
        " slots make %.3f s of slot time; %.0f %% of it were unused. %" PRIu64
        " attempts of tasks ran.</p>\n",
        date, seconds(p->profile, "wall_ns"), mr_json_get_u64(p->profile, "slots"),
        seconds(p->profile, "slot_ns"), mr_json_get_real(p->profile, "white_space") * 100,
        p->raster->spans);
    if (lost) mr_buf_printf(p->out, "<p>%" PRIu64 " attempts were not recorded.</p>\n", lost);
}

void mr_report_write(
    const char *job, yyjson_val *profile, const struct mr_raster *raster, struct mr_buf *out)
{
    struct page p = {out, job, profile, raster};
    add_head(&p);
    add_summary(&p);
    add(&p, "<h2>Where the time of the slots went</h2>\n");
    add_classes(&p, profile, "slot seconds");
    add_timeline(&p);
    add_path(&p);
    add(&p, "<h2>Operators</h2>\n");
    add_ops(&p);
    mr_buf_printf(
        out, "<p class=\"quiet\">Made by millrace %s.</p>\n</body></html>\n", mr_version());
}
