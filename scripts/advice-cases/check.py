#!/usr/bin/env python3
"""Checks `toclip advise --json` on logs with known causes: check.py TOCLIP [FOLDER]. Prints what differs; exit 1 if any case fails.

The raw norms come from the log if it is JSON lines, otherwise from the file that `norms_file` names, one norm a line."""
import json, pathlib, subprocess, sys

binary = sys.argv[1]
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent)
cases = json.loads((folder / "cases.json").read_text())
passed = 0
for name, want in cases.items():
    command = [binary, "advise", str(folder / name), "--json", "--batch-size", str(want.get("batch", 32)), *want.get("flags", [])]
    done = subprocess.run(command, capture_output=True, text=True)
    wrong = []
    try:
        answer = json.loads(done.stdout)
        answer = answer["logs"][0] if "logs" in answer else answer
        found = answer["findings"]
        findings = {f["code"] for f in found}
        advice = answer["recommendation"]
    except Exception as problem:
        print(f"{name}: no readable answer ({type(problem).__name__}: {problem}) {done.stderr.strip()[-120:]}")
        continue
    wrong += [f"not found: {c}" for c in want.get("findings", []) if c not in findings]
    wrong += [f"wrongly found: {c}" for c in want.get("forbidden", []) if c in findings]
    if "actions" in want and advice.get("action") not in want["actions"]:
        wrong.append(f"action {advice.get('action')}, not {' or '.join(want['actions'])}")
    if "steps" in want:
        seen = [s for f in found for s in f.get("steps") or []]
        if len(seen) > want.get("max_steps", 1e9):
            wrong.append(f"{len(seen)} steps listed")
        wrong += [f"no event at step {s}" for s in want["steps"] if not any(abs(s - t) <= 2 for t in seen)]
    threshold = advice.get("threshold")
    if "threshold" in want and not (threshold and want["threshold"][0] <= threshold <= want["threshold"][1]):
        wrong.append(f"threshold {threshold}, not within {want['threshold']}")
    if advice.get("action") in ("guard", "clip") and threshold:
        if "norms_file" in want:
            norms = [float(line) for line in (folder / want["norms_file"]).read_text().split()]
        else:
            norms = [r["grad_norm"] for r in map(json.loads, (folder / name).read_text().splitlines())]
        norms = [n for n in norms if n < float("inf")]
        fires = sum(n > threshold for n in norms) / len(norms)
        if abs(fires - (advice.get("fires") or 0)) > 0.02:
            wrong.append(f"says it fires at {advice.get('fires')}, it does at {fires:.3f}")
        if threshold > max(norms):
            wrong.append("the threshold is above every norm")
        if fires > want.get("max_fires", 1):
            wrong.append(f"the recommended threshold clips {fires:.0%} of steps")
    if (advice.get("rate_factor") or 1) > want.get("max_rate_factor", 1e9):
        wrong.append(f"recommends raising the rate {advice['rate_factor']} times")
    passed += not wrong
    if wrong:
        print(f"{name}: {'; '.join(wrong)}")
print(f"{passed} of {len(cases)} cases answered well")
sys.exit(passed < len(cases))
