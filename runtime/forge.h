/* SPDX-License-Identifier: Apache-2.0 */
/* Forge for C and every language that speaks it: load a model, open a session on a device, run.
 * docs/c-interface.md shows whole programs.
 *
 * Objects are opaque and freed by their own function; freeing NULL does nothing. A session keeps
 * what it needs of its model. Functions that can fail return a forge_error, NULL on success, which
 * the caller frees; what they were to make is then untouched. Pointers to objects must not be NULL
 * where nothing else is said. Strings are UTF-8; those returned belong to the object asked. Names
 * that a model gives are as the model has them.
 *
 * Threads: models and tensors may be used by many at once. Calls that bind or run one session wait
 * for each other; different sessions run at once. What a session tells of itself belongs to one
 * thread. After a fork a process makes its sessions anew; those from before fail.
 *
 * [2] marks what version 2 of the interface added.
 */
/* NOLINTBEGIN(readability-identifier-naming): C's names. */
#ifndef FORGE_RUNTIME_FORGE_H_
#define FORGE_RUNTIME_FORGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ------------------------------------------------------------------------------ */

/* Grows when functions are added; none is changed or taken away. A program that needs what this
 * header declares runs with every library whose forge_interface() is at least this. */
#define FORGE_INTERFACE 2
int forge_interface(void);

/* The library's own version, "0.1.0". */
const char* forge_version(void);

/* ---- errors -------------------------------------------------------------------------------- */

typedef struct forge_error forge_error;

/* The exit statuses of the tools. */
typedef enum {
  FORGE_FAILED = 1, /* the work failed, or was cancelled */
  FORGE_USAGE = 2,  /* a wrong name, element type or shape; an extent that is not bound */
  FORGE_FILE = 3,   /* no such file, or a malformed one */
  FORGE_DEVICE = 4, /* the device is not available */
  FORGE_REFUSED = 5 /* the model cannot run on this device, or not in its memory */
} forge_code;

forge_code forge_error_code(const forge_error* error);
const char* forge_error_message(const forge_error* error); /* a sentence, never empty */
void forge_error_free(forge_error* error);

/* ---- models -------------------------------------------------------------------------------- */

typedef struct forge_model forge_model;

/* Reads model.bin, or converts a model of another format in memory.
 *   errors: FORGE_FILE with the place in the file, FORGE_USAGE */
forge_error* forge_model_load(const char* path, forge_model** model);
/* [2] The same for a file in memory, which is copied and must hold its weights. */
forge_error* forge_model_load_memory(const void* data, size_t bytes, forge_model** model);
/* A metadata value ("labels", "preprocess"); NULL when absent. */
const char* forge_model_metadata(const forge_model* model, const char* key);
/* The keys of all metadata in alphabetical order; NULL beyond the last. */
const char* forge_model_metadata_key(const forge_model* model, size_t index);
void forge_model_free(forge_model* model);

/* ---- tensors ------------------------------------------------------------------------------- */

typedef struct forge_tensor forge_tensor;

/* Copies `bytes` of row-major, dense elements of this machine's byte order.
 *   dtype: "f32", "i64", "bool" ...; elements below a byte are packed, the lowest bits first
 *   shape: [rank] extents; may be NULL where rank is 0    data: may be NULL where bytes is 0
 *   errors: FORGE_USAGE where `bytes` is not what dtype and shape take */
forge_error* forge_tensor_create(const char* name, const char* dtype, const int64_t* shape,
                                 size_t rank, const void* data, size_t bytes,
                                 forge_tensor** tensor);
const char* forge_tensor_name(const forge_tensor* tensor);
const char* forge_tensor_dtype(const forge_tensor* tensor);
size_t forge_tensor_rank(const forge_tensor* tensor);
const int64_t* forge_tensor_shape(const forge_tensor* tensor); /* [rank] */
const void* forge_tensor_data(const forge_tensor* tensor);     /* [forge_tensor_bytes] */
size_t forge_tensor_bytes(const forge_tensor* tensor);
void forge_tensor_free(forge_tensor* tensor);

/* ---- devices [2] --------------------------------------------------------------------------- */

typedef struct forge_devices forge_devices;

/* What is there now, of every backend. */
forge_error* forge_devices_list(forge_devices** devices);
size_t forge_devices_count(const forge_devices* devices);
/* "vulkan:0", as forge_session_create takes it. `index` beyond the last: NULL, here and below. */
const char* forge_devices_id(const forge_devices* devices, size_t index);
const char* forge_devices_name(const forge_devices* devices, size_t index);
/* Why it cannot be used; NULL where it can. */
const char* forge_devices_problem(const forge_devices* devices, size_t index);
void forge_devices_free(forge_devices* devices);

/* ---- options of sessions [2] --------------------------------------------------------------- */

typedef struct forge_options forge_options;

