/* hone: compiled models, model.honec, from C.
 *
 *   hone_model* model = NULL;
 *   hone_error* error = NULL;
 *   if (hone_load("model.honec", NULL, &model, &error) != HONE_OK) return failed(error);
 *   hone_run(model, inputs, 1, outputs, 1, &error);
 *   hone_free(model);
 *
 * The interface is stable: functions and codes stay as they are, structs grow at their end alone,
 * and whoever gives one says its size. To run a file needs trust in who made it
 * (docs/formats/honec.md).
 */
#ifndef HONE_H
#define HONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header: it grows when something is added. */
#define HONE_API_VERSION 7

/* What a function returns. The numbers are the exit codes of the command line. */
typedef int32_t hone_code;
enum {
  HONE_OK = 0,
  HONE_USAGE = 2,       /* the call itself is wrong: a null pointer, a wrong number of buffers */
  HONE_BAD_INPUT = 3,   /* the file is damaged, cut or absent; buffers overlap or are not aligned */
  HONE_UNSUPPORTED = 4, /* a file of another version, or for instructions this machine lacks */
  HONE_LIMIT = 5,       /* memory or threads ran out, a limit was reached, a GPU failed */
  HONE_INTERNAL = 6     /* a fault of hone */
};

/* Element types. */
typedef int32_t hone_type;
enum {
  HONE_F64 = 1,
  HONE_F32 = 2,
  HONE_F16 = 3,
  HONE_BF16 = 4,
  HONE_F8E4M3FN = 5,
  HONE_F8E4M3FNUZ = 6,
  HONE_F8E5M2 = 7,
  HONE_F8E5M2FNUZ = 8,
  HONE_F8E8M0 = 9,
  HONE_F4E2M1 = 10, /* types of fewer than 8 bits share bytes, the first element lowest */
  HONE_I64 = 11,
  HONE_I32 = 12,
  HONE_I16 = 13,
  HONE_I8 = 14,
  HONE_I4 = 15,
  HONE_I2 = 16,
  HONE_U64 = 17,
  HONE_U32 = 18,
  HONE_U16 = 19,
  HONE_U8 = 20,
  HONE_U4 = 21,
  HONE_U2 = 22,
  HONE_BOOL = 23 /* a byte, 0 or 1 */
};

typedef struct hone_model hone_model;     /* a loaded model */
typedef struct hone_error hone_error;     /* why a function failed */
typedef struct hone_outputs hone_outputs; /* what a call computed */

/* An input or output of a model. It lives as long as the model. */
typedef struct hone_port {
  const char* name;
  const char* type_name; /* "f32" */
  hone_type type;
  int32_t rank;
  const int64_t* dims; /* `rank` sizes, the last one contiguous; -1: it is open */
  size_t bytes;        /* of a buffer that holds it; 0 if a size is open */
} hone_port;

typedef struct hone_load_options {
  size_t struct_size;   /* sizeof(hone_load_options) */
  int64_t threads;      /* that work on a kernel; 0: as compiled, at most one per processor */
  int64_t memory_limit; /* bytes of memory of all runs at once for the same sizes, without inputs,
                           outputs and weights, but with parts of weights that devices of a mesh
                           have; 0: none */
  int32_t verify;       /* not 0: reads all weights, and checks them */
  int64_t devices;      /* that divide the batch; 0: as many as the file is for. Since version 5 */
  const char* device;   /* a GPU that runs the file's code for GPUs (hone compile --target sm_80):
                           "cuda" or "cuda:1"; null or "cpu": the processor. Since version 6 */
  const char* driver;   /* the library of the GPU's driver; null: libcuda.so.1. Since version 6 */
  const char* cache;    /* a folder that keeps a GPU's machine code from load to load, as that of
                           'hone cache' does; null: each load makes it anew. Since version 7 */
} hone_load_options;

/* The HONE_API_VERSION of the library, which may be newer than that of the header. */
int32_t hone_api_version(void);

/* Loads the file; `options` may be null. On success `*model` is to be freed by hone_free.
 * Returns HONE_OK; HONE_USAGE: a null path or model, options of no size that is known, negative
 * numbers in them; HONE_BAD_INPUT: no such file, or it is damaged, or no such cache;
 * HONE_UNSUPPORTED: another version, instructions that this machine lacks, another number of
 * devices than the file is for, no such GPU or driver, or no code for it; HONE_LIMIT: too little
 * memory, or threads, or a GPU that fails; HONE_INTERNAL. */
hone_code hone_load(const char* path, const hone_load_options* options, hone_model** model,
                    hone_error** error);

/* Frees the model, which nobody may be running; null does nothing. */
void hone_free(hone_model* model);

/* What functions say of a null model, or of null outputs: "", 0, null or -1. */

/* How many devices run the model: 1, unless it was compiled for several (hone compile --devices).
 * Since version 5. */
int64_t hone_device_count(const hone_model* model);

/* The name of the model. Never null. */
const char* hone_model_name(const hone_model* model);

/* How many inputs, or outputs, the model has. */
size_t hone_input_count(const hone_model* model);
size_t hone_output_count(const hone_model* model);

