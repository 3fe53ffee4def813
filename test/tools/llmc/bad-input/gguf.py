"""gguf.py MODEL WORK: every way in which a GGUF file can lie is an error of one line."""
import pathlib
import struct
import sys

from rejection import Case, finish

model, work = sys.argv[1:]
content = pathlib.Path(model).read_bytes()
STRING, ARRAY = 8, 9


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def case(name, words, damaged):
    broken = Case(work, name, model)
    broken.model.write_bytes(damaged)
    broken.rejects(["model.gguf", *words])


def at(offset, value, layout="<Q"):
    """The file with one number of it replaced."""
    return content[:offset] + struct.pack(layout, value) + content[offset + struct.calcsize(layout):]


def tensor_entry(name):
    """Offsets of a tensor's rank, shape, type and place in the file."""
    begin = content.index(text(name)) + 8 + len(name)
    (rank,) = struct.unpack_from("<I", content, begin)
    shape = begin + 4
    return begin, shape, shape + 8 * rank, shape + 8 * rank + 4


NORM, EMBEDDING = "output_norm.weight", "token_embd.weight"
version, tensors, pairs = 4, 8, 16
for kept in (0, 3, 20, 24, 300, len(content) // 2, len(content) - 1):
    case(f"cut to {kept} bytes", [], content[:kept])
case("another magic", ["GGUF|gguf"], b"GGML" + content[4:])
case("version of the future", ["99"], at(version, 99, "<I"))
case("version 1", ["1"], at(version, 1, "<I"))
for count in (1 << 62, (1 << 64) - 1, 1 << 21):
    case(f"{count} tensors", [], at(tensors, count))
    case(f"{count} keys", [], at(pairs, count))
case("key of 2^63 bytes", [], at(24, 1 << 63))

rank, shape, kind, place = tensor_entry(NORM)
case("rank of a milliard", [NORM], at(rank, 10**9, "<I"))
case("shape that overflows", [], at(tensor_entry(EMBEDDING)[1], 1 << 63))
case("shape of 0", [], at(shape, 0))
case("another shape", [NORM], at(shape, 32))
case("unknown type", [NORM, "4711"], at(kind, 4711, "<I"))
case("place beyond the file", [NORM], at(place, 1 << 40))
case("place that overflows", [NORM], at(place, (1 << 64) - 32))
case("place not aligned", [NORM], at(place, struct.unpack_from("<Q", content, place)[0] + 1))
# Another tensor's bytes: what starts there is that tensor's.
case("overlapping tensors", [], at(place, struct.unpack_from("<Q", content, tensor_entry(EMBEDDING)[3])[0]))
case("tensor missing", [NORM], content.replace(text(NORM), text("output_morn.weight")))
case("tensor twice", ["attn_k.weight|twice|duplicate"], content.replace(text("blk.0.attn_q.weight"), text("blk.0.attn_k.weight")))

architecture = pair("general.architecture", STRING, text("llama"))
assert architecture in content
case("architecture unknown", ["lhama", "llama"], content.replace(architecture, pair("general.architecture", STRING, text("lhama"))))
case("no architecture", ["architecture"], content.replace(text("general.architecture"), text("general.architecturf")))
heads = content.index(text("llama.attention.head_count")) + len(text("llama.attention.head_count")) + 4
for value in (0, 3, (1 << 32) - 1):
    case(f"{value} heads", [], at(heads, value, "<I"))
case("key of an unknown kind", [], at(heads - 4, 99, "<I"))
case("heads a string", [], at(heads - 4, STRING, "<I"))
nested = pair("x.nested", ARRAY, struct.pack("<IQ", ARRAY, 1) * 1000 + struct.pack("<IQ", 0, 0))
case("nested arrays", [], at(pairs, struct.unpack_from("<Q", content, pairs)[0] + 1)[:24] + nested + content[24:])
long = pair("x.long", ARRAY, struct.pack("<IQ", 0, 1 << 60))
case("array beyond the file", [], at(pairs, struct.unpack_from("<Q", content, pairs)[0] + 1)[:24] + long + content[24:])
finish()
