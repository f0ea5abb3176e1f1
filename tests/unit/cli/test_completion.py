"""What the shell offers for sizes, fleets and driver releases."""

import click
import pytest

from fishplate.cli.sizes import complete_fleet, complete_profile

CONTEXT = click.Context(click.Command("c"))
OPTION = click.Option(["--fleet"])


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("Standard_ND128isr_GB3", ["Standard_ND128isr_GB300_v6="]),
        ("nd128isr_gb3", ["Standard_ND128isr_GB300_v6="]),
        ("Standard_HB120rs_v3=2,ND96isr_MI", ["Standard_HB120rs_v3=2,Standard_ND96isr_MI300X_v5="]),
        ("Standard_ND128isr_GB300_v6=4", []),
    ],
)
def test_a_fleet_is_completed_size_by_size(typed: str, offered: list[str]) -> None:
    assert complete_fleet(CONTEXT, OPTION, typed) == offered


def test_driver_releases_are_completed() -> None:
    assert complete_profile(CONTEXT, OPTION, "amd-1") == ["amd-1.0"]
