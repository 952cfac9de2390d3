"""Compiled programs that a later process takes from a folder without tracing them again.

JAX keeps compiled programs too (`mbdnode.numerics`), and finds them by what tracing gave. Tracing
and lowering the rollout of a constrained mechanism takes seconds, for milliseconds of numbers, and
is the same in every process. A `stored_program` is found by what decides the trace instead: the
sources of this package and the versions of those that it uses, the processor, the settings of JAX,
the shapes of the arrays, and all that is static in the arguments, described by value.

What cannot be described by value (a function or a class from outside these packages) is traced as
ever, so a user's own mechanism costs what it did. So is all that is called inside another trace.
Under `vmap` alone it is a program of its own, compiled with the options of `mbdnode.numerics`;
under a user's `jit` or `grad` it is a part of another one, to which they do not apply. A file that
is missing, damaged or from elsewhere is only a reason to compile.
"""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import numpy as np
from jax._src.config import persistent_cache_min_compile_time_secs, trace_context
from jax._src.core import EvalTrace, trace_ctx, trace_state_clean
from jax._src.interpreters.batching import BatchTrace
from jax.core import Tracer
from jax.experimental import serialize_executable

from mbdnode import numerics

_Function = TypeVar("_Function", bound=Callable)

# Whose sources, or whose versions, are part of what a program is found by.
_USED = ("diffrax", "equinox", "jax", "jaxlib", "jaxtyping", "lineax", "numpy", "optax")
_KNOWN = (*_USED, "optimistix", "builtins", "mbdnode")
_MAGIC = b"mbdnode program 1\n"


class _HOLE:  # A class is one and the same after it was read from a file.
    """In place of an array, where arrays come and go."""


class UndescribedError(Exception):
    """Something that has no description by value."""


def stored_program(
    function: _Function, *, inline: bool = False, few_calls: bool = False
) -> _Function:
    """Compile a function of this package, as `equinox.filter_jit` does, and keep the program.

    **Arguments:**

    - `function`: of a module of this package, with arrays and static values in its arguments and
        in its result. Its result may depend on nothing else.
    - `inline`: whether it becomes a part of what it is called from, inside another trace.
    - `few_calls`: whether it is called so few times that optimizing it takes longer than it saves,
        on little data.

    **Returns:**

    A function that is called in the same way.
    """
    program = _StoredProgram(function, inline, few_calls)
    return cast(_Function, functools.update_wrapper(program, function))


# Such as the programs of a search, which are called for a few candidates on little data.
program_for_few_calls = functools.partial(stored_program, few_calls=True)


class _StoredProgram:
    """A function and its programs, by static arguments and shapes."""

    def __init__(self, function: Callable, inline: bool, few_calls: bool):
        self.function, self.few_calls = function, few_calls
        self._jitted = eqx.filter_jit(function, inline=inline)  # pyright: ignore[reportCallIssue]
        self._with_options: dict[tuple, Callable] = {}
        self._programs: dict[Any, Callable | None] = {}
        # Several threads that need one program wait for the first of them to make it.
        self._making = threading.RLock()

    def __call__(self, *args, **kwargs):
        arrays = [leaf for leaf in jax.tree.leaves((args, kwargs)) if eqx.is_array(leaf)]
        traced = _traced(arrays)
        if traced and _inside_a_program():  # What is around it says how it is compiled.
            return self._jitted(*args, **kwargs)
        program = None if traced else self.program_for(*args, **kwargs)
        if program is None:
            return self.compiled_anew(arrays)(*args, **kwargs)
        return program(arrays)

    def program_for(self, *args, **kwargs) -> Callable | None:
        """A program that takes the arrays among these arguments; None if none can be kept."""
        folder = numerics.programs_folder
        if folder is None:
            return None
        leaves, structure = jax.tree.flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
        static = tuple(_HOLE if eqx.is_array(leaf) else leaf for leaf in leaves)
        kinds = tuple((x.shape, x.dtype, getattr(x, "weak_type", False)) for x in arrays)
        key = (structure, static, tuple(map(type, static)), kinds, trace_context())
        try:
            if key in self._programs:
                return self._programs[key]
        except TypeError:  # What cannot be hashed.
            return None
        with self._making:
            if key not in self._programs:
                path = self._path(folder, args, kwargs)
                self._programs[key] = path and self._made(path, structure, static, arrays)
            return self._programs[key]

    def _made(self, path: Path, structure, static: tuple, arrays: list) -> Callable:
        """The program of a file, or one that is compiled."""
        compile_it = functools.partial(self._compile, path, structure, static, arrays)
        loaded = _load(path, len(arrays))
        return compile_it() if loaded is None else _checked(loaded, compile_it)

    def compiled_anew(self, arrays: list) -> Callable:
        """The function compiled by JAX itself, which keeps no program without tracing."""
        options = numerics.compiler_options(arrays, few_calls=self.few_calls)
        key = tuple(options.items())
        if key not in self._with_options:
            self._with_options[key] = eqx.filter_jit(
                self.function,
                compiler_options=options,  # pyright: ignore[reportCallIssue]
            )
        return self._with_options[key]

    def _path(self, folder: Path, args, kwargs) -> Path | None:
        """Of the program; None if it cannot be found by what decides it."""
        if len(jax.devices()) > 1 or jax.default_backend() != "cpu":
            return None
        try:
            what = [_name_of(self.function), describe((args, kwargs))]
            parts = [_sources(), _processor(), _settings(), *what]
        except UndescribedError:
            return None
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return folder / f"{self.function.__name__.strip('_')}_{digest[:40]}.program"

    def _compile(self, path: Path, structure, static: tuple, arrays: list) -> Callable:
        templates = []

        def flat(*given):
            rest = iter(given)
            whole = [next(rest) if leaf is _HOLE else leaf for leaf in static]
            args, kwargs = jax.tree.unflatten(structure, whole)
            result = self.function(*args, **kwargs)
            templates.append(jax.tree.map(lambda x: _HOLE if eqx.is_array(x) else x, result))
            return [x for x in jax.tree.leaves(result) if eqx.is_array(x)]

        # XLA cannot write again what it has read, so this must not come from JAX's own cache. With
        # a name of its own it is never there; and it need not be there twice.
        flat.__name__ = flat.__qualname__ = path.stem
        # Of this thread alone: others compile at the same time.
        with _counted(), persistent_cache_min_compile_time_secs(1e9):
            lowered = jax.jit(flat).lower(*arrays)
            compiled = lowered.compile(numerics.compiler_options(arrays, few_calls=self.few_calls))
        _store(path, compiled, templates[-1], "lapack" in lowered.as_text())
        return _program(compiled, templates[-1])


