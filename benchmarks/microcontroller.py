"""Exported C on a microcontroller: code, memory, and whether it moves there as `simulate` does.

A program that starts the model and takes steps is compiled for a Cortex-M4F, which computes in
float32 only, and for a Cortex-M7 with float64, by `arm-none-eabi-gcc -Os`. What is linked is what
is used: the functions `init` and `step`, and what they need of libm.

- flash: `text` and `data` of `arm-none-eabi-size`, with the vector table and the C library.
- state: the struct that the caller holds.
- static: what libm and the C library keep for themselves, `errno` above all.
- stack: the deepest chain of calls of the exported functions, of `-fcallgraph-info=su`; libm's own
  frames come on top.

If there is `qemu-system-arm`, the program runs on an emulated board of either processor, and its
coordinates after 100 steps are compared with `simulate` in float64.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mbdnode as mbd

STEPS, DT = 100, 0.01


@dataclass(frozen=True)
class Processor:
    """A processor, how to compile for it, and an emulated board that has it."""

    name: str
    flags: tuple[str, ...]
    board: str


PROCESSORS = (
    Processor("Cortex-M4F", ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"), "mps2-an386"),
    Processor("Cortex-M7", ("-mcpu=cortex-m7", "-mfpu=fpv5-d16"), "mps2-an500"),
)
_FLAGS = (
    "-mthumb",
    "-mfloat-abi=hard",
    "-std=c99",
    "-Os",
    "-ffunction-sections",
    "-fdata-sections",
)
_LINK = ("-Wl,--gc-sections", "-T", "board.ld", "-nostartfiles", "-lm")

# Vectors, the floating-point unit, initialized data; what is not known before linking is measured.
_START = """
#include <stdint.h>
extern uint32_t stack_top, data_from, data_begin, data_end, bss_begin, bss_end;
int main(void);
void reset(void);
void _exit(int code);
void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the floating-point unit */
    __asm volatile("dsb\\n isb");
    for (uint32_t *to = &data_begin, *from = &data_from; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_begin; to < &bss_end;) *to++ = 0;
    main();
    _exit(0);
}
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (void *)reset,
};
"""
_SCRIPT = """
ENTRY(reset)
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
stack_top = ORIGIN(RAM) + LENGTH(RAM);
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > FLASH
  .ARM.exidx : { *(.ARM.exidx*) } > FLASH
  data_from = LOADADDR(.data);
  .data : { data_begin = .; *(.data*) . = ALIGN(4); data_end = .; } > RAM AT > FLASH
  .bss : { bss_begin = .; *(.bss*) *(COMMON) . = ALIGN(4); bss_end = .; } > RAM
  end = .;
}
"""
_MAIN = """
#include "m.h"
#if defined REPORT
#include <stdio.h>
void initialise_monitor_handles(void);
#endif
static m_state state;
static const NUMBER q[M_NQ] = {QS}, v[M_NQ] = {VS};
int main(void)
{
    NUMBER u[M_NU + 1] = {0};
    unsigned char known[2 * M_NQ];
    for (int i = 0; i < 2 * M_NQ; ++i) known[i] = 1;
    int code = m_init(&state, 0, q, v, known, m_default_parameters);
    for (int k = 0; k < STEPS && code <= 0; ++k)
        code = m_step(&state, (NUMBER)k * (NUMBER)M_DT, (NUMBER)M_DT, u, m_default_parameters);
#if defined REPORT
    initialise_monitor_handles();
    printf("code %d\\n", code);
    for (int i = 0; i < M_NQ; ++i) printf("q %.17g\\n", (double)state.q[i]);
    fflush(stdout);
#endif
    return code;
}
"""
# Without an operating system: only the emulator's semihosting ends the program.
_EXIT = "void _exit(int code);\nvoid _exit(int code) { (void)code; for (;;) {} }\n"


def models() -> dict[str, tuple[Any, dict[str, float]]]:
    """By name, each with a start."""
    crank, damper = mbd.mechanisms.SliderCrank(), mbd.mechanisms.SingleMassSpringDamper()
    data = mbd.simulate(damper, np.linspace(0.0, 10.0, 1_001), {"x": 1.0})
    law = mbd.identify(damper, data, "fast").model
    network = mbd.MBDNODE.for_system(damper, width=32, hidden_layers=2)
    return {
        "slider-crank": (crank, {"theta1": 1.0, "theta1_dot": 1.0}),
        "law (damper)": (law, {"x": 1.0}),
        "network, 2 x 32 (damper)": (network, {"x": 1.0}),
    }


def compiled(folder: Path, processor: Processor, out: str, *more: str) -> Path:
    """The program as an ELF file; `more` are sources and flags."""
    command = ["arm-none-eabi-gcc", *processor.flags, *_FLAGS, "-fcallgraph-info=su", "m.c"]
    command += ["main.c", "start.c", *more, *_LINK, "-o", out]
    subprocess.run(command, cwd=folder, check=True)
    return folder / out


def stack_bytes(report: Path) -> int:
    """The deepest chain of calls in GCC's graph of calls, in bytes."""
    text = report.read_text()
    frames = {
        name: int(size)
        for name, size in re.findall(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes', text)
    }
    calls: dict[str, set[str]] = {}
    for caller, callee in re.findall(r'sourcename: "([^"]+)" targetname: "([^"]+)"', text):
        calls.setdefault(caller, set()).add(callee)

    def depth(name: str) -> int:
        inner = max((depth(each) for each in calls.get(name, ())), default=0)
        return frames.get(name, 0) + inner

    return max(depth(name) for name in ("m_init", "m_step"))


def measured(folder: Path, processor: Processor) -> dict[str, int]:
    """Bytes of flash, of the state and of the stack."""
    elf = compiled(folder, processor, "plain.elf", "exit.c")
    shown = subprocess.run(
        ["arm-none-eabi-size", elf.name], cwd=folder, capture_output=True, text=True, check=True
    )
    text, data, bss = map(int, shown.stdout.splitlines()[1].split()[:3])
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-S", elf.name], cwd=folder, capture_output=True, text=True, check=True
    )
    found = re.search(r"^\w+ (\w+) \w state$", symbols.stdout, re.MULTILINE)
    assert found is not None, "the state is not in the program"
    state = int(found[1], 16)
    (report,) = folder.glob("plain*-m.ci")
    return {
        "flash": text + data,
        "state": state,
        "static": data + bss - state,
        "stack": stack_bytes(report),
    }


