/* The functions that FMI 2.0 and FMI 3.0 have in common, on top of instance.h.

   Included once, by fmi2.c or fmi3.c, when the types are declared. OWN(name) is the name with the
   version before it, PREFIX what a function's name begins with, if anything. */
#ifndef BOTH_VERSIONS_H
#define BOTH_VERSIONS_H

#if defined PREFIX
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FMI(name) JOINED(PREFIX, name)
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
/* The standard fixes the arguments, whether they are of use or not. */
#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#define STATUS PUBLIC OWN(Status)

/* Refuse a call that the standard does not allow in the present phase. */
static int allowed(instance *one, int phases) {
    if (one && (one->data.phase & phases)) return 1;
    if (one) report(one, FAILED, "This function must not be called now.");
    return 0;
}
#define REQUIRE(one, phases) \
    if (!allowed(one, phases)) return OWN(Error)

enum { RUNNING = EVENT | CONTINUOUS | STEPPING, ANY = 63 };

static const char *category(int status) {
    return status == WARNED      ? "logStatusWarning"
           : status == DISCARDED ? "logStatusDiscard"
                                 : "logStatusError";
}

/* Phases */

STATUS FMI(OWN(SetDebugLogging))(void *c, OWN(Boolean) on, size_t n, const OWN(String) *names) {
    instance *one = c;
    REQUIRE(one, ANY);
    one->logs = on;
    return OWN(OK);
}

PUBLIC void FMI(OWN(FreeInstance))(void *c) {
    instance *one = c;
    if (one) free(one->callback);
    free_instance(one);
}

STATUS FMI(OWN(ExitInitializationMode))(void *c) {
    instance *one = c;
    REQUIRE(one, INITIALIZATION);
    if (!one->data.placed && initialize(one)) return OWN(Error);
    one->data.phase = one->data.steps_itself ? STEPPING : EVENT;
    return OWN(OK);
}

STATUS FMI(OWN(Terminate))(void *c) {
    instance *one = c;
    REQUIRE(one, RUNNING);
    one->data.phase = TERMINATED;
    return OWN(OK);
}

STATUS FMI(OWN(Reset))(void *c) {
    instance *one = c;
    REQUIRE(one, ANY);
    set_defaults(&one->data);
    return OWN(OK);
}

/* Variables */

static OWN(Status) get_values(instance *one, const unsigned *vr, size_t n, double *value) {
    size_t i;
    int code = DONE;
    REQUIRE(one, ANY);
    for (i = 0; i < n && !code; i++) code = get_value(one, vr[i], value + i);
    return (OWN(Status))code;
}

static OWN(Status) set_values(instance *one, const unsigned *vr, size_t n, const double *value) {
    size_t i;
    int code = DONE;
    REQUIRE(one, INSTANTIATED | INITIALIZATION | RUNNING);
    for (i = 0; i < n && !code; i++) code = set_value(one, vr[i], value[i]);
    return (OWN(Status))code;
}

/* Saving */

STATUS FMI(OWN(GetFMUState))(void *c, void **state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!*state) *state = malloc(sizeof one->data);
    if (!*state) return OWN(Error);
    memcpy(*state, &one->data, sizeof one->data);
    return OWN(OK);
}

STATUS FMI(OWN(SetFMUState))(void *c, void *state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!state) return OWN(Error);
    memcpy(&one->data, state, sizeof one->data);
    return OWN(OK);
}

STATUS FMI(OWN(FreeFMUState))(void *c, void **state) {
    if (state) {
        free(*state);
        *state = NULL;
    }
    return OWN(OK);
}

STATUS FMI(OWN(SerializedFMUStateSize))(void *c, void *state, size_t *size) {
    *size = SAVED_SIZE;
    return OWN(OK);
}

STATUS FMI(OWN(SerializeFMUState))(void *c, void *state, OWN(Byte) *bytes, size_t size) {
    REQUIRE((instance *)c, ANY);
    if (!state || size < SAVED_SIZE) return OWN(Error);
    save(state, (unsigned char *)bytes);
    return OWN(OK);
}

STATUS FMI(OWN(DeserializeFMUState))(void *c, const OWN(Byte) *bytes, size_t size, void **state) {
    instance *one = c;
    REQUIRE(one, ANY);
    if (!*state) *state = malloc(sizeof one->data);
    if (!*state) return OWN(Error);
    return (OWN(Status))restore(one, (const unsigned char *)bytes, size, *state);
}

/* Model Exchange */

STATUS FMI(OWN(EnterEventMode))(void *c) {
    instance *one = c;
    REQUIRE(one, CONTINUOUS | EVENT);
    one->data.phase = EVENT;
    return OWN(OK);
}

STATUS FMI(OWN(EnterContinuousTimeMode))(void *c) {
    instance *one = c;
    REQUIRE(one, EVENT);
    one->data.phase = CONTINUOUS;
    return OWN(OK);
}

STATUS FMI(OWN(CompletedIntegratorStep))(void *c, OWN(Boolean) final,
                                        OWN(Boolean) *enter_event_mode, OWN(Boolean) *terminate) {
    int event = 0, code;
    REQUIRE((instance *)c, CONTINUOUS);
    *terminate = 0;
    code = accept_step(c, &event);
    *enter_event_mode = event != 0;
    return (OWN(Status))code;
}

STATUS FMI(OWN(SetTime))(void *c, double time) {
    instance *one = c;
    REQUIRE(one, EVENT | CONTINUOUS);
    if (time != one->data.given[VR_TIME]) changed(&one->data);
    one->data.given[VR_TIME] = time;
    return OWN(OK);
}

STATUS FMI(OWN(SetContinuousStates))(void *c, const double *x, size_t n) {
    instance *one = c;
    REQUIRE(one, CONTINUOUS | EVENT);
    if (n != MODEL_NX) return OWN(Error);
    memcpy(one->data.x, x, n * sizeof *x);
    changed(&one->data);
    return OWN(OK);
}

STATUS FMI(OWN(GetContinuousStates))(void *c, double *x, size_t n) {
    instance *one = c;
    REQUIRE(one, INITIALIZATION | RUNNING);
    if (n != MODEL_NX) return OWN(Error);
    if (one->data.phase == INITIALIZATION && evaluate(one)) return OWN(Error);
    memcpy(x, one->data.x, n * sizeof *x);
    return OWN(OK);
}

STATUS FMI(OWN(GetContinuousStateDerivatives))(void *c, double *derivatives, size_t n) {
    instance *one = c;
    int code;
    REQUIRE(one, INITIALIZATION | RUNNING);
    if (n != MODEL_NX) return OWN(Error);
    code = evaluate(one);
    if (!code) memcpy(derivatives, one->data.all + AT_DX, n * sizeof *derivatives);
    return (OWN(Status))code;
}

STATUS FMI(OWN(GetEventIndicators))(void *c, double *indicators, size_t n) {
    REQUIRE((instance *)c, INITIALIZATION | RUNNING);
    return n ? OWN(Error) : OWN(OK);
}

STATUS FMI(OWN(GetNominalsOfContinuousStates))(void *c, double *nominals, size_t n) {
    instance *one = c;
    size_t i;
    REQUIRE(one, ANY);
    if (n != MODEL_NX) return OWN(Error);
    for (i = 0; i < n; i++) nominals[i] = one->data.scale[state_coordinate(&one->data, i)];
    return OWN(OK);
}

#endif
