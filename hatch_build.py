"""The build hook: compile the kernel where there is a C compiler, and make a wheel of Python alone where there is none.

setuptools finds the compiler of the platform and its options; hatchling packs the files.
"""

import platform
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

FLAGS = ["-std=c11", "-O3", "-g0", "-ffp-contract=off"]
MSVC_FLAGS = ["/std:c11", "/O2", "/fp:precise"]
"""Without contraction, a product and a sum are rounded one after the other, as in NumPy, so that the kernel computes
the same bits with every compiler and on every processor. Options that reorder sums or assume that numbers are finite,
such as -ffast-math, would change results. Without -g0 the information for debuggers, which many builds of Python ask
for, is two thirds of the library."""


class BuildKernel(build_ext):
    """Compile with the flags of the compiler that is found."""

    def build_extension(self, ext: Extension) -> None:
        ext.extra_compile_args = MSVC_FLAGS if self.compiler.compiler_type == "msvc" else FLAGS
        super().build_extension(ext)


class KernelHook(BuildHookInterface[Any]):
    """Add the compiled kernel to the wheel; an editable install has it beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, before hatchling collects the files of a target."""
        if self.target_name != "wheel" or platform.python_implementation() != "CPython":
            return
        self.folder = TemporaryDirectory()
        kernel = Extension("hardthresh._kernel", ["src/hardthresh/_kernel.c"], py_limited_api=True, optional=True)
        command = BuildKernel(Distribution({"package_dir": {"": "src"}, "ext_modules": [kernel]}))
        command.build_lib = command.build_temp = self.folder.name
        command.inplace = version == "editable"
        command.ensure_finalized()
        library = Path(command.get_ext_fullpath(kernel.name))
        library.unlink(missing_ok=True)  # that of an earlier editable install
        command.run()  # a failure is a warning, because the extension is optional
        if not library.exists():
            self.app.display_warning("The kernel was not compiled; hardthresh will run its NumPy code.")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{command.plat_name.replace('-', '_').replace('.', '_')}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"hardthresh/{library.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files of the compiler."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
