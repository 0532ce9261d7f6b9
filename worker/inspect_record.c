/* The records as tables: what the processes tell each other, and what --json shows. */
#include "worker/inspect.h"

static const struct bind_field library_fields[] = {
    BIND(struct inspect_library, name, BIND_STRING),
    BIND(struct inspect_library, is_there, BIND_BOOL),
    BIND(struct inspect_library, reason, BIND_STRING),
    {0},
};
static const struct bind_struct library_type = {"library", sizeof(struct inspect_library),
                                                library_fields, NULL};

static const struct bind_field coder_fields[] = {
    BIND(struct inspect_coder, codec, BIND_STRING),
    BIND(struct inspect_coder, bits, BIND_INT),
    BIND(struct inspect_coder, works, BIND_BOOL),
    BIND(struct inspect_coder, reason, BIND_STRING),
    {0},
};
static const struct bind_struct coder_type = {"coder", sizeof(struct inspect_coder), coder_fields,
                                              NULL};

static const struct bind_field system_fields[] = {
    BIND(struct inspect_system, step, BIND_STRING),
    BIND(struct inspect_system, failure, BIND_STRING),
    BIND(struct inspect_system, driver, BIND_STRING),
    BIND(struct inspect_system, driver_needed, BIND_STRING),
    BIND(struct inspect_system, cuda, BIND_STRING),
    BIND(struct inspect_system, nvenc_api, BIND_STRING),
    BIND(struct inspect_system, nvenc_api_needed, BIND_STRING),
    BIND(struct inspect_system, cuda_devices, BIND_INT),
    BIND(struct inspect_system, gpus, BIND_INT),
    BIND(struct inspect_system, mps, BIND_STRING),
    BIND(struct inspect_system, container, BIND_STRING),
    BIND_LIST(struct inspect_system, libraries, n_libraries, library_type),
    BIND(struct inspect_system, problems, BIND_STRINGS,
         .count_offset = offsetof(struct inspect_system, n_problems)),
    {0},
};
const struct bind_struct inspect_system_type = {"system", sizeof(struct inspect_system),
                                                system_fields, NULL};

static const struct bind_field device_fields[] = {
    BIND(struct inspect_device, device, BIND_STRING),
    BIND(struct inspect_device, step, BIND_STRING),
    BIND(struct inspect_device, failure, BIND_STRING),
    BIND(struct inspect_device, is_usable, BIND_BOOL),
    BIND(struct inspect_device, model, BIND_STRING),
    BIND(struct inspect_device, uuid, BIND_STRING),
    BIND(struct inspect_device, bus_id, BIND_STRING),
    BIND(struct inspect_device, compute, BIND_STRING),
    BIND(struct inspect_device, memory_bytes, BIND_INT64),
    BIND(struct inspect_device, memory_used_bytes, BIND_INT64),
    BIND(struct inspect_device, nvenc_engines, BIND_INT),
    BIND(struct inspect_device, nvdec_engines, BIND_INT),
    BIND(struct inspect_device, mig, BIND_STRING),
    BIND(struct inspect_device, mps_clients, BIND_INT),
    BIND_LIST(struct inspect_device, encoders, n_encoders, coder_type),
    BIND_LIST(struct inspect_device, decoders, n_decoders, coder_type),
    BIND(struct inspect_device, is_right, BIND_BOOL),
    BIND(struct inspect_device, has_encoder, BIND_BOOL),
    BIND(struct inspect_device, selftest, BIND_STRING),
    BIND(struct inspect_device, is_right_confined, BIND_BOOL),
    BIND(struct inspect_device, confined, BIND_STRING),
    BIND(struct inspect_device, sandbox, BIND_STRING),
    BIND(struct inspect_device, sandbox_missing, BIND_STRING),
    BIND(struct inspect_device, encode_fps, BIND_DOUBLE),
    BIND(struct inspect_device, decode_fps, BIND_DOUBLE),
    BIND(struct inspect_device, encoder_percent, BIND_INT, .fallback = "-1"),
    BIND(struct inspect_device, decoder_percent, BIND_INT, .fallback = "-1"),
    BIND(struct inspect_device, encoder_percent_before, BIND_INT, .fallback = "-1"),
    BIND(struct inspect_device, decoder_percent_before, BIND_INT, .fallback = "-1"),
    BIND(struct inspect_device, times_cpu, BIND_DOUBLE),
    BIND(struct inspect_device, problems, BIND_STRINGS,
         .count_offset = offsetof(struct inspect_device, n_problems)),
    {0},
};
const struct bind_struct inspect_device_type = {"device", sizeof(struct inspect_device),
                                                device_fields, NULL};
