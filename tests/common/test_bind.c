/* Table-driven binding on an example with every type: values, faults with their places, round
 * trips, ownership (under ASan), speed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/bind.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"

enum fruit { APPLE, PEAR, PLUM };
static const char *const fruit_names[] = {"apple", "pear", "plum", NULL};

struct rung {
    char *name;
    int height;
    int64_t bitrate;
    struct rational fps;
};

struct origin {
    char *country;
    double latitude;
};

struct ladder {
    char *title;
    bool is_open;
    int64_t big;
    int fruit;
    struct rational segment;
    struct origin *origin;
    struct rung *rungs;
    size_t n_rungs;
    char **notes;
    size_t n_notes;
    char **options;
    size_t n_options;
};

static const struct bind_field rung_fields[] = {
    BIND(struct rung, name, BIND_STRING),
    BIND(struct rung, height, BIND_INT, .is_required = true, .min = 2, .max = 8192),
    BIND(struct rung, bitrate, BIND_BITRATE, .min = 1000, .max = 100000000),
    BIND(struct rung, fps, BIND_RATIONAL, .fallback = "30000/1001", .max = 1000),
    {0},
};
static const char *check_rung(const void *object, const char **ret_key)
{
    const struct rung *r = object;
    *ret_key = "height";
    return r->height % 2 ? "expected an even height, got an odd one" : NULL;
}
static const struct bind_struct rung_type = {"rung", sizeof(struct rung), rung_fields, check_rung};

static const struct bind_field origin_fields[] = {
    BIND(struct origin, country, BIND_STRING, .fallback = "NO"),
    BIND(struct origin, latitude, BIND_DOUBLE, .min = -90, .max = 90),
    {0},
};
static const struct bind_struct origin_type = {"origin", sizeof(struct origin), origin_fields,
                                               NULL};

static const struct bind_field ladder_fields[] = {
    BIND(struct ladder, title, BIND_STRING),
    BIND(struct ladder, is_open, BIND_BOOL, .fallback = "true"),
    BIND(struct ladder, big, BIND_INT64),
    BIND(struct ladder, fruit, BIND_ENUM, .names = fruit_names, .fallback = "plum"),
    BIND(struct ladder, segment, BIND_RATIONAL),
    BIND_SUB(struct ladder, origin, origin_type),
    BIND_LIST(struct ladder, rungs, n_rungs, rung_type, .min = 1, .max = 2000),
    BIND(struct ladder, notes, BIND_STRINGS, .count_offset = offsetof(struct ladder, n_notes)),
    BIND(struct ladder, options, BIND_OPTIONS, .count_offset = offsetof(struct ladder, n_options),
         .fallback = "{threads: 1}"),
    {0},
};
static const struct bind_struct ladder_type = {"ladder", sizeof(struct ladder), ladder_fields,
                                               NULL};

static void free_ladder(struct ladder **l)
{
    bind_free(&ladder_type, l);
}

static struct ladder *parse(const char *text)
{
    struct ladder *l;
    struct err e = {0};
    if (bind_parse(&ladder_type, text, strlen(text), "f", ERR_CONFIG, &l, &e) < 0)
        fail_msg("%s", e.msg);
    return l;
}

static void refuses(const char *text, const char *message)
{
    struct ladder *l = (struct ladder *)1;
    struct err e = {0};
    assert_int_equal(bind_parse(&ladder_type, text, strlen(text), "f", ERR_INPUT, &l, &e),
                     -ERR_INPUT);
    assert_null(l);
    if (strcmp(e.msg, message))
        fail_msg("expected \"%s\", got \"%s\"", message, e.msg);
}

static const char full[] = "title: 'A \xC3\xA9 \"quoted\" title'\n"
                           "is_open: false\n"
                           "big: -9223372036854775808\n"
                           "fruit: pear\n"
                           "segment: 6.006\n"
                           "origin: {latitude: 59.9e0}\n"
                           "rungs:\n"
                           "  - {name: 1080, height: 1080, bitrate: 7800k, fps: 25}\n"
                           "  - {height: 360, bitrate: 0.145M}\n"
                           "notes: [one, \"\", 'null']\n"
                           "options: {x264-params: 'a=b:c', bf: 3}\n";

static void assert_full(const struct ladder *l)
{
    assert_string_equal(l->title, "A \xC3\xA9 \"quoted\" title");
    assert_false(l->is_open);
    assert_true(l->big == INT64_MIN);
    assert_int_equal(l->fruit, PEAR);
    assert_true(l->segment.num == 3003 && l->segment.den == 500);
    assert_string_equal(l->origin->country, "NO");
    assert_true(l->origin->latitude == 59.9);
    assert_int_equal(l->n_rungs, 2);
    assert_string_equal(l->rungs[0].name, "1080");
    assert_int_equal(l->rungs[0].bitrate, 7800000);
    assert_int_equal(l->rungs[0].fps.num, 25);
    assert_null(l->rungs[1].name);
    assert_int_equal(l->rungs[1].bitrate, 145000);
    assert_int_equal(l->rungs[1].fps.den, 1001);
    assert_int_equal(l->n_notes, 3);
    assert_string_equal(l->notes[2], "null");
    assert_int_equal(l->n_options, 2);
    assert_string_equal(l->options[0], "x264-params=a=b:c");
    assert_string_equal(l->options[1], "bf=3");
}

static void test_every_type_and_round_trip(void **state)
{
    (void)state;
    cleanup(free_ladder) struct ladder *l = parse(full);
    assert_full(l);
    cleanup(free_ptr) char *text = bind_dump(&ladder_type, l);
    cleanup(free_ladder) struct ladder *again = parse(text);
    assert_full(again);
    cleanup(free_ptr) char *text2 = bind_dump(&ladder_type, again);
    assert_string_equal(text, text2);
    assert_non_null(strstr(text, "\"segment\":\"3003/500\""));
    assert_non_null(strstr(text, "\"bitrate\":7800000"));
    assert_non_null(strstr(text, "\"options\":{\"x264-params\":\"a=b:c\",\"bf\":\"3\"}"));
}

static void test_copy_is_deep(void **state)
{
    (void)state;
    struct ladder *l = parse(full);
    cleanup(free_ladder) struct ladder *copy = bind_copy(&ladder_type, l);
    assert_ptr_not_equal(copy->rungs, l->rungs);
    bind_free(&ladder_type, &l);
    assert_null(l);
    bind_free(&ladder_type, &l);
    assert_full(copy);
    assert_null(bind_copy(&ladder_type, NULL));
}

static void test_defaults(void **state)
{
    (void)state;
    cleanup(free_ladder) struct ladder *l = parse("title: ~\nfruit: null\nrungs: [{height: 2}]\n");
    assert_null(l->title);
    assert_true(l->is_open);
    assert_int_equal(l->fruit, PLUM);
    assert_true(l->segment.num == 0 && l->segment.den == 1);
    assert_null(l->origin);
    assert_null(l->notes);
    assert_string_equal(l->options[0], "threads=1");
}

static void test_faults_name_their_place(void **state)
{
    (void)state;
    refuses("rungs: [{height: 1}]",
            "f:1:18: rungs[0].height: expected a whole number from 2 to 8192, got \"1\"");
    refuses("rungs: [{height: 721}]",
            "f:1:18: rungs[0].height: expected an even height, got an odd one");
    refuses("rungs:\n- height: 2\n  heigth: 3\n",
            "f:3:3: rungs[0].heigth: expected a key of rung, got \"heigth\" (did you mean "
            "\"height\"?)");
    refuses("rungs: [{height: 2}]\norigin: {zzzzzz: 1}",
            "f:2:10: origin.zzzzzz: expected one of country, latitude, got \"zzzzzz\"");
    refuses("rungs: [{}]", "f:1:9: rungs[0].height: expected a whole number from 2 to 8192, "
                           "got nothing");
    refuses("title: x", "f:1:1: rungs: expected 1 to 2000 entries, got 0");
    refuses("rungs: []", "f:1:8: rungs: expected 1 to 2000 entries, got 0");
    refuses("rungs: {}", "f:1:8: rungs: expected a list (of rung), got a map");
    refuses("rungs: [x]", "f:1:9: rungs[0]: expected a map (rung), got \"x\"");
    refuses("- 1", "f:1:1: expected a map (ladder), got a list");
    refuses("", "f:1:1: expected a map (ladder), got nothing");
    refuses("rungs: [{height: 2}]\nfruit: peer\nis_open: yes\nnotes: [[]]\noptions: {a: {}}",
            "f:2:8: fruit: expected apple, pear or plum, got \"peer\"; "
            "f:3:10: is_open: expected true or false, got \"yes\"; "
            "f:4:9: notes[0]: expected text, got a list; "
            "f:5:14: options.a: expected text, got a map");
    refuses("rungs: [{height: 2}]\ntitle: {a: 1}", "f:2:8: title: expected text, got a map");
}

static void test_numbers_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *key, *good, *bad[12];
    } cases[] = {
        {"big", "9223372036854775807", {"9223372036854775808", "1.0", "0x1", "1e3", "'1'", "--1"}},
        {"is_open", "true", {"'true'", "1", "True"}},
        {"segment", "24000/1001", {"1/0", "1/2/3", "x", "1e3", "'5 '"}},
        {"origin",
         "{latitude: -9e1}",
         {"{latitude: 90.1}", "{latitude: nan}", "{latitude: 0x1p3}", "{latitude: inf}",
          "{latitude: '1'}", "{latitude: 1,5}", "{latitude: 1e999}"}},
        {"rungs",
         "[{height: 4, bitrate: 1.5k}]",
         {"[{height: 4, bitrate: -1}]", "[{height: 4, bitrate: 1.5}]", "[{height: 4, bitrate: k}]",
          "[{height: 4, bitrate: 1kk}]", "[{height: 4, bitrate: 1 k}]",
          "[{height: 4, bitrate: 99999999999999999G}]", "[{height: 4, bitrate: 999}]",
          "[{height: 4294967298}]", "[{height: 4, fps: 1001}]", "[{height: 4, fps: -1}]"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *rest = strcmp(cases[i].key, "rungs") ? "rungs: [{height: 2}]\n" : "";
        cleanup(free_ptr) char *good = xasprintf("%s%s: %s\n", rest, cases[i].key, cases[i].good);
        cleanup(free_ladder) struct ladder *l = parse(good);
        assert_non_null(l);
        for (size_t k = 0; cases[i].bad[k]; k++) {
            cleanup(free_ptr) char *bad =
                xasprintf("%s%s: %s\n", rest, cases[i].key, cases[i].bad[k]);
            struct ladder *none;
            struct err e = {0};
            if (bind_parse(&ladder_type, bad, strlen(bad), "f", ERR_CONFIG, &none, &e) == 0)
                fail_msg("accepted: %s", bad);
            assert_non_null(strstr(e.msg, "expected"));
        }
    }
}

static void count_fault(void *arg, const char *fault)
{
    assert_non_null(strstr(fault, "expected"));
    ++*(int *)arg;
}

static void test_many_faults(void **state)
{
    (void)state;
    cleanup(strbuf_free) struct strbuf text = {0};
    strbuf_puts(&text, "rungs:\n");
    for (int i = 0; i < 50; i++)
        strbuf_puts(&text, "- {height: x}\n");
    struct ladder *l;
    struct err e = {0};
    assert_int_equal(bind_parse(&ladder_type, text.s, text.len, "f", ERR_CONFIG, &l, &e),
                     -ERR_CONFIG);
    int shown = 1;
    for (const char *p = e.msg; (p = strstr(p, "; f:")); p++)
        shown++;
    cleanup(free_ptr) char *tail = xasprintf("; and %d more faults", 50 - shown);
    assert_true(shown > 5 && shown <= 20);
    assert_string_equal(e.msg + strlen(e.msg) - strlen(tail), tail);

    cleanup(value_free) struct value *v = NULL;
    assert_int_equal(value_parse(text.s, text.len, "f", ERR_CONFIG, &v, &e), 0);
    int faults = 0;
    assert_int_equal(bind_read(&ladder_type, v, "f", ERR_CONFIG, count_fault, &faults, &l, &e),
                     -ERR_CONFIG);
    assert_int_equal(faults, 50);
    assert_string_equal(e.msg, "f: 50 faults");

    for (int i = 0; i < 1000; i++)
        strbuf_puts(&text, "- {height: x}\n");
    value_free(&v);
    assert_int_equal(value_parse(text.s, text.len, "f", ERR_CONFIG, &v, &e), 0);
    faults = 0;
    assert_true(bind_read(&ladder_type, v, "f", ERR_CONFIG, count_fault, &faults, &l, &e) < 0);
    assert_int_equal(faults, 100);
}

static void test_written_text_is_always_valid(void **state)
{
    (void)state;
    struct rung rung = {.name = (char *)"ab\xFF\xC3"
                                        "c",
                        .height = 2};
    cleanup(free_ptr) char *text = bind_dump(&rung_type, &rung);
    assert_string_equal(text, "{\"name\":\"ab\xEF\xBF\xBD\xEF\xBF\xBD"
                              "c\",\"height\":2,"
                              "\"fps\":\"0/1\"}");
    struct origin origin = {.latitude = NAN};
    cleanup(free_ptr) char *none = bind_dump(&origin_type, &origin);
    assert_string_equal(none, "{}");
}

/* An absent field whose limits exclude zero stays absent through a round trip. */
static void test_absent_numbers_survive(void **state)
{
    (void)state;
    cleanup(free_ladder) struct ladder *l = parse("rungs: [{height: 2}]");
    cleanup(free_ptr) char *text = bind_dump(&ladder_type, l);
    assert_null(strstr(text, "bitrate"));
    cleanup(free_ladder) struct ladder *again = parse(text);
    assert_int_equal(again->rungs[0].bitrate, 0);
}

