"""One scan of a host with 8 GPUs and 8 NICs, beside merely reading every file of its tree."""

import os
import tempfile
from pathlib import Path

from benchmarks.measure import Row, compare
from fishplate.hardware.catalog import load_catalog
from fishplate.node.scan import scan
from fishplate.node.tree import Tree
from fishplate.sim.host import write_host


def run() -> list[Row]:
    catalog = load_catalog()
    with tempfile.TemporaryDirectory() as directory:
        write_host(Path(directory), catalog.find("Standard_ND96isr_H100_v5"))
        inventory = scan(Tree(directory), catalog=catalog)
        assert (len(inventory.gpus), len(inventory.rdma_nics)) == (8, 8)
        ours, theirs = compare(
            lambda: scan(Tree(directory), catalog=catalog), lambda: _read_everything(directory), repeats=31
        )
        files = sum(len(names) for _, _, names in os.walk(directory))
    return [Row("scan of 8 GPUs and 8 NICs", ours, f"reading all {files} files of that tree", theirs)]


def _read_everything(directory: str) -> None:
    for where, _, names in os.walk(directory):
        for name in names:
            path = Path(where, name)
            if not path.is_symlink():
                path.read_bytes()
