// Sums are shared out: each rank adds one slice of the elements for all of its group and hands it round.
#include "runtime/collective/Collectives.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace llmc {
namespace {

// The one place where numbers of different ranks are added: part by part in ascending order of ranks.
void addInOrder(std::span<float *const> parts, int64_t count, float *sum) {
  for (int64_t i = 0; i < count; ++i) {
    float total = parts[0][i];
    for (size_t part = 1; part < parts.size(); ++part)
      total += parts[part][i];
    sum[i] = total;
  }
}

// Range of rank `rank` in segment `segment`: what lies behind the struct.
struct Range {
  int64_t begin, end;
};
Range rangeOf(const llmc_collective &what, int64_t segment, int64_t rank) {
  Range range;
  std::memcpy(&range, reinterpret_cast<const int64_t *>(&what + 1) + 2 * (segment * what.ranks + rank), sizeof range);
  return range;
}

int64_t columnsOf(const llmc_collective &what, int64_t rank) {
  int64_t columns = 0;
  for (int64_t segment = 0; segment < what.num_segments; ++segment) {
    Range range = rangeOf(what, segment, rank);
    columns += range.end - range.begin;
  }
  return columns;
}

} // namespace

const char *collectiveName(int64_t kind) {
  switch (kind) {
  case LLMC_ALL_REDUCE:
    return "all_reduce";
  case LLMC_ALL_GATHER:
    return "all_gather";
  case LLMC_SEND:
    return "send";
  case LLMC_RECEIVE:
    return "receive";
  }
  return "unknown";
}

CheckedSize collectiveScratchFloats(const llmc_collective &what, int64_t rows) {
  auto elements = [&](int64_t columns) {
    return CheckedSize(static_cast<uint64_t>(rows)) * static_cast<uint64_t>(columns);
  };
  CheckedSize ranks(static_cast<uint64_t>(what.ranks));
  switch (what.kind) {
  case LLMC_ALL_REDUCE: // all elements, and a slice of them from every other rank
    return elements(what.input_columns) * 2 + ranks;
  case LLMC_ALL_GATHER: {
    CheckedSize sum = 0;
    for (int64_t rank = 0; rank < what.ranks; ++rank)
      sum = sum + elements(columnsOf(what, rank));
    return sum;
  }
  default:
    return elements(std::max(what.input_columns, what.result_columns));
  }
}

Collectives::Collectives(Transport &transport) : transport_(transport) {
  auto ranks = static_cast<size_t>(transport.grid().ranks);
  outgoing_.reserve(ranks);
  incoming_.reserve(ranks);
  parts_.resize(ranks);
}

Status Collectives::run(const llmc_collective &what, int64_t rows, const float *input, float *result,
                        std::span<float> scratch) {
  if (rows == 0) // on every rank: all run the same batch
    return {};
  Status status = check(what, rows, scratch);
  if (status.ok())
    status = runChecked(what, rows, {input, what.input_columns, what.input_stride},
                        {result, what.result_columns, what.result_stride}, scratch.data());
  if (!status.ok())
    transport_.fail(status.message());
  return status;
}

Status Collectives::check(const llmc_collective &what, int64_t rows, std::span<float> scratch) const {
  const RankGrid grid = transport_.grid();
  if (what.ranks != grid.ranks)
    return Status::error("the program is for groups of " + std::to_string(what.ranks) + " ranks, there are " +
                         std::to_string(grid.ranks));
  bool namesStage = what.kind == LLMC_SEND || what.kind == LLMC_RECEIVE;
  if (namesStage && (what.stage < 0 || what.stage >= grid.stages || what.stage == transport_.stage()))
    return Status::error("stage " + std::to_string(transport_.stage()) + " exchanges rows with stage " +
                         std::to_string(what.stage) + ", but there are " + std::to_string(grid.stages));
  if (what.kind == LLMC_ALL_GATHER && columnsOf(what, transport_.rank()) != what.input_columns)
    return Status::error("a rank gathers rows of " + std::to_string(what.input_columns) +
                         " elements, its ranges hold " + std::to_string(columnsOf(what, transport_.rank())));
  if (!collectiveScratchFloats(what, rows).fits(scratch.size()))
    return Status::error("an exchange of " + std::to_string(rows) + " rows does not fit the " +
                         std::to_string(scratch.size()) + " floats that are planned for it");
  return {};
}

Status Collectives::runChecked(const llmc_collective &what, int64_t rows, ConstRows input, Rows result,
                               float *scratch) {
  const auto other = static_cast<int32_t>(what.stage * what.ranks + transport_.rank());
  switch (what.kind) {
  case LLMC_ALL_REDUCE:
    return allReduce(what, rows, input, result, scratch);
  case LLMC_ALL_GATHER:
    return allGather(what, rows, input, result, scratch);
  case LLMC_SEND:
    pack(input, rows, scratch);
    send(other, scratch, rows * input.columns);
    return exchange(what, rows, 0);
  case LLMC_RECEIVE:
    take(other, scratch, rows * result.columns);
    LLMC_RETURN_IF_ERROR(exchange(what, rows, 0));
    unpack(scratch, rows, result);
    return {};
  }
  return Status::error("the program asks for collective " + std::to_string(what.kind) + ", which nobody knows");
}

