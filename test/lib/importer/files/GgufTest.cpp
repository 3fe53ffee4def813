#include "lib/importer/files/Gguf.h"
#include "runtime/support/File.h"
#include "runtime/support/Limits.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include "test/runtime/support/TemporaryFolder.h"

using namespace llmc;
using test::asBytes;
using test::GgufBytes;

namespace {

constexpr uint32_t u8 = 0, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11;
constexpr uint32_t ggmlF32 = 0, ggmlQ4_K = 12;

std::string errorOfBytes(const std::string &bytes) {
  StatusOr<GgufHeader> header = parseGguf(asBytes(bytes), bytes.size(), "m.gguf");
  return header.ok() ? "" : header.status().message();
}
std::string errorOf(const GgufBytes &gguf) { return errorOfBytes(gguf.bytes); }

// The metadata of one file with every kind of value.
GgufBytes everyType() {
  GgufBytes gguf(0, 12);
  gguf.keyU32("u32", 7).key("u8", u8).u8(200).key("i32", i32).u32(0xFFFFFFFB).key("u64", u64).u64(UINT64_MAX);
  gguf.key("f32", f32).raw(test::littleEndian(1.5f)).key("bool", boolean).u8(1).key("string", string).string("text");
  gguf.key("i64", i64).u64(static_cast<uint64_t>(-3));
  gguf.key("strings", array).u32(string).u64(3).string("a").string("").string("b\xFF");
  gguf.key("ints", array).u32(i32).u64(2).u32(1).u32(0xFFFFFFFF);
  gguf.key("floats", array).u32(f32).u64(2).raw(test::littleEndian(0.25f)).raw(test::littleEndian(-2.0f));
  gguf.key("bools", array).u32(boolean).u64(3).u8(1).u8(0).u8(1);
  return gguf;
}

} // namespace

