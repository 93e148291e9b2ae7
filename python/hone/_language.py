"""Language models: texts token by token."""

from __future__ import annotations

import codecs
import json
import os
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union,
)  # fmt: skip

from ._compile import request
from ._errors import UsageError
from ._progress import Progress, hearing

if TYPE_CHECKING:
    from ._compiler import LanguageText


class Text:
    """A text while it comes: iterating gives its pieces. str() makes all of it, and gives it."""

    def __init__(self, core: LanguageText) -> None:
        self._core = core
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pieces: List[str] = []
        self._has_ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._has_ended:
            piece = self._core.next()
            self._has_ended = piece is None
            text = self._decoder.decode(piece or b"", final=self._has_ended)
            if text:
                self._pieces.append(text)
                return text
        raise StopIteration

    def __str__(self) -> str:
        for _ in self:
            pass
        return "".join(self._pieces)

    @property
    def tokens(self) -> List[int]:
        """Those that were made so far."""
        return list(self._core.made()["tokens"])

    @property
    def log_probabilities(self) -> List[float]:
        """The logarithms of their probabilities, by the model alone."""
        return list(self._core.made()["log_probabilities"])

    @property
    def end(self) -> Optional[str]:
        """Why it ended; None: it has not."""
        return str(self._core.made()["end"]) if self._has_ended else None

    @property
    def numbers(self) -> Dict[str, float]:
        """Tokens of the prompt, those of them that were known or left out, and seconds."""
        made = self._core.made()
        names = ["prompt_tokens", "reused_tokens", "dropped_tokens", "prompt_seconds"]
        return {name: made[name] for name in [*names, "decode_seconds"]}


def _options(
    max_tokens: int = 128,
    temperature: float = 0.0,
    top_k: int = 40,
    top_p: float = 0.95,
    min_p: float = 0.05,
    repeat_penalty: float = 1.0,
    seed: int = 0,
    stop: Union[str, Sequence[str], None] = None,
    drop_start: bool = False,
    lookup: bool = False,
) -> Dict[str, Any]:
    """What _compiler takes."""
    if not 0 <= top_p <= 1 or not 0 <= min_p <= 1:
        raise UsageError("top_p and min_p are parts of 1")
    if max_tokens < 1 or top_k < 0 or repeat_penalty <= 0 or temperature < 0:
        raise UsageError("max_tokens and repeat_penalty are above 0, others not below it")
    stops = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    return {
        "max_tokens": max_tokens, "temperature": float(temperature), "top_k": top_k,
        "top_p": float(top_p), "min_p": float(min_p), "seed": seed, "stop": stops,
        "repeat_penalty": float(repeat_penalty), "drop_start": drop_start, "lookup": lookup,
    }  # fmt: skip


