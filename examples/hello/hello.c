/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model that takes one f32 picture of 28 x 28 on a chessboard: hello_c MODEL.bin [DEVICE] */
#include <stdio.h>

#include "runtime/forge.h"

static int fail(forge_error* error) {
  const int code = (int)forge_error_code(error);
  fprintf(stderr, "hello_c: %s\n", forge_error_message(error));
  forge_error_free(error);
  return code;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: hello_c MODEL.bin [DEVICE]\n");
    return FORGE_USAGE;
  }
  forge_model* model = NULL;
  forge_error* error = forge_model_load(argv[1], &model);
  if (error) return fail(error);
  forge_session* session = NULL;
  error = forge_session_create(model, argc > 2 ? argv[2] : "auto", &session);
  forge_model_free(model);
  if (error) return fail(error);

  float pixels[28 * 28];
  for (int i = 0; i < 28 * 28; ++i) pixels[i] = ((i / 28 + i % 28) & 4) ? 1.0f : -1.0f;
  const int64_t shape[] = {1, 1, 28, 28};
  forge_tensor* input = NULL;
  error = forge_tensor_create(forge_session_input_name(session, 0), "f32", shape, 4, pixels,
                              sizeof(pixels), &input);
  if (error) return fail(error);
  forge_tensor* output = NULL;
  const forge_tensor* inputs[] = {input};
  error = forge_session_run(session, inputs, 1, &output, 1);
  forge_tensor_free(input);
  if (error) return fail(error);

  const float* scores = forge_tensor_data(output);
  const size_t count = forge_tensor_bytes(output) / sizeof(float);
  printf("Forge %s on %s:", forge_version(), forge_session_device_name(session));
  for (size_t i = 0; i < count; ++i) printf(" %.4f", scores[i]);
  printf("\n");
  forge_tensor_free(output);
  forge_session_free(session);
  return 0;
}
