/* Which files and manifests of a session the agent's gate lets through: those of thumbnails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "worker/gate.h"

enum { LIMIT = 1000 };

#define PLAN(rest)                                                                              \
    "{\"segments\": \"ts\", \"time_base\": \"1/25\", \"segment\": 1, \"gop\": 1, \"cfr\": 25, " \
    "\"renditions\": [{\"name\": \"v\", \"width\": 64, \"height\": 36, \"time_base\": "         \
    "\"1/25\"}]" rest "}"
#define THUMBNAILS ", \"thumbnails\": {\"every\": 10, \"width\": 160, \"height\": 90}"

/* One second of video, with the thumbnail of time 0. */
#define MANIFEST(thumbnail)                                                                       \
    "{\"chunk\": 0, \"tracks\": [{\"rendition\": \"v\", \"codecs\": \"avc1\", "                   \
    "\"parameter_sets\": \"f\", \"time_base\": \"1/25\", \"start\": 0, \"end\": 25, \"frames\": " \
    "25, \"keyframes\": 1, \"width\": 64, \"height\": 36, \"segments\": [{\"index\": 0, "         \
    "\"start\": 0, \"duration\": 25, \"frames\": 25, \"keyframes\": 1, \"bytes\": 500, "          \
    "\"name\": \"000000-ab.ts\"}]}]" thumbnail "}"
#define THUMBNAIL(bytes)                                                               \
    ", \"thumbnails\": [{\"index\": 0, \"start\": 0, \"bytes\": " bytes ", \"name\": " \
    "\"000000-cd.jpg\"}]"

static struct gate *open_gate(const char *plan)
{
    static struct lease lease;
    struct gate *g = NULL;
    struct err e;
    lease = (struct lease){
        .kind = TASK_VIDEO,
        .plan = (char *)plan,
        .payload = (char *)"{\"index\": 0, \"first_segment\": 0, \"end_segment\": 1, "
                           "\"seek_pts\": 0}",
    };
    if (gate_open(&lease, &g, &e) < 0)
        fail_msg("%s", e.msg);
    return g;
}

static void test_files(void **state)
{
    (void)state;
    struct err e;
    struct gate *with = open_gate(PLAN(THUMBNAILS));
    assert_int_equal(gate_add_file(with, "thumbnails/000000-cd.jpg", 40, LIMIT, &e), 0);
    assert_int_equal(gate_add_file(with, "thumbnails/000000-cd.jpg", 40, LIMIT, &e), -ERR_BUG);
    assert_int_equal(gate_add_file(with, "thumbnail/000001-cd.jpg", 40, LIMIT, &e), -ERR_BUG);
    assert_int_equal(gate_add_file(with, "thumbnails2/000001-cd.jpg", 40, LIMIT, &e), -ERR_BUG);
    assert_int_equal(gate_add_file(with, "thumbnails/000001-cd.jpg", LIMIT, LIMIT, &e), -ERR_INPUT);
    gate_free(&with);
    struct gate *without = open_gate(PLAN(""));
    assert_int_equal(gate_add_file(without, "thumbnails/000000-cd.jpg", 40, LIMIT, &e), -ERR_BUG);
    assert_non_null(strstr(e.msg, "not of this task"));
    gate_free(&without);
}

static void check(const char *plan, bool is_delivered, const char *manifest, const char *expected)
{
    struct err e = {.msg = "accepted"};
    struct gate_pins pins;
    struct gate *g = open_gate(plan);
    assert_int_equal(gate_add_file(g, "v/000000-ab.ts", 500, LIMIT, &e), 0);
    if (is_delivered)
        assert_int_equal(gate_add_file(g, "thumbnails/000000-cd.jpg", 40, LIMIT, &e), 0);
    int rc = gate_check(g, manifest, &pins, &e);
    if (expected ? rc != -ERR_BUG || !strstr(e.msg, expected) : rc != 0)
        fail_msg("expected %s: %s", expected ? expected : "acceptance", e.msg);
    gate_pins_clear(&pins);
    gate_free(&g);
}

static void test_manifests(void **state)
{
    (void)state;
    check(PLAN(THUMBNAILS), true, MANIFEST(THUMBNAIL("40")), NULL);
    check(PLAN(THUMBNAILS), false, MANIFEST(THUMBNAIL("40")), "which was not delivered");
    check(PLAN(THUMBNAILS), true, MANIFEST(THUMBNAIL("41")), "41 bytes, 40 were delivered");
    check(PLAN(THUMBNAILS), true, MANIFEST(""), "thumbnail 0 is missing");
    check(PLAN(""), false, MANIFEST(THUMBNAIL("40")), "planned none");
    check(PLAN(""), false, MANIFEST(""), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_manifests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