def emulated(folder: Path, processor: Processor) -> np.ndarray:
    """The coordinates after the steps, on an emulated board."""
    more = ("-DREPORT", "--specs=rdimon.specs")
    elf = compiled(folder, processor, "report.elf", *more)
    command = ["qemu-system-arm", "-M", processor.board, "-nographic", "-kernel", elf.name]
    command += ["-semihosting-config", "enable=on,target=native"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    codes = re.findall(r"^code (-?\d+)$", done.stdout, re.MULTILINE)
    assert codes == ["0"], (
        f"the program ended with {codes}: {done.stdout[:300]} {done.stderr[:300]}"
    )
    return np.array([float(x) for x in re.findall(r"^q (\S+)$", done.stdout, re.MULTILINE)])


def main() -> None:
    """Print the table in Markdown."""
    if shutil.which("arm-none-eabi-gcc") is None:
        sys.exit("error: there is no arm-none-eabi-gcc; Debian has it as gcc-arm-none-eabi")
    runs = shutil.which("qemu-system-arm") is not None
    columns = ("flash", "state", "static", "stack")
    head = ["model", "precision", "processor", *(f"{key} [bytes]" for key in columns), "error"]
    print(f"| {' | '.join(head)} |\n| --- | --- | --- |{' ---: |' * (len(columns) + 1)}")
    for name, (model, start) in models().items():
        state = mbd.consistent_state(model, start)
        t = DT * np.arange(STEPS + 1)
        truth = np.asarray(mbd.simulate(model, t, start, integrator="rk4").q)[-1]
        for precision, number in (("float64", "double"), ("float32", "float")):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place) / "m"
                mbd.export(model, folder, name="m", dt_s=DT, precision=precision)
                lists = [", ".join(repr(float(x)) for x in xs) for xs in (state.q, state.v)]
                text = _MAIN.replace("NUMBER", number).replace("STEPS", str(STEPS))
                text = text.replace("QS", lists[0]).replace("VS", lists[1])
                (folder / "main.c").write_text(text)
                (folder / "start.c").write_text(_START)
                (folder / "exit.c").write_text(_EXIT)
                (folder / "board.ld").write_text(_SCRIPT)
                for processor in PROCESSORS:
                    found = measured(folder, processor)
                    error = "-"
                    if runs:
                        error = f"{np.max(np.abs(emulated(folder, processor) - truth)):.0e}"
                    cells = [f"{found[key]:,}" for key in columns]
                    row = [name, precision, processor.name, *cells, error]
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