// A file of llama.cpp's own tools, cut before its data.
TEST(Gguf, ReadsAFileOfTheReferenceWriter) {
  StatusOr<std::string> head = readFile(LLMC_TEST_DATA "/llama-head.gguf", 100'000);
  ASSERT_TRUE(head.ok());
  StatusOr<GgufHeader> header = parseGguf(asBytes(*head), 792'000, "llama.gguf");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->dataOffset, 8896u); // 8892 rounded up to 32
  const GgufMetadata &metadata = header->metadata;
  EXPECT_EQ(metadata.keys().size(), 20u);
  EXPECT_EQ(*metadata.string("general.architecture"), "llama");
  EXPECT_EQ(*metadata.integer("llama.block_count", 1, 4096), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(*metadata.number("llama.rope.freq_base")), 10000.0f);
  EXPECT_EQ(metadata.strings("tokenizer.ggml.tokens")->at(1), "<s>");
  EXPECT_EQ(metadata.numbers("tokenizer.ggml.scores")->size(), 320u);
  EXPECT_EQ(metadata.integers("tokenizer.ggml.token_type", 0, 6)->at(1), 3);
  ASSERT_EQ(header->tensors.size(), 21u);
  const GgufTensor &output = header->tensors[0];
  EXPECT_EQ(output.name, "output.weight");
  EXPECT_EQ(output.type, TensorType::Q6_K);
  EXPECT_EQ(output.shape, (std::vector<uint64_t>{320, 256})) << "the file says 256, 320";
  EXPECT_EQ(output.offset, 8896u);
  EXPECT_EQ(output.bytes, 320u * 210);
  EXPECT_EQ(header->tensors[1].offset, 8896u + 67200);
  EXPECT_EQ(parseGguf(asBytes(*head), 791'999, "llama.gguf").status().message(),
            "llama.gguf: tensor 'blk.1.ffn_up.weight' of 73728 bytes at data offset 709376 ends behind the file of "
            "791999 bytes; the download is incomplete");
}

TEST(Gguf, ValuesOfEveryType) {
  GgufBytes gguf = everyType();
  StatusOr<GgufHeader> header = parseGguf(asBytes(gguf.bytes), gguf.bytes.size(), "m.gguf");
  ASSERT_TRUE(header.ok()) << header.status().message();
  const GgufMetadata &m = header->metadata;
  EXPECT_EQ(*m.integer("u32", 0, 10), 7);
  EXPECT_EQ(*m.integer("u8", 0, 255), 200);
  EXPECT_EQ(*m.integer("i32", -10, 10), -5);
  EXPECT_EQ(*m.integer("i64", -10, 10), -3);
  EXPECT_EQ(*m.number("f32"), 1.5);
  EXPECT_EQ(*m.number("u32"), 7.0);
  EXPECT_TRUE(*m.boolean("bool"));
  EXPECT_EQ(*m.string("string"), "text");
  EXPECT_EQ(*m.strings("strings"), (std::vector<std::string>{"a", "", "b\xFF"}));
  EXPECT_EQ(*m.integers("ints", -1, 1), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(*m.numbers("floats"), (std::vector<double>{0.25, -2.0}));
  EXPECT_EQ(*m.booleans("bools"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(*m.type("strings"), GgufType::Array);
  EXPECT_EQ(*m.elementType("strings"), GgufType::String);
  EXPECT_EQ(*m.arrayLength("strings"), 3u);
  EXPECT_TRUE(m.has("u8"));
  EXPECT_FALSE(m.has("u"));
}

TEST(Gguf, ValuesOfTheWrongType) {
  GgufBytes gguf = everyType();
  StatusOr<GgufHeader> header = parseGguf(asBytes(gguf.bytes), gguf.bytes.size(), "m.gguf");
  ASSERT_TRUE(header.ok());
  const GgufMetadata &m = header->metadata;
  EXPECT_EQ(m.integer("absent", 0, 1).status().message(), "m.gguf: key 'absent' is missing, expected an integer");
  EXPECT_EQ(m.integer("string", 0, 1).status().message(),
            "m.gguf: key 'string' is of type string, expected an integer");
  EXPECT_EQ(m.integer("f32", 0, 1).status().message(), "m.gguf: key 'f32' is of type f32, expected an integer");
  EXPECT_EQ(m.integer("u32", 8, 9).status().message(), "m.gguf: key 'u32' is 7, expected 8 to 9");
  EXPECT_EQ(m.integer("u64", 0, INT64_MAX).status().message(),
            "m.gguf: key 'u64' is 18446744073709551615, expected 0 to 9223372036854775807");
  EXPECT_EQ(m.string("u32").status().message(), "m.gguf: key 'u32' is of type u32, expected a string");
  EXPECT_EQ(m.strings("ints").status().message(),
            "m.gguf: key 'ints' is an array of 2 i32, expected an array of strings");
  EXPECT_EQ(m.integers("u32", 0, 9).status().message(),
            "m.gguf: key 'u32' is of type u32, expected an array of integers");
  EXPECT_EQ(m.integers("ints", 0, 9).status().message(), "m.gguf: key 'ints' is -1, expected 0 to 9 at index 1");
  EXPECT_EQ(m.number("strings").status().message(), "m.gguf: key 'strings' is an array of 3 string, expected a number");
  EXPECT_FALSE(m.boolean("u8").ok());
  EXPECT_FALSE(m.numbers("strings").ok());
  EXPECT_FALSE(m.booleans("ints").ok());
  EXPECT_FALSE(m.type("absent").ok());
  EXPECT_FALSE(m.elementType("u32").ok());
  EXPECT_FALSE(m.arrayLength("u32").ok());
}

TEST(Gguf, MagicAndVersion) {
  EXPECT_EQ(errorOfBytes("GGUF"), "m.gguf: file has 4 bytes, but the head of a GGUF file takes 24; download it again");
  EXPECT_EQ(errorOfBytes("GGML" + std::string(100, '\0')),
            "m.gguf: not a GGUF file: it starts with 'GGML', expected 'GGUF'");
  EXPECT_EQ(errorOf(GgufBytes(0, 0, 1)), "m.gguf: GGUF version 1, expected 2 or 3; convert the model again");
  EXPECT_EQ(errorOf(GgufBytes(0, 0, 0x03000000)), "m.gguf: is a big-endian GGUF file; convert it to little endian");
  EXPECT_EQ(errorOf(GgufBytes(0, 0, 2)), "");
  EXPECT_EQ(errorOf(GgufBytes(0, 0, 4)), "m.gguf: GGUF version 4, expected 2 or 3; convert the model again");
}

TEST(Gguf, CountsThatCannotFit) {
  GgufBytes keys(0, uint64_t{1} << 63);
  keys.bytes.resize(24 + 4072);
  EXPECT_EQ(errorOf(keys), "m.gguf: n_kv 9223372036854775808 cannot fit in the 4072 bytes that follow");
  GgufBytes tensors(UINT64_MAX, 0);
  EXPECT_EQ(errorOf(tensors), "m.gguf: n_tensors 18446744073709551615 cannot fit in the 0 bytes that follow");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).string("").u32(u8)), "m.gguf: n_kv 1 cannot fit in the 12 bytes that follow");
}

TEST(Gguf, CountsAboveTheLimits) {
  auto withRoom = [](uint64_t tensors, uint64_t keys) {
    GgufBytes gguf(tensors, keys);
    return parseGguf(asBytes(gguf.bytes), uint64_t{1} << 40, "m.gguf").status().message();
  };
  EXPECT_EQ(withRoom(limits::tensorsPerFile + 1, 0), "m.gguf: 262145 tensors, limit 262144");
  EXPECT_EQ(withRoom(0, limits::ggufKeys + 1), "m.gguf: 65537 keys, limit 65536");
  GgufBytes atLimit(0, limits::ggufKeys), oneAbove(0, limits::ggufKeys + 1);
  for (uint64_t i = 0; i <= limits::ggufKeys; ++i) {
    if (i < limits::ggufKeys)
      atLimit.key(std::to_string(i), u8).u8(0);
    oneAbove.key(std::to_string(i), u8).u8(0);
  }
  EXPECT_EQ(errorOf(atLimit), "");
  EXPECT_EQ(errorOf(oneAbove), "m.gguf: 65537 keys, limit 65536");
}

TEST(Gguf, Strings) {
  EXPECT_EQ(errorOf(GgufBytes(0, 1).u64(UINT64_MAX).u64(0)),
            "m.gguf: length of key 0 18446744073709551615 cannot fit in the 8 bytes that follow");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", string).u64(UINT64_MAX).u64(0)),
            "m.gguf: length of 'a' 18446744073709551615 cannot fit in the 8 bytes that follow");
  auto ofLength = [](uint64_t n) { return errorOf(GgufBytes(0, 1).key("a", string).u64(n).raw(std::string(n, 'x'))); };
  EXPECT_EQ(ofLength(limits::ggufStringBytes), "");
  EXPECT_EQ(ofLength(limits::ggufStringBytes + 1), "m.gguf: 'a' has 67108865 bytes, limit 67108864");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a\xFF", u8).u8(0)), "m.gguf: key 0 at byte 24 is 'a\\xff', expected UTF-8");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key({"a\0b", 3}, u8).u8(0)),
            "m.gguf: key 0 at byte 24 is 'a\\x00b', expected UTF-8");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key(std::string(65536, 'k'), u8).u8(0)),
            "m.gguf: key 0 at byte 24 has 65536 bytes, limit 65535");
}

