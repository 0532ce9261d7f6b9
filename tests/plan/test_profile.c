#include "fixture.h"

#include <unistd.h>

static void test_builtin_ladders(void **state)
{
    (void)state;
    static const struct {
        const char *name, *encoder;
        size_t rungs;
    } expected[] = {{"av1", "libsvtav1", 6},
                    {"h264", "libx264", 9},
                    {"h264-fast", "libx264", 4},
                    {"hevc", "libx265", 12}};
    size_t n = 0;
    const char *name = NULL;
    while (profile_builtin_text(n, &name))
        n++;
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        cleanup(fixture_free_profile) struct profile *p = NULL;
        struct err e = {0};
        if (profile_load(expected[i].name, &p, &e) < 0)
            fail_msg("%s", e.msg);
        assert_string_equal(p->name, expected[i].name);
        assert_string_equal(p->encoder, expected[i].encoder);
        assert_int_equal(p->n_renditions, expected[i].rungs);
        assert_non_null(p->description);
        assert_true(p->n_audio >= 1);
        assert_int_equal(rational_cmp(p->segment, (struct rational){6, 1}), 0);
        assert_int_equal(rational_cmp(p->gop, (struct rational){2, 1}), 0);
    }
}

static void test_h264_is_apples_table(void **state)
{
    (void)state;
    static const int table[][4] = {
        {416, 234, 145, 30},  {640, 360, 365, 30},   {768, 432, 730, 30},
        {768, 432, 1100, 0},  {960, 540, 2000, 0},   {1280, 720, 3000, 0},
        {1280, 720, 4500, 0}, {1920, 1080, 6000, 0}, {1920, 1080, 7800, 0}};
    cleanup(fixture_free_profile) struct profile *p = NULL;
    assert_int_equal(profile_load("h264", &p, NULL), 0);
    for (size_t i = 0; i < 9; i++) {
        const struct profile_rendition *r = &p->renditions[i];
        assert_int_equal(r->width, table[i][0]);
        assert_int_equal(r->height, table[i][1]);
        assert_int_equal(r->bitrate, table[i][2] * 1000);
        assert_int_equal(r->fps_policy, table[i][3] ? FPS_CAP : FPS_SOURCE);
        assert_int_equal(r->fps.num, table[i][3]);
    }
}

static void test_record_is_read_back_alike(void **state)
{
    (void)state;
    for (size_t i = 0;; i++) {
        const char *name;
        if (!profile_builtin_text(i, &name))
            break;
        cleanup(fixture_free_profile) struct profile *p = NULL, *again = NULL;
        assert_int_equal(profile_load(name, &p, NULL), 0);
        cleanup(free_ptr) char *text = bind_dump(&profile_type, p);
        again = fixture_read(&profile_type, text);
        cleanup(free_ptr) char *second = bind_dump(&profile_type, again);
        assert_string_equal(text, second);
    }
}

static void test_unknown_name_lists_the_known(void **state)
{
    (void)state;
    struct profile *p = NULL;
    struct err e = {0};
    assert_int_equal(profile_load("h265", &p, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "h264-fast"));
    assert_non_null(strstr(e.msg, "hevc"));
    assert_int_equal(profile_load("/nonexistent/x.yaml", &p, &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "/nonexistent/x.yaml"));
}

static void test_file_and_its_name(void **state)
{
    (void)state;
    char path[] = "/tmp/night-XXXXXX.yaml";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    static const char text[] = "encoder: libx264\nrenditions: [{height: 720, bitrate: 2.5M}]\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    cleanup(fixture_free_profile) struct profile *p = NULL;
    struct err e = {0};
    int rc = profile_load(path, &p, &e);
    unlink(path);
    if (rc < 0)
        fail_msg("%s", e.msg);
    assert_true(!strncmp(p->name, "night-", 6) && !strchr(p->name, '.'));
    assert_int_equal(p->renditions[0].bitrate, 2500000);
    assert_true(p->renditions[0].crf < 0);
    assert_string_equal(p->pix_fmt, "yuv420p");
}

/* Each fault is found, and says where. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{encoder: x, renditions: [{bitrate: 1M}]}", "renditions[0].height: expected a height"},
        {"{encoder: x, renditions: [{height: 720}]}", "renditions[0].bitrate: expected a bitrate"},
        {"{encoder: x, renditions: [{height: 720, bitrate: 1M, crf: 20}]}", "renditions[0].crf"},
        {"{encoder: x, renditions: [{height: 720, bitrate: 2M, maxrate: 1M}]}", "[0].maxrate"},
        {"{encoder: x, renditions: [{height: 720, crf: 20, fps: 30}]}",
         "[0].fps: expected fps_pol"},
        {"{encoder: x, renditions: [{height: 720, crf: 20, fps_policy: cap}]}",
         "[0].fps: expected"},
        {"{encoder: x, renditions: [{height: 720, crf: 20, name: ../up}]}", "[0].name: expected"},
        {"{encoder: x, renditions: [{height: 99999, crf: 20}]}", "[0].height"},
        {"{encoder: x, renditions: [{name: a, height: 720, crf: 20}, {name: a, height: 360, crf: "
         "20}]}",
         "renditions: expected names that differ"},
        {"{renditions: [{height: 720, crf: 20}]}", "encoder: expected an encoder"},
        {"{encoder: x}", "renditions: expected a rendition or an audio"},
        {"{encoder: x, gop: 4, segment: 6, renditions: [{height: 720, crf: 20}]}",
         "segment: expected a whole multiple of gop"},
        {"{encoder: x, gop: 0, renditions: [{height: 720, crf: 20}]}", "gop: expected"},
        {"{encoder: x, gop: 0.5, segment: 0.5, renditions: [{height: 720, crf: 20}]}",
         "segment: expected 1 to 60"},
        {"{encoder: x, preset: fast, presett: slow, renditions: [{height: 720, crf: 20}]}",
         "presett"},
        {"{encoder: x, renditions: [{height: 720, crf: 20}], thumbnails: {every: 0.5}}",
         "thumbnails.every: expected 1 to 3600 seconds"},
        {"{encoder: x, renditions: [{height: 720, crf: 20}], thumbnails: {every: 2h}}",
         "thumbnails.every"},
        {"{encoder: x, renditions: [{height: 720, crf: 20}], thumbnails: {height: 8}}",
         "thumbnails.height"},
        {"{encoder: x, renditions: [{height: 720, crf: 20}], thumbnails: {width: 160}}",
         "thumbnails.width"},
        {"{audio: [{bitrate: 96k}], thumbnails: {}}", "thumbnails: expected renditions"},
        {"{encoder: x, renditions: [{name: thumbnails, height: 720, crf: 20}], thumbnails: {}}",
         "thumbnails: expected no rendition of the name thumbnails"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct profile *p = NULL;
        struct err e = {0};
        int rc = bind_parse(&profile_type, wrong[i][0], strlen(wrong[i][0]), "p.yaml", ERR_CONFIG,
                            &p, &e);
        if (rc != -ERR_CONFIG || !strstr(e.msg, wrong[i][1]) || strncmp(e.msg, "p.yaml:1:", 9))
            fail_msg("%s: %s", wrong[i][0], rc < 0 ? e.msg : "accepted");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_ladders),
        cmocka_unit_test(test_h264_is_apples_table),
        cmocka_unit_test(test_record_is_read_back_alike),
        cmocka_unit_test(test_unknown_name_lists_the_known),
        cmocka_unit_test(test_file_and_its_name),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
