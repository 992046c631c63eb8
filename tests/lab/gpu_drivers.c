// SPDX-License-Identifier: Apache-2.0
// What the kernel's drivers answer, one section for each: just enough that Mesa opens the device.
#include <asahi_drm.h>
#include <drm.h>
#include <errno.h>
#include <i915_drm.h>
#include <msm_drm.h>
#include <nouveau_drm.h>
#include <panthor_drm.h>
#include <stdint.h>
#include <string.h>

#include "gpu_stub.h"

static const uint64_t kMemory = 16ull << 30;  // Bytes.

// ---- Intel: one slice of sub-slices, 16 GiB of memory, a render, a copy and a compute engine ----

enum { kSubslices = 8, kEus = 16 };

static int i915_query_size(uint64_t id) {
  switch (id) {
    case DRM_I915_QUERY_TOPOLOGY_INFO:
    case DRM_I915_QUERY_GEOMETRY_SUBSLICES:
      return sizeof(struct drm_i915_query_topology_info) + 2 + kSubslices * kEus / 8;
    case DRM_I915_QUERY_ENGINE_INFO:
      return sizeof(struct drm_i915_query_engine_info) + 3 * sizeof(struct drm_i915_engine_info);
    case DRM_I915_QUERY_MEMORY_REGIONS:
      return sizeof(struct drm_i915_query_memory_regions) +
             2 * sizeof(struct drm_i915_memory_region_info);
  }
  return -EINVAL;
}

static void i915_query(struct drm_i915_query_item* item) {
  void* to = (void*)(uintptr_t)item->data_ptr;
  int asked = item->length, size = i915_query_size(item->query_id);
  item->length = size;
  if (!asked || size < 0) return;
  memset(to, 0, size);
  if (item->query_id == DRM_I915_QUERY_ENGINE_INFO) {
    struct drm_i915_query_engine_info* e = to;
    e->num_engines = 3;
    e->engines[0].engine.engine_class = I915_ENGINE_CLASS_RENDER;
    e->engines[1].engine.engine_class = I915_ENGINE_CLASS_COPY;
    e->engines[2].engine.engine_class = I915_ENGINE_CLASS_COMPUTE;
  } else if (item->query_id == DRM_I915_QUERY_MEMORY_REGIONS) {
    struct drm_i915_query_memory_regions* m = to;
    m->num_regions = 2;
    for (int i = 0; i < 2; i++) {
      struct drm_i915_memory_region_info* r = &m->regions[i];
      r->region.memory_class = i;
      r->probed_size = r->unallocated_size = kMemory;
      r->probed_cpu_visible_size = r->unallocated_cpu_visible_size = kMemory;
    }
  } else {
    struct drm_i915_query_topology_info* t = to;
    t->max_slices = 1, t->max_subslices = kSubslices, t->max_eus_per_subslice = kEus;
    t->subslice_offset = 1, t->subslice_stride = 1, t->eu_offset = 2, t->eu_stride = kEus / 8;
    memset(t->data, 0xff, 2 + kSubslices * kEus / 8);
    t->data[0] = 1;
  }
}

static int i915_parameter(int which) {
  switch (which) {
    case I915_PARAM_CHIPSET_ID:
      return (int)lab.chip;
    case I915_PARAM_REVISION:
      return 8;
    case I915_PARAM_CS_TIMESTAMP_FREQUENCY:
      return 19200000;
    case I915_PARAM_SUBSLICE_TOTAL:
      return kSubslices;
    case I915_PARAM_EU_TOTAL:
      return kSubslices * kEus;
    case I915_PARAM_SUBSLICE_MASK:
      return (1 << kSubslices) - 1;
    case I915_PARAM_HAS_ALIASING_PPGTT:
      return 3;
    case I915_PARAM_MMAP_GTT_VERSION:
      return 4;
  }
  return 1;
}

