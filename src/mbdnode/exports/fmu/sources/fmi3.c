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
#define PREFIX FMI3_FUNCTION_PREFIX
#endif
#define OWN(name) fmi3##name
#include "both_versions.h"

typedef struct {
    fmi3LogMessageCallback log;
} callbacks;

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

PUBLIC fmi3Instance FMI(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token,
                                                      fmi3String resources, fmi3Boolean visible,
                                                      fmi3Boolean logging,
                                                      fmi3InstanceEnvironment environment,
                                                      fmi3LogMessageCallback log) {
    return MODEL_HAS_RATES ? create(name, token, 0, logging, environment, log) : NULL;
}

PUBLIC fmi3Instance FMI(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
    fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
    const fmi3ValueReference *intermediate, size_t intermediates,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update) {
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
    if (log)
        log(environment, fmi3Error, "logStatusError", "Scheduled Execution is not provided.");
    return NULL;
}

STATUS FMI(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance,
                                        fmi3Float64 tolerance, fmi3Float64 start,
                                        fmi3Boolean has_stop, fmi3Float64 stop) {
    instance *one = c;
    REQUIRE(one, INSTANTIATED);
    one->data.phase = INITIALIZATION;
    one->data.given[VR_TIME] = start;
    changed(&one->data);
    return fmi3OK;
}

STATUS FMI(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference *vr, size_t n,
                           fmi3Float64 *value, size_t values) {
    if (values != n) return fmi3Error;
    return get_values(c, vr, n, value);
}

STATUS FMI(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference *vr, size_t n,
                           const fmi3Float64 *value, size_t values) {
    if (values != n) return fmi3Error;
    return set_values(c, vr, n, value);
}

#include "fmi3_not_provided.h"

STATUS FMI(fmi3EvaluateDiscreteStates)(fmi3Instance c) {
    REQUIRE((instance *)c, INITIALIZATION | EVENT);
    return fmi3OK; /* there are none */
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
    REQUIRE((instance *)c, STEPPING);
    *event = *terminate = *early = false;
    *reached = start;
    if (!(length > 0.0)) return (fmi3Status)report(c, FAILED, "A step must be longer than 0.");
    return (fmi3Status)take_steps(c, start, length, reached);
}
