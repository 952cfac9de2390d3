/* A run of 1,000 steps from where the model is assembled, as a table on the output. */
#include "x.h"

#include <stdio.h>

int main(void)
{
    x_state state;
    double u[1] = {0}; /* inputs, held over a step */
    const double *p = x_default_parameters;
    const double dt = (double)X_DT;
    int code = x_init(&state, 0, x_reference_q, x_reference_v,
                           x_independent, p);
    if (code != X_COMPLETED) {
        fprintf(stderr, "%s\n", x_status_text(code));
        return 1;
    }
    printf("t");
    for (int i = 0; i < X_NQ; ++i) printf(",%s", x_coordinate_names[i]);
    printf("\n");
    for (int step = 0; step <= 1000; ++step) {
        const double t = (double)step * dt;
        printf("%.9g", (double)t);
        for (int i = 0; i < X_NQ; ++i) printf(",%.17g", (double)state.q[i]);
        printf("\n");
        code = x_step(&state, t, dt, u, p);
        if (code > 0) {
            fprintf(stderr, "t = %g s: %s\n", (double)t, x_status_text(code));
            return 1;
        }
    }
    return 0;
}
