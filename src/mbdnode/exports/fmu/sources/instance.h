/* One instance of the model, before any version of FMI: what it holds, and what can be asked of it.

   Model Exchange. The continuous states x are the independent coordinates and velocities; all others
   are completed from them by the constraints whenever something is asked, so outputs hold the
   constraints to round-off at any time that the importer looks at, and no state can drift. Where the
   independent coordinates are not the model's own choice but the program's, they are exchanged when
   they become ill-conditioned: an accepted step then asks for event mode, where x changes its meaning
   and its values, and the importer is told.

   Co-Simulation. The step is the model's own: its integrator, its completion, its exchange.

   All functions are static, and the file is included once, so that several FMUs can be linked
   together. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_config.h"

#define SIZED(n) ((n) > 0 ? (n) : 1)

enum { DONE = 0, WARNED = 1, DISCARDED = 2, FAILED = 3 }; /* the same numbers in FMI 2 and FMI 3 */
enum {
    INSTANTIATED = 1,
    INITIALIZATION = 2,
    EVENT = 4,
    CONTINUOUS = 8,
    STEPPING = 16,
    TERMINATED = 32
};

/* Value references: one block for each kind of variable, in this order. */
enum {
    VR_TIME = 0,
    VR_STEP = 1,
    VR_P = 2,
    VR_U = VR_P + MODEL_NP,
    VR_Q = VR_U + MODEL_NU,
    VR_V = VR_Q + MODEL_NQ,
    VR_Y = VR_V + MODEL_NQ,
    VR_DX = VR_Y + MODEL_NY,
    VR_X = VR_DX + MODEL_NX,
    VR_END = VR_X + MODEL_NX
};

/* What `evaluate` and `evaluate_derivative` write, in the order of the references: q, v, y, x'. */
enum { AT_V = VR_V - VR_Q, AT_Y = VR_Y - VR_Q, AT_DX = VR_DX - VR_Q, COUNT_ALL = VR_X - VR_Q };

/* A configuration near by, from which the constraints are closed. */
typedef struct {
    double t, q[SIZED(MODEL_NQ)], v[SIZED(MODEL_NQ)];
} place;

/* All that changes: plain data, so that saving an instance is copying it. */
typedef struct {
    int phase, steps_itself, placed, evaluated, exchange_due;
    double given[VR_Q + 1]; /* time, step, parameters, inputs, by their references */
    double start[SIZED(2 * MODEL_NQ)]; /* q, v */
    double x[SIZED(MODEL_NX)];
    double order[SIZED(2 * MODEL_NQ)], order_due[SIZED(2 * MODEL_NQ)], scale[SIZED(MODEL_NQ)];
    place accepted, latest;
    double all[SIZED(COUNT_ALL)];
    MODEL(state) own;
} model_data;

typedef struct instance {
    model_data data;
    int logs;
    void *environment;
    void (*logger)(const struct instance *, int status, const char *message);
    void *callback; /* of the version's own type */
    char *name;
} instance;

static int report(const instance *one, int status, const char *message) {
    if (one->logs && one->logger) one->logger(one, status, message);
    return status;
}

/* Which coordinate, or velocity, is the continuous state i. */
static size_t state_coordinate(const model_data *d, size_t i) {
    if (i < MODEL_NZ) return (size_t)d->order[MODEL_NQ - MODEL_NZ + i];
    return (size_t)d->order[2 * MODEL_NQ - MODEL_NX + i];
}

static double state_value(const model_data *d, size_t i) {
    return d->all[(i < MODEL_NZ ? 0 : AT_V) + state_coordinate(d, i)];
}

/* Which state a reference is: its own, or that of a coordinate that is independent now. */
static size_t state_number(const model_data *d, unsigned reference) {
    size_t i;
    if (reference >= VR_X && reference < VR_END) return reference - VR_X;
    for (i = 0; i < MODEL_NX; i++)
        if (reference == (i < MODEL_NZ ? VR_Q : VR_V) + state_coordinate(d, i)) break;
    return i;
}

