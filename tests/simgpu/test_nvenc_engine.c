/* The modelled engines: how many sessions make them full, within a process and across processes,
 * what NVML shows of it, and what becomes of the sessions of a process that is killed. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "tests/simgpu/nvml.h"
#include "tests/support/nvenc_clip.h"
#include "tests/support/scratch.h"
#include "tests/support/simgpu.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Two engines, slow enough that a busy machine keeps up with them. */
enum { WIDTH = 160, HEIGHT = 96, ENGINES = 2, ENGINE_FPS = 30, PICTURES = 20, SESSIONS_MAX = 4 };
enum { TRIES = 3 };

static const struct nvenc_clip_options options = {.encoder = "h264_nvenc",
                                                  .options = "bf=0:b=200k",
                                                  .format = AV_PIX_FMT_NV12,
                                                  .width = WIDTH,
                                                  .height = HEIGHT};

/* --- in the child ---------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *encode_one(void *arg)
{
    nvenc_clip_encode(arg, PICTURES);
    return NULL;
}

/* Pictures per second of `n` sessions at once. */
static double rate_of(int n)
{
    struct nvenc_clip clips[SESSIONS_MAX];
    pthread_t threads[SESSIONS_MAX];
    for (int i = 0; i < n; i++)
        nvenc_clip_open(&clips[i], &options);
    double start = now_s();
    for (int i = 0; i < n; i++)
        nvenc_check(pthread_create(&threads[i], NULL, encode_one, &clips[i]) == 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    double rate = n * PICTURES / (now_s() - start);
    for (int i = 0; i < n; i++)
        nvenc_clip_close(&clips[i]);
    return rate;
}

/* NVML's word on the encoder, through the library as any program finds it. */
static unsigned encoder_utilisation(void)
{
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    nvenc_check(lib, "%s", dlerror());
    nvmlReturn_t (*init)(void) = dlsym(lib, "nvmlInit_v2");
    nvmlReturn_t (*get)(unsigned, nvmlDevice_t *) = dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
    nvmlReturn_t (*utilisation)(nvmlDevice_t, unsigned *, unsigned *) =
        dlsym(lib, "nvmlDeviceGetEncoderUtilization");
    nvmlDevice_t device = NULL;
    unsigned percent = 0, period_us;
    nvenc_check(init() == NVML_SUCCESS && get(0, &device) == NVML_SUCCESS);
    nvenc_check(utilisation(device, &percent, &period_us) == NVML_SUCCESS);
    return percent;
}

static double ideal_rate(int sessions)
{
    return ENGINE_FPS * (sessions < ENGINES ? sessions : ENGINES);
}

static bool is_near(double rate, int sessions)
{
    return rate > 0.8 * ideal_rate(sessions);
}

static bool is_too_fast(double rate, int sessions)
{
    return rate > 1.1 * ideal_rate(sessions);
}

/* A rate may fall short once, when the machine is busy; it may never exceed the engines'. */
static double check_rate(int n)
{
    double rate = 0;
    for (int i = 0; i < TRIES && !is_near(rate, n); i++) {
        rate = rate_of(n);
        nvenc_check(!is_too_fast(rate, n), "%d sessions: %.1f pictures/s", n, rate);
    }
    nvenc_check(is_near(rate, n), "%d sessions: %.1f pictures/s", n, rate);
    return rate;
}

static int threads(void)
{
    double rate = 0;
    nvenc_check(encoder_utilisation() == 0);
    for (int n = 1; n <= SESSIONS_MAX; n++)
        rate = check_rate(n);
    unsigned percent = encoder_utilisation();
    double expect = 100 * rate / ideal_rate(SESSIONS_MAX);
    nvenc_check(percent > expect - 15 && percent <= 100, "%u %%, not %.0f", percent, expect);
    return 0;
}

/* A file that is there as a whole or not at all. */
static void write_file(const char *path, double start, double stop)
{
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "we");
    nvenc_check(f, "%s", part);
    fprintf(f, "%f %f", start, stop);
    nvenc_check(fclose(f) == 0 && rename(part, path) == 0);
}

/* Opens a session, says so by the file READY, encodes once GO is there, and says by DONE when. */
static int one_of_many(void)
{
    struct nvenc_clip c;
    nvenc_clip_open(&c, &options);
    write_file(getenv("READY"), 0, 0);
    while (access(getenv("GO"), F_OK) != 0)
        usleep(1000);
    double start = now_s();
    nvenc_clip_encode(&c, PICTURES);
    write_file(getenv("DONE"), start, now_s());
    nvenc_clip_close(&c);
    return 0;
}

/* Gives a slow engine work for a long time and never takes it. */
static int stuck(void)
{
    struct nvenc_clip c;
    nvenc_clip_open(&c, &options);
    write_file(getenv("READY"), 0, 0);
    nvenc_clip_encode(&c, PICTURES);
    nvenc_check(false, "the engine was faster than it should be");
    return 0;
}

