/* Runs a compiled model once on zeros, and tells its inputs and outputs: run_model model.honec */
#include <hone.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(hone_error* error) {
  const int code = (int)hone_error_code(error);
  fprintf(stderr, "%s\n%s\n", hone_error_text(error), hone_error_hint(error));
  hone_error_free(error);
  return code;
}

static void print_port(const char* what, const hone_port* port) {
  printf("%s %s %s", what, port->name, port->type_name);
  for (int i = 0; i < port->rank; ++i) printf(" %lld", (long long)port->dims[i]);
}

int main(int argc, char** argv) {
  if (argc != 2) return HONE_USAGE;
  hone_model* model = NULL;
  hone_error* error = NULL;
  if (hone_load(argv[1], NULL, &model, &error) != HONE_OK) return fail(error);

  const size_t input_count = hone_input_count(model), output_count = hone_output_count(model);
  const void** inputs = calloc(input_count + 1, sizeof *inputs);
  void** outputs = calloc(output_count + 1, sizeof *outputs);
  for (size_t i = 0; i < input_count; ++i) {
    const hone_port* port = hone_input(model, i);
    inputs[i] = calloc(port->bytes + 1, 1);
    print_port("input", port);
    printf("\n");
  }
  for (size_t i = 0; i < output_count; ++i)
    outputs[i] = calloc(hone_output(model, i)->bytes + 1, 1);

  const hone_code code = hone_run(model, inputs, input_count, outputs, output_count, &error);
  for (size_t i = 0; i < output_count && code == HONE_OK; ++i) {
    const hone_port* port = hone_output(model, i);
    print_port("output", port);
    if (port->type == HONE_F32 && port->bytes > 0) printf(": %g ...", *(float*)outputs[i]);
    printf("\n");
  }

  for (size_t i = 0; i < input_count; ++i) free((void*)inputs[i]);
  for (size_t i = 0; i < output_count; ++i) free(outputs[i]);
  free(inputs);
  free(outputs);
  hone_free(model);
  return code == HONE_OK ? 0 : fail(error);
}
