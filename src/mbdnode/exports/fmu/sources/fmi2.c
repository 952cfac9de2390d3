/* FMI 2.0, Model Exchange and Co-Simulation, on top of instance.h.

   The types are declared here as the standard fixes them for platform "default". */
#include "instance.h"

typedef void *fmi2Component, *fmi2ComponentEnvironment, *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer, fmi2Boolean;
typedef char fmi2Byte;
typedef const char *fmi2String;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum {
    fmi2DoStepStatus,
    fmi2PendingStatus,
    fmi2LastSuccessfulTime,
    fmi2Terminated
} fmi2StatusKind;
typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String,
                                   fmi2String, ...);
typedef struct {
    fmi2CallbackLogger logger;
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged,
        valuesOfContinuousStatesChanged, nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;

#if defined FMI2_FUNCTION_PREFIX
#define PREFIX FMI2_FUNCTION_PREFIX
#endif
#define OWN(name) fmi2##name
/* FMI 2.0 spells some of the common names otherwise. */
#define fmi2GetFMUState fmi2GetFMUstate
#define fmi2SetFMUState fmi2SetFMUstate
#define fmi2FreeFMUState fmi2FreeFMUstate
#define fmi2SerializedFMUStateSize fmi2SerializedFMUstateSize
#define fmi2SerializeFMUState fmi2SerializeFMUstate
#define fmi2DeserializeFMUState fmi2DeSerializeFMUstate
#define fmi2GetContinuousStateDerivatives fmi2GetDerivatives
#include "both_versions.h"

static void tell(const instance *one, int status, const char *message) {
    fmi2CallbackLogger logger = ((const fmi2CallbackFunctions *)one->callback)->logger;
    if (logger)
        logger(one->environment, one->name, (fmi2Status)status,
               category(status), "%s", message);
}

PUBLIC const char *FMI(fmi2GetTypesPlatform)(void) { return "default"; }
PUBLIC const char *FMI(fmi2GetVersion)(void) { return "2.0"; }

PUBLIC fmi2Component FMI(fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid,
                                          fmi2String resources,
                                          const fmi2CallbackFunctions *functions,
                                          fmi2Boolean visible, fmi2Boolean logging) {
    instance *one;
    if (!functions || (type == fmi2ModelExchange && !MODEL_HAS_RATES)) return NULL;
    one = new_instance(name, guid, type == fmi2CoSimulation, logging);
    if (!one) {
        if (functions->logger)
            functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError",
                              "The guid is not that of this FMU, or there is no memory.");
        return NULL;
    }
    one->callback = malloc(sizeof *functions);
    if (!one->callback) {
        free_instance(one);
        return NULL;
    }
    memcpy(one->callback, functions, sizeof *functions);
    one->environment = functions->componentEnvironment;
    one->logger = tell;
    return one;
}

STATUS FMI(fmi2SetupExperiment)(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance,
                                fmi2Real start, fmi2Boolean has_stop, fmi2Real stop) {
    instance *one = c;
    REQUIRE(one, INSTANTIATED);
    one->data.given[VR_TIME] = start;
    return fmi2OK;
}

STATUS FMI(fmi2EnterInitializationMode)(fmi2Component c) {
    instance *one = c;
    REQUIRE(one, INSTANTIATED);
    one->data.phase = INITIALIZATION;
    changed(&one->data);
    return fmi2OK;
}

STATUS FMI(fmi2GetReal)(fmi2Component c, const fmi2ValueReference *vr, size_t n, fmi2Real *value) {
    return get_values(c, vr, n, value);
}

STATUS FMI(fmi2SetReal)(fmi2Component c, const fmi2ValueReference *vr, size_t n,
                        const fmi2Real *value) {
    return set_values(c, vr, n, value);
}

/* There are no variables of other types. */
#define NO_VARIABLES(name, type)                                                           \
    STATUS FMI(name)(fmi2Component c, const fmi2ValueReference *vr, size_t n, type value) { \
        REQUIRE((instance *)c, ANY);                                                       \
        return n ? (fmi2Status)report(c, FAILED, "All variables are Real.") : fmi2OK;      \
    }
NO_VARIABLES(fmi2GetInteger, fmi2Integer *)
NO_VARIABLES(fmi2GetBoolean, fmi2Boolean *)
NO_VARIABLES(fmi2GetString, fmi2String *)
NO_VARIABLES(fmi2SetInteger, const fmi2Integer *)
NO_VARIABLES(fmi2SetBoolean, const fmi2Boolean *)
NO_VARIABLES(fmi2SetString, const fmi2String *)

STATUS FMI(fmi2GetDirectionalDerivative)(fmi2Component c, const fmi2ValueReference *unknown,
                                         size_t unknowns, const fmi2ValueReference *known,
                                         size_t knowns, const fmi2Real *seed,
                                         fmi2Real *sensitivity) {
    REQUIRE((instance *)c, INITIALIZATION | RUNNING);
    return (fmi2Status)differentiate(c, unknown, unknowns, known, knowns, seed, sensitivity);
}

/* Model Exchange */

STATUS FMI(fmi2NewDiscreteStates)(fmi2Component c, fmi2EventInfo *info) {
    instance *one = c;
    REQUIRE(one, EVENT);
    memset(info, 0, sizeof *info);
    info->valuesOfContinuousStatesChanged = update_states(one);
    info->nominalsOfContinuousStatesChanged = info->valuesOfContinuousStatesChanged;
    return fmi2OK;
}

/* Co-Simulation */

STATUS FMI(fmi2SetRealInputDerivatives)(fmi2Component c, const fmi2ValueReference *vr, size_t n,
                                        const fmi2Integer *order, const fmi2Real *value) {
    REQUIRE((instance *)c, ANY);
    return n ? (fmi2Status)report(c, FAILED, "Inputs are held over a step.") : fmi2OK;
}

STATUS FMI(fmi2GetRealOutputDerivatives)(fmi2Component c, const fmi2ValueReference *vr, size_t n,
                                         const fmi2Integer *order, fmi2Real *value) {
    REQUIRE((instance *)c, ANY);
    return n ? (fmi2Status)report(c, FAILED, "Outputs have no derivatives here.") : fmi2OK;
}

STATUS FMI(fmi2DoStep)(fmi2Component c, fmi2Real start, fmi2Real length, fmi2Boolean final) {
    double reached;
    REQUIRE((instance *)c, STEPPING);
    if (!(length > 0.0)) return (fmi2Status)report(c, FAILED, "A step must be longer than 0.");
    return (fmi2Status)take_steps(c, start, length, &reached);
}

STATUS FMI(fmi2CancelStep)(fmi2Component c) {
    REQUIRE((instance *)c, ANY);
    return (fmi2Status)report(c, FAILED, "Steps are not asynchronous.");
}

STATUS FMI(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (kind != fmi2LastSuccessfulTime) return fmi2Discard;
    *value = one->data.given[VR_TIME];
    return fmi2OK;
}

STATUS FMI(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
    REQUIRE((instance *)c, ANY);
    if (kind != fmi2Terminated) return fmi2Discard;
    *value = 0;
    return fmi2OK;
}

#define NO_STATUS(name, type)                                                        \
    STATUS FMI(name)(fmi2Component c, const fmi2StatusKind kind, type *value) { \
        REQUIRE((instance *)c, ANY);                                                 \
        return fmi2Discard;                                                          \
    }
NO_STATUS(fmi2GetStatus, fmi2Status)
NO_STATUS(fmi2GetIntegerStatus, fmi2Integer)
NO_STATUS(fmi2GetStringStatus, fmi2String)
