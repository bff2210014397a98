"""Which code runs, the compiled kernel or NumPy."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hardthresh.core import compiled

MODERN = {  # what each level of x86-64 needs beyond the one before, as Linux names it; Intel's and AMD's alike
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86-64-v4": {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}
CPUINFO = Path("/proc/cpuinfo")
STATE = "from hardthresh.core import compiled; print(compiled.kernel() is None, compiled.describe_kernel(), sep=';')"


@pytest.fixture(autouse=True)
def ask_again():
    """Look for the kernel again, and forget the answer afterwards."""
    compiled._find.cache_clear()
    yield
    compiled._find.cache_clear()


def importing(monkeypatch, error):
    """Let the import of the kernel end with an error."""

    def fail(name):
        assert name == "hardthresh._kernel"
        raise error

    monkeypatch.delenv(compiled.PURE_VARIABLE, raising=False)
    monkeypatch.setattr(compiled, "import_module", fail)


def test_the_variable_keeps_the_kernel_out_of_a_process():
    run = subprocess.run(
        [sys.executable, "-c", f"{STATE}; import sys; print('hardthresh._kernel' in sys.modules)"],
        env=os.environ | {"HARDTHRESH_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "True;NumPy, because HARDTHRESH_PURE=1\nFalse\n"


@pytest.mark.parametrize("value", ["", "0", None])
def test_other_values_do_not(monkeypatch, value):
    monkeypatch.setattr(compiled, "import_module", lambda name: sys)  # any module
    if value is None:
        monkeypatch.delenv(compiled.PURE_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(compiled.PURE_VARIABLE, value)
    assert compiled.kernel() is sys


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("No module named 'hardthresh._kernel'"), "without a C compiler"),
        (ImportError("wrong ELF class"), "cannot be loaded: wrong ELF class"),
    ],
)
def test_without_a_kernel_numpy_code_runs(monkeypatch, error, said):
    importing(monkeypatch, error)
    assert compiled.kernel() is None
    assert compiled.describe_kernel().startswith("NumPy, because ")
    assert said in compiled.describe_kernel()


@pytest.mark.skipif(not CPUINFO.exists(), reason="the processor's features are read from /proc/cpuinfo")
def test_the_fastest_instructions_of_the_processor_run():
    """Clones that are chosen by the name of a processor leave those of other makers with the slowest one."""
    kernel = compiled.kernel()
    if kernel is None:
        pytest.skip(compiled.describe_kernel())
    if kernel.instruction_set() == "baseline":
        assert platform.machine() != "x86_64" or "GCC" not in platform.python_compiler()
        pytest.skip("the compiler made no clones for several processors")
    found = re.search(r"^flags\s*: (.*)$", CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    features, best = {*found[1].split()}, "default"
    for level, needed in MODERN.items():
        if not needed <= features:
            break
        best = level
    assert kernel.instruction_set() == best
