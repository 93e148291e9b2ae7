"""Judges what hone made of chat templates by the library jinja2: judge_templates.py CASES.json, a list
of {"template", "variables", "text"}; no text says that hone refused it. Exits with 77 without jinja2."""

import json
import sys

try:
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    sys.exit(77)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = refuse
cases = json.load(open(sys.argv[1], encoding="utf-8"))
wrong = written = 0
for case in cases:
    try:
        text = environment.from_string(case["template"]).render(**case["variables"])
    except Exception as error:  # whatever the library refuses
        text = None
        why = f"{type(error).__name__}: {error}"
    if text is not None:
        written += 1
        why = repr(text)
    if text != case["text"]:
        wrong += 1
        print(f"{case['template']!r}\n  hone: {case['text']!r} {case.get('error', '')}\n  jinja2: {why}")
print(f"{len(cases)} cases, {written} written, {wrong} wrong")
sys.exit(1 if wrong or written < len(cases) // 3 else 0)
