"""`make bench`, or `python -m benchmarks [NAME…]`: run the benchmarks and print what they found."""

import importlib
import pkgutil
import sys

import benchmarks


def main(wanted: list[str]) -> int:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name.startswith("bench_")]
    chosen = [name for name in names if not wanted or any(word in name for word in wanted)]
    if not chosen:
        print(f"no such benchmark; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    for name in chosen:
        print(f"{name.removeprefix('bench_')}:", flush=True)
        for row in importlib.import_module(f"benchmarks.{name}").run():
            print(f"  {row}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
