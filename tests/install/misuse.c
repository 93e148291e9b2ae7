/* Calls the C interface with wrong arguments, and rightly between: misuse GRAPH.honec OPEN.honec.
 * GRAPH has one input and one output, f32 of fixed sizes; OPEN is the same for all sizes of its
 * first dim. Ends with the number of the line that did not hold. */
#include <hone.h>

#include <stdlib.h>
#include <string.h>

#define HOLDS(condition)                    \
  do {                                      \
    if (!(condition)) exit(__LINE__ % 256); \
  } while (0)

/* The error says something, and is freed. */
static void expect(hone_code code, hone_code wanted, hone_error** error) {
  HOLDS(code == wanted);
  HOLDS(hone_error_code(*error) == wanted);
  HOLDS((hone_error_text(*error)[0] != '\0') == (wanted != HONE_OK));
  HOLDS(hone_error_hint(*error) != NULL);
  hone_error_free(*error);
  *error = NULL;
}

static void load_wrongly(const char* path) {
  hone_error* error = NULL;
  hone_model* model = NULL;
  expect(hone_load(NULL, NULL, &model, &error), HONE_USAGE, &error);
  expect(hone_load(path, NULL, NULL, &error), HONE_USAGE, &error);
  expect(hone_load("", NULL, &model, &error), HONE_BAD_INPUT, &error);
  expect(hone_load("/", NULL, &model, &error), HONE_BAD_INPUT, &error);
  HOLDS(model == NULL && hone_load("none", NULL, &model, NULL) == HONE_BAD_INPUT);
  hone_load_options options;
  memset(&options, 0, sizeof options);
  expect(hone_load(path, &options, &model, &error), HONE_USAGE, &error);
  options.struct_size = sizeof options;
  options.threads = -1;
  expect(hone_load(path, &options, &model, &error), HONE_USAGE, &error);
  options.threads = INT64_MAX;
  expect(hone_load(path, &options, &model, &error), HONE_USAGE, &error);
  options.threads = 0;
  options.memory_limit = INT64_MIN;
  expect(hone_load(path, &options, &model, &error), HONE_USAGE, &error);
  HOLDS(model == NULL);
}

static void ask_nobody(void) {
  HOLDS(hone_model_name(NULL)[0] == '\0');
  HOLDS(hone_input_count(NULL) == 0 && hone_output_count(NULL) == 0);
  HOLDS(hone_input(NULL, 0) == NULL && hone_output(NULL, 0) == NULL);
  HOLDS(hone_find_input(NULL, "x") == -1 && hone_find_output(NULL, "y") == -1);
  HOLDS(hone_size_count(NULL) == 0);
  HOLDS(hone_sized_input(NULL, 0, 0) == NULL && hone_sized_output(NULL, 0, 0) == NULL);
  HOLDS(hone_outputs_port(NULL, 0) == NULL && hone_outputs_data(NULL, 0) == NULL);
  HOLDS(hone_error_code(NULL) == HONE_OK && hone_error_text(NULL)[0] == '\0');
  hone_free(NULL);
  hone_outputs_free(NULL);
  hone_error_free(NULL);
}

