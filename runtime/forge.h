/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of Forge, for C and every language that can call C: load a model, open a session
 * on a device, run. docs/c-interface.md shows complete programs.
 *
 * Objects are opaque. Each is freed by its own function, for which NULL is allowed. A session keeps
 * what it needs of its model. Functions that can fail return a forge_error, NULL on success, which
 * the caller frees; on failure output parameters are unchanged. Pointers to objects must not be
 * NULL unless stated otherwise. Strings are UTF-8; returned strings belong to the object. Names of
 * inputs, outputs and symbols are those of the model.
 *
 * Threads: models and tensors may be used from several threads. Calls that bind or run one session
 * wait for each other; different sessions run concurrently. The functions that query a session must
 * be called from one thread at a time. After a fork the child process creates new sessions; calls
 * on older ones fail.
 *
 * [2] to [7] mark additions of these versions of the interface.
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

/* The version of the interface. It grows when functions are added; none is changed or removed. A
 * program compiled with this header runs with every library whose forge_interface() is at least
 * FORGE_INTERFACE. */
#define FORGE_INTERFACE 7
/* The version of the interface that the library provides. */
int forge_interface(void);

/* The version of the library: "0.1.0". */
const char* forge_version(void);

/* ---- errors -------------------------------------------------------------------------------- */

/* An error: a code and a message. */
typedef struct forge_error forge_error;

/* Error codes; equal to the exit statuses of the tools. */
typedef enum {
  FORGE_FAILED = 1, /* the work failed, or was cancelled */
  FORGE_USAGE = 2,  /* a wrong name, element type or shape; an unbound extent */
  FORGE_FILE = 3,   /* the file does not exist or is malformed */
  FORGE_DEVICE = 4, /* the device is not available */
  FORGE_REFUSED = 5 /* the model cannot run on this device, or exceeds its memory */
} forge_code;

forge_code forge_error_code(const forge_error* error);
const char* forge_error_message(const forge_error* error); /* never empty */
void forge_error_free(forge_error* error);

/* ---- models -------------------------------------------------------------------------------- */

/* An immutable model. */
typedef struct forge_model forge_model;

/* Reads model.bin, or converts a model of another format in memory.
 *   errors: FORGE_FILE with the place in the file, FORGE_USAGE */
forge_error* forge_model_load(const char* path, forge_model** model);
/* [2] Reads a model file in memory, which is copied and must include its weights.
 *   errors: as forge_model_load */
forge_error* forge_model_load_memory(const void* data, size_t bytes, forge_model** model);
/* Returns a metadata value ("labels", "preprocess"); NULL when absent. */
const char* forge_model_metadata(const forge_model* model, const char* key);
/* Returns the metadata keys in alphabetical order; NULL beyond the last. */
const char* forge_model_metadata_key(const forge_model* model, size_t index);
/* [3] Writes model.bin.  errors: FORGE_FAILED (cannot write) */
forge_error* forge_model_save(const forge_model* model, const char* path);
void forge_model_free(forge_model* model);

/* ---- ops and graphs [3] -------------------------------------------------------------------- */

/* Describes every op as JSON: an array of objects with "name", "inputs" and "outputs" (the
 * signature, as docs/ops.md explains it), and "attributes", an array of objects with "name", "type"
 * ("bool", "int", "float", "string", "ints", "floats", "dtype", "choice", "dim", "dims", "type",
 * "function" or "number"), "default" (as forge_node::attributes states it) and, for a choice,
 * "choices". The string belongs to the library. */
const char* forge_ops_json(void);

/* A graph under construction: the function "main" of a new model. It is used by one thread at a
 * time. A node that fails leaves the graph as it was. */
typedef struct forge_graph forge_graph;
/* A value of a graph. */
typedef int64_t forge_value;
/* An optional operand that is not given. */
#define FORGE_ABSENT ((forge_value) - 1)

