/* Calls a model that is a library of its own; nothing else of hone is needed:
 *
 *   hone compile zoo:mlp,size=tiny --emit library -o libmlp.so
 *   gcc call_library.c -I. -L. -lmlp -o call_library
 */
#include "mlp.h"

#include <stdio.h>

int main(void) {
  float x[MLP_INPUT_X] = {0};
  float logits[MLP_OUTPUT_LOGITS];
  const mlp_inputs inputs = {.x = x};
  const mlp_outputs outputs = {.logits = logits};
  const int code = mlp_run(&inputs, &outputs, NULL);
  if (code != MLP_OK) {
    fprintf(stderr, "the model does not run: code %d\n", code);
    return code;
  }
  for (int i = 0; i < MLP_OUTPUT_LOGITS; ++i) printf("%.9g\n", logits[i]);
  return 0;
}
