#include "lib/importer/files/Safetensors.h"
#include "runtime/support/Limits.h"
#include "test/lib/importer/files/WeightFileBytes.h"
#include "test/runtime/support/TemporaryFolder.h"

using namespace llmc;
using test::asBytes;
using test::littleEndian;
using test::safetensorsBytes;

namespace {

std::string errorOfBytes(const std::string &bytes) {
  StatusOr<SafetensorsHeader> header = parseSafetensorsHeader(asBytes(bytes), bytes.size(), "w.safetensors");
  return header.ok() ? "" : header.status().message();
}

std::string errorOf(const std::string &headerText, uint64_t dataBytes = 0) {
  return errorOfBytes(safetensorsBytes(headerText, dataBytes));
}

// One entry: `"name":{...}`.
std::string entry(const std::string &name, const std::string &dtype, const std::string &shape,
                  const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

} // namespace

TEST(Safetensors, ReadsTensorsByOffset) {
  std::string bytes =
      safetensorsBytes("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "BF16", "[2,3]", "[4,16]") + "," +
                           entry("a", "F32", "[]", "[0,4]") + "," + entry("empty", "F32", "[0,5]", "[16,16]") + "}   ",
                       16);
  StatusOr<SafetensorsHeader> header = parseSafetensorsHeader(asBytes(bytes), bytes.size(), "w");
  ASSERT_TRUE(header.ok()) << header.status().message();
  ASSERT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].offset, bytes.size() - 16);
  EXPECT_TRUE(header->tensors[0].shape.empty());
  EXPECT_EQ(header->tensors[1].name, "b");
  EXPECT_EQ(header->tensors[1].type, TensorType::BF16);
  EXPECT_EQ(header->tensors[1].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].bytes, 12u);
  EXPECT_EQ(header->metadata.at(0).second, "pt");
}

TEST(Safetensors, WrittenHeadsAreRead) {
  const std::vector<SafetensorsTensor> tensors = {{"b", TensorType::F32, {}, 0, 4},
                                                  {"a", TensorType::BF16, {2, 3}, 0, 12}};
  std::string bytes = safetensorsHead(tensors, {{"format", "pt"}}) + std::string(16, '\0');
  StatusOr<SafetensorsHeader> header = parseSafetensorsHeader(asBytes(bytes), bytes.size(), "w");
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->dataOffset % 8, 0u);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[1].name, "a");
  EXPECT_EQ(header->tensors[1].offset, header->dataOffset + 4);
  EXPECT_EQ(header->tensors[1].shape, tensors[1].shape);
  EXPECT_EQ(header->metadata.at(0).first, "format");
}

TEST(Safetensors, NoTensorsAtAll) { EXPECT_EQ(errorOf("{}"), ""); }

// Group 1.
TEST(Safetensors, ShorterThanTheLength) {
  for (size_t n = 0; n < 8; ++n)
    EXPECT_EQ(errorOfBytes(std::string(n, 'x')), "w.safetensors: file has " + std::to_string(n) +
                                                     " bytes, but the header length alone takes 8; download it again");
}

// Group 2.
TEST(Safetensors, HeaderLength) {
  std::string rest(100, ' ');
  EXPECT_EQ(errorOfBytes(littleEndian(uint64_t{1} << 63) + rest),
            "w.safetensors: header length 9223372036854775808 exceeds the limit 100000000");
  EXPECT_EQ(errorOfBytes(littleEndian(UINT64_MAX) + rest),
            "w.safetensors: header length 18446744073709551615 exceeds the limit 100000000");
  EXPECT_EQ(errorOfBytes(littleEndian(limits::safetensorsHeaderBytes + 1) + rest),
            "w.safetensors: header length 100000001 exceeds the limit 100000000");
  EXPECT_EQ(errorOfBytes(littleEndian(limits::safetensorsHeaderBytes) + rest),
            "w.safetensors: header ends at byte 100000008, the file at 108; the download is incomplete");
  EXPECT_EQ(errorOfBytes(littleEndian(uint64_t{101}) + rest),
            "w.safetensors: header ends at byte 109, the file at 108; the download is incomplete");
  EXPECT_EQ(errorOfBytes(littleEndian(uint64_t{0})),
            "w.safetensors: header length is 0, but '{}' is the shortest header");
}

TEST(Safetensors, HeaderThatWasNotReadWhole) {
  std::string bytes = safetensorsBytes("{}        ", 0);
  EXPECT_EQ(parseSafetensorsHeader(asBytes(bytes).first(10), bytes.size(), "w").status().message(),
            "w: header ends at byte 18, but only 10 bytes were read");
}