forge_error* forge_graph_create(forge_graph** graph);
void forge_graph_free(forge_graph* graph);
/* Declares a symbol for dimensions. Values of it lie within min..max and are multiples of
 * `divisor`. A symbol that types mention without a declaration has any value from 0.
 *   errors: FORGE_USAGE (declared twice, without values) */
forge_error* forge_graph_symbol(forge_graph* graph, const char* name, int64_t min, int64_t max,
                                int64_t divisor);
/* Adds an input.  type: "f32[n, 3]", with symbols and expressions of them as extents */
forge_error* forge_graph_input(forge_graph* graph, const char* name, const char* type,
                               forge_value* value);

/* A tensor of the model: weights, or a state that runs change. */
typedef struct {
  const char* name; /* one in use gets ".1", ".2" ... */
  const char* role; /* "constant", "parameter" or "state" */
  const char* type; /* of fixed extents: "f32[10, 4]" */
  const void* data; /* [bytes], dense and row-major */
  size_t bytes;
  /* Not NULL: `data` is used in place and stays valid until release(context) is called, once, from
   * any thread, when the graph, its model and their sessions no longer need it. NULL: a copy. */
  void (*release)(void* context);
  void* context;
} forge_variable;
/* Adds a tensor and returns its value at the start of a run. One of the same name, role, type and
 * memory, used in place, is the same tensor: bodies read weights of the model so.
 *   errors: FORGE_USAGE (a size that does not fit the type), after `release` */
forge_error* forge_graph_variable(forge_graph* graph, const forge_variable* variable,
                                  forge_value* value);

/* A node: an op applied to values. */
typedef struct {
  const char* op;              /* a name of forge_ops_json: "softmax" */
  const forge_value* operands; /* [operand_count], or FORGE_ABSENT */
  size_t operand_count;
  const char* attributes;  /* "axis = 1, shape = [n, 3]"; NULL: none. Left out: the defaults */
  const char* source;      /* the source's name of the node, for messages and plans; may be NULL */
  const char* source_kind; /* the source's operator; may be NULL */
} forge_node;
/* Adds a node and infers the types of its results.
 *   results: [capacity]; NULL where capacity is 0    count: how many results there are
 *   errors: FORGE_USAGE with op and types (an unknown op or attribute, operands that do not fit) */
forge_error* forge_graph_node(forge_graph* graph, const forge_node* node, forge_value* results,
                              size_t capacity, size_t* count);
/* [5] The gradients that forge_graph_gradients adds. */
typedef struct {
  const forge_value* of;    /* [of_count] values, floats */
  const forge_value* seeds; /* [of_count] what flows back to each of them, of its type */
  size_t of_count;
  const forge_value* with; /* [with_count] values that the others depend on */
  size_t with_count;
} forge_gradients;
/* [5] Adds the gradients of values, times what flows back to them, with respect to other values.
 *   results: [with_count], of the types of `with`; zeros where nothing flows
 *   errors: FORGE_USAGE (other types), FORGE_REFUSED (names a node that has no gradient) */
forge_error* forge_graph_gradients(forge_graph* graph, const forge_gradients* gradients,
                                   forge_value* results);
/* [6] Adds a function to the model, for attributes that are functions (the bodies of "if" and
 * "loop"), which call it "@NAME". It is built like `graph`, with the symbols of the model; its
 * inputs are the body's arguments, its outputs the results. The caller frees it, before `graph` or
 * after it.
 *   errors: FORGE_USAGE (a name in use) */
forge_error* forge_graph_body(forge_graph* graph, const char* name, forge_graph** body);
/* Names an inner value, so that forge_options_add_output and the tools know it; the first name of a
 * value stays. */
forge_error* forge_graph_name(forge_graph* graph, forge_value value, const char* name);
/* Returns the type of a value: "f32[n, 3]"; NULL where there is no such value. */
const char* forge_graph_type(forge_graph* graph, forge_value value);
/* Adds an output. */
forge_error* forge_graph_output(forge_graph* graph, const char* name, forge_value value);
/* Replaces a state at the end of each run.
 *   variable: as forge_graph_variable returned it */
