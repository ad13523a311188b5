"""Makes the mutants of a module, the same source with one small change, and puts them in place."""

import ast
import gc
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
"""Each comparison with its shifted boundary, if it has one, and its opposite."""
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OPPOSITE_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
TYPED_CALLS = {"isinstance", "issubclass", "cast", "TypeVar"}
"""Calls whose arguments, swapped, fail at once: noticing that says nothing of the tests."""
ASSERTIONS = {"slots", "strict"}
"""Arguments that only say what is so anyway: equal lengths, and no other attributes."""
LOGGERS = {"_log", "logger", "logging"}
"""Lines of a log are no decisions."""


@dataclass(frozen=True)
class Mutant:
    """One change of one statement; `before` and `after` are its text on one line."""

    module: str
    function: str
    before: str
    after: str
    line: int
    end_line: int
    source: str
    occurrence: int = 0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Returns what names this mutant when lines move."""
        return self.module, self.function, self.before, self.after

    @property
    def described(self) -> str:
        """Returns the place and the two texts, on three lines."""
        place = f"{self.name} {self.module}:{self.line} {self.function}"
        return f"  {place}\n    - {self.before}\n    + {self.after}"

    @property
    def name(self) -> str:
        """Returns a short name that stays while the statement does."""
        return digest(*self.key, str(self.occurrence))[:8]


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def sample(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants in an order by the seed; a changed statement replaces only its own."""
    return sorted(mutants, key=lambda each: digest(str(seed), each.name))[:count]


def equivalents_of(named: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str, str, int]]:
    """Return the keys of equivalent mutants, with the occurrence of their text: 0 is the first."""
    return {
        (
            *(each[part] for part in ("module", "function", "before", "after")),
            each.get("occurrence", 0),
        )
        for each in named
    }


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Return all mutants of a module's source."""
    drafts = _Mutations(module, source).of_block(ast.parse(source).body, ())
    numbered, seen = [], dict[tuple[str, str, str, str], int]()
    for mutant in drafts:
        seen[mutant.key] = seen.get(mutant.key, -1) + 1
        numbered.append(replace(mutant, occurrence=seen[mutant.key]))
    return numbered


def functions_of(code: CodeType, outer: str = "") -> Iterator[tuple[str, CodeType]]:
    """Yield the code of each function and class body in a module's code, with its scope."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            scope = f"{outer}{constant.co_name}"
            yield scope, constant
            yield from functions_of(constant, f"{scope}.")


def replace_code(path: Path, mutant: Mutant) -> bool:
    """Replace the code of the imported functions of a file; return whether the mutant's is one."""
    codes: list[dict[str, list[CodeType]]] = []
    for source in (path.read_text(), mutant.source):
        by_scope = defaultdict(list)
        for scope, code in functions_of(compile(source, str(path), "exec")):
            by_scope[scope].append(code)
        codes.append(by_scope)
    mutated = {
        (scope, old.co_firstlineno): new
        for scope, olds in codes[0].items()
        for old, new in zip(olds, codes[1].get(scope, ()), strict=False)
    }
    replaced = set()
    gc.unfreeze()  # What was collected is frozen, and not among the objects.
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            scope = function.__code__.co_qualname.replace(".<locals>", "")
            code = mutated.get((scope, function.__code__.co_firstlineno))
            if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
                function.__code__ = code
                replaced.add(scope)
    return any(f"{mutant.function}.".startswith(f"{scope}.") for scope in replaced)


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the small changes of one expression."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(node.left, [other()], node.comparators)
        case ast.BoolOp():
            other_join = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other_join, node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.Constant():
            yield from map(ast.Constant, _changed_value(node.value))
        case ast.Call():
            yield from _changed_call(node)


def _changed_value(value: object) -> list[bool | int | float]:
    if isinstance(value, bool):
        return [not value]
    return [value + 1, value - 1] if isinstance(value, int | float) else []


def _changed_call(call: ast.Call) -> Iterator[ast.Call]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in OPPOSITE_CALLS:
        yield ast.Call(ast.Name(OPPOSITE_CALLS[name]), call.args, call.keywords)
    elif len(call.args) > 1 and name not in TYPED_CALLS:
        first, second, *rest = call.args
        if not isinstance(first, ast.Starred):
            yield ast.Call(call.func, [second, first, *rest], call.keywords)


