/* Elementary streams as encoders write them to what ISO base media files hold. Pure. */
#pragma once
#include <libavcodec/avcodec.h>

#include "common/strbuf.h"

/* Appends the packet as a sample of its codec's sample entry: NAL units of H.264 and HEVC with
 * 4-byte lengths instead of start codes (ISO/IEC 14496-15 §5.3), AV1 without temporal delimiters
 * (AV1-ISOBMFF §2.4), anything else as it is. Returns the sample's size in bytes. */
size_t bitstream_append_sample(struct strbuf *out, enum AVCodecID codec, const uint8_t *data,
                               size_t size);