static void changed(model_data *d) { d->placed = d->evaluated = 0; }

static void set_defaults(model_data *d) {
    int itself = d->steps_itself;
    memset(d, 0, sizeof *d);
    d->phase = INSTANTIATED;
    d->steps_itself = itself;
    d->given[VR_STEP] = MODEL_DT;
    memcpy(d->given + VR_P, MODEL(default_parameters), MODEL_NP * sizeof(double));
    memcpy(d->start, MODEL(reference_q), MODEL_NQ * sizeof(double));
    memcpy(d->start + AT_V, MODEL(reference_v), MODEL_NQ * sizeof(double));
    memcpy(d->order, model_order, sizeof model_order);
    memcpy(d->scale, model_nominals, sizeof model_nominals);
}

/* The order in which `own` splits: dependent coordinates, then independent ones; velocities alike.
   The dependent ones that the constraints give explicitly stand first, so their order matters. */
#if MODEL_EXCHANGES
#if MODEL_HAS_TWO_SPLITS
#define POSITION_SPLIT(own, part) (own)->position_##part
#else
#define POSITION_SPLIT(own, part) (own)->velocity_##part
#endif
static void own_order(const MODEL(state) *own, double order[SIZED(2 * MODEL_NQ)]) {
    const size_t free_positions = MODEL_NZ, free_velocities = MODEL_NX - MODEL_NZ;
    double *at = order;
    size_t i;
    for (i = 0; i < MODEL_NQ - free_positions; i++) *at++ = (double)POSITION_SPLIT(own, dependent)[i];
    for (i = 0; i < free_positions; i++) *at++ = (double)POSITION_SPLIT(own, independent)[i];
    for (i = 0; i < MODEL_NQ - free_velocities; i++) *at++ = (double)own->velocity_dependent[i];
    for (i = 0; i < free_velocities; i++) *at++ = (double)own->velocity_independent[i];
}
#endif

/* Constraints are closed here: a place from which they can be closed near by. */
static void remember(model_data *d) {
    d->latest.t = d->given[VR_TIME];
    memcpy(d->latest.q, d->all, MODEL_NQ * sizeof(double));
    memcpy(d->latest.v, d->all + AT_V, MODEL_NQ * sizeof(double));
}

/* Take over the model's own state: after its initialization and its steps. */
static void take_own(model_data *d) {
    size_t i;
    memcpy(d->all, d->own.q, MODEL_NQ * sizeof(double));
    memcpy(d->all + AT_V, d->own.v, MODEL_NQ * sizeof(double));
#if MODEL_EXCHANGES
    own_order(&d->own, d->order);
#endif
#if MODEL_HAS_SCALE
    memcpy(d->scale, d->own.scale, MODEL_NQ * sizeof(double));
#endif
    for (i = 0; i < MODEL_NX; i++) d->x[i] = state_value(d, i);
    remember(d);
    d->accepted = d->latest;
    d->placed = 1;
    d->evaluated = 0;
}

/* Complete the start values: the independent ones are held, the others are guesses. */
static int initialize(instance *one) {
    model_data *d = &one->data;
    int code = MODEL(init)(&d->own, d->given[VR_TIME], d->start, d->start + AT_V,
                           MODEL(independent), d->given + VR_P);
    if (code > 0) return report(one, FAILED, MODEL(status_text)(code));
    take_own(d);
    return DONE;
}

static int evaluate_from(model_data *d, const place *near, double all[SIZED(COUNT_ALL)]) {
    double guess[SIZED(MODEL_NQ)], good[1];
    size_t i;
    for (i = 0; i < MODEL_NQ; i++)
        guess[i] = near->q[i] + (d->given[VR_TIME] - near->t) * near->v[i];
    MODEL_MOTION(evaluate)(d->given, d->x, d->given + VR_U, d->given + VR_P, guess, d->order,
                           d->scale, all, good);
    return good[0] > 0;
}

