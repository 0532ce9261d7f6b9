/*
 * Bytes come from pread() on one descriptor and from nowhere else: there is no protocol to
 * whitelist, libavformat's io_open is refused, and only the demuxers and codecs of the two tables
 * below are reachable. What a file is called plays no part.
 *
 * Rewinding opens the demuxer again instead of seeking to a first timestamp: after such a seek some
 * demuxers skip whatever another stream has before the first video keyframe, and timestamps that
 * libavformat derives come out differently from those of a first read. So the context that reads
 * (`live`) comes and goes; callers hold a copy of its streams (`shown`) that stays.
 *
 * A demuxer's index grows with the film, 24 bytes and more a packet of every track, so there is
 * never more than one, and of an MP4 only that of the track that is read: the byte source shows the
 * sample tables of the others under a type that demuxers skip, which leaves those tracks there, but
 * empty.
 *
 * A seek is verified by reading: it is good when the first keyframe of the stream that comes is at
 * or before the wanted time. libavformat alone lands anywhere near it: in transport streams on any
 * packet, and in files with reordered pictures its index knows decode times only.
 */
#include "pipelines/media/input.h"

#include <errno.h>
#include <libavutil/avstring.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"
#include "pipelines/media/avlog.h"
#include "pipelines/media/compat.h"
#include "pipelines/media/repair.h"
#include "pipelines/media/structure.h"

enum {
    IO_BUFFER = 64 << 10,
    BAD_READS_MAX = 16,
    INDEX_WORTH = 1 << 20, /* bytes of an index for which a source is opened anew */
};

static const char formats[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,wav,mp3,aac,"
    "flac,ogg,ac3,eac3,mxf";

static const char codecs[] =
    "h264,hevc,vp8,libvpx,vp9,libvpx-vp9,av1,libdav1d,libaom-av1,mpeg1video,mpeg2video,mpeg4,"
    "msmpeg4,msmpeg4v2,h263,flv,vc1,wmv3,prores,dnxhd,mjpeg,ffv1,theora,rawvideo,"
    "aac,aac_latm,mp3,mp3float,mp2,mp2float,ac3,eac3,opus,libopus,vorbis,flac,alac,dca,truehd,"
    "pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_u8,pcm_s8,pcm_f32le,pcm_f32be,"
    "pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,pcm_bluray,pcm_dvd,adpcm_ms,adpcm_ima_wav";

struct input {
    int fd;
    int64_t size, position;
    int read_errno; /* of a pread that failed */
    struct limits limits;
    bool (*is_cancelled)(void *);
    void *arg;
    AVFormatContext *shown, *live;
    int selected;        /* the one stream that is read, or INPUT_ALL */
    bool is_inseparable; /* hiding the other tracks' tables hid this one's */
    struct structure_table *hidden;
    size_t n_hidden;
    struct repair *repair;
    AVPacket *packet, *first; /* first: read ahead by a seek; empty (no data) otherwise */
    bool has_first, is_fresh, is_at_end, is_sequential;
    int bad_reads;
    bool is_last_corrupt; /* the last packet from the demuxer was flagged damaged */
    char cut[256];        /* what the file's structure says; "" when it is whole */
    char truncation[512];
};

/* ---- bytes ---- */

static int interrupt(void *opaque)
{
    struct input *in = opaque;
    return in->is_cancelled && in->is_cancelled(in->arg);
}

/* Gives the hidden boxes among n bytes from `at` a type that no demuxer reads. */
static void hide(const struct input *in, int64_t at, uint8_t *buf, int64_t n)
{
    static const char type[4] = "skip";
    for (size_t i = 0; i < in->n_hidden; i++)
        for (int k = 0; k < 4; k++) {
            int64_t place = in->hidden[i].type_at + k - at;
            if (place >= 0 && place < n)
                buf[place] = (uint8_t)type[k];
        }
}

static int read_bytes(void *opaque, uint8_t *buf, int n)
{
    struct input *in = opaque;
    ssize_t got;
    if (interrupt(in))
        return AVERROR_EXIT;
    do
        got = pread(in->fd, buf, (size_t)n, in->position);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        in->read_errno = errno;
        return AVERROR(errno);
    }
    hide(in, in->position, buf, got);
    in->position += got;
    return got == 0 ? AVERROR_EOF : (int)got;
}

