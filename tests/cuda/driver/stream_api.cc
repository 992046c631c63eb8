// SPDX-License-Identifier: Apache-2.0
// cuStream*, cuEvent*.
#include "tests/cuda/driver/entry.h"

namespace {

using forge::emulated::Device;
using forge::emulated::Event;
using forge::emulated::Schedule;
using forge::emulated::Stream;
using forge::emulated::ValidStream;

bool ValidEvent(CUevent event) { return Device::Get().events.Has(event); }

}  // namespace

CU_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  CU_ENTER_CONTEXT(cuStreamCreateWithPriority);
  if (stream == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  auto owned = std::make_unique<Stream>();
  owned->blocking = flags == 0;
  owned->priority = priority;
  *stream = Device::Get().streams.Add(std::move(owned));
  return CUDA_SUCCESS;
}

CU_API cuStreamCreate(CUstream* stream, unsigned flags) {
  CU_ENTER_CONTEXT(cuStreamCreate);
  if (stream == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  auto owned = std::make_unique<Stream>();
  owned->blocking = flags == 0;
  *stream = Device::Get().streams.Add(std::move(owned));
  return CUDA_SUCCESS;
}

CU_API cuStreamDestroy_v2(CUstream stream) {
  CU_ENTER(cuStreamDestroy_v2);
  if (!Device::Get().streams.Has(stream)) return CUDA_ERROR_INVALID_HANDLE;
  Schedule::Get().Remove(stream);
  Device::Get().streams.Remove(stream);
  return CUDA_SUCCESS;
}

CU_API cuStreamSynchronize(CUstream stream) {
  CU_ENTER_CONTEXT(cuStreamSynchronize);
  return ValidStream(stream) ? Schedule::Get().Synchronise(stream) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuStreamQuery(CUstream stream) {
  CU_ENTER_CONTEXT(cuStreamQuery);
  return ValidStream(stream) ? Schedule::Get().Query(stream) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CU_ENTER_CONTEXT(cuStreamWaitEvent);
  if (!ValidStream(stream) || !ValidEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : Schedule::Get().Wait(stream, event);
}

CU_API cuStreamGetFlags(CUstream stream, unsigned* flags) {
  CU_ENTER_CONTEXT(cuStreamGetFlags);
  if (!ValidStream(stream) || flags == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *flags = stream == nullptr || stream->blocking ? 0 : 1;
  return CUDA_SUCCESS;
}

CU_API cuStreamGetPriority(CUstream stream, int* priority) {
  CU_ENTER_CONTEXT(cuStreamGetPriority);
  if (!ValidStream(stream) || priority == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *priority = stream == nullptr ? 0 : stream->priority;
  return CUDA_SUCCESS;
}

CU_API cuStreamGetCtx(CUstream stream, CUcontext* context) {
  CU_ENTER_CONTEXT(cuStreamGetCtx);
  if (!ValidStream(stream) || context == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = forge::emulated::CurrentContexts().back();
  return CUDA_SUCCESS;
}

CU_API cuEventCreate(CUevent* event, unsigned flags) {
  CU_ENTER_CONTEXT(cuEventCreate);
  if (event == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  auto owned = std::make_unique<Event>();
  owned->timing = (flags & 2) == 0;
  *event = Device::Get().events.Add(std::move(owned));
  return CUDA_SUCCESS;
}

CU_API cuEventDestroy_v2(CUevent event) {
  CU_ENTER(cuEventDestroy_v2);
  return Device::Get().events.Remove(event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CU_API cuEventRecord(CUevent event, CUstream stream) {
  CU_ENTER_CONTEXT(cuEventRecord);
  if (!ValidStream(stream) || !ValidEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  return Schedule::Get().Record(event, stream);
}

CU_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}

CU_API cuEventQuery(CUevent event) {
  CU_ENTER_CONTEXT(cuEventQuery);
  return ValidEvent(event) ? Schedule::Get().QueryEvent(event) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuEventSynchronize(CUevent event) {
  CU_ENTER_CONTEXT(cuEventSynchronize);
  return ValidEvent(event) ? Schedule::Get().SynchroniseEvent(event) : CUDA_ERROR_INVALID_HANDLE;
}

CU_API cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  CU_ENTER_CONTEXT(cuEventElapsedTime);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidEvent(begin) || !ValidEvent(end)) return CUDA_ERROR_INVALID_HANDLE;
  return Schedule::Get().Elapsed(begin, end, milliseconds);
}
CU_API cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime(milliseconds, begin, end);
}