Status Collectives::allReduce(const llmc_collective &what, int64_t rows, ConstRows input, Rows result, float *scratch) {
  const int32_t ranks = transport_.grid().ranks, own = transport_.rank(), first = transport_.stage() * ranks;
  const int64_t count = rows * input.columns;
  auto begin = [&](int64_t rank) { return count * rank / ranks; };
  auto size = [&](int64_t rank) { return begin(rank + 1) - begin(rank); };
  float *packed = scratch, *received = scratch + count;
  pack(input, rows, packed);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (rank == own) {
      parts_[static_cast<size_t>(rank)] = packed + begin(own);
      continue;
    }
    send(first + rank, packed + begin(rank), size(rank));
    take(first + rank, received, size(own));
    parts_[static_cast<size_t>(rank)] = received;
    received += size(own);
  }
  LLMC_RETURN_IF_ERROR(exchange(what, rows, 0));
  addInOrder(parts_, size(own), packed + begin(own));
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (rank != own) {
      send(first + rank, packed + begin(own), size(own));
      take(first + rank, packed + begin(rank), size(rank));
    }
  LLMC_RETURN_IF_ERROR(exchange(what, rows, 1));
  unpack(packed, rows, result);
  return {};
}

Status Collectives::allGather(const llmc_collective &what, int64_t rows, ConstRows input, Rows result, float *scratch) {
  const int32_t ranks = transport_.grid().ranks, own = transport_.rank(), first = transport_.stage() * ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    parts_[static_cast<size_t>(rank)] = scratch;
    scratch += rows * columnsOf(what, rank);
  }
  float *packed = parts_[static_cast<size_t>(own)];
  pack(input, rows, packed);
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (rank != own) {
      send(first + rank, packed, rows * input.columns);
      take(first + rank, parts_[static_cast<size_t>(rank)], rows * columnsOf(what, rank));
    }
  LLMC_RETURN_IF_ERROR(exchange(what, rows, 0));
  // From the highest rank down: what several hold is the lowest one's in the end.
  for (int32_t rank = ranks; rank-- > 0;) {
    const float *part = parts_[static_cast<size_t>(rank)];
    const int64_t columns = columnsOf(what, rank);
    for (int64_t segment = 0, at = 0; segment < what.num_segments; ++segment) {
      Range range = rangeOf(what, segment, rank);
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(part + row * columns + at, range.end - range.begin,
                    result.data + row * result.stride + range.begin);
      at += range.end - range.begin;
    }
  }
  return {};
}

void Collectives::pack(ConstRows from, int64_t rows, float *to) {
  if (from.columns > 0)
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from.data + row * from.stride, from.columns, to + row * from.columns);
}

void Collectives::unpack(const float *from, int64_t rows, Rows to) {
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(from + row * to.columns, to.columns, to.data + row * to.stride);
}

// Nobody sends or waits for nothing.
void Collectives::send(int32_t rank, const float *data, int64_t count) {
  if (count > 0)
    outgoing_.push_back({rank, {reinterpret_cast<const uint8_t *>(data), static_cast<size_t>(count) * sizeof(float)}});
}

void Collectives::take(int32_t rank, float *data, int64_t count) {
  if (count > 0)
    incoming_.push_back({rank, {reinterpret_cast<uint8_t *>(data), static_cast<size_t>(count) * sizeof(float)}});
}

Status Collectives::exchange(const llmc_collective &what, int64_t rows, int part) {
  const int64_t kind = what.kind == LLMC_RECEIVE ? int64_t(LLMC_SEND) : what.kind;
  const int64_t columns = kind == LLMC_SEND ? std::max(what.input_columns, what.result_columns) : what.result_columns;
  Status status = transport_.exchange(static_cast<int32_t>((rows * columns * 6 + kind * 2 + part) % maxLabel),
                                      outgoing_, incoming_);
  outgoing_.clear();
  incoming_.clear();
  return status;
}

Status checkSameIdentity(Transport &transport, std::string_view identity) {
  using Text = std::array<char, 64>;
  std::vector<Text> texts(static_cast<size_t>(transport.grid().size()), Text{});
  auto bytes = [&](int32_t number) {
    Text &text = texts[static_cast<size_t>(number)];
    return std::span<uint8_t>(reinterpret_cast<uint8_t *>(text.data()), text.size());
  };
  identity.copy(texts[static_cast<size_t>(transport.number())].data(), Text().size() - 1);
  std::vector<OutgoingMessage> sent;
  std::vector<IncomingMessage> taken;
  for (int32_t number = 0; number < transport.grid().size(); ++number)
    if (number != transport.number()) {
      sent.push_back({number, bytes(transport.number())});
      taken.push_back({number, bytes(number)});
    }
  LLMC_RETURN_IF_ERROR(transport.exchange(maxLabel, sent, taken));
  for (size_t number = 1; number < texts.size(); ++number)
    if (texts[number] != texts[0]) {
      texts[number].back() = '\0';
      texts[0].back() = '\0';
      return Status::error("rank " + std::to_string(number) + " runs artifact " + texts[number].data() +
                           ", rank 0 artifact " + texts[0].data() + "; give every rank the same one");
    }
  return {};
}

} // namespace llmc