class LanguageModel:
    """A language model: a GGUF file, or a folder of Hugging Face.

    context  tokens that its caches have room for; None: 4096, or fewer if it takes fewer
    threads, isa, cache, progress  as hone.compile() has them
    cache_type  how the keys and values of tokens are kept: "f32", or rounded to "f16" or "q8"
    to  "w8" or "w4": matrices are rounded to 8 or 4 bits, with a scale for each 32 numbers

    It keeps what it read: a prompt that begins alike costs only its rest. One text at a time comes
    from it; a new one ends the others.
    """

    def __init__(
        self,
        source: Union[str, "os.PathLike[str]"],
        *,
        context: Optional[int] = None,
        threads: Optional[int] = None,
        isa: Optional[str] = None,
        cache: Any = True,
        progress: Union[Callable[[Progress], None], bool, None] = None,
        cache_type: str = "f32",
        to: Optional[str] = None,
    ) -> None:
        from . import _compiler

        if context is not None and context < 1:
            raise UsageError("context: at least one token")
        given = request(os.fspath(source), None, None, threads, isa, cache, None)
        with hearing(progress) as hears:
            self._core = _compiler.load_language(
                given, context or 0, cache_type, to or "f32", hears
            )

    @property
    def context(self) -> int:
        """Tokens that its caches have room for."""
        return self._core.context

    @property
    def memory(self) -> int:
        """Bytes of weights and caches."""
        return self._core.memory

    def tokenize(self, text: str, *, begins: bool = False, control: bool = False) -> List[int]:
        """The tokens of a text. `begins`: with those that begin and end it, as the model wants
        them. `control`: control tokens that are spelled out are tokens."""
        return self._core.tokenize(text, begins, control)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._core.detokenize(list(tokens)).decode("utf-8", errors="replace")

    def generate(
        self,
        prompt: Union[str, Sequence[int]],
        **options: Any,
    ) -> Text:
        """Goes on after a text, or after tokens.

        max_tokens      how many tokens at most (128)
        temperature     0: the best token (0); above: drawn, by `seed` and the number of the token
        top_k, top_p, min_p, repeat_penalty  as `hone generate` has them
        stop            texts that end it
        drop_start      a prompt that is too long loses its start; else it is refused
        lookup          guesses what comes from what came before; the text stays the same
        """
        tokens = self.tokenize(prompt, begins=True) if isinstance(prompt, str) else list(prompt)
        return Text(self._core.begin(tokens, _options(**options)))

    def generate_all(
        self,
        prompts: Sequence[Union[str, Sequence[int]]],
        *,
        apart: bool = False,
        **options: Any,
    ) -> List[str]:
        """Several texts, with caches of their own, by the options of generate(). They come when all
        are there.

        apart    a token after another; without, those of up to 8 texts in one pass over the
                 weights, whose logits may differ from those of one text by their rounding
        """
        tokens = [
            self.tokenize(prompt, begins=True) if isinstance(prompt, str) else list(prompt)
            for prompt in prompts
        ]
        made = self._core.all_texts(tokens, _options(**options), apart)
        return [text.decode("utf-8", errors="replace") for text in made]

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        variables: Optional[Mapping[str, Any]] = None,
        **options: Any,
    ) -> Text:
        """Answers a conversation: [{"role": "user", "content": "Hi"}], by the model's template.

        variables  what the template knows besides: {"tools": [...]}
        options    those of generate()
        """
        return self.generate(self.conversation(messages, variables=variables), **options)

    def conversation(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        variables: Optional[Mapping[str, Any]] = None,
    ) -> List[int]:
        """The tokens of a conversation, up to where the answer begins."""
        known = "" if variables is None else json.dumps(dict(variables), ensure_ascii=False)
        talk = json.dumps([dict(message) for message in messages], ensure_ascii=False)
        return self._core.conversation(talk, known)


class Embedder:
    """A model of the family of BERT that gives texts vectors: a GGUF file, or a folder of Hugging
    Face.

    pooling     which vector stands for a text: the "mean" of those of its tokens, that of the first
                one ("cls") or of the "last" one; None: as the model says, else the mean
    normalized  the vectors have the length 1; None: as the model says, else they have
    drop_end    a text that is too long loses its end; else it is refused
    to          "w8" or "w4": matrices are rounded to 8 or 4 bits, with a scale for each 32 numbers
    threads, isa, cache, progress  as hone.compile() has them
    """

    def __init__(
        self,
        source: Union[str, "os.PathLike[str]"],
        *,
        pooling: Optional[str] = None,
        normalized: Optional[bool] = None,
        drop_end: bool = False,
        to: Optional[str] = None,
        threads: Optional[int] = None,
        isa: Optional[str] = None,
        cache: Any = True,
        progress: Union[Callable[[Progress], None], bool, None] = None,
    ) -> None:
        from . import _compiler

        given = request(os.fspath(source), None, None, threads, isa, cache, None)
        own = {"pooling": pooling, "normalized": normalized, "drop_end": drop_end}
        with hearing(progress) as hears:
            self._core = _compiler.load_embedding(given, {**own, "to": to or "f32"}, hears)

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self._core.width

    @property
    def context(self) -> int:
        """Tokens that a text may have."""
        return self._core.context

    def embed(self, text: str) -> List[float]:
        return self.embed_all([text])[0]

    def embed_all(self, texts: Sequence[str]) -> List[List[float]]:
        """A vector for each text."""
        return self._core.embed(list(texts))