int lab_i915(unsigned nr, void* arg) {
  switch (nr) {
    case DRM_I915_GETPARAM: {
      struct drm_i915_getparam* p = arg;
      *p->value = i915_parameter(p->param);
      return 0;
    }
    case DRM_I915_QUERY: {
      struct drm_i915_query* q = arg;
      struct drm_i915_query_item* items = (void*)(uintptr_t)q->items_ptr;
      for (uint32_t i = 0; i < q->num_items; i++) i915_query(&items[i]);
      return 0;
    }
    case DRM_I915_GEM_CREATE: {
      struct drm_i915_gem_create* c = arg;
      c->handle = lab_new_buffer(c->size);
      return 0;
    }
    case DRM_I915_GEM_CREATE_EXT: {
      struct drm_i915_gem_create_ext* c = arg;
      c->handle = lab_new_buffer(c->size);
      return 0;
    }
    case DRM_I915_GEM_MMAP_GTT: {
      struct drm_i915_gem_mmap_offset* m = arg;
      m->offset = lab.buffers[m->handle % kMaxBuffers].offset;
      return 0;
    }
    case DRM_I915_GEM_GET_APERTURE: {
      struct drm_i915_gem_get_aperture* a = arg;
      a->aper_size = a->aper_available_size = 1ull << 48;
      return 0;
    }
    case DRM_I915_GEM_CONTEXT_GETPARAM: {
      struct drm_i915_gem_context_param* p = arg;
      p->value = p->param == I915_CONTEXT_PARAM_GTT_SIZE ? 1ull << 48 : 1;
      return 0;
    }
    case DRM_I915_GEM_CONTEXT_CREATE:
      ((struct drm_i915_gem_context_create*)arg)->ctx_id = lab.next_id++;
      return 0;
    case DRM_I915_GEM_VM_CREATE:
      ((struct drm_i915_gem_vm_control*)arg)->vm_id = lab.next_id++;
      return 0;
    case DRM_I915_REG_READ:
      ((struct drm_i915_reg_read*)arg)->val = 1;
      return 0;
  }
  return 0;
}

// ---- NVIDIA: the chipset (162 Turing, 172 Ampere, 192 Ada) decides the engine classes ----------

struct nvif_message {
  uint8_t version, type, pad[4], owner, route;
  uint64_t token, object;
  uint8_t data[];
};
struct nvif_classes {
  uint8_t version, count, pad[6];
  struct {
    int32_t id;
    int16_t min, max;
  } list[];
};
struct nvif_device_info {
  uint8_t version, platform;
  uint16_t chipset;
  uint8_t revision, family, pad[2];
  uint64_t ram_size, ram_user;
  char chip[16], name[64];
};

static int nvif(struct nvif_message* m) {
  enum { kClasses = 1, kMethod = 4, kPcie = 2, kMethodHeader = 8 };
  if (m->type == kMethod) {
    struct nvif_device_info* info = (void*)(m->data + kMethodHeader);
    *info = (struct nvif_device_info){.platform = kPcie,
                                      .chipset = (uint16_t)lab.chip,
                                      .ram_size = kMemory,
                                      .ram_user = kMemory,
                                      .chip = "lab"};
  } else if (m->type == kClasses) {
    struct nvif_classes* c = (void*)m->data;
    int generation = lab.chip >= 0x190 ? 0xc900 : lab.chip >= 0x170 ? 0xc700 : 0xc500;
    int copy = generation == 0xc500 ? 0xc5b5 : 0xc7b5;
    int ids[] = {generation | 0x97, generation | 0xc0, copy, 0x902d, 0xa140};
    for (int i = 0; i < 5 && i < c->count; i++)
      c->list[i].id = ids[i], c->list[i].min = c->list[i].max = -1;
    c->count = 5;
  }
  return 0;
}

static uint64_t nouveau_parameter(uint64_t which) {
  switch (which) {
    case NOUVEAU_GETPARAM_PCI_VENDOR:
      return lab.driver->pci_vendor;
    case NOUVEAU_GETPARAM_PCI_DEVICE:
      return lab.driver->pci_device;
    case NOUVEAU_GETPARAM_BUS_TYPE:
      return 2;
    case NOUVEAU_GETPARAM_FB_SIZE:
    case NOUVEAU_GETPARAM_VRAM_BAR_SIZE:
      return kMemory;
    case NOUVEAU_GETPARAM_CHIPSET_ID:
      return lab.chip;
    case NOUVEAU_GETPARAM_GRAPH_UNITS:
      return 8 | 36 << 8;  // GPCs, TPCs
    case NOUVEAU_GETPARAM_EXEC_PUSH_MAX:
      return 1024;
    case NOUVEAU_GETPARAM_HAS_VMA_TILEMODE:
      return 1;
  }
  return 0;
}

