"""The package's shared objects can be loaded whatever a process has loaded before."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

import hone

FOLDER = os.path.dirname(hone.__file__)
READELF = shutil.which("llvm-readelf-19") or shutil.which("readelf")
USE = """
import numpy as np, hone
model = hone.compile("zoo:mlp,size=tiny", cache=None, log=None, progress=False)
assert model(np.ones((2, 16), np.float32)).shape == (2, 10)
"""

# A library as others have them. It uses std::call_once and has variables of its own. So the C
# library gives thread-local memory to libstdc++ and to it as they are met, which is final.
OTHER = r"""
#include <mutex>
thread_local char room[4096];
extern "C" int other() {
  static std::once_flag once;
  std::call_once(once, [] { room[0] = 1; });
  return room[0];
}
"""


class Loading(unittest.TestCase):
    def test_no_object_needs_static_thread_local_memory(self):
        self.assertTrue(READELF, "there is no readelf")
        objects = glob.glob(os.path.join(FOLDER, "**", "*.so"), recursive=True)
        self.assertGreaterEqual(len(objects), 2)
        for path in objects:
            read = [READELF, "--wide", "--dynamic", "--relocs", path]
            said = subprocess.run(read, check=True, capture_output=True, text=True).stdout
            marks = [one for one in said.splitlines() if "STATIC_TLS" in one or "_TPOFF" in one]
            self.assertEqual(marks, [], path)

    def test_after_a_library_that_took_thread_local_memory(self):
        compiler = os.environ.get("CXX") or shutil.which("clang++-19")
        with open("other.cc", "w", encoding="utf8") as file:
            file.write(OTHER)
        make = [compiler, "-shared", "-fPIC", "-O1", "other.cc", "-o", "other.so"]
        subprocess.run(make, check=True)
        take = "import ctypes; assert ctypes.CDLL('./other.so').other() == 1\n"
        for code in (take + USE, USE + take):
            # Nothing is left for those who come late.
            environment = {**os.environ, "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=0"}
            done = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