TEST(Gguf, Arrays) {
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", array).u32(i32).u64(uint64_t{1} << 62).u64(0)),
            "m.gguf: length of 'a' 4611686018427387904 cannot fit in the 8 bytes that follow");
  auto nested = [](int arrays) { // the innermost is empty
    GgufBytes gguf(0, 1);
    gguf.key("a", array);
    for (int i = 1; i < arrays; ++i)
      gguf.u32(array).u64(1);
    gguf.u32(u8).u64(0);
    return errorOf(gguf);
  };
  EXPECT_EQ(nested(limits::ggufArrayNesting), "");
  EXPECT_EQ(nested(limits::ggufArrayNesting + 1), "m.gguf: arrays of 'a' nest deeper than 4");
  EXPECT_EQ(nested(100'000), "m.gguf: arrays of 'a' nest deeper than 4");
}

TEST(Gguf, ValueTypes) {
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", 255).u8(0)), "m.gguf: 'a' has value type 255, expected 0 to 12");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", 13).u8(0)), "m.gguf: 'a' has value type 13, expected 0 to 12");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", array).u32(255).u64(0)),
            "m.gguf: 'a' has value type 255, expected 0 to 12");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("a", boolean).u8(2)), "m.gguf: 'a' holds 2, expected a bool of 0 or 1");
  EXPECT_EQ(errorOf(GgufBytes(0, 2).keyU32("a", 1).keyU32("a", 2)), "m.gguf: key 'a' appears twice");
}