/* A manifest of 2000 segments, some 300 KB, is read in a few milliseconds; the bound is wide
 * because machines and sanitizers are slow, yet catches anything quadratic. */
static void test_is_fast(void **state)
{
    (void)state;
    struct ladder l = {.n_rungs = 2000, .rungs = xcalloc(2000, sizeof(struct rung))};
    for (size_t i = 0; i < l.n_rungs; i++)
        l.rungs[i] = (struct rung){xasprintf("%0100zu.m4s", i), 1080, 7800000, {30000, 1001}};
    cleanup(free_ptr) char *text = bind_dump(&ladder_type, &l);
    int64_t best = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        int64_t start = clock_mono_us();
        cleanup(free_ladder) struct ladder *read = parse(text);
        int64_t took = clock_mono_us() - start;
        best = took < best ? took : best;
        assert_int_equal(read->n_rungs, 2000);
    }
    print_message("%zu bytes in %d us\n", strlen(text), (int)best);
    assert_true(best < 200000);
    for (size_t i = 0; i < l.n_rungs; i++)
        free(l.rungs[i].name);
    free(l.rungs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_and_round_trip),
        cmocka_unit_test(test_copy_is_deep),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_faults_name_their_place),
        cmocka_unit_test(test_numbers_are_strict),
        cmocka_unit_test(test_many_faults),
        cmocka_unit_test(test_written_text_is_always_valid),
        cmocka_unit_test(test_absent_numbers_survive),
        cmocka_unit_test(test_is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
