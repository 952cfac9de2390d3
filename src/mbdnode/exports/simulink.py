"""A block of Simulink: a level-2 S-function in C around the model's own step.

Input `u`, outputs `q`, `v` and `y`; the parameters of the block are the sample time, the model's
parameters, and the start values of coordinates and velocities, of which the independent ones are
held and the others completed. `mex NAME_sfun.c NAME.c` compiles it.
"""

from pathlib import Path

from mbdnode.exports.languages.c import c_source
from mbdnode.exports.program import Program

_SOURCE = """/* {name}: a level-2 S-function for Simulink.

   mex {name}_sfun.c {name}.c

   Parameters of the block: sample time [s], parameters ({np}), q at the start ({nq}), v at the
   start ({nq}). An empty vector stands for the defaults. Outputs: q, v and y, with the names of
   {name}.h. */
#define S_FUNCTION_NAME {name}_sfun
#define S_FUNCTION_LEVEL 2

#include <string.h>

#include "simstruc.h"
#include "{name}.h"

enum {{ SAMPLE_TIME, PARAMETERS, START_Q, START_V, COUNT }};

/* A vector of the block's parameters, or the default if it is empty; NULL for a wrong length. */
static const double *vector(SimStruct *S, int which, size_t size, const double *usual) {{
    const mxArray *given = ssGetSFcnParam(S, which);
    if (mxGetNumberOfElements(given) == 0) return usual;
    if (mxGetNumberOfElements(given) != size || !mxIsDouble(given)) return NULL;
    return mxGetPr(given);
}}

#define MDL_CHECK_PARAMETERS
static void mdlCheckParameters(SimStruct *S) {{
    const double *dt = vector(S, SAMPLE_TIME, 1, NULL);
    if (!dt || !(dt[0] > 0.0)) {{
        ssSetErrorStatus(S, "The sample time must be a number above 0.");
    }} else if (!vector(S, PARAMETERS, {np}, {name}_default_parameters)) {{
        ssSetErrorStatus(S, "The parameters must be a vector of {np} numbers, or empty.");
    }} else if (!vector(S, START_Q, {nq}, {name}_reference_q) ||
               !vector(S, START_V, {nq}, {name}_reference_v)) {{
        ssSetErrorStatus(S, "Start values must be vectors of {nq} numbers, or empty.");
    }}
}}

static void mdlInitializeSizes(SimStruct *S) {{
    ssSetNumSFcnParams(S, COUNT);
    if (ssGetNumSFcnParams(S) != ssGetSFcnParamsCount(S)) return; /* Simulink says so itself */
    mdlCheckParameters(S);
    if (ssGetErrorStatus(S)) return;
    if (!ssSetNumInputPorts(S, {has_input})) return;
{input}    if (!ssSetNumOutputPorts(S, 3)) return;
    ssSetOutputPortWidth(S, 0, {nq});
    ssSetOutputPortWidth(S, 1, {nq});
    ssSetOutputPortWidth(S, 2, {ny});
    ssSetNumSampleTimes(S, 1);
    ssSetNumDWork(S, 1);
    ssSetDWorkWidth(S, 0, (int)sizeof({name}_state));
    ssSetDWorkDataType(S, 0, SS_UINT8);
    ssSetOptions(S, SS_OPTION_EXCEPTION_FREE_CODE);
}}

static void mdlInitializeSampleTimes(SimStruct *S) {{
    ssSetSampleTime(S, 0, vector(S, SAMPLE_TIME, 1, NULL)[0]);
    ssSetOffsetTime(S, 0, 0.0);
}}

/* The state is copied, since a vector of bytes need not be aligned for it. */
static {name}_state load(SimStruct *S) {{
    {name}_state state;
    memcpy(&state, ssGetDWork(S, 0), sizeof state);
    return state;
}}

#define MDL_INITIALIZE_CONDITIONS
static void mdlInitializeConditions(SimStruct *S) {{
    {name}_state state;
    const int code = {name}_init(&state, ssGetT(S), vector(S, START_Q, {nq}, {name}_reference_q),
                             vector(S, START_V, {nq}, {name}_reference_v), {name}_independent,
                             vector(S, PARAMETERS, {np}, {name}_default_parameters));
    if (code > 0) ssSetErrorStatus(S, {name}_status_text(code));
    memcpy(ssGetDWork(S, 0), &state, sizeof state);
}}

static void inputs(SimStruct *S, double u[{nu_1}]) {{
    memset(u, 0, {nu_1} * sizeof(double));
{read}}}

static void mdlOutputs(SimStruct *S, int_T tid) {{
    const {name}_state state = load(S);
    const double u[{nu_1}] = {{0}}; /* not read: y is a function of the state, too */
    (void)tid;
    memcpy(ssGetOutputPortRealSignal(S, 0), state.q, sizeof state.q);
    memcpy(ssGetOutputPortRealSignal(S, 1), state.v, sizeof state.v);
    {name}_outputs(&state, ssGetT(S), u, vector(S, PARAMETERS, {np}, {name}_default_parameters),
               ssGetOutputPortRealSignal(S, 2));
}}

#define MDL_UPDATE
static void mdlUpdate(SimStruct *S, int_T tid) {{
    {name}_state state = load(S);
    double u[{nu_1}];
    int code;
    (void)tid;
    inputs(S, u);
    code = {name}_step(&state, ssGetT(S), vector(S, SAMPLE_TIME, 1, NULL)[0], u,
                   vector(S, PARAMETERS, {np}, {name}_default_parameters));
    if (code > 0) ssSetErrorStatus(S, {name}_status_text(code));
    memcpy(ssGetDWork(S, 0), &state, sizeof state);
}}

static void mdlTerminate(SimStruct *S) {{ (void)S; }}

#ifdef MATLAB_MEX_FILE
#include "simulink.c"
#else
#include "cg_sfun.h"
#endif
"""

_INPUT = """    ssSetInputPortWidth(S, 0, {nu});
    ssSetInputPortRequiredContiguous(S, 0, 1);
    ssSetInputPortDirectFeedThrough(S, 0, 0); /* outputs are functions of the state */
"""
_READ = "    memcpy(u, ssGetInputPortRealSignal(S, 0), {nu} * sizeof(double));\n"


def write_simulink(program: Program, path: Path) -> None:
    """Fill an empty folder with the sources of a block."""
    name, tables, own = program.name, program.tables, c_source(program)
    nu = len(tables.inputs)
    text = _SOURCE.format(
        name=name,
        np=len(tables.parameters),
        nq=len(tables.coordinates),
        ny=len(tables.outputs),
        nu_1=max(nu, 1),
        has_input=int(nu > 0),
        input=_INPUT.format(nu=nu) if nu else "",
        read=_READ.format(nu=nu) if nu else "    (void)S;\n",
    )
    texts = {f"{name}.h": own.header, f"{name}.c": own.source, f"{name}_sfun.c": text}
    for file, content in texts.items():
        (path / file).write_text(content, encoding="utf-8")
