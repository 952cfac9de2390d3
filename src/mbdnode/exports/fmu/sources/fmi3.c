/* FMI 3.0, Model Exchange and Co-Simulation, on top of instance.h.

   The types are declared here as the standard fixes them. */
#include <stdbool.h>
#include <stdint.h>

#include "instance.h"

typedef void *fmi3Instance, *fmi3InstanceEnvironment, *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean, fmi3Clock;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent }
    fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged }
    fmi3IntervalQualifier;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean,
                                               fmi3Boolean, fmi3Boolean, fmi3Boolean, fmi3Boolean *,
                                               fmi3Float64 *);
typedef void (*fmi3Callback)(void);

#if defined FMI3_FUNCTION_PREFIX
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FMI(name) JOINED(FMI3_FUNCTION_PREFIX, name)
#else
#define FMI(name) name
#endif
#if defined _WIN32
#define PUBLIC __declspec(dllexport)
#elif defined __GNUC__
#define PUBLIC __attribute__((visibility("default")))
#else
#define PUBLIC
#endif
#define STATUS PUBLIC fmi3Status
#define UNUSED(x) (void)(x)

/* Refuse a call that the standard does not allow in the present phase. */
static int allowed(instance *one, int phases) {
    if (one && (one->data.phase & phases)) return 1;
    if (one) report(one, FAILED, "This function must not be called now.");
    return 0;
}
#define REQUIRE(one, phases) \
    if (!allowed(one, phases)) return fmi3Error

enum { RUNNING = EVENT | CONTINUOUS | STEPPING, ANY = 63 };

typedef struct {
    fmi3LogMessageCallback log;
} callbacks;

static const char *category(int status) {
    return status == WARNED      ? "logStatusWarning"
           : status == DISCARDED ? "logStatusDiscard"
                                 : "logStatusError";
}

static void tell(const instance *one, int status, const char *message) {
    fmi3LogMessageCallback log = ((const callbacks *)one->callback)->log;
    if (log)
        log(one->environment, (fmi3Status)status,
            category(status), message);
}

static fmi3Instance create(fmi3String name, fmi3String token, int steps_itself, fmi3Boolean logging,
                           fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
    instance *one = new_instance(name, token, steps_itself, logging);
    callbacks *own = malloc(sizeof *own);
    if (!one || !own) {
        if (log)
            log(environment, fmi3Error, "logStatusError",
                "The token is not that of this FMU, or there is no memory.");
        free_instance(one);
        free(own);
        return NULL;
    }
    own->log = log;
    one->callback = own;
    one->environment = environment;
    one->logger = tell;
    return one;
}

PUBLIC const char *FMI(fmi3GetVersion)(void) { return "3.0"; }

STATUS FMI(fmi3SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String *names) {
    instance *one = c;
    UNUSED(n);
    UNUSED(names);
    REQUIRE(one, ANY);
    one->logs = on;
    return fmi3OK;
}

PUBLIC fmi3Instance FMI(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token,
                                                      fmi3String resources, fmi3Boolean visible,
                                                      fmi3Boolean logging,
                                                      fmi3InstanceEnvironment environment,
                                                      fmi3LogMessageCallback log) {
    UNUSED(resources);
    UNUSED(visible);
    return MODEL_HAS_RATES ? create(name, token, 0, logging, environment, log) : NULL;
}

PUBLIC fmi3Instance FMI(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
    fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
    const fmi3ValueReference *intermediate, size_t intermediates,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update) {
    UNUSED(resources);
    UNUSED(visible);
    UNUSED(early_return);
    UNUSED(intermediate);
    UNUSED(update);
    if (event_mode || intermediates) {
        if (log)
            log(environment, fmi3Error, "logStatusError",
                "Event mode and intermediate variables are not provided in Co-Simulation.");
        return NULL;
    }
    return create(name, token, 1, logging, environment, log);
}

PUBLIC fmi3Instance FMI(fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
    fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3Callback update, fmi3Callback lock, fmi3Callback unlock) {
    UNUSED(name);
    UNUSED(token);
    UNUSED(resources);
    UNUSED(visible);
    UNUSED(logging);
    UNUSED(update);
    UNUSED(lock);
    UNUSED(unlock);
    if (log)
        log(environment, fmi3Error, "logStatusError", "Scheduled Execution is not provided.");
    return NULL;
}

