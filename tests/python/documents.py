"""The Python examples of each page run, one after another, and print what the page shows."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import unittest

import numpy

os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
os.environ["HONE_LOG"] = os.path.abspath("log.db")


ROOT = pathlib.Path(os.environ["ROOT"])


def prepare_tutorial(names):
    import hone

    # The file that the page's commands have made by then.
    hone.compile("zoo:mobilenet_v2,size=tiny", output="model.honec", progress=False)


def prepare_log(names):
    import hone

    hone.tune("zoo:mlp,size=tiny", seconds=10, log="log.db", progress=False)
    subprocess.run([os.environ["HONE"], "log", "export", "--log", "log.db", "-o", "log.npz"], check=True)
    names.update(numpy=numpy, i=0)


PREPARE = {
    "docs/tutorial.md": prepare_tutorial,
    "docs/log.md": prepare_log,
}


class Page(unittest.TestCase):
    def check(self, page, blocks):
        names, printed = {}, ""
        PREPARE.get(page, lambda names: None)(names)
        for kind, text in blocks:
            if kind == "output":
                self.assertEqual(printed, text)
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, page, "exec"), names)
            printed = said.getvalue()

    def test_all(self):
        seen = 0
        for file in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
            page = str(file.relative_to(ROOT))
            text = file.read_text(encoding="utf8")
            blocks = re.findall(r"^```(python|output)\n(.*?)^```$", text, re.M | re.S)
            seen += len(blocks)
            if blocks:
                with self.subTest(page):
                    self.check(page, blocks)
        self.assertGreaterEqual(seen, 14)


if __name__ == "__main__":
    unittest.main()