forge_error* forge_graph_store(forge_graph* graph, forge_value variable, forge_value value);
/* Adds metadata, which forge_model_metadata returns. */
forge_error* forge_graph_metadata(forge_graph* graph, const char* key, const char* value);
/* Makes a model of the graph, which can then only be freed, as can its bodies. */
forge_error* forge_graph_finish(forge_graph* graph, forge_model** model);

/* ---- tensors ------------------------------------------------------------------------------- */

/* A named tensor with its elements. */
typedef struct forge_tensor forge_tensor;

/* Creates a tensor from a copy of dense, row-major elements in the byte order of the host.
 *   dtype: "f32", "i64", "bool" ...; elements narrower than a byte are packed, lowest bits first
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

/* A list of devices. */
typedef struct forge_devices forge_devices;

/* Lists the devices of every backend. */
forge_error* forge_devices_list(forge_devices** devices);
size_t forge_devices_count(const forge_devices* devices);
/* Returns the device name that forge_session_create accepts, such as "vulkan:0". This function and
 * the next two return NULL for an `index` beyond the last device. */
const char* forge_devices_id(const forge_devices* devices, size_t index);
const char* forge_devices_name(const forge_devices* devices, size_t index);
/* Returns the reason why the device cannot be used; NULL where it can. */
const char* forge_devices_problem(const forge_devices* devices, size_t index);
void forge_devices_free(forge_devices* devices);

/* ---- options of sessions [2] --------------------------------------------------------------- */

/* Options of forge_session_create_with. */
typedef struct forge_options forge_options;

/* Creates the default options, those of forge_session_create. */
forge_error* forge_options_create(forge_options** options);
/* Sets the function to run; default: "main". */
forge_error* forge_options_set_function(forge_options* options, const char* name);
/* Adds an output, which may be any inner value; default: the outputs of the function. */
forge_error* forge_options_add_output(forge_options* options, const char* name);
/* Fixes the extent of a symbol for all bindings. */
forge_error* forge_options_set_dim(forge_options* options, const char* name, int64_t extent);
/* Limits the bytes of device memory for weights, states and the memory of bindings; a binding that
 * needs more fails with FORGE_REFUSED. */
forge_error* forge_options_set_memory_limit(forge_options* options, uint64_t bytes);
/* Sets the number of host threads; 0: all. Sessions with equal numbers share a device. */
forge_error* forge_options_set_threads(forge_options* options, int threads);
/* Searches for faster kernels for this time at each binding. */
forge_error* forge_options_set_autotune(forge_options* options, double seconds);
/* Called during long work, from any thread, with what is done ("compiling kernels"), the number of
 * finished units and their total. */
typedef void (*forge_progress)(void* context, const char* what, size_t done, size_t total);
/* [7] How f32 is computed: "exact" (the default); "f16" or "bf16", to which the operands of
 * products and convolutions are rounded, while the rest stays in f32; or "fast", which lets the
 * device round them and compute functions approximately. */
forge_error* forge_options_set_precision(forge_options* options, const char* name);
/* [6] Reports the long work of sessions with these options, while they live; NULL: reports none. */
forge_error* forge_options_set_progress(forge_options* options, forge_progress progress,
                                        void* context);
/* [6] 0: runs each op as a step of its own, to judge what fusion does; default: 1. */
forge_error* forge_options_set_fusion(forge_options* options, int fuse);
void forge_options_free(forge_options* options);

/* ---- sessions ------------------------------------------------------------------------------ */

/* A model on a device. */
typedef struct forge_session forge_session;

/* Creates a session that runs the function "main" of a model. Sessions of one model on a device of
 * the same name share weights and kernels.
 *   device: "auto" (also NULL), "cpu", "vulkan", "vulkan:1", "vulkan:NAME-PART", "reference" ...
 *   errors: FORGE_DEVICE, FORGE_REFUSED listing every op that cannot run there, FORGE_USAGE */
forge_error* forge_session_create(const forge_model* model, const char* device,
                                  forge_session** session);