/* Those of forge_session_create. */
forge_error* forge_options_create(forge_options** options);
/* The function to run; "main" where this is not called. */
forge_error* forge_options_set_function(forge_options* options, const char* name);
/* Adds an output, which may be any inner value; the function's own where this is not called. */
forge_error* forge_options_add_output(forge_options* options, const char* name);
/* Gives a symbol its extent once and for all. */
forge_error* forge_options_set_dim(forge_options* options, const char* name, int64_t extent);
/* Bytes on the device for weights, states, and the intermediate values of a binding. */
forge_error* forge_options_set_memory_limit(forge_options* options, uint64_t bytes);
/* Threads of the host; 0: all. Sessions share a device where this agrees. */
forge_error* forge_options_set_threads(forge_options* options, int threads);
/* Looks for faster kernels for so long at each binding. */
forge_error* forge_options_set_autotune(forge_options* options, double seconds);
void forge_options_free(forge_options* options);

/* ---- sessions ------------------------------------------------------------------------------ */

typedef struct forge_session forge_session;

/* Makes the model's function "main" ready for a device. Sessions of one model on a device of the
 * same name share weights and kernels.
 *   device: "auto" (also NULL), "cpu", "vulkan", "vulkan:1", "vulkan:NAME-PART", "reference" ...
 *   errors: FORGE_DEVICE, FORGE_REFUSED naming every op that cannot run there, FORGE_USAGE */
forge_error* forge_session_create(const forge_model* model, const char* device,
                                  forge_session** session);
/* [2] The same with options, which the session copies.
 *   errors: also FORGE_USAGE (a function, output or symbol that the model has not) */
forge_error* forge_session_create_with(const forge_model* model, const char* device,
                                       const forge_options* options, forge_session** session);
const char* forge_session_device_name(const forge_session* session);

/* What the model takes and gives, in its own order. `index` beyond the last: NULL, or -1. */
size_t forge_session_input_count(const forge_session* session);
size_t forge_session_output_count(const forge_session* session);
const char* forge_session_input_name(const forge_session* session, size_t index);
const char* forge_session_output_name(const forge_session* session, size_t index);
const char* forge_session_input_dtype(const forge_session* session, size_t index);
const char* forge_session_output_dtype(const forge_session* session, size_t index);
/* -1 also where only a run can tell. */
int forge_session_input_rank(const forge_session* session, size_t index);
int forge_session_output_rank(const forge_session* session, size_t index);
/* The extent of each axis, [rank]; -1 where it is dynamic. */
const int64_t* forge_session_input_shape(const forge_session* session, size_t index);
const int64_t* forge_session_output_shape(const forge_session* session, size_t index);
/* What a dynamic extent is made of: the name of a symbol, as forge_session_bind takes it, or an
 * expression, "floordiv(n, 2)"; NULL where it is a number. */
const char* forge_session_input_symbol(const forge_session* session, size_t index, size_t axis);
const char* forge_session_output_symbol(const forge_session* session, size_t index, size_t axis);

/* Compiles and plans for these extents ahead of the first run, which binds from its inputs where
 * this was not called. A session keeps its newest bindings, so going back to one costs nothing.
 *   names, extents: [count] symbols of the inputs and their values, all of them
 *   errors: FORGE_USAGE (unknown or missing symbol, an extent the model does not take),
 *   FORGE_REFUSED, FORGE_FAILED */
forge_error* forge_session_bind(forge_session* session, const char* const* names,
                                const int64_t* extents, size_t count);
/* [2] The extents of an output at the newest binding, [forge_session_output_rank], and its bytes.
 * NULL and 0 before the first, and beyond the last output. Good until the next call about a
 * binding.
 */
const int64_t* forge_session_bound_output_shape(forge_session* session, size_t index);
size_t forge_session_bound_output_bytes(forge_session* session, size_t index);
/* Runs, and returns when the outputs are there.
 *   inputs: [input_count], in any order, each named    outputs: made by the call, in the model's
 *   order, freed by the caller; output_count must be at least forge_session_output_count
 *   errors: FORGE_USAGE with what was expected, FORGE_FAILED (cancelled, device lost), and those of
 *   forge_session_bind */
forge_error* forge_session_run(forge_session* session, const forge_tensor* const* inputs,
                               size_t input_count, forge_tensor** outputs, size_t output_count);

/* [2] Elements of an input in the caller's memory: dense, in rows, of the input's own type. */
typedef struct {
  const int64_t* shape; /* [rank] */
  size_t rank;
  const void* data; /* [bytes] */
  size_t bytes;
} forge_input;
/* [2] Memory of the caller for an output. */
typedef struct {
  void* data; /* [bytes] */
  size_t bytes;
} forge_output;
/* [2] Runs on the caller's memory, without a copy where the device computes in the host's memory
 * and the memory is aligned to 16 bytes, and without an allocation once these shapes were bound.
 *   inputs: [input_count], all of them in the model's order
 *   outputs: [output_count], all of them in the model's order, each of exactly
 *   forge_session_bound_output_bytes at these extents; they overlap neither each other nor inputs
 *   errors: as forge_session_run */
forge_error* forge_session_run_into(forge_session* session, const forge_input* inputs,
                                    size_t input_count, const forge_output* outputs,
                                    size_t output_count);
/* From any thread: ends the binding or run in progress between its steps, which then fails; without
 * one it does nothing. */
void forge_session_cancel(forge_session* session);
void forge_session_free(forge_session* session);

#ifdef __cplusplus
}
#endif
#endif
/* NOLINTEND(readability-identifier-naming) */