static int64_t seek_bytes(void *opaque, int64_t offset, int whence)
{
    struct input *in = opaque;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
        return in->size;
    case SEEK_SET:
        break;
    case SEEK_CUR:
        offset += in->position;
        break;
    case SEEK_END:
        offset += in->size;
        break;
    default:
        return AVERROR(EINVAL);
    }
    if (offset < 0)
        return AVERROR(EINVAL);
    return in->position = offset;
}

static int refuse_open(AVFormatContext *s, AVIOContext **pb, const char *url, int flags,
                       AVDictionary **options)
{
    (void)s, (void)pb, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

/* ---- opening ---- */

static void live_close(AVFormatContext **f)
{
    if (!*f)
        return;
    AVIOContext *pb = (*f)->pb;
    avformat_close_input(f);
    if (pb)
        av_freep(&pb->buffer);
    avio_context_free(&pb);
}

static int out_of_memory(struct err *e)
{
    return err_set(e, ERR_RESOURCE, "open the source: out of memory");
}

/* A context around the descriptor, not yet opened. */
static int live_prepare(struct input *in, AVFormatContext **ret, struct err *e)
{
    AVFormatContext *f = avformat_alloc_context();
    uint8_t *buffer = av_malloc(IO_BUFFER);
    if (f && buffer)
        f->pb = avio_alloc_context(buffer, IO_BUFFER, 0, in, read_bytes, NULL, seek_bytes);
    if (!f || !f->pb) {
        avformat_free_context(f);
        av_free(buffer);
        return out_of_memory(e);
    }
    in->position = 0;
    f->flags |= AVFMT_FLAG_CUSTOM_IO;
    f->interrupt_callback = (AVIOInterruptCB){interrupt, in};
    f->io_open = refuse_open;
    f->format_whitelist = av_strdup(formats);
    f->codec_whitelist = av_strdup(codecs);
    f->protocol_whitelist = av_strdup("");
    f->max_streams = (int)in->limits.max_streams;
    f->probesize = in->limits.max_header_bytes < 5000000 ? in->limits.max_header_bytes : 5000000;
    f->max_analyze_duration = 10 * AV_TIME_BASE;
    *ret = f;
    return 0;
}

static int refuse(const struct input *in, int status, struct err *e)
{
    if (interrupt((void *)in))
        return err_set(e, ERR_CANCELLED, "open the source: cancelled");
    if (in->read_errno)
        return err_set(e, ERR_TRANSIENT, "read the source: %s", strerror(in->read_errno));
    const char *said = avlog_reason(status);
    if (strstr(said, "max_streams")) /* libavformat's error for it is ENOMEM */
        return err_set(e, ERR_INPUT,
                       "the source has more streams than the limit max_streams=%lld; raise it with "
                       "--limit",
                       (long long)in->limits.max_streams);
    if (status == AVERROR(ENOMEM))
        return out_of_memory(e);
    const char *why = structure_explain_mp4(in->fd, in->size);
    return err_set(e, ERR_INPUT, "the source cannot be opened: %s", why ? why : said);
}

/* What the bytes are, from the whitelisted demuxers; none: a reason to refuse. */
static int choose_format(const struct input *in, AVFormatContext *f, const AVInputFormat **ret,
                         struct err *e)
{
    const char *why = structure_refuse(in->fd, in->size);
    if (why)
        return err_set(e, ERR_INPUT, "the source is not a media file: %s", why);
    int status = av_probe_input_buffer2(f->pb, ret, "", NULL, 0, 1 << 20);
    if (status < 0 && (in->read_errno || status == AVERROR(ENOMEM) || interrupt((void *)in)))
        return refuse(in, status, e);
    if (status < 0)
        return err_set(e, ERR_INPUT, "the source is not a media file that is known here");
    char name[32]; /* the first of the demuxer's names */
    snprintf(name, sizeof name, "%.*s", (int)strcspn((*ret)->name, ","), (*ret)->name);
    if (!av_match_name(name, formats))
        return err_set(e, ERR_INPUT,
                       "the source is not an accepted media file: it looks like %s (%s)",
                       (*ret)->long_name ? (*ret)->long_name : "another format", (*ret)->name);
    return 0;
}

/* Pictures larger than the limit must not be decoded while looking for parameters either. */
static int find_streams(struct input *in, AVFormatContext *f)
{
    unsigned n = f->nb_streams;
    AVDictionary **options = xcalloc(n ? n : 1, sizeof(AVDictionary *));
    for (unsigned i = 0; i < n; i++)
        av_dict_set_int(&options[i], "max_pixels", in->limits.max_pixels, 0);
    int status = avformat_find_stream_info(f, n ? options : NULL);
    for (unsigned i = 0; i < n; i++)
        av_dict_free(&options[i]);
    free(options);
    return status;
}

/* Of all streams but one. */
static int64_t index_bytes(const AVFormatContext *f, int but)
{
    int64_t n = 0;
    for (unsigned i = 0; i < f->nb_streams; i++)
        if ((int)i != but)
            n += avformat_index_get_entries_count(f->streams[i]);
    return n * (int64_t)sizeof(AVIndexEntry);
}

static int live_open(struct input *in, AVFormatContext **ret, struct err *e)
{
    AVFormatContext *f = NULL;
    const AVInputFormat *format = NULL;
    avlog_clear();
    int r = live_prepare(in, &f, e);
    if (r == 0 && (r = choose_format(in, f, &format, e)) == 0) {
        AVIOContext *pb = f->pb;
        int status = avformat_open_input(&f, NULL, format, NULL);
        if (status < 0) { /* it has freed the context, but not our bytes */
            r = refuse(in, status, e);
            av_freep(&pb->buffer);
            avio_context_free(&pb);
            return r;
        }
        for (unsigned i = 0; in->n_hidden && i < f->nb_streams; i++)
            if ((int)i != in->selected) /* else packets of it would be waited for */
                f->streams[i]->codecpar->codec_type = AVMEDIA_TYPE_DATA;
        if ((status = find_streams(in, f)) < 0)
            r = refuse(in, status, e);
    }
    if (r < 0) {
        live_close(&f);
        return r;
    }
    if (index_bytes(f, INPUT_ALL) >= INDEX_WORTH)
        malloc_trim(0); /* building it took as much again */
    *ret = f;
    return 0;
}

static bool is_encrypted(const AVStream *st)
{
    uint32_t tag = st->codecpar->codec_tag;
    return tag == MKTAG('e', 'n', 'c', 'v') || tag == MKTAG('e', 'n', 'c', 'a') ||
           compat_stream_side_data(st, AV_PKT_DATA_ENCRYPTION_INIT_INFO, NULL);
}

static bool is_media(const AVStream *st)
{
    enum AVMediaType type = st->codecpar->codec_type;
    return (type == AVMEDIA_TYPE_VIDEO && !(st->disposition & AV_DISPOSITION_ATTACHED_PIC)) ||
           type == AVMEDIA_TYPE_AUDIO;
}

static int check_streams(const struct input *in, const AVFormatContext *f, struct err *e)
{
    bool has_media = false, has_subtitles = false;
    for (unsigned i = 0; i < f->nb_streams; i++) {
        const AVStream *st = f->streams[i];
        const AVCodecParameters *par = st->codecpar;
        if (is_encrypted(st))
            return err_set(e, ERR_INPUT, "the source cannot be used: stream %u is encrypted (DRM)",
                           i);
        if (is_media(st) && (int64_t)par->width * par->height > in->limits.max_pixels)
            return err_set(
                e, ERR_INPUT,
                "the source has pictures of %dx%d, over the limit max_pixels=%lld; raise "
                "it with --limit",
                par->width, par->height, (long long)in->limits.max_pixels);
        has_media |= is_media(st);
        has_subtitles |= par->codec_type == AVMEDIA_TYPE_SUBTITLE;
    }
    if (!has_media)
        return err_set(e, ERR_INPUT, "the source has neither video nor audio%s",
                       has_subtitles       ? ", only subtitles"
                       : f->nb_streams > 0 ? ", only pictures or data"
                                           : "");
    return 0;
}

static int copy_stream(AVFormatContext *f, const AVStream *from)
{
    AVStream *st = avformat_new_stream(f, NULL);
    if (!st)
        return AVERROR(ENOMEM);
    st->id = from->id;
    st->time_base = from->time_base;
    st->start_time = from->start_time;
    st->duration = from->duration;
    st->disposition = from->disposition;
    st->sample_aspect_ratio = from->sample_aspect_ratio;
    st->avg_frame_rate = from->avg_frame_rate;
    st->r_frame_rate = from->r_frame_rate;
    int status = avcodec_parameters_copy(st->codecpar, from->codecpar);
    if (status >= 0)
        status = av_dict_copy(&st->metadata, from->metadata, 0);
    return status < 0 ? status : compat_stream_side_data_copy(st, from);
}

static int copy_program(AVFormatContext *f, const AVProgram *from)
{
    if (!av_new_program(f, from->id))
        return AVERROR(ENOMEM);
    for (unsigned i = 0; i < from->nb_stream_indexes; i++)
        av_program_add_stream_index(f, from->id, from->stream_index[i]);
    return 0;
}

/* What callers see of the live context. */
static int show(struct input *in, struct err *e)
{
    const AVFormatContext *live = in->live;
    AVFormatContext *f = in->shown = avformat_alloc_context();
    if (!f)
        return out_of_memory(e);
    f->iformat = live->iformat;
    f->duration = live->duration;
    f->max_streams = live->max_streams;
    f->codec_whitelist = av_strdup(live->codec_whitelist);
    int status = f->codec_whitelist ? 0 : AVERROR(ENOMEM);
    for (unsigned i = 0; i < live->nb_streams && status >= 0; i++)
        status = copy_stream(f, live->streams[i]);
    for (unsigned i = 0; i < live->nb_programs && status >= 0; i++)
        status = copy_program(f, live->programs[i]);
    return status < 0 ? out_of_memory(e) : 0;
}

static int open_all(struct input *in, struct err *e)
{
    struct stat st;
    if (fstat(in->fd, &st) < 0)
        return err_set(e, ERR_TRANSIENT, "open the source: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "the source is not a regular file");
    in->size = st.st_size;
    int r = live_open(in, &in->live, e);
    if (r < 0)
        return r;
    if ((r = check_streams(in, in->live, e)) < 0 || (r = show(in, e)) < 0)
        return r;
    in->repair = repair_new(in->live);
    in->packet = av_packet_alloc();
    in->first = av_packet_alloc();
    if (!in->packet || !in->first)
        return out_of_memory(e);
    structure_is_cut(in->fd, in->size, in->live->iformat->name, in->cut, sizeof in->cut);
    in->is_fresh = true;
    return 0;
}

int input_open(int fd, const struct limits *limits, bool (*is_cancelled)(void *), void *arg,
               struct input **ret, struct err *e)
{
    avlog_init();
    struct input *in = xcalloc(1, sizeof *in);
    in->fd = fd;
    in->limits = *limits;
    in->is_cancelled = is_cancelled;
    in->arg = arg;
    in->selected = INPUT_ALL;
    int r = open_all(in, e);
    if (r < 0)
        input_close(&in);
    *ret = in;
    return r;
}

void input_close(struct input **ptr)
{
    struct input *in = *ptr;
    *ptr = NULL;
    if (!in)
        return;
    repair_free(&in->repair);
    av_packet_free(&in->packet);
    av_packet_free(&in->first);
    live_close(&in->live);
    avformat_free_context(in->shown);
    free(in->hidden);
    free(in);
}

AVFormatContext *input_format(struct input *in)
{
    return in->shown;
}

AVRational input_frame_rate(const struct input *in, int stream)
{
    return av_guess_frame_rate(in->live, in->live->streams[stream], NULL);
}

int64_t input_size(const struct input *in)
{
    return in->size;
}

int64_t input_position(const struct input *in)
{
    return in->position < in->size ? in->position : in->size;
}

const struct repair_counts *input_repairs(const struct input *in)
{
    return repair_counts(in->repair);
}

void input_set_sequential(struct input *in, bool is_sequential)
{
    in->is_sequential = is_sequential;
}

/* ---- reading ---- */

static void copy_discard(const struct input *in)
{
    for (unsigned i = 0; i < in->live->nb_streams; i++)
        in->live->streams[i]->discard =
            i < in->shown->nb_streams ? in->shown->streams[i]->discard : AVDISCARD_ALL;
}

/* How far the index of an MP4 says the wanted streams' data goes. */
static int64_t index_end(const struct input *in)
{
    int64_t end = 0;
    if (strncmp(in->live->iformat->name, "mov,", 4) != 0)
        return 0;
    for (unsigned i = 0; i < in->live->nb_streams; i++) {
        AVStream *st = in->live->streams[i];
        int n = is_media(st) ? avformat_index_get_entries_count(st) : 0;
        for (int k = 0; k < n; k++) {
            const AVIndexEntry *x = avformat_index_get_entry(st, k);
            if (x->pos + x->size > end)
                end = x->pos + x->size;
        }
    }
    return end;
}

/* The demuxer has no more packets, for whatever reason. */
static void meet_end(struct input *in, const char *read_failure)
{
    int64_t indexed = index_end(in);
    in->is_at_end = true;
    repair_push(in->repair, NULL);
    if (indexed > in->size)
        snprintf(in->truncation, sizeof in->truncation,
                 "the file is incomplete: its index names data up to byte %lld, it has %lld",
                 (long long)indexed, (long long)in->size);
    else if (in->cut[0])
        snprintf(in->truncation, sizeof in->truncation, "the file is incomplete: %s", in->cut);
    else if (read_failure)
        snprintf(in->truncation, sizeof in->truncation, "reading ended at byte %lld of %lld: %s",
                 (long long)input_position(in), (long long)in->size, read_failure);
    else if (in->is_last_corrupt)
        snprintf(in->truncation, sizeof in->truncation,
                 "the file is incomplete: its last packet is not whole");
}

const char *input_truncation(const struct input *in)
{
    return in->is_at_end && in->truncation[0] ? in->truncation : NULL;
}

/* One packet from the demuxer to the repair, or the end. */
static int advance(struct input *in, struct err *e)
{
    int status = av_read_frame(in->live, in->packet);
    if (interrupt(in)) {
        av_packet_unref(in->packet);
        return err_set(e, ERR_CANCELLED, "read the source: cancelled");
    }
    if (in->read_errno)
        return err_set(e, ERR_TRANSIENT, "read the source: %s", strerror(in->read_errno));
    if (status == AVERROR(ENOMEM))
        return refuse(in, status, e); /* which may be a limit */
    if (status == AVERROR_EOF) {
        meet_end(in, NULL);
        return 0;
    }
    if (status < 0) { /* one bad place; give up where nothing but bad places follow */
        if (++in->bad_reads == BAD_READS_MAX)
            meet_end(in, avlog_reason(status));
        return 0;
    }
    in->bad_reads = 0;
    if (in->live->streams[in->packet->stream_index]->discard >= AVDISCARD_ALL) {
        av_packet_unref(in->packet);
        return 0;
    }
    if (av_packet_get_side_data(in->packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL))
        return err_set(e, ERR_INPUT, "the source cannot be used: stream %d is encrypted (DRM)",
                       in->packet->stream_index);
    in->is_last_corrupt = in->packet->flags & AV_PKT_FLAG_CORRUPT;
    repair_push(in->repair, in->packet);
    return 0;
}

static int read_repaired(struct input *in, AVPacket *pkt, struct err *e)
{
    in->is_fresh = false;
    while (!repair_pull(in->repair, pkt)) {
        if (in->is_at_end)
            return AVERROR_EOF;
        int r = advance(in, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int input_read(struct input *in, AVPacket *pkt, struct err *e)
{
    copy_discard(in);
    if (in->has_first) {
        in->has_first = false;
        av_packet_move_ref(pkt, in->first);
        return 0;
    }
    return read_repaired(in, pkt, e);
}

/* ---- opening again ---- */

static void forget(struct input *in)
{
    in->has_first = in->is_at_end = in->is_last_corrupt = false;
    in->bad_reads = 0;
    in->truncation[0] = 0;
    av_packet_unref(in->first);
    av_packet_unref(in->packet);
}

/* Opens the demuxer anew. The old one goes first: two indexes are one too many. */
static int open_again(struct input *in, struct err *e)
{
    repair_free(&in->repair);
    live_close(&in->live);
    forget(in);
    int r = live_open(in, &in->live, e);
    if (r < 0)
        return r;
    in->repair = repair_new(in->live);
    in->is_fresh = true;
    copy_discard(in);
    return 0;
}

static int rewind_all(struct input *in, struct err *e)
{
    return in->is_fresh ? 0 : open_again(in, e);
}

int64_t input_index_bytes(const struct input *in)
{
    return index_bytes(in->live, INPUT_ALL);
}

/* Hides all tracks' tables but those of the stream; of INPUT_ALL none. */
static void choose_hidden(struct input *in, int stream)
{
    size_t n = 0;
    free_ptr(&in->hidden);
    in->n_hidden = 0;
    if (stream == INPUT_ALL)
        return;
    size_t all = structure_mp4_tables(in->fd, in->size, &in->hidden);
    for (size_t i = 0; i < all; i++)
        if (in->hidden[i].track != stream)
            in->hidden[n++] = in->hidden[i];
    in->n_hidden = n;
}

static int open_selected(struct input *in, int stream, struct err *e)
{
    in->selected = stream;
    live_close(&in->live);
    malloc_trim(0); /* libc would keep most of it */
    choose_hidden(in, stream);
    return open_again(in, e);
}

/* Whether opening again with this stream alone saves memory. */
static bool is_worth_it(const struct input *in, int stream)
{
    return !in->is_inseparable && strncmp(in->live->iformat->name, "mov,", 4) == 0 &&
           index_bytes(in->live, stream) >= INDEX_WORTH;
}

int input_select(struct input *in, int stream, struct err *e)
{
    for (unsigned i = 0; i < in->shown->nb_streams; i++)
        in->shown->streams[i]->discard =
            stream == INPUT_ALL || (int)i == stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    if (stream == in->selected || (in->selected == INPUT_ALL && !is_worth_it(in, stream)))
        return 0;
    int r = open_selected(in, stream, e);
    if (r < 0 || stream == INPUT_ALL ||
        (stream < (int)in->live->nb_streams &&
         avformat_index_get_entries_count(in->live->streams[stream])))
        return r;
    in->is_inseparable = true; /* libavformat counts its tracks differently */
    return open_selected(in, INPUT_ALL, e);
}

/* ---- seeking ---- */

/* Reads to the first keyframe of the stream. 1: it is at or before pts, and is kept as the next
 * packet; 0: it is not. */
static int verify(struct input *in, int stream, int64_t pts, struct err *e)
{
    for (;;) {
        int r = read_repaired(in, in->first, e);
        if (r == AVERROR_EOF)
            return 0;
        if (r < 0)
            return r;
        const AVPacket *p = in->first;
        if (p->stream_index == stream && p->flags & AV_PKT_FLAG_KEY) {
            in->has_first = p->pts <= pts;
            if (!in->has_first)
                av_packet_unref(in->first);
            return in->has_first;
        }
        bool is_past = p->stream_index == stream && p->dts > pts;
        av_packet_unref(in->first);
        if (is_past)
            return 0;
    }
}

int input_seek(struct input *in, int stream, int64_t pts, struct err *e)
{
    static const int back_s[] = {0, 1, 5, 20, 60};
    if (pts == INT64_MIN || in->is_sequential)
        return rewind_all(in, e);
    copy_discard(in);
    AVRational tb = in->shown->streams[stream]->time_base;
    for (size_t i = 0; i < sizeof back_s / sizeof *back_s; i++) {
        int64_t at = pts - av_rescale_q(back_s[i], (AVRational){1, 1}, tb);
        if (av_seek_frame(in->live, stream, at, AVSEEK_FLAG_BACKWARD) < 0)
            continue;
        in->is_fresh = false;
        repair_reset(in->repair);
        forget(in);
        int r = verify(in, stream, pts, e);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    return rewind_all(in, e);
}
