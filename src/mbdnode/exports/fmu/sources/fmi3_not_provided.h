/* The functions of FMI 3.0 that this FMU has no use for: an importer may look for them, and is told.

   Included once, by fmi3.c. */
#ifndef FMI3_NOT_PROVIDED_H
#define FMI3_NOT_PROVIDED_H

/* There are no variables of other types. */
#define NO_VARIABLES(name, type)                                                               \
    STATUS FMI(fmi3Get##name)(fmi3Instance c, const fmi3ValueReference *vr, size_t n, type *value, \
                              size_t values) {                                                 \
        REQUIRE((instance *)c, ANY);                                                           \
        return n ? (fmi3Status)report(c, FAILED, "All variables are Float64.") : fmi3OK;       \
    }                                                                                          \
    STATUS FMI(fmi3Set##name)(fmi3Instance c, const fmi3ValueReference *vr, size_t n,          \
                              const type *value, size_t values) {                              \
        REQUIRE((instance *)c, ANY);                                                           \
        return n ? (fmi3Status)report(c, FAILED, "All variables are Float64.") : fmi3OK;       \
    }
NO_VARIABLES(Float32, fmi3Float32)
NO_VARIABLES(Int8, fmi3Int8)
NO_VARIABLES(UInt8, fmi3UInt8)
NO_VARIABLES(Int16, fmi3Int16)
NO_VARIABLES(UInt16, fmi3UInt16)
NO_VARIABLES(Int32, fmi3Int32)
NO_VARIABLES(UInt32, fmi3UInt32)
NO_VARIABLES(Int64, fmi3Int64)
NO_VARIABLES(UInt64, fmi3UInt64)
NO_VARIABLES(Boolean, fmi3Boolean)
NO_VARIABLES(String, fmi3String)

/* What is not provided: binaries, clocks, intervals, configuration, partitions, adjoints. */
#define NOT_PROVIDED(name, ...)                                                    \
    STATUS FMI(name)(fmi3Instance c, __VA_ARGS__) {                                \
        REQUIRE((instance *)c, ANY);                                               \
        return (fmi3Status)report(c, FAILED, #name " is not provided by this FMU."); \
    }
NOT_PROVIDED(fmi3GetBinary, const fmi3ValueReference *vr, size_t n, size_t *sizes, fmi3Binary *value,
             size_t values)
NOT_PROVIDED(fmi3SetBinary, const fmi3ValueReference *vr, size_t n, const size_t *sizes,
             const fmi3Binary *value, size_t values)
NOT_PROVIDED(fmi3GetClock, const fmi3ValueReference *vr, size_t n, fmi3Clock *value)
NOT_PROVIDED(fmi3SetClock, const fmi3ValueReference *vr, size_t n, const fmi3Clock *value)
NOT_PROVIDED(fmi3GetNumberOfVariableDependencies, fmi3ValueReference vr, size_t *n)
NOT_PROVIDED(fmi3GetVariableDependencies, fmi3ValueReference vr, size_t *dependent,
             fmi3ValueReference *vrs, size_t *independent, fmi3DependencyKind *kinds, size_t n)
NOT_PROVIDED(fmi3GetAdjointDerivative, const fmi3ValueReference *unknown, size_t unknowns,
             const fmi3ValueReference *known, size_t knowns, const fmi3Float64 *seed, size_t seeds,
             fmi3Float64 *sensitivity, size_t sensitivities)
NOT_PROVIDED(fmi3GetIntervalDecimal, const fmi3ValueReference *vr, size_t n, fmi3Float64 *intervals,
             fmi3IntervalQualifier *qualifiers)
NOT_PROVIDED(fmi3GetIntervalFraction, const fmi3ValueReference *vr, size_t n, fmi3UInt64 *counters,
             fmi3UInt64 *resolutions, fmi3IntervalQualifier *qualifiers)
NOT_PROVIDED(fmi3GetShiftDecimal, const fmi3ValueReference *vr, size_t n, fmi3Float64 *shifts)
NOT_PROVIDED(fmi3GetShiftFraction, const fmi3ValueReference *vr, size_t n, fmi3UInt64 *counters,
             fmi3UInt64 *resolutions)
NOT_PROVIDED(fmi3SetIntervalDecimal, const fmi3ValueReference *vr, size_t n,
             const fmi3Float64 *intervals)
NOT_PROVIDED(fmi3SetIntervalFraction, const fmi3ValueReference *vr, size_t n,
             const fmi3UInt64 *counters, const fmi3UInt64 *resolutions)
NOT_PROVIDED(fmi3SetShiftDecimal, const fmi3ValueReference *vr, size_t n, const fmi3Float64 *shifts)
NOT_PROVIDED(fmi3SetShiftFraction, const fmi3ValueReference *vr, size_t n,
             const fmi3UInt64 *counters, const fmi3UInt64 *resolutions)
NOT_PROVIDED(fmi3GetOutputDerivatives, const fmi3ValueReference *vr, size_t n,
             const fmi3Int32 *orders, fmi3Float64 *value, size_t values)
NOT_PROVIDED(fmi3ActivateModelPartition, fmi3ValueReference clock, fmi3Float64 time)

#define NOT_PROVIDED_ALONE(name)                                                   \
    STATUS FMI(name)(fmi3Instance c) {                                             \
        REQUIRE((instance *)c, ANY);                                               \
        return (fmi3Status)report(c, FAILED, #name " is not provided by this FMU."); \
    }
NOT_PROVIDED_ALONE(fmi3EnterConfigurationMode)
NOT_PROVIDED_ALONE(fmi3ExitConfigurationMode)
NOT_PROVIDED_ALONE(fmi3EnterStepMode)

#endif
