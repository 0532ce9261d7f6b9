/* Entry points that the loader wants to find and that are not modelled: each says so. */
#include "tests/simgpu/cuda.h"

tcuMemAllocManaged cuMemAllocManaged;
tcuLinkCreate cuLinkCreate;
tcuLinkAddData cuLinkAddData;
tcuLinkComplete cuLinkComplete;
tcuLinkDestroy cuLinkDestroy;
tcuGLGetDevices_v2 cuGLGetDevices_v2;
tcuGraphicsGLRegisterImage cuGraphicsGLRegisterImage;
tcuGraphicsUnregisterResource cuGraphicsUnregisterResource;
tcuGraphicsMapResources cuGraphicsMapResources;
tcuGraphicsUnmapResources cuGraphicsUnmapResources;
tcuGraphicsSubResourceGetMappedArray cuGraphicsSubResourceGetMappedArray;
tcuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2;
tcuArray3DCreate cuArray3DCreate_v2;
tcuArrayDestroy cuArrayDestroy;
CUresult cuArrayCreate_v2(CUarray *ret, const void *description);

static CUresult absent(const char *entry_point)
{
    CUresult rc = cuda_enter(entry_point, SIM_WORK, CUDA_INIT);
    return rc ? rc : SIM_ERR_NOT_SUPPORTED;
}

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
    (void)ret, (void)bytes, (void)flags;
    return absent(__func__);
}

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *ret)
{
    (void)count, (void)options, (void)values, (void)ret;
    return absent(__func__);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
                       const char *name, unsigned count, CUjit_option *options, void **values)
{
    (void)state, (void)type, (void)data, (void)size, (void)name;
    (void)count, (void)options, (void)values;
    return absent(__func__);
}

CUresult cuLinkComplete(CUlinkState state, void **ret, size_t *ret_size)
{
    (void)state, (void)ret, (void)ret_size;
    return absent(__func__);
}

CUresult cuLinkDestroy(CUlinkState state)
{
    (void)state;
    return absent(__func__);
}

CUresult cuGLGetDevices_v2(unsigned *ret_count, CUdevice *ret, unsigned count, CUGLDeviceList list)
{
    (void)ret_count, (void)ret, (void)count, (void)list;
    return absent(__func__);
}

CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *ret, GLuint image, GLenum target,
                                   unsigned flags)
{
    (void)ret, (void)image, (void)target, (void)flags;
    return absent(__func__);
}

CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    (void)resource;
    return absent(__func__);
}

CUresult cuGraphicsMapResources(unsigned count, CUgraphicsResource *resources, CUstream stream)
{
    (void)count, (void)resources, (void)stream;
    return absent(__func__);
}

CUresult cuGraphicsUnmapResources(unsigned count, CUgraphicsResource *resources, CUstream stream)
{
    (void)count, (void)resources, (void)stream;
    return absent(__func__);
}

CUresult cuGraphicsSubResourceGetMappedArray(CUarray *ret, CUgraphicsResource resource,
                                             unsigned index, unsigned level)
{
    (void)ret, (void)resource, (void)index, (void)level;
    return absent(__func__);
}

CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *ret, size_t *ret_size,
                                               CUgraphicsResource resource)
{
    (void)ret, (void)ret_size, (void)resource;
    return absent(__func__);
}

CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    (void)ret, (void)description;
    return absent(__func__);
}

CUresult cuArrayCreate_v2(CUarray *ret, const void *description)
{
    (void)ret, (void)description;
    return absent(__func__);
}

CUresult cuArrayDestroy(CUarray array)
{
    (void)array;
    return absent(__func__);
}
