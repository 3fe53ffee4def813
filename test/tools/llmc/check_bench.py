"""check_bench.py FILE: `llmc bench --json` has its keys, and numbers that can be."""
import json
import sys

answer = json.load(open(sys.argv[1]))
assert answer["weights"] == "bf16" and answer["threads"] == 1 and answer["target"], answer
assert answer["prefill"]["tokens"] == 16
decode = answer["decode"]
assert (decode["tokens"], decode["streams"], decode["depth"]) == (4, 2, 8), decode
for part in (answer["prefill"], decode):
    rate = part["tokens_per_second"]
    assert 0 < rate["min"] <= rate["median"] <= rate["max"], rate
limits = answer["limits"]
assert 0.1 < limits["read_gb_per_second"] < 10000, limits
assert 1e8 < limits["flops_per_second"] < 1e15, limits
assert limits["instruction"] and limits["decode_instruction"], limits
# Keys and values of two heads of 16 channels in bf16 in four layers, of two streams: 8 tokens of context, 1 answered, 4 to
# warm up, and on average half of the twice 4 that are measured, with the new one.
assert limits["kv_bytes_per_step"] == 2 * 2 * 16 * 2 * 4 * 2 * (8 + 1 + 4 + 4 + 1), limits
# A model this small is read from a cache, so its fraction may well be above 1.
bytes_per_step = limits["weight_bytes_per_step"] + limits["kv_bytes_per_step"]
read = bytes_per_step * decode["tokens_per_second"]["median"] / 2 / (1e9 * limits["read_gb_per_second"])
assert abs(limits["decode_fraction_of_read"] / read - 1) < 1e-6, (limits, read)
assert limits["decode_fraction_of_peak"] > 0, limits
assert limits["prefill_fraction_of_peak"] > 0, limits
assert limits["operations_per_token"] == 2 * 4 * (64 * 128 + 64 * 64 + 3 * 64 * 96), limits
assert limits["operations_per_logit_row"] == 2 * 320 * 64, limits
# Four layers of 64 x (64 + 2 * 32) + 64 x 64 + 3 * 64 x 96 and the head of 320 x 64, two bytes each, and the norms.
least = 2 * (4 * (64 * 128 + 64 * 64 + 3 * 64 * 96) + 320 * 64)
assert least <= limits["weight_bytes_per_step"] < 1.2 * least, limits
