#include "pipelines/media/codec_string.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

/* ------------------------------------------------------------------------------------------------
 * Reading bits: past the end everything is zero and is_over is set, so that parsers need one check.
 */

struct bits {
    const uint8_t *p;
    size_t size, at; /* bytes; position in bits */
    bool is_over;
};

static uint32_t get_bits(struct bits *b, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++, b->at++) {
        if (b->at >= b->size * 8) {
            b->is_over = true;
            return 0;
        }
        v = v << 1 | (b->p[b->at / 8] >> (7 - b->at % 8) & 1);
    }
    return v;
}

static void skip_bits(struct bits *b, size_t n)
{
    b->at += n;
    b->is_over |= b->at > b->size * 8;
}

struct span {
    const uint8_t *p;
    size_t size;
};

/* ------------------------------------------------------------------------------------------------
 * H.264 and HEVC. In Annex B the NAL units lie between start codes; in avcC and hvcC the bytes that
 * we need stand at fixed places. Annex E of ISO/IEC 14496-15 defines both strings.
 */

enum { H264_SPS = 7, HEVC_VPS = 32, HEVC_SPS = 33 };

static int h264_nal_type(uint8_t first_byte)
{
    return first_byte & 31;
}

static int hevc_nal_type(uint8_t first_byte)
{
    return first_byte >> 1 & 63;
}

static bool is_start_code(const uint8_t *p)
{
    return p[0] == 0 && p[1] == 0 && p[2] == 1;
}

/* The first NAL unit of the type, up to the next start code. */
static bool find_nal(struct span in, int (*type_of)(uint8_t), int type, struct span *ret)
{
    for (size_t i = 0; i + 3 < in.size; i++) {
        if (!is_start_code(in.p + i) || type_of(in.p[i + 3]) != type)
            continue;
        size_t end = i + 3;
        while (end < in.size && !(end + 2 < in.size && is_start_code(in.p + end)))
            end++;
        *ret = (struct span){in.p + i + 3, end - i - 3};
        return true;
    }
    return false;
}

static bool h264_string(struct span in, struct strbuf *s)
{
    struct span sps;
    if (in.size >= 4 && in.p[0] == 1)
        sps = (struct span){in.p, in.size}; /* avcC: version, then the same three bytes */
    else if (!find_nal(in, h264_nal_type, H264_SPS, &sps) || sps.size < 4)
        return false;
    strbuf_printf(s, "avc1.%02X%02X%02X", sps.p[1], sps.p[2], sps.p[3]);
    return true;
}