// Group 3.
TEST(Safetensors, HeaderText) {
  EXPECT_EQ(errorOf("\xEF\xBB\xBF{}"),
            "w.safetensors: header must start with '{' at byte 8, found 0xEF (byte order mark)");
  EXPECT_EQ(errorOf(" {}"), "w.safetensors: header must start with '{' at byte 8, found 0x20");
  EXPECT_EQ(errorOf("[]"), "w.safetensors: header must start with '{' at byte 8, found 0x5B");
  EXPECT_NE(errorOf("{\"\xFF\":1}").find("not valid UTF-8 at byte 2"), std::string::npos);
  EXPECT_NE(errorOf("{}PK\x03\x04").find("not valid JSON"), std::string::npos);
  EXPECT_NE(errorOf("{}%PDF-1.7").find("not valid JSON"), std::string::npos);
  EXPECT_NE(errorOf(std::string("{}\0\0", 4)).find("NUL byte"), std::string::npos);
}

// Group 4.
TEST(Safetensors, DataOffsets) {
  auto of = [](const std::string &offsets) { return errorOf("{" + entry("a", "U8", "[4]", offsets) + "}", 4); };
  EXPECT_EQ(of("[0,4]"), "");
  EXPECT_EQ(of("[4,0]"), "w.safetensors: tensor 'a': data_offsets [4, 0] are reversed");
  EXPECT_EQ(of("[-1,3]"), "w.safetensors: tensor 'a': data_offsets/0 is -1, expected an integer from 0 to "
                          "9007199254740992");
  EXPECT_EQ(of("[0,4.5]"), "w.safetensors: tensor 'a': data_offsets/1 is 4.5, expected an integer from 0 to "
                           "9007199254740992");
  EXPECT_EQ(of("[0,9007199254740993]"), "w.safetensors: tensor 'a': data_offsets/1 is 9007199254740993, expected an "
                                        "integer from 0 to 9007199254740992");
  EXPECT_NE(of("[0,1e99]"), "");
  EXPECT_EQ(of("[0]"), "w.safetensors: tensor 'a' has data_offsets [0], expected [begin, end]");
  EXPECT_EQ(of("4"), "w.safetensors: tensor 'a' has data_offsets 4, expected [begin, end]");
  EXPECT_EQ(
      errorOf("{" + entry("b", "U8", "[4096]", "[2048,6144]") + "," + entry("a", "U8", "[4096]", "[0,4096]") + "}",
              6144),
      "w.safetensors: tensors 'a' [0, 4096) and 'b' [2048, 6144) overlap");
  EXPECT_EQ(errorOf("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[0,4]") + "}", 4),
            "w.safetensors: tensors 'a' [0, 4) and 'b' [0, 4) overlap");
}

// Group 5.
TEST(Safetensors, HolesAndEnds) {
  EXPECT_EQ(
      errorOf("{" + entry("a", "U8", "[4096]", "[0,4096]") + "," + entry("b", "U8", "[4]", "[8192,8196]") + "}", 8196),
      "w.safetensors: bytes 4096 to 8191 belong to no tensor");
  EXPECT_EQ(errorOf("{" + entry("a", "U8", "[4]", "[1,5]") + "}", 5),
            "w.safetensors: bytes 0 to 0 belong to no tensor");
  std::string header = "{" + entry("a", "U8", "[4]", "[0,4]") + "}";
  uint64_t end = 8 + header.size() + 4;
  EXPECT_EQ(errorOf(header, 5),
            "w.safetensors: data ends at " + std::to_string(end) + ", the file at " + std::to_string(end + 1));
  EXPECT_EQ(errorOf(header, 3), "w.safetensors: data ends at " + std::to_string(end) + ", the file at " +
                                    std::to_string(end - 1) + "; the download is incomplete");
  EXPECT_NE(errorOf("{}", 1), "");
}

// Groups 6 and 7.
TEST(Safetensors, ShapesAndTypes) {
  auto of = [](const std::string &dtype, const std::string &shape) {
    return errorOf("{" + entry("a", dtype, shape, "[0,16]") + "}", 16);
  };
  EXPECT_EQ(of("U8", "[4294967296,4294967296,2]"),
            "w.safetensors: tensor 'a': shape [4294967296, 4294967296, 2] overflows 64 bits");
  EXPECT_EQ(of("U8", "[0,9223372036854775808,9223372036854775808]"),
            "w.safetensors: tensor 'a': shape [0, 9223372036854775808, 9223372036854775808] overflows 64 bits");
  EXPECT_EQ(of("F32", "[4611686018427387905]"),
            "w.safetensors: tensor 'a': shape [4611686018427387905] of F32 overflows 64 bits");
  EXPECT_NE(of("U8", "[18446744073709551616]").find("expected an integer"), std::string::npos);
  EXPECT_EQ(of("BF16", "[2,3]"),
            "w.safetensors: tensor 'a': shape [2, 3] of BF16 takes 12 bytes, data_offsets give 16");
  EXPECT_EQ(of("I128", "[1]").substr(0, 64), "w.safetensors: tensor 'a': unknown dtype 'I128' (known = BF16, B");
  EXPECT_NE(of("F4", "[3]").find("no whole number of bytes"), std::string::npos);
  EXPECT_NE(of("U8", "[-16]"), "");
  EXPECT_NE(of("U8", "[16.0]"), "");
  EXPECT_NE(of("U8", "\"16\""), "");
  EXPECT_EQ(of("U8", "[1,1,1,1,1,1,1,16]"), "");
  EXPECT_EQ(of("U8", "[1,1,1,1,1,1,1,1,16]"), "w.safetensors: tensor 'a' has 9 dimensions, limit 8");
}

