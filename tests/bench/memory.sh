#!/bin/bash
# Memory must not grow with the length of the film: peak of the whole process tree on one hour
# against that on two minutes, small pictures, so that what could grow would show.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

[ -s "$work/2min.mp4" ] || ffmpeg -nostdin -v error -y -f lavfi -i testsrc2=size=320x180:rate=25:duration=120 \
    -f lavfi -i sine=sample_rate=48000:duration=120 -c:v libx264 -preset ultrafast -bf 2 -g 50 -pix_fmt yuv420p \
    -c:a aac "$work/2min.mp4"
[ -s "$work/1h.mp4" ] || ffmpeg -nostdin -v error -y -stream_loop 29 -i "$work/2min.mp4" -c copy "$work/1h.mp4"

declare -A mib
for clip in 2min 1h; do
    note "$clip"
    mib[$clip]=$(peak "$TRANSCODE" run "$work/$clip.mp4" -o "$work/$clip" --force --quiet \
        --profile "$root/tests/e2e/small.yaml" --chunk 30)
done
echo
row "peak memory on 1 h / on 2 min" "$(ratio "${mib[1h]}" "${mib[2min]}")" 1.10 "${mib[1h]} MiB / ${mib[2min]} MiB"
exit $((missed > 0))
