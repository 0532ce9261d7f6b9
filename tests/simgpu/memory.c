#include "tests/simgpu/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simgpu/call.h"
#include "tests/simgpu/gpu.h"
#include "tests/simgpu/state.h"
#include "tests/simgpu/stats.h"

/* Allocations start on multiples of this, and as much of nothing follows each. */
#define PAGE ((uint64_t)65536)

/* One live allocation, in bytes from the start of the window. */
struct block {
    uint64_t start, bytes;
};

/* Device d's addresses are [d, d + 1) * share of the window: twice its memory, so that no pattern
 * of allocation can run out of addresses before it runs out of memory. */
static struct {
    pthread_mutex_t lock;
    uint8_t *window, *alias;
    uint64_t share;
    struct block *blocks; /* by start */
    size_t count, room;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t round_up(uint64_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

/* The alias is shared, not private, so that it does not count against RLIMIT_DATA: as on the card.
 */
static void map_window(void)
{
    int devices = sim_gpu_count();
    for (int i = 0; i < devices; i++) {
        uint64_t bytes = (uint64_t)sim_gpu_get(i)->memory_mib << 21;
        memory.share = bytes > memory.share ? bytes : memory.share;
    }
    memory.share = round_up(memory.share + PAGE);
    size_t size = memory.share * devices;
    memory.window = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory.alias = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory.window == MAP_FAILED || memory.alias == MAP_FAILED)
        sim_die("cannot map %zu bytes of addresses for device memory: %m", size);
}

static void lock_memory(void)
{
    pthread_mutex_lock(&memory.lock);
    if (!memory.window)
        map_window();
}

/* Index of the first block that starts after `offset`. */
static size_t find_after(uint64_t offset)
{
    size_t low = 0, high = memory.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory.blocks[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts a block into the first gap of the device's share that holds it and nothing on both sides. */
static struct block *place(int device, uint64_t bytes)
{
    if (memory.count == memory.room) {
        memory.room = memory.room ? memory.room * 2 : 64;
        memory.blocks = realloc(memory.blocks, memory.room * sizeof *memory.blocks);
        if (!memory.blocks)
            sim_die("out of memory");
    }
    uint64_t start = device * memory.share + PAGE, end = (device + 1) * memory.share;
    size_t at = find_after(start - 1);
    while (at < memory.count && memory.blocks[at].start < end &&
           memory.blocks[at].start < start + bytes + PAGE) {
        start = round_up(memory.blocks[at].start + memory.blocks[at].bytes) + PAGE;
        at++;
    }
    if (start + bytes > end)
        return NULL;
    memmove(&memory.blocks[at + 1], &memory.blocks[at],
            (memory.count - at) * sizeof *memory.blocks);
    memory.count++;
    memory.blocks[at] = (struct block){start, bytes};
    return &memory.blocks[at];
}

CUresult sim_mem_alloc(int device, size_t bytes, CUdeviceptr *ret)
{
    if (bytes == 0)
        return SIM_ERR_INVALID_VALUE;
    CUresult rc = sim_mem_book(device, (int64_t)round_up(bytes));
    if (rc)
        return rc;
    lock_memory();
    struct block *block = place(device, bytes);
    bool is_usable = block && mprotect(memory.alias + block->start, round_up(bytes),
                                       PROT_READ | PROT_WRITE) == 0;
    if (!is_usable)
        sim_die("device memory: no %zu bytes of addresses: %m", bytes);
    *ret = (CUdeviceptr)(memory.window + block->start);
    pthread_mutex_unlock(&memory.lock);
    sim_stats_add(SIM_LIVE, "memory", 1);
    return CUDA_SUCCESS;
}

/* Frees the block at an index; the caller holds the lock, which is given up. */
static void free_block(size_t at)
{
    struct block block = memory.blocks[at];
    memory.count--;
    memmove(&memory.blocks[at], &memory.blocks[at + 1],
            (memory.count - at) * sizeof *memory.blocks);
    uint64_t bytes = round_up(block.bytes);
    madvise(memory.alias + block.start, bytes, MADV_REMOVE);
    mprotect(memory.alias + block.start, bytes, PROT_NONE);
    pthread_mutex_unlock(&memory.lock);
    sim_mem_book((int)(block.start / memory.share), -(int64_t)bytes);
    sim_stats_add(SIM_LIVE, "memory", -1);
}

CUresult sim_mem_free(CUdeviceptr pointer)
{
    lock_memory();
    uint64_t offset = pointer - (CUdeviceptr)memory.window;
    size_t at = find_after(offset);
    if (at == 0 || memory.blocks[at - 1].start != offset) {
        pthread_mutex_unlock(&memory.lock);
        return SIM_ERR_INVALID_VALUE;
    }
    free_block(at - 1);
    return CUDA_SUCCESS;
}

void sim_mem_free_all(int device)
{
    for (;;) {
        lock_memory();
        size_t at = find_after(device * memory.share);
        if (at == memory.count || memory.blocks[at].start >= (device + 1) * memory.share)
            break;
        free_block(at);
    }
    pthread_mutex_unlock(&memory.lock);
}

bool sim_mem_is_device(CUdeviceptr pointer)
{
    return sim_mem_device(pointer) >= 0;
}

int sim_mem_device(CUdeviceptr pointer)
{
    lock_memory();
    uint64_t offset = pointer - (CUdeviceptr)memory.window;
    pthread_mutex_unlock(&memory.lock);
    return offset < memory.share * sim_gpu_count() ? (int)(offset / memory.share) : -1;
}

void *sim_mem_alias(CUdeviceptr pointer)
{
    return sim_mem_is_device(pointer) ? memory.alias + (pointer - (CUdeviceptr)memory.window)
                                      : NULL;
}

void *sim_mem_range(CUdeviceptr pointer, size_t bytes)
{
    lock_memory();
    uint64_t offset = pointer - (CUdeviceptr)memory.window;
    size_t at = find_after(offset);
    const struct block *block = at ? &memory.blocks[at - 1] : NULL;
    bool is_inside =
        block && bytes <= block->bytes && offset - block->start <= block->bytes - bytes;
    void *alias = is_inside ? memory.alias + offset : NULL;
    pthread_mutex_unlock(&memory.lock);
    return alias;
}

void *sim_mem_rows(CUdeviceptr pointer, size_t pitch, size_t width, size_t rows)
{
    return sim_mem_range(pointer, rows ? (rows - 1) * pitch + width : 0);
}

CUresult sim_mem_book(int device, int64_t bytes)
{
    struct sim_state *s = sim_state_lock();
    int64_t total = sim_gpu_get(device)->memory_mib << 20;
    bool has_room = bytes <= 0 || bytes <= total - sim_state_total(s, device).memory_bytes;
    if (has_room)
        sim_state_own(s, device)->memory_bytes += bytes;
    int64_t own = sim_state_own(s, device)->memory_bytes;
    sim_state_unlock();
    sim_stats_peak("memory_bytes", own);
    return has_room ? CUDA_SUCCESS : SIM_ERR_OUT_OF_MEMORY;
}

void sim_mem_usage(int device, int64_t *ret_used, int64_t *ret_total)
{
    struct sim_state *s = sim_state_lock();
    *ret_used = sim_state_total(s, device).memory_bytes;
    *ret_total = sim_gpu_get(device)->memory_mib << 20;
    sim_state_unlock();
}
