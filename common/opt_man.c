/* The man page, in roff with the man macros, from the tables. */
#include <ctype.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/opt_inside.h"

/* Text as roff shows it unchanged: no hyphenation points, no quotes turned, no request by a dot or
 * an apostrophe at the start of a line. A newline begins a paragraph. */
static void put(FILE *out, const char *text)
{
    static const struct {
        char c;
        const char *roff;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                   {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    bool is_start = true;
    for (; *text; text++) {
        const char *roff = NULL;
        for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
            if (*text == escapes[i].c)
                roff = escapes[i].roff;
        if (is_start && *text == '.')
            fputs("\\&", out);
        is_start = *text == '\n';
        if (is_start) {
            text += strspn(text, "\n") - 1;
            fputs("\n.PP\n", out);
        } else if (roff) {
            fputs(roff, out);
        } else {
            fputc(*text, out);
        }
    }
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc(toupper((unsigned char)*text), out);
}

static void put_opt(FILE *out, const struct opt *o)
{
    cleanup(strbuf_free) struct strbuf text = {0};
    opt_describe(o, &text);
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    put(out, o->name);
    fputs("\\fR", out);
    if (o->type != OPT_FLAG) {
        fputs(" \\fI", out);
        put(out, o->argument ? o->argument : "VALUE");
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put(out, text.s);
    fputc('\n', out);
}

static void put_verb(FILE *out, const char *program, const struct opt_verb *verb)
{
    fputs(".SS ", out);
    put(out, verb->name);
    fputs("\n\\fB", out);
    put(out, program);
    fputc(' ', out);
    put(out, verb->name);
    fputs("\\fR [\\fIOPTION\\fR]... \\fI", out);
    put(out, verb->positionals ? verb->positionals : "");
    fputs("\\fR\n.PP\n", out);
    put(out, verb->summary);
    fputs(".\n", out);
    if (verb->details) {
        fputs(".PP\n", out);
        put(out, verb->details);
        fputc('\n', out);
    }
    for (const struct opt *o = verb->opts; o && o->name; o++)
        put_opt(out, o);
}

/* Each variable once, though several verbs may have it. */
static void put_environment(FILE *out, const struct opt_verb *const *verbs,
                            const struct opt *common)
{
    cleanup(strbuf_free) struct strbuf seen = {0};
    const struct opt *o;
    strbuf_puts(&seen, " ");
    for (size_t v = 0; verbs[v]; v++)
        for (size_t i = 0; (o = opt_row(verbs[v], common, i)); i++) {
            cleanup(free_ptr) char *word = xasprintf(" %s ", o->env ? o->env : "");
            if (!o->env || verbs[v]->is_hidden || strstr(seen.s, word))
                continue;
            fputs(seen.len == 1 ? ".SH ENVIRONMENT\n.TP\n\\fB" : ".TP\n\\fB", out);
            strbuf_puts(&seen, word + 1);
            put(out, o->env);
            fputs("\\fR\nSets \\fB\\-\\-", out);
            put(out, o->name);
            fputs("\\fR where it is not given: ", out);
            put(out, o->help ? o->help : "");
            fputc('\n', out);
        }
}

void opt_print_man(FILE *out, const char *program, const struct opt_verb *const *verbs,
                   const struct opt *common)
{
    fputs(".TH ", out);
    put_upper(out, program);
    fprintf(out, " 1 \"\" \"%s %s\" \"User commands\"\n.SH NAME\n", program, TRANSCODE_VERSION);
    put(out, program);
    fputs(" \\- ", out);
    put(out, OPT_PRODUCT);
    fputs("\n.SH SYNOPSIS\n\\fB", out);
    put(out, program);
    fputs("\\fR \\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n.SH VERBS\n", out);
    for (size_t v = 0; verbs[v]; v++)
        if (!verbs[v]->is_hidden)
            put_verb(out, program, verbs[v]);
    fputs(".SH \"OPTIONS OF EVERY VERB\"\n", out);
    for (const struct opt *o = common; o && o->name; o++)
        put_opt(out, o);
    put_opt(out, &opt_help);
    put_environment(out, verbs, common);
    fputs(".SH \"EXIT STATUS\"\n", out);
    for (int code = 0; err_exit_meaning(code); code++) {
        fprintf(out, ".TP\n\\fB%d\\fR\n", code);
        put(out, err_exit_meaning(code));
        fputc('\n', out);
    }
}
