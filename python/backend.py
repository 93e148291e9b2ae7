"""What pip asks to make a wheel of this repository (PEP 517), with the standard library alone.

The build folder and the packages of ./run serve it, so that it needs no network: a backend from
the package index would be downloaded into pip's own environment.
"""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
TAG = "-".join(
    [f"cp{sys.version_info[0]}{sys.version_info[1]}"] * 2
    + [sysconfig.get_platform().replace("-", "_").replace(".", "_")]
)
README = "hone compiles tensor programs for the machine it runs on.\n"


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf8") as file:
        for line in file:
            if line.startswith("project(hone VERSION "):
                return line.split()[2]
    raise SystemExit("CMakeLists.txt says no version")


def _build():
    """The package in build/release/python, for the Python that runs this."""
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise SystemExit(f"there is no {include}/Python.h: install the headers of this Python")
    command = ["cmake", "--preset", "release", f"-DHONE_PYTHON={os.path.realpath(sys.executable)}"]
    for step in command, ["cmake", "--build", BUILD, "--target", "python"]:
        subprocess.run(step, cwd=ROOT, check=True, stdout=sys.stderr)
    return os.path.join(BUILD, "python")


def _metadata():
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: hone\nVersion: {_version()}\n"
        "Summary: A learning compiler for tensor programs\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.9\nProvides-Extra: arrays\nRequires-Dist: numpy; extra == 'arrays'\n"
        f"\n{README}",
        # By it PyTorch finds the backend of torch.compile(model, backend="hone").
        "entry_points.txt": "[torch_dynamo_backends]\nhone = hone.torch:backend\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: hone\nRoot-Is-Purelib: false\nTag: {TAG}\n",
    }


def _write(wheel_directory, files):
    """`files`: where it stands in the wheel, and its bytes."""
    version = _version()
    info = f"hone-{version}.dist-info"
    files = dict(files)
    for name, text in _metadata().items():
        files[f"{info}/{name}"] = text.encode()
    records = []
    name = f"hone-{version}-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}")
            wheel.writestr(_entry(path), data)
        records.append(f"{info}/RECORD,,")
        wheel.writestr(_entry(f"{info}/RECORD"), "\n".join(records) + "\n")
    return name


def _entry(path):
    entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # equal files make equal wheels
    entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_editable(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = os.path.join(_build(), "hone")
    suffixes = (".py", ".pyi", "py.typed", sysconfig.get_config_var("EXT_SUFFIX"))
    files = {}
    for name in sorted(os.listdir(package)):
        if name.endswith(suffixes):
            with open(os.path.join(package, name), "rb") as file:
                files[f"hone/{name}"] = file.read()
    return _write(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the build folder, where the target `python` renews it."""
    return _write(wheel_directory, {"hone.pth": (_build() + "\n").encode()})


class UnsupportedOperation(Exception):
    pass


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("the sources are the repository")


if __name__ == "__main__":  # ./dev wheel FOLDER
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
