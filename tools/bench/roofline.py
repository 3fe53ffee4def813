"""The roofline of a set of runs as SVG: operations per byte against operations per second, both logarithmic.

Operations are the model's: two per weight and row. Bytes are what a step reads: weights, and the cache in decode. Roofs
are what llmc measured beside the runs; a roof that rises is reading, a level one an instruction's peak.
"""
import math
from html import escape

from models import title
from results import median_of, summary

WIDTH, HEIGHT = 900, 560
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 40, 60
COLOURS = {"BF16": "#1f5fa8", "Q8_0": "#2e8b57", "Q4_0": "#c0504d"}
OTHER = "#7a5ca8"


class Scale:
    """Logarithmic, from a range of values to a range of pixels."""

    def __init__(self, low, high, first, last):
        self.low, self.high, self.first, self.last = math.floor(math.log10(low)), math.ceil(math.log10(high)), first, last

    def at(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.first + part * (self.last - self.first), 1)

    def decades(self):
        return [10.0**n for n in range(self.low, self.high + 1)]


def work_of(run):
    """Operations and bytes of a step, and the rows that share it; None where the run does not say, or attention, which is
    not counted, is most of the work."""
    per_token, per_row = median_of(run, "operations_per_token"), median_of(run, "operations_per_logit_row")
    weights = median_of(run, "weight_bytes_per_step")
    if not per_token or not weights or run["depth"] > 1024:
        return None
    if run["new"] == 0:
        return run["prompt"] * per_token + (per_row or 0), weights, run["prompt"]
    cache = median_of(run, "kv_bytes_per_step") or 0
    return run["streams"] * (per_token + (per_row or 0)), weights + cache, run["streams"]


def points_of(runs):
    """(run, operations per byte, llmc's operations per second, the peer's) at the most threads measured."""
    points = []
    most = max(run["threads"] for run in runs)
    for run in runs:
        work = work_of(run) if run["unit"] != "seconds" and run["threads"] == most else None
        if work:
            operations, read, rows = work
            row = summary(run)
            points.append((run, operations / read, operations / rows * row["llmc"], operations / rows * row["peer"]))
    return points


def roofs_of(points):
    """Bytes per second, and each instruction's peak: the best that was measured."""
    read = max((1e9 * (median_of(run, "read_gb_per_second") or 0) for run, *_ in points), default=0)
    peaks = {}
    for run, *_ in points:
        prefix = "decode_" if run["new"] else ""
        rate = median_of(run, prefix + "flops_per_second") or median_of(run, "flops_per_second")
        name = next((r[key] for r in run["rounds"] for key in (prefix + "instruction", "instruction") if r.get(key)), None)
        if name and rate:
            peaks[name] = max(peaks.get(name, 0), rate)
    return read, peaks


def text(x, y, words, size=12, anchor="start", colour="#333"):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def axes(x, y):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in x.decades():
        parts += [line(x.at(value), TOP, x.at(value), bottom, "#ddd"), text(x.at(value), bottom + 18, f"{value:g}", anchor="middle")]
    for value in y.decades():
        parts += [line(LEFT, y.at(value), right, y.at(value), "#ddd"), text(LEFT - 8, y.at(value) + 4, f"{value / 1e9:g}", anchor="end")]
    parts += [text((LEFT + right) / 2, HEIGHT - 18, "operations per byte read", 13, "middle"),
              f'<g transform="rotate(-90 20 {HEIGHT / 2})">' + text(20, HEIGHT / 2, "10⁹ operations per second", 13, "middle") + "</g>"]
    return parts


def roof_lines(x, y, read, peaks):
    """The rising roof up to the highest peak, and a level one per instruction from where reading allows it."""
    parts, right = [], WIDTH - RIGHT
    lowest, highest = 10.0**x.low, 10.0**x.high
    if read:
        end = min(highest, max(peaks.values(), default=math.inf) / read, 10.0**y.high / read)
        begin = max(lowest, 10.0**y.low / read)
        parts.append(line(x.at(begin), y.at(begin * read), x.at(end), y.at(end * read), "#555", 1.5))
        middle = math.sqrt(begin * end)
        parts.append(text(x.at(middle) - 8, y.at(middle * read) - 6, f"read {read / 1e9:.0f} GB/s", 11, "end"))
    for name, peak in sorted(peaks.items()):
        begin = min(highest, max(lowest, peak / read if read else lowest))
        parts.append(line(x.at(begin), y.at(peak), right, y.at(peak), "#555", 1.5, "6 3"))
        parts.append(text(right - 4, y.at(peak) - 5, f"{name} {peak / 1e9:.0f}", 11, "end"))
    return parts


def marks(points, x, y):
    """A filled circle for llmc, an open one for the peer, joined; the letter says the model."""
    parts = []
    for run, intensity, ours, theirs in points:
        colour = COLOURS.get(run["type"], OTHER)
        at, name = x.at(intensity), f"{title(run['model'])} {run['type']}, {run['about']}"
        parts.append(line(at, y.at(theirs), at, y.at(ours), colour, 1))
        parts.append(f'<circle cx="{at}" cy="{y.at(theirs)}" r="4" fill="white" stroke="{colour}" stroke-width="1.5"><title>llama.cpp: {escape(name)}</title></circle>')
        parts.append(f'<circle cx="{at}" cy="{y.at(ours)}" r="4.5" fill="{colour}"><title>llmc: {escape(name)}</title></circle>')
        parts.append(text(at + 7, y.at(ours) + 4, title(run["model"])[0], 10, colour=colour))
    return parts


def legend(points):
    left, top = WIDTH - RIGHT + 16, TOP + 10
    entries = [(COLOURS.get(kind, OTHER), True, kind) for kind in dict.fromkeys(run["type"] for run, *_ in points)]
    entries += [("#333", True, "llmc"), ("#333", False, "llama.cpp")]
    parts = []
    for index, (colour, filled, words) in enumerate(entries):
        at = top + 20 * index
        parts.append(f'<circle cx="{left}" cy="{at}" r="4.5" fill="{colour if filled else "white"}" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(text(left + 12, at + 4, words))
    models = dict.fromkeys(title(run["model"]) for run, *_ in points)
    return parts + [text(left - 5, top + 20 * (len(entries) + 1 + i), f"{name[0]}  {name}", 11) for i, name in enumerate(models)]


def draw(runs):
    """The chart, or None where no run says how much work a step is."""
    points = points_of(runs)
    if not points:
        return None
    read, peaks = roofs_of(points)
    rates = [rate for point in points for rate in point[2:]] + list(peaks.values())
    x = Scale(min(p[1] for p in points), max(p[1] for p in points), LEFT, WIDTH - RIGHT)
    y = Scale(min(rates), max(rates), HEIGHT - BOTTOM, TOP)
    threads = points[0][0]["threads"]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    parts = [head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', text(LEFT, 24, f"Prefill and decode against the machine, {threads} threads", 15)]
    parts += axes(x, y) + roof_lines(x, y, read, peaks) + marks(points, x, y) + legend(points)
    return "\n".join(parts + ["</svg>"]) + "\n"
