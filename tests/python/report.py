"""Reports from Python, and how notebooks show them."""

import html
import html.parser
import os
import unittest

import hone

MLP = "zoo:mlp,size=tiny"


def report(source, **options):
    return hone.report(
        source, seconds=0.05, threads=1, cache=None, log=None, progress=False, **options
    )


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = report(MLP)

    def test_is_a_page(self):
        self.assertEqual(self.made.failures, ())
        self.assertTrue(self.made.html.lower().startswith("<!doctype html>"))
        self.assertIn("mlp", self.made.html)
        self.assertIn("hone.Report", repr(self.made))

    def test_notebooks_show_it_in_a_frame_of_its_own(self):
        elements = Elements(self.made._repr_html_()).found
        self.assertEqual([tag for tag, _ in elements], ["iframe"])
        attributes = elements[0][1]
        self.assertEqual(attributes["sandbox"], "allow-scripts")
        self.assertEqual(attributes["srcdoc"], self.made.html)
        self.assertTrue(attributes["title"])

    def test_names_of_models_stay_text(self):
        name = "\"></iframe><script>alert('x')</script>"
        quoted = '"' + name.replace('"', '\\"') + '"'
        text = f"graph @{quoted}(%x: f32[4]) {{ %y = exp %x return %y }}"
        elements = Elements(report(text.encode())._repr_html_()).found
        self.assertEqual([tag for tag, _ in elements], ["iframe"])

    def test_is_written_to_a_file(self):
        made = report(MLP, output="page.html")
        with open("page.html", encoding="utf8") as file:
            self.assertEqual(file.read(), made.html)
        os.remove("page.html")

    def test_a_plan_is_measured_beside_the_planners(self):
        plan = hone.compile(MLP, threads=1, cache=None, log=None, progress=False).plan
        self.assertEqual(report(MLP, plan=plan).failures, ())

    def test_prices_are_chosen(self):
        class Counting(hone.Cost):
            asked = 0
            chosen_by = "analytic"

            def price(self, kernel, schedules, threads):
                Counting.asked += 1
                return [len(str(schedule)) * 1e-6 for schedule in schedules]

            def command(self):
                return 1e-6

        self.assertEqual(report(MLP, cost=Counting()).failures, ())
        self.assertGreater(Counting.asked, 0)
        self.assertEqual(report(MLP, cost="default").failures, ())
        with self.assertRaises(hone.BadInput):
            report(MLP, cost="no.model")

    def test_takes_graphs(self):
        import hone.graph as hg

        b = hg.Builder("layer")
        graph = b.finish(hg.exp(b.parameter("x", "f32", [4])))
        self.assertIn("layer", report(graph).html)

    def test_what_cannot_be_read_raises(self):
        with self.assertRaises(hone.BadInput):
            report(b"graph")
        with self.assertRaises(hone.BadInput):
            report("missing.onnx")


if __name__ == "__main__":
    unittest.main()
