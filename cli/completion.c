/* `millrace completion`: prints a script for a shell. The scripts call `millrace completion words`,
 * which prints the possible completions of the last word. Commands, flags and arguments come from
 * the table of commands and their usage texts; ids come from the cluster, if it answers in time. */
#include "base/alloc.h"
#include "cli/internal.h"

#include <stdlib.h>
#include <string.h>

/* The cluster has only this time to answer, because the user waits for the completion. */
#define ANSWER_MAX MR_SECOND
#define WORDS_MAX 1000

#define COMMAND_ROW(name, summary) {#name, summary, &mr_##name##_spec, mr_command_##name},
static const struct mr_command commands[] = {MR_COMMANDS(COMMAND_ROW)};
#undef COMMAND_ROW

struct config {
    struct mr_client_options client;
};

static const struct mr_option options[] = {MR_CLIENT_OPTIONS};

const struct mr_config_spec mr_completion_spec = {.program = "millrace completion",
    .summary =
        "Prints the completion script of `millrace` for a shell. The scripts call `words`, which\n"
        "prints the possible completions of the last WORD.",
    .usage = "[flags] bash | zsh | fish | words -- WORD...",
    .examples = "  source <(millrace completion bash)\n"
                "  millrace completion zsh >~/.zfunc/_millrace\n"
                "  millrace completion fish >~/.config/fish/completions/millrace.fish\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = WORDS_MAX};

/* ---- scripts --------------------------------------------------------------------------------- */

static const char bash_script[] =
    "# Completion of millrace for bash; `millrace completion bash` prints it.\n"
    "_millrace()\n"
    "{\n"
    "    local line cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    local -a found\n"
    "    [ \"$cur\" != = ] || cur=\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "            :files) compopt -o filenames 2>/dev/null\n"
    "                    mapfile -t found < <(compgen -f -- \"$cur\")\n"
    "                    COMPREPLY+=(\"${found[@]}\") ;;\n"
    "            :folders) compopt -o filenames 2>/dev/null\n"
    "                    mapfile -t found < <(compgen -d -- \"$cur\")\n"
    "                    COMPREPLY+=(\"${found[@]}\") ;;\n"
    "            *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"$1\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _millrace millrace\n";

static const char zsh_script[] =
    "#compdef millrace\n"
    "# Completion of millrace for zsh; `millrace completion zsh` prints it.\n"
    "_millrace()\n"
    "{\n"
    "    local line word\n"
    "    local -a found\n"
    "    for line in \"${(@f)$(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "            :files) _files ;;\n"
    "            :folders) _files -/ ;;\n"
    "            ?*) word=${line%%$'\\t'*}\n"
    "                found+=(\"${word//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#found )) && _describe millrace found\n"
    "}\n"
    "if [[ ${funcstack[1]} == _millrace ]]; then\n"
    "    _millrace \"$@\"\n"
    "else\n"
    "    compdef _millrace millrace\n"
    "fi\n";

static const char fish_script[] =
    "# Completion of millrace for fish; `millrace completion fish` prints it.\n"
    "function __millrace_words\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] completion words -- $words[2..-1] 2>/dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path (commandline -ct)\n"
    "            case :folders\n"
    "                __fish_complete_directories (commandline -ct)\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c millrace -f -a '(__millrace_words)'\n";

/* ---- words ----------------------------------------------------------------------------------- */

struct line { /* the command line so far */
    /* The words after `millrace`; the last word is to be completed. */
    const char *const *words;
    size_t count;
    const struct mr_command *command;
    /* The flag whose value the last word is; NULL: the last word is no value. */
    const struct mr_option *open;
    const char *rest[WORDS_MAX]; /* arguments before the last word, without flags */
    size_t rest_count;
    struct mr_client_options client;
};

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static void offer(const struct line *l, const char *word, const char *sentence)
{
    const char *typed = l->words[l->count - 1];
    if (!strcmp(typed, "=")) typed = "";
    if (begins(word, typed)) (void)printf("%s\t%s\n", word, sentence);
}

static void offer_commands(const struct line *l)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        offer(l, commands[i].name, commands[i].summary);
}

static const struct mr_option *find_flag(const struct mr_config_spec *spec, const char *word)
{
    for (size_t i = 0; i < spec->options_count; i++) {
        const struct mr_option *o = &spec->options[i];
        bool is_letter = word[1] == o->letter && word[1] && !word[2];
        size_t n = strlen(o->name);
        bool is_long = begins(word, "--") && !strncmp(word + 2, o->name, n) &&
                       (!word[2 + n] || word[2 + n] == '=');
        if (is_letter || is_long) return o;
    }
    return NULL;
}

/* Keeps the value of --url, --token or --tls-ca for requests to the cluster. */
static void take_client(struct line *l, const struct mr_option *o, const char *value)
{
    if (!strcmp(o->name, "url")) l->client.url = value;
    if (!strcmp(o->name, "token")) l->client.token = value;
    if (!strcmp(o->name, "tls-ca")) l->client.tls_ca = value;
}

/* Reads flags, their values and arguments before the last word. bash splits "--url=x" into three
 * words. */
static void read_line(struct line *l)
{
    for (size_t i = 1; i + 1 < l->count; i++) {
        const char *word = l->words[i];
        if (word[0] != '-' || !word[1]) {
            l->rest[l->rest_count++] = word;
            continue;
        }
        const struct mr_option *o = find_flag(l->command->spec, word);
        const char *equals = strchr(word, '=');
        if (!o || o->type == MR_OPTION_BOOL) continue;
        if (equals) {
            take_client(l, o, equals + 1);
            continue;
        }
        i++;
        if (i + 1 < l->count && !strcmp(l->words[i], "=")) i++;
        if (i + 1 < l->count)
            take_client(l, o, l->words[i]);
        else
            l->open = o;
    }
}

