"""Compiles the hot path with mypyc on request: `BARNABAS_COMPILE=1 pip install .`

The extension modules are built from the same sources that run uncompiled. In the wheel they are next to the sources,
and Python prefers them. Without the variable (and always in an editable install) the wheel is pure Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The modules that serve Produce, Fetch, transactions and assignments. Left out: modules that tests patch or inherit
# from, the codecs (generated at run time), and named tuples with a memoryview (mypyc cannot compile them).
HOT_PATH = [
    "broker/coordinator/key_hash.py",
    "broker/coordinator/loading.py",
    "broker/coordinator/runtime.py",
    "broker/group/assignors/hash_order.py",
    "broker/group/assignors/uniform_homogeneous.py",
    "broker/group/consumer/target.py",
    "broker/handlers/fetch.py",
    "broker/handlers/fetching.py",
    "broker/handlers/large_fetch.py",
    "broker/handlers/produce.py",
    "broker/handlers/single_produce.py",
    "broker/replica/fetch_sessions.py",
    "broker/replica/partition.py",
    "broker/replica/replicas.py",
    "broker/replica/traffic.py",
    "broker/server/buffers.py",
    "broker/server/connection.py",
    "broker/server/dispatch.py",
    "broker/server/observe.py",
    "broker/server/request.py",
    "broker/server/request_counts.py",
    "broker/server/server.py",
    "broker/server/tls_connection.py",
    "broker/transaction/coordinator.py",
    "broker/transaction/decisions.py",
    "broker/transaction/ending.py",
    "broker/transaction/markers.py",
    "broker/transaction/metadata.py",
    "broker/transaction/operations.py",
    "broker/transaction/records.py",
    "broker/transaction/shard.py",
    "protocol/records/batch.py",
    "protocol/records/builder.py",
    "protocol/records/scan.py",
    "protocol/single_produce.py",
    "storage/aborted_lookup.py",
    "storage/admissions.py",
    "storage/batch_scan.py",
    "storage/indexes/index_file.py",
    "storage/indexes/offset_index.py",
    "storage/indexes/time_index.py",
    "storage/indexes/transaction_index.py",
    "storage/inspection.py",
    "storage/log.py",
    "storage/open_files.py",
    "storage/producer_state.py",
    "storage/segment.py",
    "storage/segments.py",
    "storage/validation.py",
    "storage/write.py",
]
# Top-level folders that are subpackages of `barnabas`.
PACKAGES = ["broker", "protocol", "storage"]

SETUP = """
from mypyc.build import mypycify
from setuptools import setup
# Name the group so that the shared library is inside `barnabas`; otherwise it would be a top-level module.
extensions = mypycify({modules!r}, opt_level="3", group_name="barnabas.hot_path")
setup(name="hot-path", packages=[], ext_modules=extensions)
"""


class CompileHotPath(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        return ["mypy", "setuptools"] if _asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not _asked_for() or version == "editable":
            return
        self._folder = tempfile.mkdtemp(prefix="barnabas-compile-")
        for built in compile_hot_path(Path(self.root), Path(self._folder)):
            build_data["force_include"][str(built)] = str(built.relative_to(self._folder))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def _asked_for() -> bool:
    return os.environ.get("BARNABAS_COMPILE") == "1"


def compile_hot_path(root: Path, folder: Path) -> list[Path]:
    """Compile a copy of the sources in `folder`. Return the paths of the extension modules in it."""
    sources = folder / "barnabas"
    without = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(root / "barnabas", sources, ignore=shutil.ignore_patterns(*PACKAGES, "pipeline", "__pycache__"))
    for package in PACKAGES:
        shutil.copytree(root / package, sources / package, ignore=without)
    (folder / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n")
    setup = folder / "setup_hot_path.py"
    setup.write_text(SETUP.format(modules=[f"barnabas/{module}" for module in HOT_PATH]))
    command = [sys.executable, setup.name, "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"compiling the hot path failed:\n{done.stdout}\n{done.stderr}")
    shutil.rmtree(folder / "build")
    return sorted(folder.rglob("*.so"))
