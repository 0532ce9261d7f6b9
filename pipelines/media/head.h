/*
 * The first frames of each stream that is wanted, decoded: what containers leave unsaid or say
 * wrong (pixel format, colour, interlacing, where the first picture and the first audible sample
 * are), and the proof that the stream can be decoded at all. Thread: one.
 */
#pragma once
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>

#include "pipelines/media/input.h"

struct head {
    int stream;
    bool is_done;                        /* enough was decoded, or it failed for good */
    AVFrame *first;                      /* the first frame; NULL: none came */
    int64_t start;                       /* its pts */
    int frames;                          /* decoded */
    bool is_interlaced, is_bottom_first; /* any of them */
    char *failure;                       /* why nothing was decoded */
    AVCodecContext *decoder;
    int packets;
};

/* Reads from the very start until every stream in heads has given a few frames, or `max_bytes` were
 * read, or the source ends. heads: n with .stream set, else zeroed; head_clear each afterwards. */
int head_read(struct input *in, const struct limits *limits, struct head *heads, size_t n,
              struct err *e);
void head_clear(struct head *h);
