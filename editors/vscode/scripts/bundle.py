"""Fill `bundled/libs` with a copy of torchmemlint and of all that its language server needs.

    python scripts/bundle.py                                   # for this machine
    python scripts/bundle.py --target darwin-arm64             # for another one
    python scripts/bundle.py --pythons 3.11 3.12 --wheel torchmemlint-0.1.0-py3-none-any.whl

torchmemlint and most of what it needs is pure Python. libcst is compiled, for one platform and one minor version of
CPython each; but the names of its compiled files carry both, so that those of all minor versions can lie side by side.
A copy therefore fits one platform and the versions in `--pythons`, no other implementation and no free-threaded build.
`bundle.json` says so, and the extension looks before it runs anything.

Left out is what a server never imports: tests, libcst's command for codemods, and PyYAML, which only that one imports.

The packages are resolved and unpacked by uv, since pip reads a package's conditions (`python_version < "3.11"`) for the
interpreter it runs in and not for the one it is asked about. Where uv is missing, it is installed into a temporary
environment. The copy is then run with each of those Pythons that this machine has.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXTENSION = Path(__file__).resolve().parent.parent
REPOSITORY = EXTENSION.parent.parent
BUNDLED = EXTENSION / "bundled"
EXAMPLE = REPOSITORY / "fixtures" / "TML202-no-op-grad-mode" / "bad_uncalled.py"  # its fix needs libcst
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PLATFORMS = {  # VS Code's names, and uv's
    "linux-x64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "alpine-x64": "x86_64-unknown-linux-musl",
    "alpine-arm64": "aarch64-unknown-linux-musl",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
    "win32-x64": "x86_64-pc-windows-msvc",
}
NEEDLESS = re.compile(
    # They differ between installations and are of no use in a copy; `direct_url` names this machine's paths.
    r"(^|/)(bin|Scripts|__pycache__)/|\.dist-info/(RECORD|WHEEL|INSTALLER|REQUESTED|direct_url\.json|uv_\w+\.json)$|^\.lock$"
    # A server never imports these.
    r"|(^|/)tests/|^libcst/(codemod|codegen)/|^libcst/tool\.py$|^_?yaml(_ft)?/|^pyyaml(_ft)?-[^/]*\.dist-info/",
    re.IGNORECASE,
)


def this_target() -> str:
    """VS Code's name of this machine's platform."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "win32"}[sys.platform]
    if system == "linux" and platform.libc_ver()[0] != "glibc":
        system = "alpine"
    arch = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
    return f"{system}-{arch}"


def run(*command: str | Path) -> str:
    """Run a command, whose failure ends the script with what it said."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def uv_of(work: Path) -> Path:
    """The uv of the PATH, or one of our own."""
    found = shutil.which("uv")
    if found:
        return Path(found)
    environment = work / "uv"
    run(sys.executable, "-m", "venv", environment)
    scripts = environment / ("Scripts" if sys.platform == "win32" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", "uv")
    return scripts / "uv"


def build_wheel(work: Path) -> Path:
    """The wheel of this repository."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", work / "wheel", REPOSITORY)
    (wheel,) = (work / "wheel").glob("torchmemlint-*.whl")
    return wheel


def versions_in(folder: Path) -> list[str]:
    """The distributions in a folder, each pinned."""
    names = [one.name.removesuffix(".dist-info").rsplit("-", 1) for one in folder.glob("*.dist-info")]
    return sorted(f"{name}=={version}" for name, version in names)


def unpack(uv: Path, wheel: Path, python: str, target: str, folder: Path, constraints: Path) -> None:
    """Put torchmemlint and all it needs into a folder, as it is on another platform and version of Python."""
    run(
        *(uv, "pip", "install", "--quiet", "--target", folder, "--only-binary", ":all:", "--link-mode", "copy"),
        *("--python-version", python, "--python-platform", PLATFORMS[target]),
        *("--constraint", constraints, f"torchmemlint[lsp] @ {wheel.as_uri()}"),
    )


def merge(source: Path, into: Path) -> None:
    """Add a folder's files to those of another Python; a file that differs would fit only one of them."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        name = file.relative_to(source).as_posix()
        if NEEDLESS.search(name):
            continue
        there = into / name
        if there.exists() and there.read_bytes() != file.read_bytes():
            sys.exit(f"{name} is not the same for all versions of Python: one copy cannot serve them all")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)


def interpreter(python: str) -> str | None:
    """An interpreter of that version on this machine."""
    for name in (f"python{python}", sys.executable):
        path = shutil.which(name)
        ask = [path or name, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"]
        if path and subprocess.run(ask, capture_output=True, text=True).stdout.strip() == f"{python} cpython":
            return path
    return None


def try_out(pythons: list[str]) -> list[str]:
    """Start the copy with every Python that is here, and give those. One that does not start ends the script."""
    tried = []
    for python in pythons:
        path = interpreter(python)
        if path is not None:
            usage = run(path, "-ISB", BUNDLED / "run.py", "--libs", "server", "--help")
            if "torchmemlint server" not in usage:
                sys.exit(f"The copy has no server, says Python {python}:\n{usage}")
            names = "pygls, libcst, libcst.metadata, torchmemlint.server.session"
            run(path, "-ISB", "-c", f"import sys; sys.path.insert(0, {str(BUNDLED / 'libs')!r}); import {names}")
            fix = ["-ISB", BUNDLED / "run.py", "--libs", "check", "--isolated", "--exit-zero", EXAMPLE, "--diff"]
            if "torch.no_grad()" not in run(path, *fix):
                sys.exit(f"The copy does not fix {EXAMPLE}, says Python {python}")
            tried.append(python)
    return tried


def main() -> None:
    """Fill the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", choices=PLATFORMS, default=this_target())
    parser.add_argument("--pythons", nargs="+", default=list(PYTHONS), metavar="X.Y")
    parser.add_argument("--wheel", type=Path, help="of torchmemlint; otherwise it is built from this repository")
    options = parser.parse_args()
    libs = BUNDLED / "libs"
    shutil.rmtree(libs, ignore_errors=True)
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")  # the certificates that pip would use
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        uv, wheel = uv_of(work), (options.wheel or build_wheel(work)).resolve()
        constraints = work / "constraints.txt"
        constraints.touch()
        for python in options.pythons:
            unpack(uv, wheel, python, options.target, work / python, constraints)
            # What the oldest Python can have, all others take too: their files must be the same.
            pins = {pin.partition("==")[0]: pin for pin in versions_in(work / python)}
            known = {pin.partition("==")[0]: pin for pin in constraints.read_text().split()}
            constraints.write_text("\n".join(sorted({**pins, **known}.values())) + "\n")
            merge(work / python, libs)
    tried = try_out(options.pythons) if options.target == this_target() else []
    about = {
        "version": wheel.name.split("-")[1],
        "target": options.target,
        "pythons": options.pythons,
        "triedWith": tried,
        "packages": versions_in(libs),
    }
    (libs / "bundle.json").write_text(json.dumps(about, indent=2) + "\n")
    size = sum(file.stat().st_size for file in libs.rglob("*") if file.is_file())
    fits = f"{options.target}, CPython {', '.join(options.pythons)}"
    print(f"{libs}: {size / 2**20:.1f} MiB for {fits}; tried with: {', '.join(tried) or 'none'}")


if __name__ == "__main__":
    main()