def bind(program: Callable, *first: Any) -> Callable:
    """A stored program with its first arguments fixed, for loops in which every call counts.

    A stored program looks at all of its arguments in every call, which takes a millisecond for a
    model; this one at the shapes of those that are left.

    **Arguments:**

    - `program`: made by `stored_program`.
    - `first`: its first arguments.

    **Returns:**

    A function of the other arguments, each a number or an array of float64.
    """
    stored = cast(_StoredProgram, program)
    fixed = [leaf for leaf in jax.tree.leaves(first) if eqx.is_array(leaf)]
    known: dict[tuple, Callable] = {}

    def call(*rest):
        given = [np.asarray(x, float) for x in rest]
        shapes = tuple(x.shape for x in given)
        if shapes not in known:
            found = stored.program_for(*first, *map(jax.device_put, given))
            known[shapes] = found or _closed_over(stored, first, fixed)
        return known[shapes]([*fixed, *given])

    return call


def _closed_over(stored: _StoredProgram, first: tuple, fixed: list) -> Callable:
    """What `bind` calls where no program can be kept."""
    options = numerics.compiler_options(fixed, few_calls=stored.few_calls)
    compiled = jax.jit(functools.partial(stored.function, *first), compiler_options=options)
    return lambda arrays: compiled(*arrays[len(fixed) :])


_under_way, _COUNTING = 0, threading.Lock()


def compiling() -> bool:
    """Whether a program is being traced or compiled at this moment, by any thread."""
    return _under_way > 0


@contextlib.contextmanager
def _counted() -> Iterator[None]:
    global _under_way
    with _COUNTING:
        _under_way += 1
    try:
        yield
    finally:
        with _COUNTING:
            _under_way -= 1


def _traced(arrays: list) -> bool:
    return any(isinstance(x, Tracer) for x in arrays) or not trace_state_clean()


def _inside_a_program() -> bool:
    """Whether something around this is being traced or differentiated, and not only batched."""
    trace: Any = trace_ctx.trace
    while isinstance(trace, BatchTrace):
        trace = trace.parent_trace
    return not isinstance(trace, EvalTrace)


def _checked(loaded: Callable, compile_it: Callable[[], Callable]) -> Callable:
    """A program from a file; another takes its place if it was read but lacks a part."""
    chosen: Callable | None = None

    def call(arrays):
        nonlocal chosen
        if chosen is None:
            try:
                result = jax.block_until_ready(loaded(arrays))
            except jax.errors.JaxRuntimeError:
                chosen = compile_it()
            else:
                chosen = loaded
                return result
        return chosen(arrays)

    return call


def _program(compiled: Callable, template: Any) -> Callable:
    leaves, structure = jax.tree.flatten(template)

    def call(arrays):
        found = iter(compiled(*arrays))
        return jax.tree.unflatten(
            structure, [next(found) if leaf is _HOLE else leaf for leaf in leaves]
        )

    return call


