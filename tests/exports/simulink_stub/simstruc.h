/* As much of Simulink's interface as the exported S-functions use, so that they can be compiled and
   run without it. Written for these tests; nothing in it is Simulink's. */
#ifndef SIMSTRUC_H
#define SIMSTRUC_H

#include <stddef.h>

typedef int int_T;
typedef struct {
    size_t count;
    const double *data;
} mxArray;
typedef struct {
    int expected_parameters, given_parameters, inputs, outputs, input_width, output_width[8];
    int feed_through, contiguous, sample_times, works, work_width, work_type, options;
    double sample_time, offset_time, t;
    mxArray parameters[8];
    const double *input;
    double *output[8];
    void *work;
    const char *error;
} SimStruct;

enum { SS_UINT8 = 3, SS_OPTION_EXCEPTION_FREE_CODE = 1 };

#define mxGetNumberOfElements(a) ((a)->count)
#define mxGetPr(a) ((double *)(a)->data)
#define mxIsDouble(a) ((a) != NULL)
#define ssGetSFcnParam(S, i) (&(S)->parameters[i])
#define ssSetNumSFcnParams(S, n) ((S)->expected_parameters = (n))
#define ssGetNumSFcnParams(S) ((S)->expected_parameters)
#define ssGetSFcnParamsCount(S) ((S)->given_parameters)
#define ssSetErrorStatus(S, text) ((S)->error = (text))
#define ssGetErrorStatus(S) ((S)->error)
#define ssSetNumInputPorts(S, n) ((S)->inputs = (n), 1)
#define ssSetNumOutputPorts(S, n) ((S)->outputs = (n), 1)
#define ssSetInputPortWidth(S, i, n) ((S)->input_width = (n))
#define ssSetInputPortRequiredContiguous(S, i, n) ((S)->contiguous = (n))
#define ssSetInputPortDirectFeedThrough(S, i, n) ((S)->feed_through = (n))
#define ssSetOutputPortWidth(S, i, n) ((S)->output_width[i] = (n))
#define ssSetNumSampleTimes(S, n) ((S)->sample_times = (n))
#define ssSetSampleTime(S, i, dt) ((S)->sample_time = (dt))
#define ssSetOffsetTime(S, i, dt) ((S)->offset_time = (dt))
#define ssSetNumDWork(S, n) ((S)->works = (n))
#define ssSetDWorkWidth(S, i, n) ((S)->work_width = (n))
#define ssSetDWorkDataType(S, i, kind) ((S)->work_type = (kind))
#define ssSetOptions(S, n) ((S)->options = (n))
#define ssGetDWork(S, i) ((S)->work)
#define ssGetT(S) ((S)->t)
#define ssGetInputPortRealSignal(S, i) ((S)->input)
#define ssGetOutputPortRealSignal(S, i) ((S)->output[i])

#endif
