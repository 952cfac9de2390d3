#include "x.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const char *const x_coordinate_names[1] = {"theta"};
const char *const x_coordinate_units[1] = {"rad"};
const char *const x_rate_names[1] = {"theta_dot"};
const char *const x_rate_units[1] = {"rad/s"};
const char *const x_input_names[1] = {"F"};
const char *const x_input_units[1] = {"N"};
const char *const x_parameter_names[4] = {"m", "L", "c", "g"};
const char *const x_parameter_units[4] = {"kg", "m", "N s/m", "m/s^2"};
const char *const x_output_names[3] = {
    "energy", "position_residual", "velocity_residual"
};
const char *const x_output_units[3] = {"J", "", ""};
const double x_default_parameters[4] = {1.0, 1.0, 0.1, 9.81};
const double x_reference_q[1] = {0.0};
const double x_reference_v[1] = {0.0};
const unsigned char x_independent[2] = {1, 1};

const char *x_status_text(int code)
{
    switch (code) {
    case 0: return "all is well";
    case 1: return "diverged (NaN or Inf): take a smaller step";
    case 2: return "could not close the constraints: take a smaller step";
    case 3: return "could not solve the equations of the step: take a smaller one";
    case 4: return "no consistent state with the known values near the guess";
    case 5: return "came to a singular configuration";
    case -1: return "a singular configuration is near: the step was taken, with less accuracy";
    default: return "unknown status";
    }
}


/* A consistent state from what is known; the other values are guesses. */
int x_init(x_state *state,
    double t,
    const double q[1],
    const double v[1],
    const unsigned char known[2],
    const double p[4])
{
    (void)t;
    (void)known;
    (void)p;
    const double x1 = q[0];
    const double x2 = v[0];
    const int64_t n1 = isfinite(x1) != 0 && isfinite(x2) != 0 ? 0 : 4;
    state->q[0] = x1;
    state->v[0] = x2;
    state->code = n1;
    state->coordinate = -1;
    return (int)n1;
}

/* A state that was changed from outside, back on the constraints. */
int x_project(x_state *state, double t, const double p[4])
{
    (void)t;
    (void)p;
    const double x1 = state->q[0];
    const double x2 = state->v[0];
    const int64_t n1 = isfinite(x1) != 0 && isfinite(x2) != 0 ? 0 : 4;
    state->q[0] = x1;
    state->v[0] = x2;
    state->code = n1;
    state->coordinate = -1;
    return (int)n1;
}

/* The rates of the whole state. */
void x_rates(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    double dq[1],
    double dv[1])
{
    (void)t;
    const double x1 = state->v[0];
    const double x2 = p[0];
    const double x3 = -x2 * p[3] * sin(state->q[0]) - p[2] * x1;
    const double x4 = p[1];
    const double x5 = (x3 + u[0]) * x4 / (x2 * (x4 * x4));
    dq[0] = x1;
    dv[0] = x5;
}

/* The derivative of the rates along q_seed, v_seed and u_seed. */
void x_rates_derivative(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    const double q_seed[1],
    const double v_seed[1],
    const double u_seed[1],
    double dq[1],
    double dv[1])
{
    (void)t;
    (void)u;
    const double x1 = v_seed[0];
    const double x2 = p[0];
    const double x3 = -x2 * p[3] * (cos(state->q[0]) * q_seed[0]);
    const double x4 = p[1];
    const double x5 = (x3 - p[2] * x1 + u_seed[0]) * x4 / (x2 * (x4 * x4));
    dq[0] = x1;
    dv[0] = x5;
}

/* The state a step later, in place; u is held over the step. */
int x_step(x_state *state, double t, double dt, const double u[1], const double p[4])
{
    (void)t;
    int64_t r1;
    int64_t r2;
    const double x1 = state->q[0];
    const double x2 = state->v[0];
    const double x3 = p[1];
    const double x4 = u[0];
    const double x5 = p[0];
    const double x6 = -x5 * p[3];
    const double x7 = dt / 2.0;
    const double x8 = p[2];
    const double x9 = x5 * (x3 * x3);
    const double x10 = (x6 * sin(x1) - x2 * x8 + x4) * x3 / x9;
    const double x11 = x2 + x10 * x7;
    const double x12 = x3 * (x4 + (x6 * sin(x1 + x2 * x7) - x8 * x11)) / x9;
    const double x13 = x2 + x7 * x12;
    const double x14 = x3 * (x4 + (x6 * sin(x1 + x7 * x11) - x8 * x13)) / x9;
    const double x15 = x2 + dt * x14;
    const double x16 = (x15 + (x2 + x11 * 2.0 + x13 * 2.0)) / 6.0;
    const double x17 = x1 + dt * x16;
    const double x18 = x4 + (x6 * sin(x1 + dt * x13) - x8 * x15);
    const double x19 = x3 * x18 / x9 + (x10 + x12 * 2.0 + x14 * 2.0);
    const double x20 = x2 + dt * (x19 / 6.0);
    const bool is1 = isfinite(x17) != 0 && isfinite(x20) != 0;
    if ((int)(int32_t)!is1 > 0) {
        r1 = 1;
        r2 = 0;
    } else {
        r1 = 0;
        r2 = -1;
    }
    const double x21 = is1 ? x17 : x1;
    const double x22 = is1 ? x20 : x2;
    const int64_t n1 = is1 ? 0 : r1;
    const int64_t n2 = is1 ? -1 : r2;
    state->q[0] = x21;
    state->v[0] = x22;
    state->code = n1;
    state->coordinate = n2;
    return (int)n1;
}

/* Energy, if there is one, and the largest residuals of the constraints. */
void x_outputs(const x_state *state, double t, const double u[1], const double p[4], double y[3])
{
    (void)t;
    (void)u;
    const double x1 = state->v[0];
    const double x2 = p[1];
    const double x3 = p[0];
    const double x4 = x2 * (-x3 * p[3]) * cos(state->q[0]);
    const double x5 = x1 * (x1 * 0.5 * (x2 * x2 * x3)) + x4;
    y[0] = x5;
    y[1] = 0.0;
    y[2] = 0.0;
}

/* A and B of the minimal state, row by row. */
void x_linearize(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    double A[4],
    double B[2])
{
    (void)t;
    (void)u;
    const double x1 = p[0];
    const double x2 = p[1];
    const double x3 = -x1 * p[3] * cos(state->q[0]) * x2;
    const double x4 = x1 * (x2 * x2);
    const double x5 = x3 / x4;
    const double x6 = -p[2] * x2 / x4;
    const double x7 = x2 / x4;
    A[0] = 0.0;
    A[1] = 1.0;
    A[2] = x5;
    A[3] = x6;
    B[0] = 0.0;
    B[1] = x7;
}