PUBLIC void FMI(fmi3FreeInstance)(fmi3Instance c) {
    instance *one = c;
    if (one) free(one->callback);
    free_instance(one);
}

STATUS FMI(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance,
                                        fmi3Float64 tolerance, fmi3Float64 start,
                                        fmi3Boolean has_stop, fmi3Float64 stop) {
    instance *one = c;
    UNUSED(has_tolerance);
    UNUSED(tolerance);
    UNUSED(has_stop);
    UNUSED(stop);
    REQUIRE(one, INSTANTIATED);
    one->data.phase = INITIALIZATION;
    one->data.time = start;
    changed(&one->data);
    return fmi3OK;
}

STATUS FMI(fmi3ExitInitializationMode)(fmi3Instance c) {
    instance *one = c;
    REQUIRE(one, INITIALIZATION);
    if (!one->data.placed && initialize(one)) return fmi3Error;
    one->data.phase = one->data.steps_itself ? STEPPING : EVENT;
    return fmi3OK;
}

STATUS FMI(fmi3EnterEventMode)(fmi3Instance c) {
    instance *one = c;
    REQUIRE(one, CONTINUOUS | EVENT);
    one->data.phase = EVENT;
    return fmi3OK;
}

STATUS FMI(fmi3Terminate)(fmi3Instance c) {
    instance *one = c;
    REQUIRE(one, RUNNING);
    one->data.phase = TERMINATED;
    return fmi3OK;
}

STATUS FMI(fmi3Reset)(fmi3Instance c) {
    instance *one = c;
    REQUIRE(one, ANY);
    set_defaults(&one->data);
    return fmi3OK;
}

STATUS FMI(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference *vr, size_t n,
                           fmi3Float64 *value, size_t values) {
    instance *one = c;
    size_t i;
    int code = DONE;
    REQUIRE(one, ANY);
    if (values != n) return fmi3Error;
    for (i = 0; i < n && !code; i++) code = get_value(one, vr[i], value + i);
    return (fmi3Status)code;
}

STATUS FMI(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference *vr, size_t n,
                           const fmi3Float64 *value, size_t values) {
    instance *one = c;
    size_t i;
    int code = DONE;
    REQUIRE(one, INSTANTIATED | INITIALIZATION | RUNNING);
    if (values != n) return fmi3Error;
    for (i = 0; i < n && !code; i++) code = set_value(one, vr[i], value[i]);
    return (fmi3Status)code;
}

#include "fmi3_not_provided.h"

STATUS FMI(fmi3EvaluateDiscreteStates)(fmi3Instance c) {
    REQUIRE((instance *)c, INITIALIZATION | EVENT);
    return fmi3OK; /* there are none */
}

STATUS FMI(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState *state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!*state) *state = malloc(sizeof one->data);
    if (!*state) return fmi3Error;
    memcpy(*state, &one->data, sizeof one->data);
    return fmi3OK;
}

STATUS FMI(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!state) return fmi3Error;
    memcpy(&one->data, state, sizeof one->data);
    return fmi3OK;
}

STATUS FMI(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState *state) {
    UNUSED(c);
    if (state) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

STATUS FMI(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t *size) {
    UNUSED(c);
    UNUSED(state);
    *size = SAVED_SIZE;
    return fmi3OK;
}

STATUS FMI(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, fmi3Byte *bytes, size_t size) {
    REQUIRE((instance *)c, ANY);
    if (!state || size < SAVED_SIZE) return fmi3Error;
    save(state, bytes);
    return fmi3OK;
}

STATUS FMI(fmi3DeserializeFMUState)(fmi3Instance c, const fmi3Byte *bytes, size_t size,
                                    fmi3FMUState *state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!*state) *state = malloc(sizeof one->data);
    if (!*state) return fmi3Error;
    return (fmi3Status)restore(one, bytes, size, *state);
}

STATUS FMI(fmi3GetDirectionalDerivative)(fmi3Instance c, const fmi3ValueReference *unknown,
                                         size_t unknowns, const fmi3ValueReference *known,
                                         size_t knowns, const fmi3Float64 *seed, size_t seeds,
                                         fmi3Float64 *sensitivity, size_t sensitivities) {
    REQUIRE((instance *)c, INITIALIZATION | RUNNING);
    if (seeds != knowns || sensitivities != unknowns) return fmi3Error;
    return (fmi3Status)differentiate(c, unknown, unknowns, known, knowns, seed, sensitivity);
}