/* The 12 bytes of general_profile_space ... general_level_idc with emulation prevention undone. */
static bool read_profile_tier_level(struct span nal, size_t offset, uint8_t ret[12])
{
    size_t n = 0, zeros = 0;
    for (size_t i = 0; i < nal.size && n < offset + 12; i++) {
        if (zeros >= 2 && nal.p[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = nal.p[i] ? 0 : zeros + 1;
        if (n >= offset)
            ret[n - offset] = nal.p[i];
        n++;
    }
    return n == offset + 12;
}

static bool find_profile_tier_level(struct span in, uint8_t ret[12])
{
    struct span nal;
    if (in.size >= 23 && in.p[0] == 1) {
        memcpy(ret, in.p + 1, 12); /* hvcC */
        return true;
    }
    /* after the 2-byte NAL header: 1 byte of ids in an SPS, 4 bytes in a VPS */
    if (find_nal(in, hevc_nal_type, HEVC_SPS, &nal))
        return read_profile_tier_level(nal, 3, ret);
    return find_nal(in, hevc_nal_type, HEVC_VPS, &nal) && read_profile_tier_level(nal, 6, ret);
}

static uint32_t reverse_bits(uint32_t v)
{
    uint32_t r = 0;
    for (int i = 0; i < 32; i++)
        r |= (v >> i & 1) << (31 - i);
    return r;
}

static bool hevc_string(struct span in, struct strbuf *s)
{
    static const char *const spaces[] = {"", "A", "B", "C"};
    uint8_t p[12];
    if (!find_profile_tier_level(in, p))
        return false;
    uint32_t compatibility = (uint32_t)p[1] << 24 | p[2] << 16 | p[3] << 8 | p[4];
    strbuf_printf(s, "hvc1.%s%d.%X.%c%d", spaces[p[0] >> 6], p[0] & 31, reverse_bits(compatibility),
                  p[0] & 32 ? 'H' : 'L', p[11]);
    int n = 6; /* constraint bytes, trailing zero ones left out */
    while (n > 0 && !p[5 + n - 1])
        n--;
    for (int i = 0; i < n; i++)
        strbuf_printf(s, ".%X", p[5 + i]);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * AV1: the sequence header OBU, as far as the color configuration (AV1 specification, 5.5).
 */

struct av1_sequence {
    int profile, level, tier, depth, is_mono, subsampling_x, subsampling_y, position;
    int primaries, transfer, matrix, is_full_range;
};

enum { OBU_SEQUENCE_HEADER = 1, AV1_UNSPECIFIED = 2, AV1_SRGB = 13, AV1_BT709 = 1 };

static void skip_uvlc(struct bits *b)
{
    int zeros = 0;
    while (!b->is_over && zeros < 32 && !get_bits(b, 1))
        zeros++;
    if (zeros < 32)
        skip_bits(b, zeros);
}

static void av1_operating_points(struct bits *b, struct av1_sequence *q)
{
    bool has_model = false;
    int delay_bits = 0;
    if (get_bits(b, 1)) { /* timing_info */
        skip_bits(b, 64);
        if (get_bits(b, 1))
            skip_uvlc(b);
        has_model = get_bits(b, 1);
        if (has_model) {
            delay_bits = get_bits(b, 5) + 1;
            skip_bits(b, 32 + 5 + 5);
        }
    }
    bool has_display_delay = get_bits(b, 1);
    int points = get_bits(b, 5) + 1;
    for (int i = 0; i < points; i++) {
        skip_bits(b, 12);
        int level = get_bits(b, 5);
        int tier = level > 7 ? get_bits(b, 1) : 0;
        if (i == 0) {
            q->level = level;
            q->tier = tier;
        }
        if (has_model && get_bits(b, 1))
            skip_bits(b, 2 * delay_bits + 1);
        if (has_display_delay && get_bits(b, 1))
            skip_bits(b, 4);
    }
}

static void av1_tools(struct bits *b, bool is_reduced)
{
    int width_bits = get_bits(b, 4) + 1, height_bits = get_bits(b, 4) + 1;
    skip_bits(b, width_bits + height_bits);
    if (!is_reduced && get_bits(b, 1)) /* frame ids */
        skip_bits(b, 4 + 3);
    skip_bits(b, 3); /* superblock size, filter intra, intra edge filter */
    if (!is_reduced) {
        skip_bits(b, 4); /* interintra, masked, warped, dual filter */
        bool has_order_hint = get_bits(b, 1);
        if (has_order_hint)
            skip_bits(b, 2);
        bool is_screen_content_selectable = get_bits(b, 1);
        bool is_screen_content = is_screen_content_selectable || get_bits(b, 1);
        if (is_screen_content && !get_bits(b, 1))
            skip_bits(b, 1); /* force integer mv */
        if (has_order_hint)
            skip_bits(b, 3);
    }
    skip_bits(b, 3); /* superres, cdef, restoration */
}

static void av1_subsampling(struct bits *b, struct av1_sequence *q)
{
    q->subsampling_x = q->profile != 1;
    q->subsampling_y = q->profile == 0;
    if (q->profile == 2 && q->depth == 12) {
        q->subsampling_x = get_bits(b, 1);
        q->subsampling_y = q->subsampling_x ? get_bits(b, 1) : 0;
    }
    if (q->subsampling_x && q->subsampling_y)
        q->position = get_bits(b, 2);
}

static void av1_color(struct bits *b, struct av1_sequence *q)
{
    bool is_high = get_bits(b, 1);
    q->depth = is_high ? 10 : 8;
    if (q->profile == 2 && is_high && get_bits(b, 1))
        q->depth = 12;
    q->is_mono = q->profile == 1 ? 0 : get_bits(b, 1);
    q->primaries = q->transfer = q->matrix = AV1_UNSPECIFIED;
    if (get_bits(b, 1)) {
        q->primaries = get_bits(b, 8);
        q->transfer = get_bits(b, 8);
        q->matrix = get_bits(b, 8);
    }
    if (!q->is_mono && q->primaries == AV1_BT709 && q->transfer == AV1_SRGB && q->matrix == 0) {
        q->is_full_range = 1; /* RGB: 4:4:4 */
        return;
    }
    q->is_full_range = get_bits(b, 1);
    if (q->is_mono)
        q->subsampling_x = q->subsampling_y = 1;
    else
        av1_subsampling(b, q);
}

static bool av1_parse_sequence(struct span obu, struct av1_sequence *q)
{
    struct bits b = {.p = obu.p, .size = obu.size};
    *q = (struct av1_sequence){.profile = get_bits(&b, 3)};
    skip_bits(&b, 1); /* still picture */
    bool is_reduced = get_bits(&b, 1);
    if (is_reduced)
        q->level = get_bits(&b, 5);
    else
        av1_operating_points(&b, q);
    av1_tools(&b, is_reduced);
    av1_color(&b, q);
    return !b.is_over;
}

static bool read_leb128(struct span in, size_t *at, size_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 4 && *at < in.size; i++) {
        uint8_t byte = in.p[(*at)++];
        *ret |= (size_t)(byte & 127) << (7 * i);
        if (!(byte & 128))
            return true;
    }
    return false;
}

static bool find_sequence_header(struct span in, struct span *ret)
{
    size_t at = in.size >= 4 && in.p[0] == 0x81 ? 4 : 0; /* av1C: OBUs follow 4 bytes */
    while (at < in.size) {
        uint8_t header = in.p[at];
        at += header & 4 ? 2 : 1; /* extension */
        size_t size = in.size - at;
        if (at > in.size || ((header & 2) && !read_leb128(in, &at, &size)) || size > in.size - at)
            return false;
        if ((header >> 3 & 15) == OBU_SEQUENCE_HEADER) {
            *ret = (struct span){in.p + at, size};
            return true;
        }
        at += size;
    }
    return false;
}

/* "av01.P.LLT.DD", and the color part where it is not the default (AV1 in ISOBMFF, section 5). */
static bool av1_string(struct span in, struct strbuf *s)
{
    struct span obu;
    struct av1_sequence q;
    if (!find_sequence_header(in, &obu) || !av1_parse_sequence(obu, &q))
        return false;
    strbuf_printf(s, "av01.%d.%02d%c.%02d", q.profile, q.level, q.tier ? 'H' : 'M', q.depth);
    /* Unspecified color is not BT.709, but players read it so, and the short form is what they
     * all accept. */
    bool is_unspecified = q.primaries == AV1_UNSPECIFIED && q.transfer == AV1_UNSPECIFIED &&
                          q.matrix == AV1_UNSPECIFIED;
    bool is_bt709 = q.primaries == AV1_BT709 && q.transfer == AV1_BT709 && q.matrix == AV1_BT709;
    if (q.is_mono || !q.subsampling_x || !q.subsampling_y || q.is_full_range || q.position > 1 ||
        !(is_unspecified || is_bt709))
        strbuf_printf(s, ".%d.%d%d%d.%02d.%02d.%02d.%d", q.is_mono, q.subsampling_x,
                      q.subsampling_y, q.position, q.primaries, q.transfer, q.matrix,
                      q.is_full_range);
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * AAC: the audio object type. HE-AAC may be signalled in the AudioSpecificConfig's object type or,
 * compatibly, only by the extension at its end, which libav has then put into the profile.
 */

enum { AOT_AAC_LC = 2, AOT_SBR = 5, AOT_PS = 29 };

static int aac_object_type(struct span config, int profile)
{
    struct bits b = {.p = config.p, .size = config.size};
    int type = get_bits(&b, 5);
    if (type == 31)
        type = 32 + get_bits(&b, 6);
    if (b.is_over || !type)
        type = profile >= 0 ? profile + 1 : AOT_AAC_LC; /* libav numbers profiles one lower */
    if (type == AOT_AAC_LC && (profile == AOT_SBR - 1 || profile == AOT_PS - 1))
        type = profile + 1;
    return type;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    enum AVCodecID id;
    const char *name;                             /* the whole string, or */
    bool (*format)(struct span, struct strbuf *); /* made from the parameter sets */
} codecs[] = {
    {AV_CODEC_ID_H264, NULL, h264_string}, {AV_CODEC_ID_HEVC, NULL, hevc_string},
    {AV_CODEC_ID_AV1, NULL, av1_string},   {AV_CODEC_ID_AC3, "ac-3", NULL},
    {AV_CODEC_ID_EAC3, "ec-3", NULL},      {AV_CODEC_ID_OPUS, "opus", NULL},
    {AV_CODEC_ID_FLAC, "fLaC", NULL},      {AV_CODEC_ID_MP3, "mp4a.40.34", NULL},
    {AV_CODEC_ID_MP2, "mp4a.40.33", NULL},
};

static struct span parameter_sets(const AVCodecParameters *par, const AVPacket *first)
{
    if (par->extradata_size > 0)
        return (struct span){par->extradata, par->extradata_size};
    if (first && first->size > 0)
        return (struct span){first->data, first->size};
    return (struct span){NULL, 0};
}

static int format_name(const AVCodecParameters *par, const AVPacket *first, struct strbuf *s,
                       struct err *e)
{
    if (par->codec_id == AV_CODEC_ID_AAC) {
        struct span config = {par->extradata, par->extradata_size};
        strbuf_printf(s, "mp4a.40.%d", aac_object_type(config, par->profile));
        return 0;
    }
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (codecs[i].id != par->codec_id)
            continue;
        if (codecs[i].name)
            strbuf_puts(s, codecs[i].name);
        else if (!codecs[i].format(parameter_sets(par, first), s))
            return err_set(e, ERR_BUG, "%s: the encoder gave no usable parameter sets",
                           avcodec_get_name(par->codec_id));
        return 0;
    }
    return err_set(e, ERR_CONFIG, "%s has no codec string for playlists: use another encoder",
                   avcodec_get_name(par->codec_id));
}

int codec_string_from(const AVCodecParameters *par, const AVPacket *first, char *ret, size_t size,
                      struct err *e)
{
    cleanup(strbuf_free) struct strbuf s = {0};
    int status = format_name(par, first, &s, e);
    if (status < 0)
        return status;
    if (s.len >= size)
        return err_set(e, ERR_BUG, "the codec string %s does not fit into %zu bytes", s.s, size);
    memcpy(ret, s.s, s.len + 1);
    return 0;
}

static void free_parameters(AVCodecParameters **par)
{
    avcodec_parameters_free(par);
}

int codec_string_make(const AVCodecContext *encoder, char *ret, size_t size, struct err *e)
{
    cleanup(free_parameters) AVCodecParameters *par = avcodec_parameters_alloc();
    if (!par || avcodec_parameters_from_context(par, encoder) < 0)
        return err_set(e, ERR_RESOURCE, "out of memory");
    return codec_string_from(par, NULL, ret, size, e);
}
