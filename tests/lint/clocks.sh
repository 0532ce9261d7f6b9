#!/bin/bash
# A wall clock that jumps must move nothing: intervals are measured by the monotonic clock, leases by
# Redis's. So the wall clock is read in one place (common/clock.c) and shown in one (common/log.c).
cd "$(dirname "$0")/../.." || exit 2
ours=(common queue pipelines worker dispatcher cli)
found=$(grep -rnE 'clock_wall_us|CLOCK_REALTIME|gettimeofday *\(|[^_a-z]time *\((NULL|&|0)' \
    --include='*.[ch]' "${ours[@]}" | grep -vE '^common/(clock\.[ch]|log\.c):')
# A condition waits by the wall clock unless it is told otherwise.
timed=$(grep -rlE 'pthread_cond_timedwait|sem_timedwait|pthread_mutex_timedlock' --include='*.c' "${ours[@]}" |
    xargs -r grep -L 'pthread_condattr_setclock(&[a-z]*, CLOCK_MONOTONIC)')
[ -z "$found$timed" ] && exit
echo "the wall clock where only the monotonic one may be:"
printf '%s\n' "$found" ${timed:+"$timed: a timed wait"}
exit 1