def conditions(node: ast.AST) -> list[ast.expr]:
    """Return the conditions of a node that are not compared or negated, which `changed` covers."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            tests = [node.test]
        case ast.comprehension():
            tests = node.ifs
        case _:
            tests = []
    return [test for test in tests if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)]


def removed(statement: ast.stmt) -> str | None:
    """Return the text that stands for a statement once it is removed; None if it stays."""
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            return "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Continue():
            return "pass"
        case ast.Break():
            return "continue"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            return "return None"
    return None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def decides_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement is for type checkers or a line of a log."""
    match statement:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
    return False


class _Mutations:
    """Walks over the statements of one module; offsets are in bytes, as those of `ast` are."""

    def __init__(self, module: str, source: str) -> None:
        self.module = module
        self.source = source.encode()
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def of_block(self, block: list[ast.stmt], scope: tuple[str, ...]) -> Iterator[Mutant]:
        for statement in block:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                scope_within = (*scope, statement.name)
                yield from self.of_block(statement.body, scope_within)
            elif not decides_nothing(statement):
                yield from self.of_statement(statement, ".".join(scope))
                for inner in self.blocks(statement):
                    yield from self.of_block(inner, scope)

    def blocks(self, statement: ast.stmt) -> Iterator[list[ast.stmt]]:
        for name in ("body", "orelse", "finalbody"):
            yield getattr(statement, name, [])
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield part.body

    def of_statement(self, statement: ast.stmt, function: str) -> Iterator[Mutant]:
        text = removed(statement)
        if text is not None and function:
            yield self.mutant(function, statement, statement, text)
        if isinstance(statement, ast.AugAssign) and type(statement.op) in ARITHMETIC:
            target, value = ast.unparse(statement.target), ast.unparse(statement.value)
            operator = ARITHMETIC[type(statement.op)]()
            sign = ast.unparse(ast.BinOp(ast.Name("_"), operator, ast.Name("_")))[2:-2]
            yield self.mutant(function, statement, statement, f"{target} {sign}= {value}")
        for node in self.expressions(statement, inside=bool(function)):
            for other in changed(node):
                yield self.mutant(function, statement, node, f"({ast.unparse(other)})")
        for node in ast.walk(statement):
            for test in conditions(node):
                if test.lineno < self.header_end(statement)[0]:
                    yield self.mutant(function, statement, test, f"(not ({ast.unparse(test)}))")

    def expressions(self, node: ast.AST, *, inside: bool) -> Iterator[ast.expr]:
        """Yield what may change of a statement's own line: no annotations, text or inner blocks."""
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if name in {"annotation", "returns"} or not isinstance(child, ast.AST):
                    continue
                if isinstance(child, ast.keyword) and child.arg in ASSERTIONS:
                    continue
                if isinstance(child, ast.stmt | ast.JoinedStr | ast.excepthandler | ast.match_case):
                    continue
                if isinstance(child, ast.expr) and self.may_change(child, inside=inside):
                    yield child
                yield from self.expressions(child, inside=inside)

    def may_change(self, node: ast.expr, *, inside: bool) -> bool:
        """Return whether a change can be a decision: `A | B` of a module joins types."""
        joins_types = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        return hasattr(node, "lineno") and (inside or not joins_types)

    def header_end(self, statement: ast.stmt) -> tuple[int, int]:
        """Return the line and column at which the statement's own text ends."""
        body = getattr(statement, "body", None) or getattr(statement, "cases", None)
        if body:
            first = body[0]
            line = first.lineno if isinstance(first, ast.stmt) else first.pattern.lineno
            return line, 0
        return (statement.end_lineno or statement.lineno) + 1, 0

    def mutant(
        self, function: str, statement: ast.stmt, node: ast.expr | ast.stmt, text: str
    ) -> Mutant:
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        first = self.starts[statement.lineno - 1]
        header = min(self.header_end(statement)[0] - 1, len(self.starts) - 1)
        last = max(self.starts[header], end)
        before = self.source[first:last]
        after = self.source[first:start] + text.encode() + self.source[end:last]
        return Mutant(
            module=self.module,
            function=function,
            before=" ".join(before.decode().split()),
            after=" ".join(after.decode().split()),
            line=statement.lineno,
            end_line=max(statement.lineno, header),
            source=(self.source[:first] + after + self.source[last:]).decode(),
        )
