#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "cli/verbs.h"
#include "common/cleanup.h"

static void profile_free(struct profile **p)
{
    bind_free(&profile_type, p);
}

static const char *builtin_text(const char *name)
{
    const char *each, *text;
    for (size_t i = 0; (text = profile_builtin_text(i, &each)); i++)
        if (!strcmp(each, name))
            return text;
    return NULL;
}

static int list_all(bool is_json, struct err *e)
{
    cleanup(table_free) struct table *t = table_new("NAME|>RENDITIONS|ENCODER|DESCRIPTION");
    json_t *array = is_json ? json_array() : NULL;
    const char *name;
    for (size_t i = 0; profile_builtin_text(i, &name); i++) {
        cleanup(profile_free) struct profile *p = NULL;
        int r = profile_load(name, &p, e);
        if (r < 0) {
            json_decref(array);
            return r;
        }
        json_array_append_new(array, bind_write(&profile_type, p));
        table_cell(t, "%s", name);
        table_cell(t, "%zu", p->n_renditions);
        table_cell(t, "%s", p->encoder);
        table_cell(t, "%s", p->description ? p->description : "");
    }
    if (is_json)
        cli_print_json(array);
    else
        table_print(t, stdout, "");
    return 0;
}

static int show(const char *name, bool is_json, struct err *e)
{
    cleanup(profile_free) struct profile *p = NULL;
    const char *text = builtin_text(name);
    int r = profile_load(name, &p, e);
    if (r < 0)
        return r;
    if (is_json)
        cli_print_json(bind_write(&profile_type, p));
    else if (text)
        fputs(text, stdout);
    else
        printf("%s: a good profile: %s, %zu renditions, %zu audio renditions\n", name, p->encoder,
               p->n_renditions, p->n_audio);
    return 0;
}

static int profiles_run(const void *arg, int argc, char **argv, struct err *e)
{
    const struct cli_common *common = arg;
    return argc ? show(argv[0], common->is_json, e) : list_all(common->is_json, e);
}

static const struct opt options[] = {{0}};

const struct opt_verb verb_profiles = {
    .name = "profiles",
    .positionals = "[NAME|FILE]",
    .max_args = 1,
    .summary = "list the built-in profiles, show one, or check a file",
    .details =
        "With the name of a built-in profile, prints its YAML, to be copied and changed. With "
        "a file, reports all its faults at once. h264 shows how thumbnails are asked for.",
    .opts = options,
    .size = sizeof(struct cli_common),
    .run = profiles_run,
};
