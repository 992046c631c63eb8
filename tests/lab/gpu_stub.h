// SPDX-License-Identifier: Apache-2.0
// What the stand-in for a GPU and the answers of its kernel drivers share.
#ifndef TESTS_LAB_GPU_STUB_H_
#define TESTS_LAB_GPU_STUB_H_

#include <stdint.h>

enum { kMaxBuffers = 1 << 20 };

// One kernel driver that the stub can play.
struct lab_driver {
  const char* name;
  int minor;               // Of the DRM interface 1.x that the driver asks for.
  int pci_vendor;          // 0: a platform device.
  int pci_device;          // 0: the chip is the PCI id.
  const char* compatible;  // Of a platform device.
  // Answers the driver's own call `nr`; returns 0 or more, or a negative errno.
  int (*answer)(unsigned nr, void* arg);
};

// The device being played; `driver` is NULL where the stub stays out of the way.
struct lab {
  const struct lab_driver* driver;
  uint64_t chip;
  uint32_t next_id;
  uint64_t next_address;
  struct {
    uint64_t size, offset, address;
  } buffers[kMaxBuffers];
};
extern struct lab lab;

// Returns the handle of a new buffer of `size` bytes, a range of the render node's memory.
uint32_t lab_new_buffer(uint64_t size);

int lab_i915(unsigned nr, void* arg);
int lab_nouveau(unsigned nr, void* arg);
int lab_msm(unsigned nr, void* arg);
int lab_asahi(unsigned nr, void* arg);
int lab_panthor(unsigned nr, void* arg);

#endif  // TESTS_LAB_GPU_STUB_H_
