/* SPDX-License-Identifier: Apache-2.0 */
/* Forge for C and every language that speaks it: load a model, open a session on a device, run.
 *
 * Objects are opaque and freed by their own function; freeing NULL does nothing. A session keeps
 * what it needs of its model. Functions that can fail return a forge_error, NULL on success, which
 * the caller frees. Strings are UTF-8. A session runs one call at a time; different sessions may
 * run at once.
 */
/* NOLINTBEGIN(readability-identifier-naming): C's names. */
#ifndef FORGE_RUNTIME_FORGE_H_
#define FORGE_RUNTIME_FORGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct forge_error forge_error;
typedef struct forge_model forge_model;
typedef struct forge_session forge_session;
typedef struct forge_tensor forge_tensor;

/* The exit statuses of the tools: 1 failed, 2 usage, 3 file, 4 device, 5 refused. */
typedef enum {
  FORGE_FAILED = 1,
  FORGE_USAGE = 2,
  FORGE_FILE = 3,
  FORGE_DEVICE = 4,
  FORGE_REFUSED = 5
} forge_code;

forge_code forge_error_code(const forge_error* error);
const char* forge_error_message(const forge_error* error); /* lives as long as the error */
void forge_error_free(forge_error* error);

/* "0.1.0". */
const char* forge_version(void);

/* Reads model.bin or a model of another format. */
forge_error* forge_model_load(const char* path, forge_model** model);
/* A metadata value ("labels", "preprocess"); NULL when absent. Lives as long as the model. */
const char* forge_model_metadata(const forge_model* model, const char* key);
void forge_model_free(forge_model* model);

/* device: "auto", "cpu", "vulkan:0", ...  */
forge_error* forge_session_create(const forge_model* model, const char* device,
                                  forge_session** session);
size_t forge_session_input_count(const forge_session* session);
size_t forge_session_output_count(const forge_session* session);
const char* forge_session_input_name(const forge_session* session,
                                     size_t index); /* NULL beyond the last */
const char* forge_session_output_name(const forge_session* session, size_t index);
const char* forge_session_device_name(const forge_session* session);
/* Inputs in any order, each named. Outputs are made by the call, in the model's order; `count` must
 * be at least forge_session_output_count, and each is freed by the caller. */
forge_error* forge_session_run(forge_session* session, const forge_tensor* const* inputs,
                               size_t input_count, forge_tensor** outputs, size_t output_count);
/* From any thread: ends the run in progress between steps. */
void forge_session_cancel(forge_session* session);
void forge_session_free(forge_session* session);

/* dtype: "f32", "i64", ...; `data` (row-major, dense) is copied; `bytes` must be what dtype and
 * shape take. */
forge_error* forge_tensor_create(const char* name, const char* dtype, const int64_t* shape,
                                 size_t rank, const void* data, size_t bytes,
                                 forge_tensor** tensor);
const char* forge_tensor_name(const forge_tensor* tensor);
const char* forge_tensor_dtype(const forge_tensor* tensor);
size_t forge_tensor_rank(const forge_tensor* tensor);
const int64_t* forge_tensor_shape(const forge_tensor* tensor);
const void* forge_tensor_data(const forge_tensor* tensor);
size_t forge_tensor_bytes(const forge_tensor* tensor);
void forge_tensor_free(forge_tensor* tensor);

#ifdef __cplusplus
}
#endif
#endif
/* NOLINTEND(readability-identifier-naming) */
