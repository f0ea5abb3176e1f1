"""CEL environments, one for each Kubernetes minor version and set of feature gates, as kube-scheduler uses them.

kube-scheduler compiles selectors as stored expressions: whatever its version declares is there, gates or not. What
gates change is how device attributes are typed and whether list attributes are accepted.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fishplate.cel.builder import BuildError, build
from fishplate.cel.checker import check
from fishplate.cel.declarations import MINORS, declare
from fishplate.cel.estimate import estimate_cost
from fishplate.cel.parser import parse
from fishplate.cel.program import Program
from fishplate.cel.source import Report, Source
from fishplate.cel.validators import validate
from fishplate.errors import CelCompileError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fishplate.cel.types import Type

LIST_ATTRIBUTES = "DRAListTypeAttributes"
# What kube-apiserver accepts in a selector (k8s.io/api/resource/v1, CELSelectorExpressionMaxLength).
MAX_EXPRESSION_BYTES = 10 * 1024


class Environment:
    def __init__(self, minor: str, *, list_attributes: bool) -> None:
        self.minor = minor
        # 1.37 ships cel-go 0.29, earlier ones 0.26.
        self.modern = minor == "1.37"
        self.accepts_lists = list_attributes or self.modern
        self._dynamic = self.accepts_lists
        self.declared = declare(minor, dynamic_attributes=self._dynamic)

    def compile(self, source: str) -> Program:
        """The program, or CelCompileError with every error found."""
        report = Report(Source(source))
        expr, offsets, spans = parse(source, report, escaped_names=self.modern)
        if expr is None or report:
            raise self._failure(report)
        checked = check(expr, offsets, self.declared, report)
        if report:
            raise self._failure(report)
        validate(checked, report)
        if report:
            raise self._failure(report)
        output = checked.types[expr.id]
        if not self._accepts(output):
            raise CelCompileError(f"must evaluate to bool or the unknown type, not {output.declared}")
        try:
            built = build(checked, self.declared, modern=self.modern)
        except BuildError as error:
            raise CelCompileError(f"program instantiation failed: {error}") from error
        return Program(
            source=source,
            built=built,
            checked=checked,
            cost=estimate_cost(checked, modern=self.modern),
            spans=spans,
            environment=self,
        )

    def _accepts(self, output: Type) -> bool:
        if self.modern:
            return output.kind in ("bool", "dyn")
        return output.kind in ("bool", "any") or (self._dynamic and output.kind == "dyn")

    def _failure(self, report: Report) -> CelCompileError:
        issues = tuple((issue.line, issue.column, issue.message) for issue in report.issues)
        return CelCompileError(f"compilation failed: {report}", issues=issues)


def environment(minor: str = "1.36", gates: Mapping[str, bool] | None = None) -> Environment:
    """The environment of kube-scheduler of that minor version; `gates` overrides its defaults."""
    if minor not in MINORS:
        raise UnknownNameError(
            f"no CEL environment for Kubernetes {minor}", nearest=MINORS, remedy=f"use one of {', '.join(MINORS)}"
        )
    gated = minor in ("1.36", "1.37") and (gates or {}).get(LIST_ATTRIBUTES, False)
    return _environment(minor, list_attributes=gated)


@cache
def _environment(minor: str, *, list_attributes: bool) -> Environment:
    return Environment(minor, list_attributes=list_attributes)
