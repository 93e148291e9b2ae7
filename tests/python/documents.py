"""The examples of docs/python.md run, one after another, and print what the page shows."""

import contextlib
import io
import os
import re
import unittest

os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
os.environ["HONE_LOG"] = os.path.abspath("log.db")


class Page(unittest.TestCase):
    def test_examples(self):
        with open(os.path.join(os.environ["ROOT"], "docs", "python.md"), encoding="utf8") as file:
            blocks = re.findall(r"^```(python|output)\n(.*?)^```$", file.read(), re.M | re.S)
        self.assertGreater(len(blocks), 10)
        names, printed = {}, ""
        for kind, text in blocks:
            if kind == "output":
                self.assertEqual(printed, text)
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, "docs/python.md", "exec"), names)
            printed = said.getvalue()


if __name__ == "__main__":
    unittest.main()
