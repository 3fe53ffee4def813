"""check_perplexity.py FILE nll tokens nll tokens ...: the windows of `llmc perplexity --json` are these."""
import json
import math
import sys

answer = json.load(open(sys.argv[1]))
expected = [float(word) for word in sys.argv[2:]]
windows = answer["windows"]
assert len(windows) * 2 == len(expected), windows
total = tokens = 0
for window, nll, count in zip(windows, expected[::2], expected[1::2]):
    assert window["tokens"] == count, (window, count)
    # Weights and cache are float32 in both; what differs is the order of summation.
    assert abs(window["nll"] - nll) < 1e-5 * nll, (window, nll)
    total += nll * count
    tokens += count
assert abs(answer["perplexity"] / math.exp(total / tokens) - 1) < 1e-4, answer["perplexity"]
