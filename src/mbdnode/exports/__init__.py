"""One tracer, several languages: models as plain C, as JavaScript, and as what is built on them.

The jaxpr of a model's functions is lowered to loops over arrays of fixed sizes, one rule for each
primitive, and printed. It never looks at what the model is, so that mechanisms, laws, networks and
hybrids are exported alike. In the order in which a model goes through the files:

    writing                 `export`: what is asked for, checked; the file put in place as a whole
    program                 names, state and jaxpr of each function, by `trace_program`
        entries             these functions: init, step, rates, outputs, linearize
        consistent_start    a consistent start, by operations that can be traced
        ensembles           the same for the mean of several models
    core_primitives     what JAX traced, in the few primitives that C, JavaScript and ONNX share
        array_algorithms    factorizations, sorting and the like, as loops of these
    functions               each jaxpr as a function of named arrays
        jaxpr_to_ir         from core primitives to loops
        primitive_rules     a rule for each of them
        values, builder     what a rule works with: arrays, and expressions simplified as they grow
        ir, pruning         the loops, and what of them nobody reads
    languages               printed as C or JavaScript; `placement` says where each expression goes
    targets             what they are written to: `c_folder`, `fmu`, `onnx`, `casadi`, `simulink`

Names are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
