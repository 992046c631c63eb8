// SPDX-License-Identifier: Apache-2.0
// A stand-in for the kernel side of a GPU. Preloaded into a process, it answers the DRM calls of
// Mesa's Intel, NVIDIA, Qualcomm, Arm and Apple Vulkan drivers, so that they open a device and
// compile pipelines on a machine that has none. Submissions succeed at once and nothing ever
// executes.
//
//   LAB_GPU=DRIVER:CHIP   i915:<pci id> | nouveau:<chipset> | msm:<chip id> | panthor:<product> |
//                         asahi:<chip id>, in hex
//   LAB_GPU_DEBUG=1       one line for each call
//
// The render node is a sparse memfd and a buffer is a range of it, so that mapping one just works.
// Sources: the kernel's uapi headers (drm.h and each driver's own).
#define _GNU_SOURCE
#include "gpu_stub.h"

#include <dlfcn.h>
#include <drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>

#define NODE "/dev/dri/renderD128"
enum { kRenderMajor = 226, kRenderMinor = 128, kMaxFd = 1024 };

static const struct lab_driver kDrivers[] = {
    {"i915", 6, 0x8086, 0, NULL, lab_i915},
    {"nouveau", 4, 0x10de, 0x2684, NULL, lab_nouveau},
    {"msm", 12, 0, 0, "qcom,adreno", lab_msm},
    {"asahi", 0, 0, 0, "apple,agx-g13g", lab_asahi},
    {"panthor", 4, 0, 0, "arm,mali-valhall-csf", lab_panthor},
};

struct lab lab = {.next_id = 1, .next_address = 1ull << 32};

static int debug;
static uint8_t is_node[kMaxFd];
static uint32_t next_handle = 1;
static uint64_t next_offset = 1 << 20;

__attribute__((constructor)) static void init(void) {
  char name[32];
  unsigned long long id;
  debug = getenv("LAB_GPU_DEBUG") != NULL;
  const char* gpu = getenv("LAB_GPU");
  if (!gpu || sscanf(gpu, "%31[a-z0-9]:%llx", name, &id) != 2) return;
  for (size_t i = 0; i < sizeof kDrivers / sizeof *kDrivers; i++)
    if (!strcmp(kDrivers[i].name, name)) lab.driver = &kDrivers[i];
  lab.chip = id;
}

static int node_fd(int fd) { return fd >= 0 && fd < kMaxFd && is_node[fd]; }
static int node_path(const char* path) { return lab.driver && path && !strcmp(path, NODE); }

static int open_node(void) {
  int made = memfd_create("lab-gpu", MFD_CLOEXEC);
  // Not among the standard ones: turnip closes descriptor 0 for each fence that no submission made.
  int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, 16);
  if (made >= 0) close(made);
  if (fd < 0 || fd >= kMaxFd || ftruncate(fd, 1ll << 40)) return -1;
  is_node[fd] = 1;
  return fd;
}

uint32_t lab_new_buffer(uint64_t size) {
  uint32_t handle = next_handle++ % kMaxBuffers;
  size = (size + 0xffff) & ~0xffffull;
  lab.buffers[handle].size = size;
  lab.buffers[handle].offset = next_offset;
  lab.buffers[handle].address = lab.next_address;
  next_offset += size;
  lab.next_address += size;
  return handle;
}

// ---- the C library's side ------------------------------------------------------------------

typedef int (*Open)(const char*, int, ...);
typedef int (*Fcntl)(int, int, ...);
typedef int (*Ioctl)(int, unsigned long, ...);
typedef int (*Close)(int);

#define REAL(type, name) \
  static type real;      \
  if (!real) real = (type)dlsym(RTLD_NEXT, name)

#define OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                      \
    REAL(Open, #name);                                              \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    int mode = va_arg(rest, int);                                   \
    va_end(rest);                                                   \
    return node_path(path) ? open_node() : real(path, flags, mode); \
  }