static void run_wrongly(const char* path) {
  hone_error* error = NULL;
  hone_model* model = NULL;
  expect(hone_load(path, NULL, &model, &error), HONE_OK, &error);
  HOLDS(hone_input(model, 1) == NULL && hone_output(model, SIZE_MAX) == NULL);
  HOLDS(hone_find_input(model, NULL) == -1 && hone_find_output(model, "") == -1);
  HOLDS(hone_sized_input(model, SIZE_MAX, 0) == NULL);
  const size_t in = hone_input(model, 0)->bytes, out = hone_output(model, 0)->bytes;
  char* memory = calloc(in + out + 1, 1);
  const void* inputs[2] = {memory, memory};
  void* outputs[2] = {memory + in, memory + in};
  expect(hone_run(NULL, inputs, 1, outputs, 1, &error), HONE_USAGE, &error);
  expect(hone_run(model, NULL, 1, outputs, 1, &error), HONE_USAGE, &error);
  expect(hone_run(model, inputs, 1, NULL, 1, &error), HONE_USAGE, &error);
  expect(hone_run(model, inputs, 0, outputs, 1, &error), HONE_USAGE, &error);
  expect(hone_run(model, inputs, 2, outputs, 2, &error), HONE_USAGE, &error);
  expect(hone_run_sized(model, 1, inputs, 1, outputs, 1, &error), HONE_USAGE, &error);
  inputs[0] = NULL;
  expect(hone_run(model, inputs, 1, outputs, 1, &error), HONE_BAD_INPUT, &error);
  inputs[0] = memory + 1;
  expect(hone_run(model, inputs, 1, outputs, 1, &error), HONE_BAD_INPUT, &error);
  inputs[0] = memory;
  outputs[0] = NULL;
  expect(hone_run(model, inputs, 1, outputs, 1, &error), HONE_BAD_INPUT, &error);
  outputs[0] = memory; /* over the input */
  expect(hone_run(model, inputs, 1, outputs, 1, &error), HONE_BAD_INPUT, &error);
  outputs[0] = memory + in;
  expect(hone_run(model, inputs, 1, outputs, 1, &error), HONE_OK, &error);
  free(memory);
  hone_free(model);
}

static void call_wrongly(const char* path) {
  hone_error* error = NULL;
  hone_model* model = NULL;
  hone_outputs* outputs = NULL;
  expect(hone_load(path, NULL, &model, &error), HONE_OK, &error);
  const hone_port* x = hone_input(model, 0);
  HOLDS(hone_size_count(model) == 0 && x->dims[0] == -1 && x->bytes == 0);
  int64_t sizes[8] = {3};
  size_t elements = 3;
  for (int32_t i = 1; i < x->rank; ++i) elements *= (size_t)(sizes[i] = x->dims[i]);
  float* memory = calloc(elements, sizeof *memory);
  const void* inputs[1] = {memory};
  void* buffers[1] = {memory};
  const int64_t* dims[1] = {sizes};
  expect(hone_run(model, inputs, 1, buffers, 1, &error), HONE_USAGE, &error);
  expect(hone_call(NULL, inputs, dims, 1, &outputs, &error), HONE_USAGE, &error);
  expect(hone_call(model, NULL, dims, 1, &outputs, &error), HONE_USAGE, &error);
  expect(hone_call(model, inputs, dims, 1, NULL, &error), HONE_USAGE, &error);
  expect(hone_call(model, inputs, dims, 0, &outputs, &error), HONE_USAGE, &error);
  expect(hone_call(model, inputs, NULL, 1, &outputs, &error), HONE_USAGE, &error);
  inputs[0] = NULL;
  expect(hone_call(model, inputs, dims, 1, &outputs, &error), HONE_BAD_INPUT, &error);
  inputs[0] = memory;
  for (int i = 0; i < 3; ++i) {
    const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
    sizes[0] = wrong[i];
    expect(hone_call(model, inputs, dims, 1, &outputs, &error), i < 2 ? HONE_BAD_INPUT : HONE_LIMIT,
           &error);
    HOLDS(outputs == NULL);
  }
  sizes[0] = 3;
  expect(hone_call(model, inputs, dims, 1, &outputs, &error), HONE_OK, &error);
  HOLDS(hone_outputs_port(outputs, 0)->dims[0] == 3 && hone_outputs_data(outputs, 0) != NULL);
  HOLDS(hone_outputs_port(outputs, 1) == NULL && hone_outputs_data(outputs, 1) == NULL);
  free(memory);
  hone_free(model); /* outputs stay */
  float first = 0;
  memcpy(&first, hone_outputs_data(outputs, 0), sizeof first);
  HOLDS(first == first);
  hone_outputs_free(outputs);
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  load_wrongly(argv[1]);
  ask_nobody();
  run_wrongly(argv[1]);
  call_wrongly(argv[2]);
  return 0;
}