/* The whole state, the rates and the outputs at the present time, states and inputs. */
static int evaluate(instance *one) {
    model_data *d = &one->data;
    double all[SIZED(COUNT_ALL)];
    if (d->phase == INITIALIZATION && !d->placed && initialize(one)) return FAILED;
    if (d->evaluated) return DONE;
    if (!evaluate_from(d, &d->latest, all) && !evaluate_from(d, &d->accepted, all))
        return report(one, DISCARDED,
                      "The constraints cannot be closed at these values of the states.");
    if (d->placed) /* what the model's own step has closed stays as it is */
        memcpy(d->all + AT_Y, all + AT_Y, (COUNT_ALL - AT_Y) * sizeof(double));
    else
        memcpy(d->all, all, COUNT_ALL * sizeof(double));
    remember(d);
    d->placed = d->evaluated = 1;
    return DONE;
}

static int get_value(instance *one, unsigned reference, double *value) {
    model_data *d = &one->data;
    int code = DONE;
    if (reference >= VR_END) return report(one, FAILED, "There is no variable of this reference.");
    if (d->phase == INSTANTIATED && reference >= VR_Q) {
        /* Nothing is computed yet: start values, and zero for what has none. */
        *value = reference < VR_Y ? d->start[reference - VR_Q] : 0.0;
        return DONE;
    }
    if (reference >= VR_Q && reference < VR_X && !(d->placed && reference < VR_Y)) code = evaluate(one);
    if (reference >= VR_X && d->phase == INITIALIZATION) code = evaluate(one);
    if (code) return code;
    *value = reference < VR_Q   ? d->given[reference]
             : reference < VR_X ? d->all[reference - VR_Q]
                                : d->x[reference - VR_X];
    return DONE;
}

static int set_value(instance *one, unsigned reference, double value) {
    model_data *d = &one->data;
    int starting = d->phase == INSTANTIATED || d->phase == INITIALIZATION;
    if (!(value - value == 0.0)) return report(one, FAILED, "A value is not a finite number.");
    if (reference >= VR_U && reference < VR_Q) {
        d->given[reference] = value;
        d->evaluated = 0;
        return DONE;
    }
    if (!starting) {
        size_t i = state_number(d, reference);
        if (i == MODEL_NX || !(d->phase & (EVENT | CONTINUOUS)))
            return report(one, FAILED,
                          "Only inputs, and states in Model Exchange, can be set after "
                          "initialization.");
        d->x[i] = value;
        changed(d);
        return DONE;
    }
    if (reference == VR_TIME || reference >= VR_Y)
        return report(one, FAILED, "Time, outputs and derivatives cannot be set.");
    if (reference == VR_STEP && !(value > 0.0))
        return report(one, FAILED, "The step of the integrator must be above 0.");
    *(reference < VR_Q ? d->given + reference : d->start + (reference - VR_Q)) = value;
    changed(d);
    return DONE;
}

/* A matrix times a vector: the derivative of unknowns in a direction of the knowns. */
static int differentiate(instance *one, const unsigned *unknown, size_t unknowns,
                         const unsigned *known, size_t knowns, const double *seed,
                         double *sensitivity) {
    model_data *d = &one->data;
    double sx[SIZED(MODEL_NX)] = {0}, given[VR_Q + 1] = {0};
    double all[SIZED(COUNT_ALL)];
    size_t k;
    int code = evaluate(one);
    if (code) return code;
    for (k = 0; k < knowns; k++) {
        unsigned r = known[k];
        if (r >= VR_P && r < VR_Q)
            given[r] = seed[k];
        else {
            size_t i = state_number(d, r);
            if (i == MODEL_NX)
                return report(one, FAILED,
                              "Derivatives are with respect to states, inputs and parameters.");
            sx[i] = seed[k];
        }
    }
    MODEL_MOTION(evaluate_derivative)
    (d->given, d->x, d->given + VR_U, d->given + VR_P, d->latest.q, d->order, d->scale, sx,
     given + VR_U, given + VR_P, all);
    for (k = 0; k < unknowns; k++) {
        unsigned r = unknown[k];
        if (r < VR_Q || r >= VR_END)
            return report(one, FAILED, "Derivatives are of outputs and of derivatives of states.");
        sensitivity[k] = r < VR_X ? all[r - VR_Q] : sx[r - VR_X];
    }
    return DONE;
}