#define STAT(name, first, is_ours, kind)                \
  int name(first it, struct kind* out) {                \
    typedef int (*Stat)(first, struct kind*);           \
    REAL(Stat, #name);                                  \
    if (!is_ours(it)) return real(it, out);             \
    memset(out, 0, sizeof *out);                        \
    out->st_mode = S_IFCHR | 0666;                      \
    out->st_rdev = makedev(kRenderMajor, kRenderMinor); \
    return 0;                                           \
  }

#define FCNTL(name)                                                    \
  int name(int fd, int cmd, ...) {                                     \
    REAL(Fcntl, #name);                                                \
    va_list rest;                                                      \
    va_start(rest, cmd);                                               \
    void* arg = va_arg(rest, void*);                                   \
    va_end(rest);                                                      \
    int r = real(fd, cmd, arg);                                        \
    int copies = cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;             \
    if (copies && node_fd(fd) && r >= 0 && r < kMaxFd) is_node[r] = 1; \
    return r;                                                          \
  }

OPEN(open)
OPEN(open64)
STAT(stat, const char*, node_path, stat)
STAT(stat64, const char*, node_path, stat64)
STAT(fstat, int, node_fd, stat)
STAT(fstat64, int, node_fd, stat64)
FCNTL(fcntl)
FCNTL(fcntl64)

// Registers that a driver maps lie far beyond the memfd: zeroed pages stand for them.
typedef void* (*Mmap)(void*, size_t, int, int, int, off_t);
static void* map(Mmap real, void* at, size_t size, int protection, int flags, int fd,
                 off_t offset) {
  if (node_fd(fd) && offset >= 1ll << 40)
    return real(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return real(at, size, protection, flags, fd, offset);
}
#define MMAP(name)                                                                     \
  void* name(void* at, size_t size, int protection, int flags, int fd, off_t offset) { \
    REAL(Mmap, #name);                                                                 \
    return map(real, at, size, protection, flags, fd, offset);                         \
  }
MMAP(mmap)
MMAP(mmap64)

int close(int fd) {
  REAL(Close, "close");
  if (fd >= 0 && fd < kMaxFd) is_node[fd] = 0;
  return real(fd);
}

// ---- libdrm's side: finding the device -----------------------------------------------------

static drmDevicePtr make_device(void) {
  drmDevicePtr d = calloc(1, sizeof *d);
  d->nodes = calloc(DRM_NODE_MAX, sizeof *d->nodes);
  d->nodes[DRM_NODE_RENDER] = strdup(NODE);
  d->available_nodes = 1 << DRM_NODE_RENDER;
  if (lab.driver->pci_vendor) {
    d->bustype = DRM_BUS_PCI;
    d->businfo.pci = calloc(1, sizeof *d->businfo.pci);
    d->businfo.pci->bus = 3;
    d->deviceinfo.pci = calloc(1, sizeof *d->deviceinfo.pci);
    d->deviceinfo.pci->vendor_id = lab.driver->pci_vendor;
    d->deviceinfo.pci->device_id = lab.driver->pci_device ? lab.driver->pci_device : (int)lab.chip;
  } else {
    d->bustype = DRM_BUS_PLATFORM;
    d->businfo.platform = calloc(1, sizeof *d->businfo.platform);
    strcpy(d->businfo.platform->fullname, "/soc/gpu");
    d->deviceinfo.platform = calloc(1, sizeof *d->deviceinfo.platform);
    d->deviceinfo.platform->compatible = calloc(2, sizeof(char*));
    d->deviceinfo.platform->compatible[0] = strdup(lab.driver->compatible);
  }
  return d;
}

int drmGetDevices2(uint32_t flags, drmDevicePtr out[], int max) {
  (void)flags;
  if (lab.driver && out && max > 0) out[0] = make_device();
  return lab.driver != NULL;
}
int drmGetDevice2(int fd, uint32_t flags, drmDevicePtr* out) {
  (void)fd, (void)flags;
  *out = make_device();
  return 0;
}
int drmGetDeviceFromDevId(dev_t id, uint32_t flags, drmDevicePtr* out) {
  (void)id;
  return drmGetDevice2(-1, flags, out);
}
int drmGetDevices(drmDevicePtr out[], int max) { return drmGetDevices2(0, out, max); }
int drmGetDevice(int fd, drmDevicePtr* out) { return drmGetDevice2(fd, 0, out); }
void drmFreeDevice(drmDevicePtr* d) { *d = NULL; }  // a few are leaked on purpose
void drmFreeDevices(drmDevicePtr d[], int n) { memset(d, 0, n * sizeof *d); }

// ---- the kernel's side ---------------------------------------------------------------------

static void put_string(char* to, size_t* length, const char* s) {
  if (to && *length) memcpy(to, s, *length < strlen(s) ? *length : strlen(s));
  *length = strlen(s);
}

static int every_driver(unsigned long request, void* arg) {  // 0: answered
  switch (request) {
    case DRM_IOCTL_VERSION: {
      struct drm_version* v = arg;
      v->version_major = 1, v->version_minor = lab.driver->minor, v->version_patchlevel = 2;
      put_string(v->name, &v->name_len, lab.driver->name);
      put_string(v->date, &v->date_len, "20260101");
      put_string(v->desc, &v->desc_len, "lab");
      return 0;
    }
    case DRM_IOCTL_SYNCOBJ_QUERY: {
      struct drm_syncobj_timeline_array* q = arg;
      for (uint32_t i = 0; i < q->count_handles; i++)
        ((uint64_t*)(uintptr_t)q->points)[i] = INT64_MAX;
      return 0;
    }
    case DRM_IOCTL_GET_CAP:
      ((struct drm_get_cap*)arg)->value = 1;
      return 0;
    case DRM_IOCTL_SYNCOBJ_CREATE:
      ((struct drm_syncobj_create*)arg)->handle = lab.next_id++;
      return 0;
    case DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD:
      ((struct drm_syncobj_handle*)arg)->fd = open_node();
      return 0;
  }
  unsigned nr = _IOC_NR(request);
  return nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END;  // other core calls just succeed
}

int ioctl(int fd, unsigned long request, ...) {
  REAL(Ioctl, "ioctl");
  va_list rest;
  va_start(rest, request);
  void* arg = va_arg(rest, void*);
  va_end(rest);
  if (!node_fd(fd) || _IOC_TYPE(request) != DRM_IOCTL_BASE) return real(fd, request, arg);
  int r =
      every_driver(request, arg) ? lab.driver->answer(_IOC_NR(request) - DRM_COMMAND_BASE, arg) : 0;
  if (debug) fprintf(stderr, "lab: ioctl %#lx -> %d\n", _IOC_NR(request), r);
  if (r >= 0) return r;
  errno = -r;
  return -1;
}
