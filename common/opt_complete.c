/*
 * The bash completion script, from the tables. It needs bash alone, not the bash-completion
 * package. Shape: complete the verb; else the argument of the option before the cursor; else, after
 * a dash, the verb's options; else files, where the verb takes an INPUT or FILE.
 */
#include <string.h>

#include "common/cleanup.h"
#include "common/opt_inside.h"

static const char head[] = "local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                           "    local verb=${COMP_WORDS[1]} words= kind=\n"
                           "    COMPREPLY=()\n"
                           "    # --name=value comes as three words\n"
                           "    if [[ $cur == = ]]; then cur=\n"
                           "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n";

static const char tail[] =
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
    "    profile)\n"
    "        # a table: one profile a line, below the line of headings\n"
    "        words=$(\"${COMP_WORDS[0]}\" profiles 2>/dev/null |\n"
    "            { read -r _; while read -r name _; do echo \"$name\"; done; })\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; compgen -f -- \"$cur\") "
    ";;\n"
    "    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") "
    ";;\n"
    "    dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") "
    ";;\n"
    "    esac\n";

static bool is_kind(const char *word)
{
    return !strcmp(word, "file") || !strcmp(word, "dir") || !strcmp(word, "profile");
}

/* A case branch for the argument of each option that has one. */
static void print_arguments(FILE *out, const struct opt_verb *verb, const struct opt *common)
{
    const struct opt *o;
    for (size_t i = 0; (o = opt_row(verb, common, i)); i++) {
        if (o->type == OPT_FLAG)
            continue;
        fprintf(out, "    '%s --%s'", verb->name, o->name);
        if (o->letter)
            fprintf(out, "|'%s -%c'", verb->name, o->letter);
        if (!o->complete)
            fputs(") kind=none ;;\n", out);
        else if (is_kind(o->complete))
            fprintf(out, ") kind=%s ;;\n", o->complete);
        else
            fprintf(out, ") kind=words words='%s' ;;\n", o->complete);
    }
}

static void print_options(FILE *out, const struct opt_verb *verb, const struct opt *common)
{
    const struct opt *o;
    fprintf(out, "        %s) words='", verb->name);
    for (size_t i = 0; (o = opt_row(verb, common, i)); i++)
        fprintf(out, "%s--%s", i ? " " : "", o->name);
    fputs("' ;;\n", out);
}

static bool takes_file(const struct opt_verb *verb)
{
    return verb->positionals &&
           (strstr(verb->positionals, "INPUT") || strstr(verb->positionals, "FILE"));
}

void opt_print_completion(FILE *out, const char *program, const struct opt_verb *const *verbs,
                          const struct opt *common)
{
    fprintf(out, "# bash completion of %s\n_%s()\n{\n    %s", program, program, head);
    fputs("    if ((COMP_CWORD == 1)); then kind=words words='", out);
    for (size_t v = 0; verbs[v]; v++)
        if (!verbs[v]->is_hidden)
            fprintf(out, "%s ", verbs[v]->name);
    fputs("--help --version'\n    else case \"$verb $prev\" in\n", out);
    for (size_t v = 0; verbs[v]; v++)
        if (!verbs[v]->is_hidden)
            print_arguments(out, verbs[v], common);
    fputs("    esac; fi\n    if [[ -z $kind && $cur == -* ]]; then\n        kind=words\n"
          "        case $verb in\n",
          out);
    for (size_t v = 0; verbs[v]; v++)
        if (!verbs[v]->is_hidden)
            print_options(out, verbs[v], common);
    fputs("        esac\n    elif [[ -z $kind ]]; then\n        case $verb in\n", out);
    for (size_t v = 0; verbs[v]; v++)
        if (!verbs[v]->is_hidden && takes_file(verbs[v]))
            fprintf(out, "        %s) kind=file ;;\n", verbs[v]->name);
    fprintf(out, "        esac\n    fi\n%s}\ncomplete -F _%s %s\n", tail, program, program);
}
