/* When leases are renewed, and when they are given up. Times in seconds, written as microseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/lease_keeper.h"

#define S(seconds) ((int64_t)((seconds)*1e6))

static const struct lease_keeper_limits limits = {S(30), S(60), S(600)};

static void test_renewals(void **unused)
{
    (void)unused;
    struct lease_keeper k;
    lease_keeper_init(&k, &limits, S(100));
    assert_int_equal(lease_keeper_check(&k, S(109.9)), KEEPER_WAIT);
    assert_int_equal(lease_keeper_due_us(&k), S(110));
    assert_int_equal(lease_keeper_check(&k, S(110)), KEEPER_RENEW);
    lease_keeper_renewed(&k, S(111));
    assert_int_equal(lease_keeper_check(&k, S(120.9)), KEEPER_WAIT);
    assert_int_equal(lease_keeper_check(&k, S(121)), KEEPER_RENEW);
    lease_keeper_retry(&k, S(122));
    assert_int_equal(lease_keeper_check(&k, S(121.5)), KEEPER_WAIT);
    assert_int_equal(lease_keeper_check(&k, S(122)), KEEPER_RENEW);
}

/* Messages alone are no progress: the numbers have to grow. */
static void test_hang(void **unused)
{
    (void)unused;
    struct lease_keeper k;
    lease_keeper_init(&k, &limits, 0);
    lease_keeper_work(&k, true, S(5));
    lease_keeper_progress(&k, 1, 0, S(10));
    for (int t = 10; t < 70; t++) {
        lease_keeper_progress(&k, 1, 0, S(t));
        assert_int_not_equal(lease_keeper_check(&k, S(t)), KEEPER_HUNG);
    }
    assert_int_equal(lease_keeper_check(&k, S(70)), KEEPER_HUNG);
    lease_keeper_progress(&k, 1, 1, S(70));
    assert_int_not_equal(lease_keeper_check(&k, S(129.9)), KEEPER_HUNG);
    lease_keeper_alive(&k, S(129));
    assert_int_not_equal(lease_keeper_check(&k, S(188.9)), KEEPER_HUNG);
    assert_int_equal(lease_keeper_check(&k, S(189)), KEEPER_HUNG);
    assert_true(lease_keeper_due_us(&k) <= S(189));
}

static void test_overtime(void **unused)
{
    (void)unused;
    struct lease_keeper k;
    lease_keeper_init(&k, &limits, 0);
    lease_keeper_work(&k, true, S(50)); /* the time before its session began is not its own */
    for (int t = 50; t < 650; t += 10) {
        lease_keeper_progress(&k, t, t, S(t));
        lease_keeper_renewed(&k, S(t));
        assert_int_equal(lease_keeper_check(&k, S(t)), KEEPER_WAIT);
    }
    assert_true(lease_keeper_due_us(&k) <= S(650));
    assert_int_equal(lease_keeper_check(&k, S(650)), KEEPER_OVERTIME);
}

/* While it waits for the agent it can neither hang nor run over, only be renewed. */
static void test_waiting(void **unused)
{
    (void)unused;
    struct lease_keeper k;
    lease_keeper_init(&k, &limits, 0);
    assert_int_equal(lease_keeper_check(&k, S(5000)), KEEPER_RENEW);
    lease_keeper_work(&k, true, S(5000));
    lease_keeper_work(&k, false, S(5001));
    assert_int_equal(lease_keeper_check(&k, S(9000)), KEEPER_RENEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewals),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_overtime),
        cmocka_unit_test(test_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
