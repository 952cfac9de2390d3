/* What Simulink would do with an S-function over some steps of its sample time. */
#include <stdlib.h>

/* Rows of q, v and y before each step; the error, or NULL. A negative count stands for none given. */
const char *run_block(int steps, double dt, const double *p, int np, const double *q, int nq,
                      const double *v, int nv, const double *u, double *rows);

const char *run_block(int steps, double dt, const double *p, int np, const double *q, int nq,
                      const double *v, int nv, const double *u, double *rows) {
    SimStruct S = {0};
    int k, i;
    S.given_parameters = 4;
    S.parameters[0].count = 1;
    S.parameters[0].data = &dt;
    S.parameters[1].count = (size_t)np;
    S.parameters[1].data = p;
    S.parameters[2].count = (size_t)nq;
    S.parameters[2].data = q;
    S.parameters[3].count = (size_t)nv;
    S.parameters[3].data = v;
    mdlInitializeSizes(&S);
    if (S.error) return S.error;
    mdlInitializeSampleTimes(&S);
    S.work = malloc((size_t)S.work_width);
    mdlInitializeConditions(&S);
    for (k = 0; k < steps && !S.error; k++) {
        S.t = k * dt;
        S.input = u + k * S.input_width;
        for (i = 0; i < S.outputs; i++) {
            S.output[i] = rows;
            rows += S.output_width[i];
        }
        mdlOutputs(&S, 0);
        mdlUpdate(&S, 0);
    }
    mdlTerminate(&S);
    free(S.work);
    return S.error;
}
