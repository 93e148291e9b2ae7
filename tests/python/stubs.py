"""What type checkers read says what the modules have: the same names, the same arguments."""

import ast
import inspect
import os
import re
import unittest

import hone
import hone.graph
from hone import _compiler, _runtime

FOLDER = os.path.dirname(hone.__file__)
# The members that Python and pybind11 give each class.
OF_ALL = set(dir(object)) | {"__module__", "__annotations__", "__weakref__", "__dict__"}


def stub_of(name):
    with open(os.path.join(FOLDER, name + ".pyi"), encoding="utf8") as file:
        return ast.parse(file.read())


def declared(body):
    """By name, what a stub's module or class declares."""
    names = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = node
    return names


def split_arguments(text):
    """The arguments of "a: Tuple[int, str] = (1, 2), *args", which may have commas inside."""
    depth, parts, last = 0, [], ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(last)
            last = ""
        else:
            last += character
    return [part.strip() for part in parts + [last] if part.strip()]


def compiled_arguments(function):
    """Of what pybind11 says of a function: names (None: it has no name) and which have a default;
    whether more follow by position, or by name."""
    line = function.__doc__.splitlines()[0]
    inside = re.match(r"\w+\((.*)\)( ->.*)?$", line).group(1)
    named, more, by_name = [], False, False
    for argument in split_arguments(inside):
        name = re.split(r"[:=]", argument)[0].strip()
        if name.startswith("**"):
            by_name = True
        elif name.startswith("*"):
            more = True
        elif name != "self":
            is_named = not re.fullmatch(r"arg\d+", name)
            named.append((name if is_named else None, bool(re.search(r"[^=]=[^=]", argument))))
    return named, more, by_name


def stub_arguments(node):
    given = node.args
    names = [argument.arg for argument in given.posonlyargs + given.args]
    first_default = len(names) - len(given.defaults)
    named = [(name, i >= first_default) for i, name in enumerate(names) if name != "self"]
    return named, given.vararg is not None, given.kwarg is not None


def is_property(node):
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


class Stubs(unittest.TestCase):
    def check_function(self, name, function, node):
        of_module, of_stub = compiled_arguments(function), stub_arguments(node)
        self.assertEqual(of_module[1:], of_stub[1:], name)
        self.assertEqual(len(of_module[0]), len(of_stub[0]), name)
        for (here, has_default), (there, may_be_left_out) in zip(of_module[0], of_stub[0]):
            self.assertEqual(has_default, may_be_left_out, f"{name}: {there}")
            self.assertIn(here, (None, there), name)
        for argument in node.args.posonlyargs + node.args.args + node.args.kwonlyargs:
            self.assertTrue(argument.arg == "self" or argument.annotation, f"{name}: no type")
        self.assertTrue(node.returns, f"{name}: no type of the result")

    def check_class(self, kind, node):
        members = declared(node.body)
        for name, member in members.items():
            where = f"{kind.__name__}.{name}"
            self.assertTrue(hasattr(kind, name), where)
            if isinstance(member, ast.AnnAssign):
                continue
            found = inspect.getattr_static(kind, name)
            self.assertEqual(isinstance(found, property), is_property(member), where)
            if not isinstance(found, property):
                self.check_function(where, getattr(kind, name), member)
        own = {name for name in vars(kind) if name not in OF_ALL and "pybind11" not in name}
        self.assertEqual(own - set(members), set(), f"{kind.__name__}: not in the stub")

    def check_module(self, module, stub):
        body = stub_of(stub).body
        names = declared(body)
        for node in body:  # what another stub says
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                other = declared(stub_of(node.module).body)
                names.update((one.name, other[one.name]) for one in node.names)
        for name, node in names.items():
            self.assertTrue(hasattr(module, name), f"{stub}.pyi has {name}")
            found = getattr(module, name)
            if isinstance(node, ast.ClassDef):
                self.check_class(found, node)
            elif isinstance(node, ast.FunctionDef):
                self.check_function(name, found, node)
        public = {name for name in vars(module) if not name.startswith("_")}
        self.assertEqual(public - set(names), set(), f"not in {stub}.pyi")

    def test_compiled_modules(self):
        self.check_module(_runtime, "_runtime")
        self.check_module(_compiler, "_compiler")

    def test_graph(self):
        names = set()
        for node in stub_of("graph").body:
            if isinstance(node, ast.ImportFrom) and node.module == "_compiler":
                for one in node.names:
                    self.assertIs(getattr(hone.graph, one.asname), getattr(_compiler, one.name))
                    names.add(one.asname)
        ops = {name + "_" if name in ("and", "or", "not") else name for name, *_ in _compiler.ops()}
        self.assertEqual(set(hone.graph.__all__), names | ops)

    def test_what_hone_has_is_typed(self):
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))
        for name in hone.__all__:
            found = getattr(hone, name)
            functions = [found] if inspect.isfunction(found) else []
            if inspect.isclass(found) and not issubclass(found, tuple):
                functions = [f for f in vars(found).values() if inspect.isfunction(f)]
            functions = [f for f in functions if f.__module__.startswith("hone")]
            for function in functions:
                where = f"hone.{function.__qualname__}"
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty, where)
                for one in list(signature.parameters.values()):
                    is_typed = one.annotation is not inspect.Parameter.empty
                    self.assertTrue(one.name == "self" or is_typed, f"{where}: {one.name}")


if __name__ == "__main__":
    unittest.main()
