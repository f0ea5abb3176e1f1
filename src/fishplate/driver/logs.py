"""Log lines: plain ones for people, JSON for collectors. Standard error, so that standard output stays free."""

import datetime as dt
import json
import logging
import sys

from fishplate.driver.options import LogFormat


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(form: LogFormat, verbosity: int) -> None:
    """`verbosity` as klog has it: 0 only warnings, up to 3 the usual, from 4 everything."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname).1s %(name)s: %(message)s")
    handler.setFormatter(_Json() if form == "json" else plain)
    level = logging.WARNING if verbosity <= 0 else logging.INFO if verbosity < 4 else logging.DEBUG
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # libraries speak only of trouble
    logging.getLogger("fishplate").setLevel(level)
