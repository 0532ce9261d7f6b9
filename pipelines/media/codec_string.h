/*
 * The codec names that playlists carry (RFC 6381, and the registrations of each format):
 * avc1.640028, hvc1.1.6.L93.B0, av01.0.04M.08, mp4a.40.2, ac-3, ec-3, opus, fLaC. They are read
 * from the bits that a decoder will see, never from what an encoder was asked for. Pure; any
 * thread.
 */
#pragma once
#include <libavcodec/avcodec.h>

#include "common/err.h"

/* Writes the name of an opened encoder's stream to ret[0..size). The encoder's extradata may be in
 * the MP4 form (avcC, hvcC, av1C, AudioSpecificConfig) or its own (Annex B, OBUs). ERR_BUG when the
 * parameter sets are not there or broken, ERR_CONFIG for a codec that has no name in HLS. */
int codec_string_make(const AVCodecContext *encoder, char *ret, size_t size, struct err *e);

/* The same from parameters. first: a packet with in-band parameter sets, used where there is no
 * extradata (MPEG-TS); may be NULL. */
int codec_string_from(const AVCodecParameters *par, const AVPacket *first, char *ret, size_t size,
                      struct err *e);