/* [2] Creates a session with options, which it copies.
 *   errors: also FORGE_USAGE (a function, output or symbol that the model does not have) */
forge_error* forge_session_create_with(const forge_model* model, const char* device,
                                       const forge_options* options, forge_session** session);
const char* forge_session_device_name(const forge_session* session);

/* The inputs and outputs of the model, in its order. For an `index` beyond the last the functions
 * below return NULL, or -1. */
size_t forge_session_input_count(const forge_session* session);
size_t forge_session_output_count(const forge_session* session);
const char* forge_session_input_name(const forge_session* session, size_t index);
const char* forge_session_output_name(const forge_session* session, size_t index);
/* An element type that is known only after a run is an empty string, such a rank -1. */
const char* forge_session_input_dtype(const forge_session* session, size_t index);
const char* forge_session_output_dtype(const forge_session* session, size_t index);
int forge_session_input_rank(const forge_session* session, size_t index);
int forge_session_output_rank(const forge_session* session, size_t index);
/* The extents, [rank]; -1 for a dynamic extent. */
const int64_t* forge_session_input_shape(const forge_session* session, size_t index);
const int64_t* forge_session_output_shape(const forge_session* session, size_t index);
/* The symbol of a dynamic extent, as forge_session_bind accepts it, or an expression such as
 * "floordiv(n, 2)"; NULL for a fixed extent. */
const char* forge_session_input_symbol(const forge_session* session, size_t index, size_t axis);
const char* forge_session_output_symbol(const forge_session* session, size_t index, size_t axis);

/* Compiles and plans for these extents before the first run. Without this call a run binds the
 * extents of its inputs. A session keeps its most recent bindings, so binding one again is free.
 *   names, extents: [count] symbols of the inputs and their values, all of them
 *   errors: FORGE_USAGE (unknown or missing symbol, an extent that the model does not accept),
 *   FORGE_REFUSED, FORGE_FAILED */
forge_error* forge_session_bind(forge_session* session, const char* const* names,
                                const int64_t* extents, size_t count);
/* [2] Gives a step value that no input's shape tells, such as the position in a cache, for runs
 * that begin later. Devices that keep step values open compile and record nothing for another
 * value. errors: FORGE_USAGE (unknown, no step value, outside of its bounds) */
forge_error* forge_session_set_step_value(forge_session* session, const char* name, int64_t value);
/* [2] The extents, [forge_session_output_rank], and the bytes of an output at the newest binding.
 * NULL and 0 before the first binding and beyond the last output. The pointer is valid until the
 * next call that binds or runs, or reads a bound shape. */
const int64_t* forge_session_bound_output_shape(forge_session* session, size_t index);
size_t forge_session_bound_output_bytes(forge_session* session, size_t index);
/* Runs the model and returns when the outputs are complete.
 *   inputs: [input_count], in any order, each named    outputs: created by the call, in the model's
 *   order, freed by the caller; output_count must be at least forge_session_output_count
 *   errors: FORGE_USAGE with what was expected, FORGE_FAILED (cancelled, device lost), and those of
 *   forge_session_bind */
forge_error* forge_session_run(forge_session* session, const forge_tensor* const* inputs,
                               size_t input_count, forge_tensor** outputs, size_t output_count);

/* [2] An input in memory of the caller: dense, row-major, of the element type of the input. */
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
/* [2] Runs on memory of the caller. There is no copy where the device computes in host memory and
 * the memory is aligned to 16 bytes, and no allocation once these shapes are bound.
 *   inputs: [input_count], all of them in the model's order
 *   outputs: [output_count], all of them in the model's order, each of exactly
 *   forge_session_bound_output_bytes at these extents; they overlap neither each other nor inputs
 *   errors: as forge_session_run */
forge_error* forge_session_run_into(forge_session* session, const forge_input* inputs,
                                    size_t input_count, const forge_output* outputs,
                                    size_t output_count);
/* [3] Binds the extents of these inputs, so that forge_session_bound_output_bytes tells what a run
 * on them needs.
 *   inputs: as forge_session_run_into takes them; elements are not read
 *   errors: as forge_session_bind */