/* A step of the importer's integrator was accepted: close the constraints there, and go on from
   there. Tells whether the independent coordinates have to be exchanged. */
static int accept_step(instance *one, int *needs_event) {
    model_data *d = &one->data;
    int code = evaluate(one);
    *needs_event = 0;
    if (code) return FAILED;
    d->accepted = d->latest;
#if MODEL_EXCHANGES
    {
        double moved[1];
        MODEL_MOTION(exchange)(d->given, d->latest.q, d->given + VR_P, d->order, d->scale,
                               d->order_due, moved);
        *needs_event = d->exchange_due = moved[0] > 0;
    }
#endif
    return DONE;
}

/* In event mode: exchange the independent coordinates if that is due. Tells whether x changed. */
static int update_states(instance *one) {
    model_data *d = &one->data;
    size_t i;
    if (!d->exchange_due || evaluate(one)) return 0;
    memcpy(d->order, d->order_due, sizeof d->order);
    for (i = 0; i < MODEL_NX; i++) d->x[i] = state_value(d, i);
    d->exchange_due = d->evaluated = 0;
    return 1;
}

/* As many of the model's own steps as the communication step needs; the time that was reached. */
static int take_steps(instance *one, double start, double length, double *reached) {
    model_data *d = &one->data;
    double count = ceil(length / d->given[VR_STEP] - 1e-6), number;
    double dt;
    int doubt = 0;
    count = count < 1.0 ? 1.0 : count;
    dt = length / count;
    *reached = start;
    for (number = 0.0; number < count; number += 1.0) {
        int code = MODEL(step)(&d->own, start + number * dt, dt, d->given + VR_U,
                               d->given + VR_P);
        doubt = code < 0 ? code : doubt; /* taken, near a singular configuration */
        if (code > 0) {
            d->given[VR_TIME] = *reached;
            take_own(d);
            return report(one, DISCARDED, MODEL(status_text)(code));
        }
        *reached = number + 1.0 < count ? start + (number + 1.0) * dt : start + length;
    }
    d->given[VR_TIME] = *reached;
    take_own(d);
    return doubt ? report(one, WARNED, MODEL(status_text)(doubt)) : DONE;
}

static instance *new_instance(const char *name, const char *token, int steps_itself, int logs) {
    instance *one;
    if (!token || strcmp(token, MODEL_TOKEN) != 0) return NULL;
    one = calloc(1, sizeof *one);
    if (!one) return NULL;
    one->name = calloc(strlen(name ? name : "") + 1, 1);
    if (!one->name) {
        free(one);
        return NULL;
    }
    if (name) strcpy(one->name, name);
    one->logs = logs;
    one->data.steps_itself = steps_itself;
    set_defaults(&one->data);
    return one;
}

static void free_instance(instance *one) {
    if (one) free(one->name);
    free(one);
}

/* Saved states begin with the token, so that those of another model are refused. */
enum { SAVED_SIZE = sizeof(model_data) + sizeof MODEL_TOKEN };

static void save(const model_data *d, unsigned char *bytes) {
    memcpy(bytes, MODEL_TOKEN, sizeof MODEL_TOKEN);
    memcpy(bytes + sizeof MODEL_TOKEN, d, sizeof *d);
}

static int restore(instance *one, const unsigned char *bytes, size_t size, model_data *d) {
    if (size != SAVED_SIZE || memcmp(bytes, MODEL_TOKEN, sizeof MODEL_TOKEN) != 0)
        return report(one, FAILED, "This is not a saved state of this FMU.");
    memcpy(d, bytes + sizeof MODEL_TOKEN, sizeof *d);
    return DONE;
}

#endif