int lab_nouveau(unsigned nr, void* arg) {
  switch (nr) {
    case DRM_NOUVEAU_NVIF:
      return nvif(arg);
    case DRM_NOUVEAU_GET_ZCULL_INFO:
      return -EINVAL;  // the driver does without
    case DRM_NOUVEAU_GETPARAM: {
      struct drm_nouveau_getparam* p = arg;
      p->value = nouveau_parameter(p->param);
      return 0;
    }
    case DRM_NOUVEAU_CHANNEL_ALLOC: {
      struct drm_nouveau_channel_alloc* c = arg;
      c->channel = (int)lab.next_id++;
      c->pushbuf_domains = NOUVEAU_GEM_DOMAIN_VRAM;
      return 0;
    }
    case DRM_NOUVEAU_GEM_NEW: {
      struct drm_nouveau_gem_info* info = &((struct drm_nouveau_gem_new*)arg)->info;
      info->handle = lab_new_buffer(info->size);
      info->map_handle = lab.buffers[info->handle].offset;
      info->offset = lab.buffers[info->handle].address;
      return 0;
    }
  }
  return 0;
}

// ---- Qualcomm ------------------------------------------------------------------------------

static uint64_t msm_parameter(uint32_t which) {
  switch (which) {
    case MSM_PARAM_CHIP_ID:
      return lab.chip;
    case MSM_PARAM_GMEM_SIZE:
      return 2 << 20;
    case MSM_PARAM_GMEM_BASE:
      return 0x100000;
    case MSM_PARAM_MAX_FREQ:
      return 680000000;
    case MSM_PARAM_PRIORITIES:
      return 1;
    case MSM_PARAM_VA_START:
      return 1ull << 32;
    case MSM_PARAM_VA_SIZE:
      return 1ull << 38;
    case MSM_PARAM_HIGHEST_BANK_BIT:
      return 15;
    case MSM_PARAM_UBWC_SWIZZLE:
      return 6;
  }
  return 0;
}

int lab_msm(unsigned nr, void* arg) {
  switch (nr) {
    case DRM_MSM_GET_PARAM: {
      struct drm_msm_param* p = arg;
      p->value = msm_parameter(p->param);
      return 0;
    }
    case DRM_MSM_GEM_NEW: {
      struct drm_msm_gem_new* n = arg;
      n->handle = lab_new_buffer(n->size);
      return 0;
    }
    case DRM_MSM_GEM_INFO: {
      struct drm_msm_gem_info* i = arg;
      if (i->info == MSM_INFO_GET_OFFSET) i->value = lab.buffers[i->handle % kMaxBuffers].offset;
      if (i->info == MSM_INFO_GET_IOVA) i->value = lab.buffers[i->handle % kMaxBuffers].address;
      return 0;
    }
    case DRM_MSM_SUBMITQUEUE_NEW:
      ((struct drm_msm_submitqueue*)arg)->id = lab.next_id++;
      return 0;
  }
  return 0;
}

// ---- Apple: M1 (8103) and M2 (8112) ---------------------------------------------------------

int lab_asahi(unsigned nr, void* arg) {
  switch (nr) {
    case DRM_ASAHI_GET_PARAMS: {
      struct drm_asahi_get_params* get = arg;
      struct drm_asahi_params_global p = {.gpu_generation = lab.chip == 0x8112 ? 14 : 13,
                                          .gpu_variant = 'G',
                                          .chip_id = (uint32_t)lab.chip,
                                          .num_dies = 1,
                                          .num_clusters_total = 1,
                                          .num_cores_per_cluster = 8,
                                          .core_masks = {0xff},
                                          .max_frequency_khz = 1278000,
                                          .command_timestamp_frequency_hz = 1000000000,
                                          .vm_start = 0x4000,
                                          .vm_end = 1ull << 39,
                                          .vm_kernel_min_size = 1ull << 35,
                                          .max_commands_per_submission = 64,
                                          .max_attachments = 16};
      memcpy((void*)(uintptr_t)get->pointer, &p, get->size < sizeof p ? get->size : sizeof p);
      get->size = sizeof p;
      return 0;
    }
    case DRM_ASAHI_GEM_CREATE: {
      struct drm_asahi_gem_create* c = arg;
      c->handle = lab_new_buffer(c->size);
      return 0;
    }
    case DRM_ASAHI_GEM_MMAP_OFFSET: {
      struct drm_asahi_gem_mmap_offset* m = arg;
      m->offset = lab.buffers[m->handle % kMaxBuffers].offset;
      return 0;
    }
    case DRM_ASAHI_VM_CREATE:
      ((struct drm_asahi_vm_create*)arg)->vm_id = lab.next_id++;
      return 0;
    case DRM_ASAHI_GEM_BIND_OBJECT:
      ((struct drm_asahi_gem_bind_object*)arg)->object_handle = lab.next_id++;
      return 0;
    case DRM_ASAHI_QUEUE_CREATE:
      ((struct drm_asahi_queue_create*)arg)->queue_id = lab.next_id++;
      return 0;
  }
  return 0;
}