def _store(path: Path, compiled: Any, template: Any, lapack: bool) -> None:
    """Keep a program; what cannot be kept is compiled again by the next process."""
    try:
        executable = serialize_executable.serialize(compiled)[0]
        count = len([x for x in jax.tree.leaves(template) if x is _HOLE])
        body = pickle.dumps((executable, count, template, lapack))
    except Exception:  # Whatever JAX or pickle cannot write.
        return
    part = path.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
        part.replace(path)  # Others see a whole file or none.
    except OSError:  # No space, no permission; a part that fits would only take what is left.
        with contextlib.suppress(OSError):
            part.unlink()


def _load(path: Path, inputs: int) -> Callable | None:
    began = time.perf_counter()
    try:
        # What another user wrote is not run.
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None
        content = path.read_bytes()
        head, body = content[: len(_MAGIC) + 32], content[len(_MAGIC) + 32 :]
        if head != _MAGIC + hashlib.sha256(body).digest():
            return None
        executable, outputs, template, lapack = pickle.loads(body)
        if lapack:
            _prepare_lapack()
        compiled = serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure(((0,) * inputs, {})),
            jax.tree.structure([0] * outputs),
        )
    except Exception:  # Missing, damaged, or of a JAX that reads it differently.
        return None
    # As JAX reports what it takes from its own cache.
    jax.monitoring.record_event_duration_secs(
        "/jax/core/compile/backend_compile_duration", time.perf_counter() - began
    )
    return _program(compiled, template)


def _prepare_lapack() -> None:
    """JAX looks up LAPACK's functions when it lowers a call of one, which is left out here."""
    from jaxlib import lapack

    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]


@functools.cache
def _sources() -> str:
    """Of this package the sources, of the others the versions."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _USED]
    return " ".join([digest.hexdigest(), f"python {sys.version_info[:3]}", *versions])


@functools.cache
def _processor() -> str:
    """What it can do: a home folder may be shared by machines of which one is older."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    kept = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    return " ".join([platform.system(), platform.machine(), platform.processor(), *sorted(kept)])


def _settings() -> str:
    """The settings of JAX and XLA, but for those of JAX's own cache."""
    values = {name: v for name, v in jax.config.values.items() if "cache" not in name}
    flags = {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "PJRT_NPROC")}
    return repr(sorted({**values, **flags}.items()))


def describe(value: Any, *, static: bool = False) -> str:
    """A text that is the same for values that give the same trace, and for no others.

    **Arguments:**

    - `value`: an argument; arrays count by shape and type.
    - `static`: whether arrays count by their numbers.

    **Returns:**

    The text. Raises for a value that has no such text.
    """
    if eqx.is_array(value):
        kind = f"{value.dtype}{value.shape}{getattr(value, 'weak_type', False)}"
        held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest() if static else ""
        return f"array({kind}{held})"
    if value is None or type(value) in (bool, int, str, bytes, complex):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, float):
        return f"{type(value).__name__}:{float(value).hex()}"
    if isinstance(value, np.dtype):
        return f"dtype:{value}"
    if isinstance(value, enum.Enum):
        return f"{_name_of(type(value))}.{value.name}"
    if isinstance(value, (tuple, list, set, frozenset)):
        parts = [describe(each, static=static) for each in value]
        parts = sorted(parts) if isinstance(value, (set, frozenset)) else parts
        return f"{_name_of(type(value))}[{','.join(parts)}]"
    if isinstance(value, Mapping):
        parts = [f"{describe(k)}:{describe(v, static=static)}" for k, v in value.items()]
        return f"{_name_of(type(value))}{{{','.join(parts)}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _described_fields(value, static)
    if isinstance(value, functools.partial):
        parts = [describe(x, static=static) for x in (value.func, value.args, value.keywords)]
        return f"partial({','.join(parts)})"
    return _name_of(value)


def _described_fields(value: Any, static: bool) -> str:
    # An object that is no tree is a leaf, which JAX takes as it is.
    static = static or jax.tree_util.all_leaves([value])
    parts = []
    for field in dataclasses.fields(value):
        own = static or bool(field.metadata.get("static", False))
        held = getattr(value, field.name, _HOLE)
        parts.append(f"{field.name}={'?' if held is _HOLE else describe(held, static=own)}")
    return f"{_name_of(type(value))}({','.join(parts)})"


def _name_of(value: Any) -> str:
    """Where a class or a function is found, in the packages whose sources or versions count."""
    home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not (isinstance(home, str) and isinstance(name, str) and home.split(".")[0] in _KNOWN):
        raise UndescribedError(value)
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    own = getattr(found, "function", found)  # A stored program is called by its function's name.
    if found is not value and own is not value:
        raise UndescribedError(value)
    return f"{home}.{name}"
