#include "tests/simgpu/call.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/context.h"
#include "tests/simgpu/state.h"
#include "tests/simgpu/stats.h"

enum { RULES_MAX = 32, NVENC_GENERIC = 20 };

enum action { RETURN, LOST, DEAD, HANG };

struct rule {
    char call[64]; /* "": any */
    int device;    /* -1: any */
    long nth;
    bool is_and_later;
    int shared; /* index in sim_state.calls, -1: counted by this process */
    enum action action;
    int code;
};

static struct rule rules[RULES_MAX];
static int rule_count;
static int lost_code, dead_code; /* set once, read without lock: ints */

void sim_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("simgpu: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static const struct {
    const char *prefix;
    enum action action;
} actions[] = {{"lost:", LOST}, {"dead:", DEAD}, {"hang", HANG}, {"", RETURN}};

static void parse_action(struct rule *rule, const char *text)
{
    int i = 0;
    while (strncmp(text, actions[i].prefix, strlen(actions[i].prefix)) != 0)
        i++;
    rule->action = actions[i].action;
    text += strlen(actions[i].prefix);
    char *end;
    rule->code = (int)strtol(text, &end, 10);
    if (*end || (rule->action == HANG) != (end == text))
        sim_die("SIMGPU_FAULT: '%s' is not a code", text);
}

static void parse_rule(struct rule *rule, char *text)
{
    char *equals = strchr(text, '=');
    *rule = (struct rule){.nth = 1, .is_and_later = true, .shared = -1, .device = -1};
    if (text[0] >= '0' && text[0] <= '9' && text[1] == ':') {
        rule->device = text[0] - '0';
        text += 2;
    }
    parse_action(rule, equals ? equals + 1 : text);
    if (!equals)
        return;
    *equals = 0;
    char *mark = strpbrk(text, "@#"), *end;
    if (!mark || mark - text >= (int)sizeof rule->call)
        sim_die("SIMGPU_FAULT: '%s' is not call@N or call#N", text);
    memcpy(rule->call, text, mark - text);
    rule->nth = strtol(mark + 1, &end, 10);
    rule->is_and_later = *end == '+';
    if (rule->nth < 1 || end == mark + 1 || end[*end == '+'])
        sim_die("SIMGPU_FAULT: '%s' is not a number from 1", mark + 1);
    if (*mark == '#')
        rule->shared = (int)(rule - rules);
}

__attribute__((constructor)) static void read_rules(void)
{
    const char *text = getenv("SIMGPU_FAULT");
    char copy[4096], *rest = NULL;
    if (!text || snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        if (rule_count == RULES_MAX)
            sim_die("SIMGPU_FAULT: more than %d rules", RULES_MAX);
        parse_rule(&rules[rule_count++], one);
    }
}

static bool is_named(const struct rule *rule, const char *entry_point)
{
    return rule->call[0] ? strcmp(rule->call, entry_point) == 0
                         : strcmp(entry_point, "cuInit") != 0;
}

static bool is_there(const struct rule *rule)
{
    return rule->device < 0 || rule->device == sim_context_current_device();
}

static bool is_due(const struct rule *rule, int64_t calls)
{
    if (rule->shared >= 0) {
        struct sim_state *s = sim_state_lock();
        calls = (int64_t)++s->calls[rule->shared];
        sim_state_unlock();
    }
    return calls == rule->nth || (rule->is_and_later && calls > rule->nth);
}

/* What the rules say of this call: 0, or a code for this call alone. */
static int consult(const char *entry_point, int64_t calls)
{
    int code = 0;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (!is_named(rule, entry_point) || !is_there(rule) ||
            !is_due(rule, rule->call[0] ? calls : 1))
            continue;
        switch (rule->action) {
        case RETURN:
            code = rule->code;
            break;
        case LOST:
            lost_code = rule->code;
            break;
        case DEAD:
            dead_code = rule->code;
            break;
        case HANG:
            for (;;)
                sleep(1);
        }
    }
    return code;
}

static int standing(enum sim_call_class class)
{
    return dead_code ? dead_code : class == SIM_WORK ? lost_code : 0;
}

CUresult sim_call(const char *entry_point, enum sim_call_class class)
{
    int64_t calls = sim_stats_add(SIM_CALLS, entry_point, 1);
    int code = rule_count ? consult(entry_point, calls) : 0;
    return (CUresult)(standing(class) ? standing(class) : code);
}

int sim_call_encoder(const char *function, enum sim_call_class class)
{
    int64_t calls = sim_stats_add(SIM_CALLS, function, 1);
    int code = rule_count ? consult(function, calls) : 0;
    return standing(class) ? NVENC_GENERIC : code;
}

void sim_call_lose(CUresult code)
{
    if (!lost_code)
        lost_code = (int)code;
}
