"""`fishplate cel`: try a selector on devices; see what it costs and which clause said no."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fishplate.cli.fleets import load_source, parse_gates, scheduler_options, source_options
from fishplate.cli.output import console, emit, output_option
from fishplate.errors import CelCompileError, CelRuntimeError

if TYPE_CHECKING:
    from fishplate.cel import Device, Program
    from fishplate.k8s.resource import ResourceSlice


@click.command()
@click.argument("expression", metavar="EXPR")
@source_options
@scheduler_options
@output_option("table", "json", "yaml")
def command(
    expression: str,
    slices: tuple[Path, ...],
    fleet: str | None,
    minor: str,
    gates: str,
    output: str,
) -> int:
    """Compile a device selector and run it as the scheduler would.

    EXPR is CEL, `-` reads it from standard input. Without --slices or --fleet it is only compiled. Exit 1 when it
    matches no device or fails on one.

    \b
    fishplate cel 'device.driver == "dra.net"'
    fishplate cel 'device.attributes["dra.net"].numaNode == 0' --fleet Standard_ND128isr_GB300_v6=2
    """
    from fishplate.cel import environment

    source = sys.stdin.read().rstrip("\n") if expression == "-" else expression
    try:
        program = environment(minor, parse_gates(gates)).compile(source)
    except CelCompileError as error:
        if output == "table":
            raise
        emit({"error": {"stage": "compile", "message": str(error), "issues": _issues(error)}}, output)
        return 2
    devices = [] if fleet is None and not slices else _run(program, minor, load_source(slices, fleet).slices)
    if output == "table":
        _print(program, devices)
    else:
        emit(_document(program, devices), output)
    failed = any(one["error"] for one in devices)
    return 1 if devices and (failed or not any(one["result"] for one in devices)) else 0


def _issues(error: CelCompileError) -> list[dict[str, Any]]:
    return [{"line": line, "column": column, "message": message} for line, column, message in error.issues]


def _run(program: "Program", minor: str, slices: "tuple[ResourceSlice, ...]") -> list[dict[str, Any]]:
    from fishplate.dra.profile import profile
    from fishplate.dra.selectors import Selectors

    view = Selectors(profile(minor)).view
    return [
        _ask(program, one, device.name, view(device, one.spec.driver)) for one in slices for device in one.spec.devices
    ]


def _ask(program: "Program", one: "ResourceSlice", name: str, device: "Device") -> dict[str, Any]:
    result: bool | None = None
    error = None
    try:
        result = program.matches(device)
    except CelRuntimeError as failure:
        error = failure.what
    place = {"driver": one.spec.driver, "pool": one.spec.pool.name, "device": name}
    return place | {"result": result, "error": error, "clauses": [] if result else _clauses(program, device)}


def _clauses(program: "Program", device: "Device") -> list[dict[str, Any]]:
    return [
        {
            "text": clause.text,
            "result": clause.result,
            "message": clause.message,
            "seen": [{"text": seen.text, "value": seen.value} for seen in clause.seen],
        }
        for clause in program.explain(device)
    ]


def _document(program: "Program", devices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "expression": program.source,
        "type": program.output_type,
        "cost": {"estimated": program.cost, "limit": 1_000_000, "refused": program.too_expensive},
        "devices": devices,
    }


def _print(program: "Program", devices: list[dict[str, Any]]) -> None:
    out = console()
    verdict = "too expensive: the API server refuses it" if program.too_expensive else "of 1,000,000 allowed"
    out.print(f"compiles to {program.output_type}; estimated cost {program.cost:,} {verdict}", markup=False)
    matching = sum(1 for one in devices if one["result"])
    if devices:
        out.print(f"{matching} of {len(devices)} devices match\n", markup=False)
    for one in devices[:40]:
        mark = "error" if one["error"] else ("yes" if one["result"] else "no")
        out.print(f"  {mark:<5} {one['driver']}/{one['pool']}/{one['device']}", markup=False)
        for clause in one["clauses"]:
            if clause["result"] != "true":
                values = ", ".join(f"{value['text']} is {value['value']}" for value in clause["seen"])
                said = clause["message"] or "false"
                out.print(
                    f"        {clause['text']}: {said}{f'; {values}' if values else ''}", style="dim", markup=False
                )
    if len(devices) > 40:
        out.print(f"  … and {len(devices) - 40} more; -o json shows them all", style="dim")
