"""hone.LanguageModel: a tiny model of random weights."""

import os
import unittest

import hone

FILE = os.path.join(os.environ["ROOT"], "tests/fuzz/corpus/gguf/tiny.gguf")


def load(**options):
    return hone.LanguageModel(FILE, threads=1, cache=None, progress=False, **options)


class Language(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = load()

    def test_pieces_are_the_text(self):
        text = self.model.generate("the other", max_tokens=6)
        self.assertIsNone(text.end)
        pieces = list(text)
        self.assertEqual("".join(pieces), str(text))
        self.assertEqual(len(text.tokens), 6)
        self.assertEqual(self.model.detokenize(text.tokens), str(text))
        self.assertEqual(len(text.log_probabilities), 6)
        self.assertTrue(all(one < 0 for one in text.log_probabilities))
        self.assertEqual(text.end, "as many tokens as asked for")
        self.assertEqual(str(self.model.generate("the other", max_tokens=6)), str(text))
        again = self.model.generate(self.model.tokenize("the other", begins=True), max_tokens=6)
        self.assertEqual(str(again), str(text))
        self.assertGreater(again.numbers["reused_tokens"], 0)
        self.assertEqual(
            str(self.model.generate("the other", max_tokens=6, lookup=True)), str(text)
        )

    def test_draws_by_seed(self):
        def drawn(seed):
            return str(self.model.generate("the", max_tokens=12, temperature=2, seed=seed))

        self.assertEqual(drawn(1), drawn(1))
        self.assertNotEqual(drawn(1), drawn(2))

    def test_stops(self):
        text = str(self.model.generate("the", max_tokens=12))
        cut = str(self.model.generate("the", max_tokens=12, stop=text[4:6]))
        self.assertEqual(cut, text[: text.index(text[4:6])])

    def test_tokens(self):
        self.assertEqual(self.model.tokenize("the a</s>"), [257, 258, 60, 47, 115, 62])
        self.assertEqual(self.model.tokenize("the</s>", control=True), [257, 263])
        self.assertEqual(self.model.detokenize([257, 258]), "the a")

    def test_batches_equal_single_texts(self):
        prompts = ["the other", "a", [1, 2, 3]]
        options = {"max_tokens": 5, "temperature": 1.5, "seed": 4}
        single = [str(self.model.generate(prompt, **options)) for prompt in prompts]
        self.assertEqual(self.model.generate_all(prompts, apart=True, **options), single)
        self.assertEqual(self.model.generate_all(prompts, **options), single)
        self.assertEqual(self.model.generate_all([]), [])

    def test_chat(self):
        talk = [{"role": "system", "content": "a"}, {"role": "user", "content": "</s>"}]
        tokens = self.model.conversation(talk)
        self.assertEqual([one for one in tokens if one >= 262], [262, 263, 262, 263, 262])
        answer = self.model.chat(talk, max_tokens=4)
        self.assertEqual(len(list(answer)) > 0, True)
        self.assertEqual(str(answer), str(self.model.generate(tokens, max_tokens=4)))
        with self.assertRaises(hone.BadInput):
            self.model.chat([{"content": "a"}])

    def test_fewer_bits(self):
        model = load(cache_type="q8", to="w8")
        self.assertLess(model.memory, self.model.memory)
        self.assertGreater(len(str(model.generate("the other", max_tokens=6))), 0)
        with self.assertRaisesRegex(hone.UsageError, "f32, f16 or q8"):
            load(cache_type="q4")
        with self.assertRaisesRegex(hone.UsageError, "w8 or w4"):
            load(to="int8")

    def test_vectors(self):
        def embedder(**options):
            file = os.path.join(os.path.dirname(FILE), "encoder.gguf")
            return hone.Embedder(file, threads=1, cache=None, progress=False, **options)

        model = embedder()
        first, second = model.embed_all(["the cats", "the other one!"])
        self.assertEqual(len(first), model.width)
        self.assertAlmostEqual(sum(x * x for x in first), 1, places=4)
        self.assertEqual(model.embed("the other one!"), second)
        raw = embedder(pooling="cls", normalized=False).embed("the cats")
        self.assertNotAlmostEqual(sum(x * x for x in raw), 1, places=3)
        with self.assertRaisesRegex(hone.UsageError, "drop-end"):
            model.embed("the " * 40)
        self.assertEqual(len(embedder(drop_end=True).embed("the " * 40)), model.width)
        with self.assertRaisesRegex(hone.UsageError, "mean, cls or last"):
            embedder(pooling="max")

    def test_what_is_refused(self):
        with self.assertRaisesRegex(hone.UsageError, "parts of 1"):
            self.model.generate("the", top_p=2)
        with self.assertRaisesRegex(hone.UsageError, "64"):
            str(self.model.generate("a " * 200))
        with self.assertRaises(hone.UsageError):
            load(context=65)
        with self.assertRaisesRegex(hone.BadInput, "missing.gguf"):
            hone.LanguageModel("missing.gguf")
        first = self.model.generate("the", max_tokens=9)
        next(first)
        next(self.model.generate("other", max_tokens=9))
        with self.assertRaisesRegex(hone.UsageError, "another text was begun"):
            next(first)
        dropped = self.model.generate("a " * 200, max_tokens=4, drop_start=True)
        str(dropped)
        self.assertGreater(dropped.numbers["dropped_tokens"], 0)


if __name__ == "__main__":
    unittest.main()
