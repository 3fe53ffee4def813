"""check_trace.py FILE ARTIFACT WORKERS STEPS: a trace shows every launch of every step on every worker, by name and layer."""
import collections
import json
import sys

trace, artifact, workers, steps = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
kernels = [entry for entry in json.load(open(artifact + "/dispatch.json")) if not entry["kernel"].startswith("weight:")]
layers = {entry["op"]: entry["layers"] for entry in kernels}
launches = sum(len(numbers) for numbers in layers.values())
assert launches > 0

lanes = collections.defaultdict(list)
for event in trace["traceEvents"]:
    if event["ph"] == "X":
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        lanes[event["tid"], event["cat"], event["args"]["step"]].append(event)
names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
assert names == {**{worker: f"worker {worker}" for worker in range(workers)}, workers: "steps"}, names

for step in range(steps):
    (whole,) = lanes[workers, "step", step]
    for worker in range(workers):
        tasks, waits = lanes[worker, "task", step], lanes[worker, "wait", step]
        assert [event["args"]["launch"] for event in tasks] == list(range(launches)), (step, worker)
        assert len(waits) == launches and all(event["name"] == "barrier" for event in waits)
        seen = collections.defaultdict(list)
        for event in tasks:
            seen[event["name"]].append(event["args"].get("layer", -1))
        assert seen == {name: numbers for name, numbers in layers.items() if numbers}, seen
        inside = sum(event["dur"] for event in tasks + waits)
        assert inside <= whole["dur"] + 1, (inside, whole)
assert (workers, "step", steps) not in lanes, "more steps than expected"