/* Model Exchange */

STATUS FMI(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate,
                                     fmi3Boolean *nominals_changed, fmi3Boolean *values_changed,
                                     fmi3Boolean *has_next_time, fmi3Float64 *next_time) {
    REQUIRE((instance *)c, EVENT);
    *again = *terminate = *has_next_time = false;
    *next_time = 0.0;
    *values_changed = *nominals_changed = update_states(c) != 0;
    return fmi3OK;
}

STATUS FMI(fmi3EnterContinuousTimeMode)(fmi3Instance c) {
    instance *one = c;
    REQUIRE(one, EVENT);
    one->data.phase = CONTINUOUS;
    return fmi3OK;
}

STATUS FMI(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean final,
                                        fmi3Boolean *enter_event_mode, fmi3Boolean *terminate) {
    int event = 0, code;
    UNUSED(final);
    REQUIRE((instance *)c, CONTINUOUS);
    *terminate = false;
    code = accept_step(c, &event);
    *enter_event_mode = event != 0;
    return (fmi3Status)code;
}

STATUS FMI(fmi3SetTime)(fmi3Instance c, fmi3Float64 time) {
    instance *one = c;
    REQUIRE(one, EVENT | CONTINUOUS);
    if (time != one->data.time) changed(&one->data);
    one->data.time = time;
    return fmi3OK;
}

STATUS FMI(fmi3SetContinuousStates)(fmi3Instance c, const fmi3Float64 *x, size_t n) {
    instance *one = c;
    REQUIRE(one, CONTINUOUS | EVENT);
    if (n != MODEL_NX) return fmi3Error;
    memcpy(one->data.x, x, n * sizeof *x);
    changed(&one->data);
    return fmi3OK;
}

STATUS FMI(fmi3GetContinuousStates)(fmi3Instance c, fmi3Float64 *x, size_t n) {
    instance *one = c;
    REQUIRE(one, INITIALIZATION | RUNNING);
    if (n != MODEL_NX) return fmi3Error;
    if (one->data.phase == INITIALIZATION && evaluate(one)) return fmi3Error;
    memcpy(x, one->data.x, n * sizeof *x);
    return fmi3OK;
}

STATUS FMI(fmi3GetContinuousStateDerivatives)(fmi3Instance c, fmi3Float64 *derivatives, size_t n) {
    instance *one = c;
    int code;
    REQUIRE(one, INITIALIZATION | RUNNING);
    if (n != MODEL_NX) return fmi3Error;
    code = evaluate(one);
    if (!code) memcpy(derivatives, one->data.all + AT_DX, n * sizeof *derivatives);
    return (fmi3Status)code;
}

STATUS FMI(fmi3GetEventIndicators)(fmi3Instance c, fmi3Float64 *indicators, size_t n) {
    UNUSED(indicators);
    REQUIRE((instance *)c, INITIALIZATION | RUNNING);
    return n ? fmi3Error : fmi3OK;
}

STATUS FMI(fmi3GetNominalsOfContinuousStates)(fmi3Instance c, fmi3Float64 *nominals, size_t n) {
    instance *one = c;
    size_t i;
    REQUIRE(one, ANY);
    if (n != MODEL_NX) return fmi3Error;
    for (i = 0; i < n; i++) nominals[i] = one->data.scale[state_coordinate(&one->data, i)];
    return fmi3OK;
}

STATUS FMI(fmi3GetNumberOfEventIndicators)(fmi3Instance c, size_t *n) {
    REQUIRE((instance *)c, ANY);
    *n = 0;
    return fmi3OK;
}

STATUS FMI(fmi3GetNumberOfContinuousStates)(fmi3Instance c, size_t *n) {
    REQUIRE((instance *)c, ANY);
    *n = MODEL_NX;
    return fmi3OK;
}

/* Co-Simulation */

STATUS FMI(fmi3DoStep)(fmi3Instance c, fmi3Float64 start, fmi3Float64 length, fmi3Boolean final,
                       fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early,
                       fmi3Float64 *reached) {
    UNUSED(final);
    REQUIRE((instance *)c, STEPPING);
    *event = *terminate = *early = false;
    *reached = start;
    if (!(length > 0.0)) return (fmi3Status)report(c, FAILED, "A step must be longer than 0.");
    return (fmi3Status)take_steps(c, start, length, reached);
}
