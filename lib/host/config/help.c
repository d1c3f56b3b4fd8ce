/* Formats the text of --help. */
#include "host/config/help.h"

#include "base/alloc.h"
#include "base/buf.h"

#define HELP_BYTES_MAX ((size_t)1 << 20)
#define COLUMN 30 /* column where the help of each flag begins */

const char *mr_version(void)
{
    return MR_VERSION;
}

static void add_option(struct mr_buf *b, const struct mr_option *o)
{
    size_t start = b->n;
    mr_buf_add_text(b, "  ");
    if (o->letter) mr_buf_printf(b, "-%c, ", o->letter);
    mr_buf_printf(b, "--%s", o->name);
    if (o->type != MR_OPTION_BOOL) mr_buf_printf(b, " %s", o->value ? o->value : "VALUE");
    size_t width = b->n - start;
    if (width + 2 > COLUMN) {
        mr_buf_add_text(b, "\n");
        width = 0;
    }
    mr_buf_printf(b, "%*s%s", (int)(COLUMN - width), "", o->help);
    if (o->type == MR_OPTION_TEXTS) mr_buf_add_text(b, "; may be repeated");
    if (o->required) mr_buf_add_text(b, "; required");
    if (o->init && *o->init) mr_buf_printf(b, " (default: %s)", o->init);
    if (o->env) mr_buf_printf(b, " [%s]", o->env);
    mr_buf_add_text(b, "\n");
}

char *mr_config_help(const struct mr_config_spec *spec)
{
    struct mr_buf b;
    mr_buf_init(&b, HELP_BYTES_MAX);
    mr_buf_printf(&b, "%s: %s\n\nUsage: %s %s\n", spec->program, spec->summary, spec->program,
        spec->usage ? spec->usage : "[flags]");
    mr_buf_add_text(&b, "\nFlags:\n");
    for (size_t i = 0; i < spec->options_count; i++)
        add_option(&b, &spec->options[i]);
    static const struct mr_option standard[] = {
        {.name = "help", .letter = 'h', .type = MR_OPTION_BOOL, .help = "show this and exit"},
        {.name = "version", .type = MR_OPTION_BOOL, .help = "show the version and exit"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(standard); i++)
        add_option(&b, &standard[i]);
    if (spec->examples) mr_buf_printf(&b, "\nExamples:\n%s", spec->examples);
    if (b.n && b.p[b.n - 1] != '\n') mr_buf_add_byte(&b, '\n');
    char *text = mr_alloc(b.n + 1);
    memcpy(text, b.p, b.n);
    mr_buf_fini(&b);
    return text;
}
