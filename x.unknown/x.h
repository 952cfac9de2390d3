/* SinglePendulum, exported by mbdnode: rk4 steps, double.
 *
 * q: coordinates, v: velocities, u: inputs, p: parameters, y: outputs. All arrays have
 * the sizes below; one of size 0 may be any pointer. Functions that return an int return
 * a status, 0 if all is well. No function allocates, prints, or keeps anything between
 * calls but what is in the state, which may be copied like any other struct.
 */
#ifndef X_H
#define X_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define X_NQ 1 /* coordinates, and as many velocities */
#define X_NU 1 /* inputs */
#define X_NP 4 /* parameters */
#define X_NY 3 /* outputs */
#define X_NZ 2 /* the minimal state: independent coordinates, then velocities */
#define X_DT 0.01 /* the usual step in seconds */

#define X_Q_theta 0 /* theta [rad] */
#define X_V_theta_dot 0 /* theta_dot [rad/s] */
#define X_U_F 0 /* F [N] */
#define X_P_m 0 /* m [kg] */
#define X_P_L 1 /* L [m] */
#define X_P_c 2 /* c [N s/m] */
#define X_P_g 3 /* g [m/s^2] */
#define X_Y_energy 0 /* energy [J] */
#define X_Y_position_residual 1 /* position_residual [] */
#define X_Y_velocity_residual 2 /* velocity_residual [] */

typedef struct x_state {
    double q[1]; /* coordinates */
    double v[1]; /* velocities */
    int64_t code; /* the last status */
    int64_t coordinate; /* the coordinate that it is about, or -1 */
} x_state;

/* What can come back. */
enum {
    X_COMPLETED = 0, /* all is well */
    X_NOT_FINITE = 1, /* diverged (NaN or Inf): take a smaller step */
    X_CONSTRAINTS_UNSOLVED = 2, /* could not close the constraints: take a smaller step */
    X_STEP_UNSOLVED = 3, /* could not solve the equations of the step: take a smaller one */
    X_START_UNSOLVED = 4, /* no consistent state with the known values near the guess */
    X_SINGULAR = 5, /* came to a singular configuration */
    X_NEEDS_PASSAGE = -1, /* a singular configuration is near: the step was taken, with less accuracy */
};
const char *x_status_text(int code);

extern const char *const x_coordinate_names[1];
extern const char *const x_coordinate_units[1];
extern const char *const x_rate_names[1];
extern const char *const x_rate_units[1];
extern const char *const x_input_names[1];
extern const char *const x_input_units[1];
extern const char *const x_parameter_names[4];
extern const char *const x_parameter_units[4];
extern const char *const x_output_names[3];
extern const char *const x_output_units[3];
extern const double x_default_parameters[4];
extern const double x_reference_q[1];
extern const double x_reference_v[1];
/* What is known of a state as a rule: its independent coordinates and velocities. */
extern const unsigned char x_independent[2];

/* A consistent state from what is known; the other values are guesses. */
int x_init(x_state *state,
    double t,
    const double q[1],
    const double v[1],
    const unsigned char known[2],
    const double p[4]);

/* A state that was changed from outside, back on the constraints. */
int x_project(x_state *state, double t, const double p[4]);

/* The rates of the whole state. */
void x_rates(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    double dq[1],
    double dv[1]);

/* The derivative of the rates along q_seed, v_seed and u_seed. */
void x_rates_derivative(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    const double q_seed[1],
    const double v_seed[1],
    const double u_seed[1],
    double dq[1],
    double dv[1]);

/* The state a step later, in place; u is held over the step. */
int x_step(x_state *state, double t, double dt, const double u[1], const double p[4]);

/* Energy, if there is one, and the largest residuals of the constraints. */
void x_outputs(const x_state *state, double t, const double u[1], const double p[4], double y[3]);

/* A and B of the minimal state, row by row. */
void x_linearize(const x_state *state,
    double t,
    const double u[1],
    const double p[4],
    double A[4],
    double B[2]);

#ifdef __cplusplus
}
#endif

#endif
