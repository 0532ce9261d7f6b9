/* A GPU's abilities and a route as they are stored and sent: the tables only. */
#include "pipelines/plan/route.h"

const char *const route_place_names[] = {[ROUTE_CPU] = "cpu", [ROUTE_GPU] = "gpu", NULL};

static const struct bind_field decoder_fields[] = {
    BIND(struct route_decoder, codec, BIND_STRING, .is_required = true),
    BIND(struct route_decoder, chroma, BIND_STRING, .is_required = true),
    BIND(struct route_decoder, bits, BIND_INT),
    BIND(struct route_decoder, min_width, BIND_INT),
    BIND(struct route_decoder, min_height, BIND_INT),
    BIND(struct route_decoder, max_width, BIND_INT),
    BIND(struct route_decoder, max_height, BIND_INT),
    BIND(struct route_decoder, max_blocks, BIND_INT64),
    {0},
};
static const struct bind_struct decoder_type = {
    .name = "decoder", .size = sizeof(struct route_decoder), .fields = decoder_fields};

static const struct bind_field encoder_fields[] = {
    BIND(struct route_encoder, name, BIND_STRING, .is_required = true),
    BIND(struct route_encoder, stands_for, BIND_STRING, .is_required = true),
    BIND(struct route_encoder, missing, BIND_STRING),
    BIND(struct route_encoder, min_width, BIND_INT),
    BIND(struct route_encoder, min_height, BIND_INT),
    BIND(struct route_encoder, max_width, BIND_INT),
    BIND(struct route_encoder, max_height, BIND_INT),
    BIND(struct route_encoder, max_b_frames, BIND_INT),
    BIND(struct route_encoder, has_10_bit, BIND_BOOL),
    BIND(struct route_encoder, has_b_references, BIND_BOOL),
    {0},
};
static const struct bind_struct encoder_type = {
    .name = "encoder", .size = sizeof(struct route_encoder), .fields = encoder_fields};

static const struct bind_field gpu_fields[] = {
    BIND(struct route_gpu, device, BIND_STRING, .is_required = true),
    BIND(struct route_gpu, model, BIND_STRING, .is_required = true),
    BIND(struct route_gpu, no_decoder, BIND_STRING),
    BIND(struct route_gpu, no_deinterlacer, BIND_STRING),
    BIND(struct route_gpu, no_kernels, BIND_STRING),
    BIND_LIST(struct route_gpu, decoders, n_decoders, decoder_type),
    BIND_LIST(struct route_gpu, encoders, n_encoders, encoder_type),
    {0},
};
const struct bind_struct route_gpu_type = {
    .name = "GPU", .size = sizeof(struct route_gpu), .fields = gpu_fields};

static const struct bind_field route_fields[] = {
    BIND(struct route, decode, BIND_ENUM, .names = route_place_names),
    BIND(struct route, filter, BIND_ENUM, .names = route_place_names),
    BIND(struct route, encode, BIND_ENUM, .names = route_place_names),
    BIND(struct route, why, BIND_STRING),
    {0},
};
const struct bind_struct route_type = {
    .name = "route", .size = sizeof(struct route), .fields = route_fields};
