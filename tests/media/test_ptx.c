/*
 * The PTX that is embedded fits the host's side of the same kernels: each has its entry point,
 * whose one argument is a struct of the very size. A build without a CUDA compiler says why it has
 * none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/embed.h"
#include "common/strbuf.h"
#include "pipelines/media/kernels/host.h"
#include "pipelines/media/ptx.h"

static void test_entry_points(void **state)
{
    (void)state;
    for (const struct kernel_host *k = kernel_host_table; k->name; k++) {
        struct err e = {0};
        const char *text = NULL;
        int status = ptx_find(k->name, &text, &e);
        if (!kernel_ptx[0].name) {
            assert_int_equal(status, -ERR_CONFIG);
            assert_non_null(strstr(e.msg, "nvcc"));
            assert_non_null(strstr(e.msg, "--device cpu"));
            continue;
        }
        assert_int_equal(status, 0);
        cleanup(free_ptr) char *entry = xasprintf(".entry %s(", k->name);
        cleanup(free_ptr) char *param = xasprintf("%s_param_0[%zu]", k->name, k->params_bytes);
        assert_non_null(strstr(text, entry));
        assert_non_null(strstr(text, param));
    }
}

static void test_unknown_kernel(void **state)
{
    (void)state;
    struct err e;
    const char *text = NULL;
    assert_int_equal(ptx_find("none-such", &text, &e), kernel_ptx[0].name ? -ERR_BUG : -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "none-such"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry_points),
        cmocka_unit_test(test_unknown_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