TEST(Gguf, Alignment) {
  auto aligned = [](uint32_t alignment, uint64_t offset) {
    return errorOf(GgufBytes(1, 1)
                       .keyU32("general.alignment", alignment)
                       .tensor("t", {4}, ggmlF32, offset)
                       .data(offset + 16, alignment ? alignment : 1));
  };
  EXPECT_EQ(aligned(0, 0), "m.gguf: key 'general.alignment' is 0, expected 1 to 2147483648");
  EXPECT_EQ(aligned(3, 0), "m.gguf: 'general.alignment' is 3, expected a power of two");
  EXPECT_EQ(aligned(1, 1), "") << "group 10: odd addresses are fine";
  EXPECT_EQ(aligned(64, 64), "");
  EXPECT_EQ(aligned(64, 32), "m.gguf: tensor 't' is at offset 32, no multiple of the alignment 64");
  EXPECT_EQ(errorOf(GgufBytes(0, 1).key("general.alignment", string).string("32")),
            "m.gguf: key 'general.alignment' is of type string, expected an integer");
}

TEST(Gguf, Tensors) {
  auto with = [](const std::vector<uint64_t> &dimensions, uint32_t type) {
    return errorOf(GgufBytes(1, 0).tensor("t", dimensions, type, 0).data(4096));
  };
  EXPECT_EQ(with({256, 2}, ggmlQ4_K), "");
  EXPECT_EQ(with({}, ggmlF32), "");
  EXPECT_EQ(with({1, 1, 1, 1, 1, 1, 1, 1}, ggmlF32), "");
  EXPECT_EQ(with({1, 1, 1, 1, 1, 1, 1, 1, 1}, ggmlF32), "m.gguf: tensor 't' has 9 dimensions, limit 8");
  EXPECT_EQ(with({100, 256}, ggmlQ4_K), "m.gguf: tensor 't': rows of 100 values do not divide into Q4_K blocks of 256");
  EXPECT_EQ(with({UINT64_MAX}, ggmlF32),
            "m.gguf: tensor 't' has dimension 18446744073709551615, limit 9223372036854775807");
  EXPECT_EQ(with({2, 4294967296, 4294967296}, ggmlF32),
            "m.gguf: tensor 't': shape [4294967296, 4294967296, 2] overflows 64 bits");
  EXPECT_EQ(with({uint64_t{1} << 62, uint64_t{1} << 62, 0}, ggmlF32),
            "m.gguf: tensor 't': shape [0, 4611686018427387904, 4611686018427387904] overflows 64 bits");
  EXPECT_EQ(with({1}, 255), "m.gguf: tensor 't' has the unknown type 255");
  EXPECT_EQ(with({1025}, ggmlF32),
            "m.gguf: tensor 't' of 4100 bytes at data offset 0 ends behind the file of 4160 bytes; the download is "
            "incomplete");
  EXPECT_NE(errorOf(GgufBytes(1, 0).tensor("t", {1}, ggmlF32, UINT64_MAX - 31).data(64)), "");
}

TEST(Gguf, TensorsThatRepeatOrOverlap) {
  EXPECT_EQ(errorOf(GgufBytes(2, 0).tensor("t", {8}, ggmlF32, 0).tensor("t", {8}, ggmlF32, 32).data(64)),
            "m.gguf: tensor 't' appears twice");
  EXPECT_EQ(errorOf(GgufBytes(2, 0).tensor("b", {9}, ggmlF32, 0).tensor("a", {8}, ggmlF32, 32).data(64)),
            "m.gguf: tensors 'b' and 'a' overlap at byte 128"); // 24 + 2 * 33 = 90; the data begin at 96
}

// Every prefix of a good file is an error, in words.
TEST(Gguf, CutAnywhere) {
  GgufBytes gguf = everyType();
  gguf.bytes[8] = 1;
  gguf.tensor("t", {4}, ggmlF32, 0).data(16);
  ASSERT_EQ(errorOf(gguf), "");
  for (size_t n = 0; n < gguf.bytes.size(); ++n)
    EXPECT_NE(errorOfBytes(gguf.bytes.substr(0, n)), "") << n;
}

TEST(Gguf, HeadsLargerThanTheFirstReading) {
  test::TemporaryFolder folder;
  GgufBytes gguf(1, 2);
  gguf.key("big", string).string(std::string(3 << 20, 'x')).keyU32("small", 5);
  gguf.tensor("t", {4}, ggmlF32, 0).data(16);
  StatusOr<GgufHeader> header = readGgufHeader(folder.write("m.gguf", gguf.bytes));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(*header->metadata.integer("small", 0, 9), 5);
  EXPECT_EQ(header->metadata.string("big")->size(), 3u << 20);
  StatusOr<GgufHeader> cut = parseGguf(asBytes(gguf.bytes).first(100), gguf.bytes.size(), "m.gguf");
  EXPECT_EQ(cut.status().message(), "m.gguf: its head goes beyond the first 100 bytes");
}