/* Offers the ids that the cluster lists at `path`. Offers nothing if the cluster does not
 * answer. */
static void offer_rows(
    const struct line *l, const char *path, const char *rows, const char *field, const char *about)
{
    struct mr_client c = {0};
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "GET", .timeout_ns = ANSWER_MAX};
    size_t at = 0;
    size_t max = 0;
    yyjson_val *row = NULL;
    mr_http_reply_init(&reply);
    int err = mr_client_open(&l->client, &c, NULL);
    if (!err) err = mr_client_send(&c, &request, &reply, NULL, "%s", path);
    yyjson_doc *doc = err ? NULL : yyjson_read((const char *)reply.body.p, reply.body.n, 0);
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), rows), at, max, row)
        offer(l, mr_json_get_text(row, field), mr_json_get_text(row, about));
    yyjson_doc_free(doc);
    mr_http_reply_fini(&reply);
    mr_client_fini(&c);
}

/* Offers completions for a placeholder of a usage text or of a flag's value. */
static void offer_kind(const struct line *l, const char *kind)
{
    static const char *const states[] = {"pending", "running", "done", "failed", "cancelled"};
    if (begins(kind, "FILE")) (void)printf(":files\n");
    if (begins(kind, "DIR")) (void)printf(":folders\n");
    if (begins(kind, "JOB")) offer_rows(l, "/v1/jobs?page_size=100", "jobs", "id", "name");
    if (begins(kind, "WORKER")) offer_rows(l, "/v1/workers", "workers", "name", "state");
    if (begins(kind, "ID") && begins(l->command->name, "train"))
        offer_rows(l, "/v1/trainings", "trainings", "id", "name");
    for (size_t i = 0; i < MR_ARRAY_LEN(states) && !strcmp(kind, "STATE"); i++)
        offer(l, states[i], "");
}

static bool is_verb(const char *word)
{
    return word[0] >= 'a' && word[0] <= 'z';
}

/* Offers the next word of one alternative of a usage text, such as "put NAME VALUE", if the
 * arguments so far fit the alternative. A last word that ends in "..." may be repeated. */
static void offer_alternative(const struct line *l, char *alternative)
{
    char *save = NULL;
    size_t at = 0;
    for (char *w = strtok_r(alternative, " []", &save); w; w = strtok_r(NULL, " []", &save)) {
        bool repeats = strlen(w) > 3 && !strcmp(w + strlen(w) - 3, "...");
        /* An alternative such as "--follow ID" is a flag and not offered here. */
        if (w[0] == '-') return;
        if (at == l->rest_count || (repeats && at < l->rest_count)) {
            if (is_verb(w))
                offer(l, w, "");
            else
                offer_kind(l, w);
            return;
        }
        if (is_verb(w) && strcmp(w, l->rest[at]) != 0) return;
        at++;
    }
}

static void offer_arguments(const struct line *l)
{
    const char *usage = l->command->spec->usage;
    const char *expected = usage ? strstr(usage, "[flags] ") : NULL;
    MR_AUTO(mr_free_ptr) char *copy = mr_copy_text(expected ? expected + 8 : "");
    for (char *one = copy; one;) {
        char *end = strstr(one, " | ");
        if (end) *end = 0;
        offer_alternative(l, one);
        one = end ? end + 3 : NULL;
    }
}

static void offer_flags(const struct line *l)
{
    const struct mr_config_spec *spec = l->command->spec;
    char flag[64];
    for (size_t i = 0; i < spec->options_count; i++) {
        (void)snprintf(flag, sizeof flag, "--%s", spec->options[i].name);
        offer(l, flag, spec->options[i].help);
    }
    offer(l, "--help", "show the flags and exit");
}

static void offer_words(struct line *l)
{
    const char *typed = l->words[l->count - 1];
    if (l->count == 1) {
        offer_commands(l);
        offer(l, "help", "describe a command");
        if (typed[0] == '-') offer(l, "--help", "list the commands");
        if (typed[0] == '-') offer(l, "--version", "show the version");
        return;
    }
    if (!strcmp(l->words[0], "help")) {
        if (l->count == 2) offer_commands(l);
        return;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        if (!strcmp(commands[i].name, l->words[0])) l->command = &commands[i];
    if (!l->command) return;
    read_line(l);
    if (l->open)
        offer_kind(l, l->open->value ? l->open->value : "");
    else if (typed[0] == '-')
        offer_flags(l);
    else
        offer_arguments(l);
}

int mr_command_completion(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    int code = MR_EXIT_OK;
    mr_config_load(&mr_completion_spec, argc, argv, &k, &rest);
    const char *what = rest.items[0];
    bool is_alone = rest.count == 1;
    if (!strcmp(what, "words") && !is_alone) {
        struct line *l = mr_alloc(sizeof *l);
        l->words = rest.items + 1;
        l->count = rest.count - 1;
        l->client = k.client;
        offer_words(l);
        mr_release(l);
    } else if (is_alone && !strcmp(what, "bash")) {
        (void)fputs(bash_script, stdout);
    } else if (is_alone && !strcmp(what, "zsh")) {
        (void)fputs(zsh_script, stdout);
    } else if (is_alone && !strcmp(what, "fish")) {
        (void)fputs(fish_script, stdout);
    } else {
        code = mr_client_wrong_usage(&mr_completion_spec);
    }
    mr_texts_fini(&rest);
    return code;
}