/* The input, or output, of this index; null if there is none. */
const hone_port* hone_input(const hone_model* model, size_t index);
const hone_port* hone_output(const hone_model* model, size_t index);

/* The index of the first input, or output, of this name; -1 if there is none. */
int64_t hone_find_input(const hone_model* model, const char* name);
int64_t hone_find_output(const hone_model* model, const char* name);

/* Computes the outputs, in buffers of the caller: each has hone_port's bytes and is aligned to its
 * elements; outputs overlap nothing, but one may be all of its donor (hone_output_donor). Any
 * number of threads may run a model at once; each run at a time has memory of its own, which is
 * kept for later runs. A forked child must not run it.
 * Returns HONE_OK; HONE_USAGE: a null pointer, not as many buffers as ports, or sizes are open
 * (hone_call takes them); HONE_BAD_INPUT: a buffer that is null, not aligned, or overlaps an
 * output; HONE_LIMIT: too little memory; HONE_INTERNAL. Unless it is HONE_OK the contents of
 * outputs are undefined. */
hone_code hone_run(const hone_model* model, const void* const* inputs, size_t input_count,
                   void* const* outputs, size_t output_count, hone_error** error);

/* A model that was compiled for several sizes (hone compile --sizes). The functions above are about
 * the first of them. Since version 2. */

/* For how many choices of sizes the model was compiled. 0: it has code for all sizes, or segments
 * whose sizes depend on data, or several devices or a GPU run it: hone_call runs it. */
size_t hone_size_count(const hone_model* model);

/* The input, or output, of this index, with the dims of these sizes; null if there is none. */
const hone_port* hone_sized_input(const hone_model* model, size_t sizes, size_t index);
const hone_port* hone_sized_output(const hone_model* model, size_t sizes, size_t index);

/* hone_run for these sizes. HONE_USAGE if there are no such sizes. */
hone_code hone_run_sized(const hone_model* model, size_t sizes, const void* const* inputs,
                         size_t input_count, void* const* outputs, size_t output_count,
                         hone_error** error);

/* Models whose sizes are open, and all others. Since version 3. */

/* Computes outputs for inputs of these sizes: `dims` has for each input as many sizes as its rank,
 * or null for those of its hone_port; all of it may be null. Inputs are read where they lie and are
 * aligned to their elements. On success `*outputs` is to be freed. Any number of threads may call a
 * model at once. Code for sizes that were not met before is made ready in the call. Returns
 * HONE_OK; HONE_USAGE: a null pointer, or not as many inputs as ports; HONE_BAD_INPUT: sizes that
 * the model has no code for, a null input; HONE_LIMIT: too little memory, or a loop that does not
 * end; HONE_INTERNAL. */
hone_code hone_call(const hone_model* model, const void* const* inputs, const int64_t* const* dims,
                    size_t input_count, hone_outputs** outputs, hone_error** error);

/* The output of this index, with its dims, and its elements, which live as long as `outputs`; null
 * if there is none. */
const hone_port* hone_outputs_port(const hone_outputs* outputs, size_t index);
const void* hone_outputs_data(const hone_outputs* outputs, size_t index);

/* Frees them; null does nothing. */
void hone_outputs_free(hone_outputs* outputs);

/* Memory that is read and written. Since version 4. */

/* The index of the input in whose buffer the output of this index may lie; -1 if there is none. Who
 * passes one buffer for both to hone_run, hone_run_sized or hone_run_on_gpu, as for the cache of a
 * decoder, saves a copy: the input is changed in place. */
int64_t hone_output_donor(const hone_model* model, size_t output);

/* Models on a GPU (`device` of the options). Since version 6. */

/* hone_run on arrays in the memory of the GPU, without copies to this machine. Addresses are those
 * that the driver gave; arrays have hone_port's bytes, row by row. The run is put into `stream`, a
 * CUstream, behind what is there; null: the default stream. It has ended on return. An array that
 * begins at a multiple of 256 bytes is used where it lies; others are copied on the GPU. Returns
 * HONE_OK; HONE_USAGE: a null pointer, not as many addresses as ports, or the model is not one
 * graph on a GPU; HONE_BAD_INPUT: an address is 0, or an output overlaps another array than its
 * donor; HONE_LIMIT: the GPU fails; HONE_INTERNAL. */
hone_code hone_run_on_gpu(const hone_model* model, const uint64_t* inputs, size_t input_count,
                          const uint64_t* outputs, size_t output_count, void* stream,
                          hone_error** error);

/* A function that fails sets `*error`, which is to be freed, unless its `error` is null; one that
 * succeeds sets it to null. Code and text are never HONE_OK and never null; the hint says what to
 * do, and is "" if there is nothing to say. Of a null error: HONE_OK, "" and "". */
hone_code hone_error_code(const hone_error* error);
const char* hone_error_text(const hone_error* error);
const char* hone_error_hint(const hone_error* error);
void hone_error_free(hone_error* error);

#ifdef __cplusplus
}
#endif

#endif
