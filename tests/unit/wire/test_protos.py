"""The committed message classes are those of the .proto files."""

import subprocess
from pathlib import Path

import fishplate.wire.proto

FOLDER = Path(fishplate.wire.proto.__file__).parent
ROOT = Path(__file__).parents[3]


def test_the_message_classes_are_what_protoc_makes_of_the_proto_files(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "protos", tmp_path], check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "fishplate/wire/proto").iterdir()}
    committed = {path.name: path.read_text() for path in FOLDER.glob("*_pb2.py*")}
    assert len(made) == 10
    assert made == committed
