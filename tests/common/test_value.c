/* The value tree: what is read, where it says it stood, what is refused; JSON against jansson. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "common/value.h"

static struct value *parse(const char *text)
{
    struct value *v;
    struct err e = {0};
    if (value_parse(text, strlen(text), "t", ERR_CONFIG, &v, &e) < 0)
        fail_msg("%s", e.msg);
    return v;
}

static void assert_refused(const char *text, size_t size, const char *message)
{
    struct value *v = (struct value *)1;
    struct err e = {0};
    assert_int_equal(value_parse(text, size, "t", ERR_INPUT, &v, &e), -ERR_INPUT);
    assert_null(v);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.msg, message))
        fail_msg("expected \"%s\" in \"%s\"", message, e.msg);
}

static void refuses(const char *text, const char *message)
{
    assert_refused(text, strlen(text), message);
}

static void assert_at(const struct value *v, enum value_kind kind, int line, int column)
{
    assert_non_null(v);
    assert_int_equal(v->kind, kind);
    assert_int_equal(v->line, line);
    assert_int_equal(v->column, column);
}

static void test_yaml_tree(void **state)
{
    (void)state;
    cleanup(value_free) struct value *v = parse("# comment\n"
                                                "name: h264\n"
                                                "list:\n"
                                                "  - height: 1080\n"
                                                "    note: 'null'\n"
                                                "  - ~\n"
                                                "empty:\n"
                                                "flow: {a: [1, \"x\\ty\"]}\n");
    assert_at(v, VALUE_MAP, 2, 1);
    assert_int_equal(v->n, 4);
    assert_string_equal(v->keys[0], "name");
    assert_at(v->key_at[1], VALUE_SCALAR, 3, 1);
    assert_at(value_get(v, "name"), VALUE_SCALAR, 2, 7);
    const struct value *list = value_get(v, "list");
    assert_at(list, VALUE_SEQ, 4, 3);
    assert_string_equal(value_get(list->items[0], "height")->scalar, "1080");
    assert_false(value_get(list->items[0], "height")->is_quoted);
    assert_true(value_get(list->items[0], "note")->is_quoted);
    assert_at(value_get(list->items[0], "note"), VALUE_SCALAR, 5, 11);
    assert_at(list->items[1], VALUE_NULL, 6, 5);
    assert_int_equal(value_get(v, "empty")->kind, VALUE_NULL);
    assert_string_equal(value_get(value_get(v, "flow"), "a")->items[1]->scalar, "x\ty");
    assert_null(value_get(v, "absent"));
    assert_null(value_get(list, "name"));
    assert_null(value_get(NULL, "name"));
}

static void test_small_documents(void **state)
{
    (void)state;
    static const char *const empty[] = {"", "\n\n", "# only a comment\n", "---\n...\n"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        cleanup(value_free) struct value *v = parse(empty[i]);
        assert_int_equal(v->kind, VALUE_NULL);
        assert_true(v->line >= 1 && v->column >= 1);
    }
    cleanup(value_free) struct value *scalar = parse("\xEF\xBB\xBF"
                                                     "7");
    assert_string_equal(scalar->scalar, "7");
    cleanup(value_free) struct value *braces = parse("{}");
    assert_at(braces, VALUE_MAP, 1, 1);
    assert_int_equal(braces->n, 0);
}

static void test_yaml_refusals(void **state)
{
    (void)state;
    refuses("a: 1\nb: 2\na: 3\n", "t:3:1: a: expected each key once, got it again (first at 1:1)");
    refuses("a: &x 1\n", "t:1:4: expected plain values, got an anchor");
    refuses("a: [&x {}]\n", "got an anchor");
    refuses("a: *x\n", "t:1:4: expected plain values, got an alias");
    refuses("a: !!int 1\n", "got a tag");
    refuses("a: !x [1]\n", "got a tag");
    refuses("a: 1\n---\nb: 2\n", "t:2:1: expected plain values, got a second document");
    refuses("[a, b]: 1\n", "t:1:1: expected a key, got a list");
    refuses("~: 1\n", "expected a key, got nothing");
    refuses("a: \"x\\0y\"\n", "t:1:4: expected text, got a zero byte");
    refuses("a: 1\n  b: 2\n", "t:2:");
    refuses("a: [1, 2\n", "expected YAML, got a fault");
    refuses("\xC3\xA9: 1\nab\xC3: 2\n", "t:2:3: expected UTF-8 text, got byte 0xC3");
    refuses("ok: 1\nx: \x01\n", "t:2:4: expected YAML, got a fault");
}

static void test_limits(void **state)
{
    (void)state;
    cleanup(strbuf_free) struct strbuf deep = {0};
    for (int i = 0; i < VALUE_DEPTH_MAX; i++)
        strbuf_puts(&deep, "[");
    for (int i = 0; i < VALUE_DEPTH_MAX; i++)
        strbuf_puts(&deep, "]");
    cleanup(value_free) struct value *v = parse(deep.s);
    assert_int_equal(v->n, 1);
    cleanup(free_ptr) char *deeper = xasprintf("[%s]", deep.s);
    refuses(deeper, "t:1:33: expected at most 32 levels, got more");

    char *big = xcalloc(1, VALUE_SIZE_MAX + 1);
    memset(big, ' ', VALUE_SIZE_MAX + 1);
    assert_refused(big, VALUE_SIZE_MAX + 1, "expected at most 67108864 bytes, got 67108865");
    memset(big, ',', 2 * (size_t)VALUE_NODES_MAX + 2);
    big[0] = '[';
    for (size_t i = 1; i <= 2 * (size_t)VALUE_NODES_MAX; i += 2)
        big[i] = '1';
    big[2 * (size_t)VALUE_NODES_MAX] = ']';
    assert_refused(big, 2 * (size_t)VALUE_NODES_MAX + 1, "expected at most 4194304 values");
    assert_refused(big, VALUE_YAML_SIZE_MAX + 1, "t:1:1048578: expected JSON, got a fault in it");
    memset(big, 'a', VALUE_YAML_SIZE_MAX + 1);
    assert_refused(big, VALUE_YAML_SIZE_MAX + 1,
                   "t: expected JSON, or YAML of at most 1048576 bytes, got 1048577");
    cleanup(value_free) struct value *yaml = NULL;
    assert_int_equal(value_parse(big, VALUE_YAML_SIZE_MAX, "t", ERR_INPUT, &yaml, NULL), 0);
    free(big);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void assert_same(const struct value *v, const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT: {
        assert_int_equal(v->kind, VALUE_MAP);
        assert_int_equal(v->n, json_object_size(j));
        const char *key;
        json_t *item;
        size_t i = 0;
        json_object_foreach((json_t *)j, key, item)
        {
            assert_string_equal(v->keys[i], key);
            assert_same(v->items[i++], item);
        }
        break;
    }
    case JSON_ARRAY:
        assert_int_equal(v->kind, VALUE_SEQ);
        assert_int_equal(v->n, json_array_size(j));
        for (size_t i = 0; i < v->n; i++)
            assert_same(v->items[i], json_array_get(j, i));
        break;
    case JSON_STRING:
        assert_int_equal(v->kind, VALUE_SCALAR);
        assert_true(v->is_quoted);
        assert_string_equal(v->scalar, json_string_value(j));
        break;
    case JSON_NULL:
        assert_int_equal(v->kind, VALUE_NULL);
        break;
    case JSON_INTEGER:
        assert_false(v->is_quoted);
        assert_int_equal(strtoll(v->scalar, NULL, 10), json_integer_value(j));
        break;
    case JSON_REAL:
        assert_true(strtod(v->scalar, NULL) == json_real_value(j));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        assert_string_equal(v->scalar, json_is_true(j) ? "true" : "false");
    }
}

static const char json_sample[] =
    "\t{ \"slash\\/\": \"a\\/b\", \"escapes\": \"\\\"\\\\\\b\\f\\n\\r\\t\",\r\n"
    "  \"pair\": \"\\ud83d\\ude00 \\u00e9\\u20AC\", \"raw\": \"\xF0\x9F\x98\x80 "
    "\x7F\xEF\xBF\xBE\",\n"
    "\t\"tab\":\t[1, -2.5e+3, 0, -0.1, 1E2, true, false, null, [], {}, \"\", \"null\", \"12\"],\n"
    "  \"yaml\": \"- a: b # c\", \"colon\":\"x\", \"big\": 9223372036854775807}\n";

static void test_json_like_jansson(void **state)
{
    (void)state;
    json_t *j = json_loads(json_sample, 0, NULL);
    assert_non_null(j);
    cleanup(value_free) struct value *v = parse(json_sample);
    assert_same(v, j);
    json_decref(j);
    assert_at(v, VALUE_MAP, 1, 2);
    assert_at(value_get(v, "escapes"), VALUE_SCALAR, 1, 34);
    assert_at(value_get(v, "tab")->items[1], VALUE_SCALAR, 3, 13);
}

static void test_json_long_strings(void **state)
{
    (void)state;
    size_t n = 100000;
    cleanup(free_ptr) char *s = xcalloc(1, n + 1);
    for (size_t i = 0; i < n; i++)
        s[i] = "a\"\\\n\t: #"[i % 8];
    json_t *j = json_object();
    json_object_set_new(j, s, json_string(s)); /* the key is long as well */
    cleanup(free_ptr) char *text = json_dumps(j, JSON_ENSURE_ASCII);
    cleanup(value_free) struct value *v = parse(text);
    assert_same(v, j);
    json_decref(j);
}