TEST(Safetensors, EntriesOfAnotherForm) {
  EXPECT_EQ(errorOf("{\"a\":[]}"), "w.safetensors: tensor 'a' is [], expected an object");
  EXPECT_EQ(errorOf("{\"a\":{}}"), "w.safetensors: tensor 'a' has no dtype");
  EXPECT_EQ(errorOf("{\"a\":{\"dtype\":7}}"), "w.safetensors: tensor 'a': dtype is 7, expected a string");
  EXPECT_EQ(errorOf("{\"a\":{\"dtype\":\"U8\"}}"), "w.safetensors: tensor 'a' has no shape, expected an array");
  EXPECT_EQ(errorOf("{\"a\":{\"strides\":[1]}}"),
            "w.safetensors: tensor 'a' has the key 'strides', expected dtype, shape and data_offsets only");
  EXPECT_EQ(errorOf("{\"__metadata__\":[]}"), "w.safetensors: /__metadata__ is [], expected an object");
  EXPECT_EQ(errorOf("{\"__metadata__\":{\"a\":1}}"), "w.safetensors: /__metadata__/a is 1, expected a string");
}

// Group 8.
TEST(Safetensors, RepeatedName) {
  EXPECT_EQ(errorOf("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("a", "U8", "[4]", "[0,4]") + "}", 4),
            "w.safetensors: tensor 'a' appears twice in the header");
}

// Group 9.
TEST(Safetensors, TensorCountAtTheLimitOneAboveAndFarBeyond) {
  auto empties = [](uint64_t n) {
    std::string text = "{";
    for (uint64_t i = 0; i < n; ++i)
      text += (i ? "," : "") + entry(std::to_string(i), "U8", "[0]", "[0,0]");
    return text + "}";
  };
  EXPECT_EQ(errorOf(empties(limits::tensorsPerFile)), "");
  EXPECT_EQ(errorOf(empties(limits::tensorsPerFile + 1)), "w.safetensors: 262145 tensors, limit 262144");
  EXPECT_EQ(errorOf(empties(1'000'000)), "w.safetensors: 1000000 tensors, limit 262144");
}

TEST(Safetensors, DeepNesting) {
  EXPECT_NE(errorOf("{\"a\":" + std::string(100'000, '[')).find("nested deeper than 64 at line 1, column 69"),
            std::string::npos)
      << errorOf("{\"a\":" + std::string(100'000, '['));
}

// Groups 12 and 13.
TEST(Safetensors, FilesOfOtherKinds) {
  EXPECT_EQ(errorOfBytes("version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea423c2713d436b5ee50593a9640e0"
                         "018c1550b5a0002f74190d6caea8\nsize 4096\n"),
            "w.safetensors: this is a Git LFS pointer, not the weights; run git lfs pull");
  EXPECT_EQ(errorOfBytes(std::string("PK\x03\x04\0\0\0\0\0\0\0\0 archive/data.pkl", 28)),
            "w.safetensors: this is a PyTorch archive (PK 03 04), which can run code; convert it to safetensors");
  EXPECT_EQ(errorOfBytes("\x80\x02\x8a\x0al\xfc\x9c" + std::string(100, 'F')),
            "w.safetensors: this is a Python pickle (80 02), which can run code; convert it to safetensors");
  EXPECT_EQ(errorOfBytes("GGUF" + std::string(100, '\0')), "w.safetensors: this is a GGUF file; rename it to .gguf");
  EXPECT_EQ(errorOfBytes("<!DOCTYPE html><html><title>404</title>"),
            "w.safetensors: this is a web page, not the weights; download it again");
}

// A header of 640 + 2^k bytes begins with the bytes of a pickle.
TEST(Safetensors, LengthThatLooksLikeAPickle) {
  std::string header = "{}";
  header.resize(0x0280, ' ');
  EXPECT_EQ(errorOf(header), "");
}

TEST(Safetensors, ReadsTheHeaderOfAFileAlone) {
  test::TemporaryFolder folder;
  std::string bytes = safetensorsBytes("{" + entry("a", "U8", "[1048576]", "[0,1048576]") + "}", 1 << 20);
  std::string path = folder.write("w.safetensors", bytes);
  StatusOr<SafetensorsHeader> header = readSafetensorsHeader(path);
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->tensors[0].bytes, 1u << 20);
  std::filesystem::resize_file(path, bytes.size() - 1);
  EXPECT_NE(readSafetensorsHeader(path).status().message().find("the download is incomplete"), std::string::npos);
  EXPECT_EQ(readSafetensorsHeader(folder / "absent").status().message(),
            folder / "absent" + ": cannot open: No such file or directory");
}