// ---- Arm Mali from v10 on: the chip is the upper half of the GPU id (a867 G610, ac04 G310, c800
// G720) ----

static int panthor_query(struct drm_panthor_dev_query* q) {
  const uint32_t variant = lab.chip == 0xa867 ? 0 : 4;
  struct drm_panthor_gpu_info gpu = {.gpu_id = (uint32_t)lab.chip << 16,
                                     .core_features = variant,
                                     .l2_features = 0x07120206,
                                     .tiler_features = 0x809,
                                     .mem_features = 0x301,
                                     .mmu_features = 0x2830,
                                     .thread_features = 0x4010000,
                                     .max_threads = 2048,
                                     .thread_max_workgroup_size = 1024,
                                     .thread_max_barrier_size = 1024,
                                     .texture_features = {0xc1ffff9e, 0xffff, 0, 0},
                                     .as_present = 0xff,
                                     .shader_present = 0xf,
                                     .l2_present = 1,
                                     .tiler_present = 1};
  struct drm_panthor_csif_info csif = {.csg_slot_count = 8,
                                       .cs_slot_count = 8,
                                       .cs_reg_count = 96,
                                       .scoreboard_slot_count = 8,
                                       .unpreserved_cs_reg_count = 4};
  struct drm_panthor_timestamp_info time = {.timestamp_frequency = 24000000};
  struct drm_panthor_group_priorities_info priorities = {.allowed_mask = 0xf};
  const struct {
    const void* from;
    uint32_t size;
  } answers[] = {{&gpu, sizeof gpu},
                 {&csif, sizeof csif},
                 {&time, sizeof time},
                 {&priorities, sizeof priorities}};
  if (q->type >= sizeof answers / sizeof *answers) return -EINVAL;
  uint32_t size = answers[q->type].size;
  if (q->pointer)
    memcpy((void*)(uintptr_t)q->pointer, answers[q->type].from, q->size < size ? q->size : size);
  q->size = size;
  return 0;
}

int lab_panthor(unsigned nr, void* arg) {
  switch (nr) {
    case DRM_PANTHOR_DEV_QUERY:
      return panthor_query(arg);
    case DRM_PANTHOR_VM_CREATE: {
      struct drm_panthor_vm_create* v = arg;
      v->id = lab.next_id++;
      if (!v->user_va_range) v->user_va_range = 1ull << 47;
      return 0;
    }
    case DRM_PANTHOR_BO_CREATE: {
      struct drm_panthor_bo_create* c = arg;
      c->handle = lab_new_buffer(c->size);
      return 0;
    }
    case DRM_PANTHOR_BO_MMAP_OFFSET: {
      struct drm_panthor_bo_mmap_offset* m = arg;
      m->offset = lab.buffers[m->handle % kMaxBuffers].offset;
      return 0;
    }
    case DRM_PANTHOR_GROUP_CREATE:
      ((struct drm_panthor_group_create*)arg)->group_handle = lab.next_id++;
      return 0;
    case DRM_PANTHOR_TILER_HEAP_CREATE: {
      struct drm_panthor_tiler_heap_create* h = arg;
      h->handle = lab.next_id++;
      h->tiler_heap_ctx_gpu_va = lab.next_address, lab.next_address += 1 << 20;
      h->first_heap_chunk_gpu_va = lab.next_address, lab.next_address += 1 << 24;
      return 0;
    }
  }
  return 0;
}
