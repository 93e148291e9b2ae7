"""The examples of docs/python.md and docs/tutorial.md run, one after another, and print what the
pages show."""

import contextlib
import io
import os
import re
import unittest

os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
os.environ["HONE_LOG"] = os.path.abspath("log.db")


class Page(unittest.TestCase):
    def check(self, page, least):
        with open(os.path.join(os.environ["ROOT"], "docs", page), encoding="utf8") as file:
            blocks = re.findall(r"^```(python|output)\n(.*?)^```$", file.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), least)
        names, printed = {}, ""
        for kind, text in blocks:
            if kind == "output":
                self.assertEqual(printed, text)
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, "docs/" + page, "exec"), names)
            printed = said.getvalue()

    def test_python(self):
        self.check("python.md", 11)

    def test_tutorial(self):
        import hone

        # The file that the page's commands have made by then.
        hone.compile("zoo:mobilenet_v2,size=tiny", output="model.honec", progress=False)
        self.check("tutorial.md", 1)


if __name__ == "__main__":
    unittest.main()