/* The engine is free, and so are the only session and its memory. */
static int after(void)
{
    struct nvenc_clip c;
    nvenc_clip_open(&c, &options);
    double start = now_s();
    nvenc_clip_encode(&c, 1);
    nvenc_check(now_s() - start < 4, "%f s", now_s() - start);
    nvenc_clip_close(&c);
    return 0;
}

static const struct simgpu_part parts[] = {
    {"threads", threads}, {"one_of_many", one_of_many}, {"stuck", stuck}, {"after", after}, {0},
};

/* --- in the test ----------------------------------------------------------------------------- */

static void need(const char *encoder)
{
    if (nvenc_clip_can(encoder))
        return;
    print_message("skipped: the simulated NVENC or libav's %s is not here\n", encoder);
    skip();
}

static void must(const char *part, const char *const settings[])
{
    assert_int_equal(simgpu_run(part, settings, NULL), 0);
}

/* Settings that live as long as the test: each is "NAME=value" as printf makes it. */
struct settings {
    char text[8][512];
    const char *list[9];
    int n;
};

__attribute__((format(printf, 2, 3))) static void add(struct settings *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->text[s->n], sizeof s->text[0], format, args);
    va_end(args);
    s->list[s->n] = s->text[s->n];
    s->n++;
}

static void add_engines(struct settings *s, const char *state_file)
{
    add(s, "SIMGPU_NVENC_ENGINES=%d", ENGINES);
    add(s, "SIMGPU_NVENC_MPPS=%f", WIDTH * HEIGHT * ENGINE_FPS / 1e6);
    add(s, "SIMGPU_STATE=%s", state_file);
}

static void rate_is_flat_from_the_knee_on(void **state)
{
    (void)state;
    need("h264_nvenc");
    struct settings s = {.n = 0};
    add_engines(&s, scratch_file("threads.state"));
    must("threads", s.list);
}

static void wait_for(const char *path)
{
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++)
        usleep(10000);
    assert_int_equal(access(path, F_OK), 0);
}

/* A path in the scratch directory that no other call gives. */
static void new_path(char ret[256])
{
    static int calls;
    char name[32];
    snprintf(name, sizeof name, "file.%d", calls++);
    snprintf(ret, 256, "%s", scratch_file(name));
}

static double rate_of_processes(int n)
{
    pid_t pids[SESSIONS_MAX];
    char go[256], ready[SESSIONS_MAX][256], done[SESSIONS_MAX][256];
    new_path(go);
    for (int i = 0; i < n; i++) {
        struct settings s = {.n = 0};
        new_path(ready[i]);
        new_path(done[i]);
        add_engines(&s, scratch_file("processes.state"));
        add(&s, "GO=%s", go);
        add(&s, "READY=%s", ready[i]);
        add(&s, "DONE=%s", done[i]);
        pids[i] = simgpu_start("one_of_many", s.list);
    }
    for (int i = 0; i < n; i++)
        wait_for(ready[i]);
    write_file(go, 0, 0);
    double first = 1e300, last = 0;
    for (int i = 0; i < n; i++) {
        double start = 0, stop = 0;
        assert_int_equal(simgpu_wait(pids[i], NULL), 0);
        FILE *f = fopen(done[i], "re");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lf %lf", &start, &stop), 2);
        fclose(f);
        first = start < first ? start : first;
        last = stop > last ? stop : last;
    }
    return n * PICTURES / (last - first);
}

static void rate_is_flat_across_processes(void **state)
{
    (void)state;
    need("h264_nvenc");
    for (int n = 1; n <= SESSIONS_MAX; n++) {
        double rate = 0;
        for (int i = 0; i < TRIES && !is_near(rate, n); i++) {
            rate = rate_of_processes(n);
            assert_false(is_too_fast(rate, n));
        }
        if (!is_near(rate, n))
            fail_msg("%d processes: %.1f pictures/s", n, rate);
    }
}

/* An engine that needs 2 s a picture has 40 s of work when its only process is killed. */
static void killed_session_frees_its_engine(void **state)
{
    (void)state;
    need("h264_nvenc");
    struct settings s = {.n = 0};
    char ready[256];
    new_path(ready);
    add(&s, "SIMGPU_NVENC_ENGINES=1");
    add(&s, "SIMGPU_NVENC_MPPS=%f", WIDTH * HEIGHT / 2e6);
    add(&s, "SIMGPU_MAX_SESSIONS=1");
    add(&s, "SIMGPU_MEM_MIB=600"); /* no room for two */
    add(&s, "SIMGPU_STATE=%s", scratch_file("killed.state"));
    add(&s, "READY=%s", ready);
    pid_t pid = simgpu_start("stuck", s.list);
    wait_for(ready);
    usleep(300000); /* it has given some pictures by now */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(simgpu_wait(pid, NULL), 128 + SIGKILL);
    must("after", s.list);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_is_flat_from_the_knee_on),
        cmocka_unit_test(rate_is_flat_across_processes),
        cmocka_unit_test(killed_session_frees_its_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return simgpu_main(argc, argv, parts, run_all);
}
