"""Benchmarks: read what they print, whatever the dialect, and judge it against what the hardware can do.

    log, JSON ─► log, json_results ─► Run (results) ─► judge: consistency, rate, causes ─► Judgement
                                          │
                                          ├─► compare: like with like ─► ratios with their spread
                                          └─► study: one JSON file, to be judged again later

Everything here is pure: text and catalogue in, plain values out. Rendering jobs and running them are other rooms' work.
"""
