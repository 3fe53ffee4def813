"""Results of the suite as a JSON file that grows by one run at a time, so that an interrupted suite goes on."""
import json
import os
import statistics
import tempfile

KEY = ("case", "model", "type", "threads")


class Results:
    def __init__(self, path):
        self.path = path
        self.data = {"machine": {}, "runs": []}
        if os.path.exists(path):
            with open(path) as file:
                self.data = json.load(file)

    def runs(self):
        return self.data["runs"]

    def find(self, key):
        """The run of (case, model, type, threads), or None."""
        return next((run for run in self.runs() if tuple(run[name] for name in KEY) == key), None)

    def put(self, run):
        """Adds a run, or replaces the one of the same key; on the disk, whole or not at all."""
        key = tuple(run[name] for name in KEY)
        self.data["runs"] = [other for other in self.runs() if tuple(other[name] for name in KEY) != key] + [run]
        self.save()

    def save(self):
        folder = os.path.dirname(os.path.abspath(self.path))
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump(self.data, file, indent=1)
            file.write("\n")
        os.chmod(file.name, 0o644)
        os.replace(file.name, self.path)


def summary(run):
    """Medians over the rounds, and the ratio of each round: how many times faster than the peer, whatever the unit."""
    seconds = run["unit"] == "seconds"
    ratios = sorted(r["peer"] / r["llmc"] if seconds else r["llmc"] / r["peer"] for r in run["rounds"])
    return {
        "llmc": statistics.median(r["llmc"] for r in run["rounds"]),
        "peer": statistics.median(r["peer"] for r in run["rounds"]),
        "ratio": statistics.median(ratios),
        "lowest": ratios[0],
        "highest": ratios[-1],
    }


def median_of(run, key):
    """Of what each round measured beside the two figures; None where no round has it."""
    values = [r[key] for r in run["rounds"] if r.get(key)]
    return statistics.median(values) if values else None