/* Damaged JSON is never read as something else than jansson reads, and never crashes. */
static void test_json_damaged(void **state)
{
    (void)state;
    size_t n = strlen(json_sample);
    unsigned seed = 12345;
    char copy[sizeof json_sample];
    int both = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, json_sample, sizeof copy);
        seed = seed * 1103515245 + 12345;
        size_t at = (seed >> 8) % n;
        seed = seed * 1103515245 + 12345;
        copy[at] = "{}[]\",:\\u0e-.5 tn\n\x80\x01"[(seed >> 8) % 20];
        json_t *j = json_loads(copy, JSON_REJECT_DUPLICATES, NULL);
        struct value *v = NULL;
        int rc = value_parse(copy, n, "t", ERR_INPUT, &v, NULL);
        if (j) {
            assert_int_equal(rc, 0);
            assert_same(v, j);
            both++;
        }
        json_decref(j);
        value_free(&v);
    }
    assert_true(both > 100 && both < 19900);
}

static void test_json_refusals(void **state)
{
    (void)state;
    refuses("{\"a\": 1, \"b\": 2, \"a\": 3}", "t:1:18: a: expected each key once");
    refuses("{\"a\": \"\\ud800\"}", "t:1:");
    refuses("{\"a\": \"\\u0000\"}", "zero byte");
    refuses("{\"a\": 1", "t:2:1: expected YAML, got a fault");
    refuses("{\"a\": 1} x", "t:1:");
}

static void test_load(void **state)
{
    (void)state;
    struct value *v;
    struct err e = {0};
    assert_int_equal(value_load("/nonexistent.yaml", &v, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "/nonexistent.yaml: cannot open: No such file"));
    assert_int_equal(value_load("/", &v, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "directory"));
    char path[] = "/tmp/test_value_XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "a: 1\nb: 2\n", 10), 10);
    close(fd);
    assert_int_equal(value_load(path, &v, &e), 0);
    assert_int_equal(v->n, 2);
    value_free(&v);
    assert_null(v);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_tree),
        cmocka_unit_test(test_small_documents),
        cmocka_unit_test(test_yaml_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_json_like_jansson),
        cmocka_unit_test(test_json_long_strings),
        cmocka_unit_test(test_json_damaged),
        cmocka_unit_test(test_json_refusals),
        cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