forge_error* forge_session_bind_inputs(forge_session* session, const forge_input* inputs,
                                       size_t input_count);
/* [3] 1 where the types of the model depend on values of a run, otherwise 0. Binding such a session
 * does nothing, and the shapes of its outputs are known when forge_session_run returns them. */
int forge_session_runs_in_parts(const forge_session* session);
/* Ends the binding or run in progress, which fails with FORGE_FAILED; does nothing when there is
 * none. May be called from any thread. */
void forge_session_cancel(forge_session* session);
void forge_session_free(forge_session* session);

/* ---- training [4] -------------------------------------------------------------------------- */

/* A model in training on a device. Calls on one wait for each other. */
typedef struct forge_training forge_training;

/* What a batch gave: means over its samples. */
typedef struct {
  double loss;
  double correct;       /* how many samples, with cross_entropy; otherwise -1 */
  double gradient_norm; /* of a step that updates the parameters, where it is asked for, limited, or
                         * needed for a scaled loss; otherwise -1 */
} forge_grades;

/* Prepares a copy of the model for training. Its first output is the prediction; its f32 variables
 * of role "parameter", those of an ONNX model's initializers, are trained.
 *   options: a JSON object, or NULL for none: "loss" ("cross_entropy", "mse", "l1" ...; the first
 *   unless told), "optimizer" (likewise: "sgd", "adam", "adamw", "adagrad", "rmsprop", "lion",
 *   "muon"), "momentum", "nesterov", "beta1", "beta2", "alpha", "epsilon", "weight_decay",
 *   "clip_value", "clip_norm", "gradient_norm" (true: report it without a limit as well),
 *   "accumulate" (batches of an update), "average_decay", "precision"
 *   (of products in a step: "exact", "f16", "bf16" or "fast"), "activation_budget" (bytes of the
 * results that a step keeps for its gradients; what does not fit is computed again) with "sizes"
 * (of the open dimensions by name, which it needs), "frozen", "no_decay" and "by_adamw" (lists of
 *   variables; the last: matrices that muon leaves to adamw), "rates" (factors of the learning
 *   rate by variable), "function", "threads"
 *   errors: FORGE_USAGE (an option, a prediction that does not fit the loss), FORGE_DEVICE,
 *   FORGE_REFUSED (an op without a gradient, or that cannot run on the device) */
forge_error* forge_training_create(const forge_model* model, const char* device,
                                   const char* options, forge_training** training);
/* Trains on a batch.
 *   batch: [count] the inputs of the model, and "label": i64[n] with cross_entropy, otherwise of
 * the type of the prediction     errors: as forge_session_run */
forge_error* forge_training_step(forge_training* training, const forge_tensor* const* batch,
                                 size_t count, double learning_rate, forge_grades* grades);
/* Grades a batch by the parameters, or by their averages where those are kept; changes nothing. */
forge_error* forge_training_evaluate(forge_training* training, const forge_tensor* const* batch,
                                     size_t count, forge_grades* grades);
/* How many parameters and states of the optimizer there are. */
size_t forge_training_variable_count(const forge_training* training);
/* Reads them.
 *   variables: [count] created by the call, named, freed by the caller; count must be at least
 *   forge_training_variable_count */
forge_error* forge_training_read(forge_training* training, forge_tensor** variables, size_t count);
/* Sets all of them, in any order, so that a training continues where they were read. */
forge_error* forge_training_write(forge_training* training, const forge_tensor* const* variables,
                                  size_t count);
/* Returns the model with the trained parameters, or with their averages where those are kept. */
forge_error* forge_training_model(forge_training* training, forge_model** model);
/* Ends the call in progress, as forge_session_cancel does. A step that it ends may have updated a
 * part of the variables. */
void forge_training_cancel(forge_training* training);
void forge_training_free(forge_training* training);

#ifdef __cplusplus
}
#endif
#endif
/* NOLINTEND(readability-identifier-naming) */
