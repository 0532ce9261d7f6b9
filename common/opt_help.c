/* --help of a verb and the overview of all, from the tables. */
#include <string.h>

#include "common/cleanup.h"
#include "common/opt_inside.h"

enum { WIDTH = 80, TEXT_COLUMN = 26, VERB_COLUMN = 14 };

/* Words of one paragraph, the first line beginning at `column`, the others indented by `indent`. */
static void wrap(FILE *out, const char *text, size_t n, int column, int indent)
{
    bool is_first = true;
    for (const char *end = text + n; text < end;) {
        size_t word = strcspn(text, " ");
        if (word > (size_t)(end - text))
            word = (size_t)(end - text);
        if (!is_first && column + 1 + (int)word > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!is_first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, word, out);
        column += (int)word;
        is_first = false;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_paragraphs(FILE *out, const char *text)
{
    for (; *text; text += strspn(text, "\n")) {
        size_t n = strcspn(text, "\n");
        fputc('\n', out);
        wrap(out, text, n, 0, 0);
        text += n;
    }
}

static void print_row(FILE *out, const char *left, const char *text, int text_column)
{
    int column = fprintf(out, "  %s", left);
    if (column > text_column - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", text_column - column, "");
    wrap(out, text, strlen(text), text_column, text_column);
}

static void print_opt(FILE *out, const struct opt *o)
{
    cleanup(strbuf_free) struct strbuf left = {0}, text = {0};
    if (o->letter)
        strbuf_printf(&left, "-%c, ", o->letter);
    else
        strbuf_puts(&left, "    ");
    strbuf_printf(&left, "--%s", o->name);
    if (o->type != OPT_FLAG)
        strbuf_printf(&left, " %s", o->argument ? o->argument : "VALUE");
    opt_describe(o, &text);
    print_row(out, left.s, text.s, TEXT_COLUMN);
}

void opt_print_help(FILE *out, const char *program, const struct opt_verb *verb,
                    const struct opt *common)
{
    const struct opt *o;
    bool has_positionals = verb->positionals && *verb->positionals;
    fprintf(out, "Usage: %s %s [OPTION]...%s%s\n\n", program, verb->name,
            has_positionals ? " " : "", has_positionals ? verb->positionals : "");
    cleanup(free_ptr) char *summary = xasprintf("%s.", verb->summary);
    if (*summary >= 'a' && *summary <= 'z')
        *summary = (char)(*summary - 'a' + 'A');
    wrap(out, summary, strlen(summary), 0, 0);
    if (verb->details)
        print_paragraphs(out, verb->details);
    fputs("\nOptions:\n", out);
    for (size_t i = 0; (o = opt_row(verb, common, i)); i++)
        print_opt(out, o);
}

void opt_print_overview(FILE *out, const char *program, const struct opt_verb *const *verbs)
{
    fprintf(out, "Usage: %s VERB [OPTION]... [ARGUMENT]...\n\n%s: %s.\n\nVerbs:\n", program,
            program, OPT_PRODUCT);
    for (; *verbs; verbs++)
        if (!(*verbs)->is_hidden)
            print_row(out, (*verbs)->name, (*verbs)->summary, VERB_COLUMN);
    fputs("\nExit codes:\n", out);
    for (int code = 0; err_exit_meaning(code); code++)
        fprintf(out, "  %d  %s\n", code, err_exit_meaning(code));
    fprintf(out, "\n'%s VERB --help' tells more about a verb.\n", program);
}
