// The one table of limits on what comes from outside. Each has a test at the limit, one above and far beyond.
#pragma once
#include <cstdint>

namespace llmc::limits {
inline constexpr int jsonDepth = 64;
inline constexpr uint64_t jsonValues = 1u << 23;
inline constexpr uint64_t safetensorsHeaderBytes = 100'000'000;
inline constexpr uint64_t tensorsPerFile = 1u << 18;
inline constexpr uint64_t tensorsPerModel = 1u << 21;
inline constexpr int tensorRank = 8;
inline constexpr uint64_t configBytes = 16u << 20;
inline constexpr uint64_t weightIndexBytes = 256u << 20;
inline constexpr uint64_t tokenizerBytes = 64u << 20;
inline constexpr uint64_t layers = 4096;
inline constexpr uint64_t heads = 65536;
inline constexpr uint64_t experts = 65536;
inline constexpr uint64_t ggufKeys = 1u << 16;
inline constexpr uint64_t ggufStringBytes = 64u << 20;
inline constexpr int ggufArrayNesting = 4;
inline constexpr uint64_t ggufHeaderBytes = 1u << 30;
inline constexpr uint64_t templateSourceBytes = 256u << 10;
inline constexpr uint64_t templateOutputBytes = 4u << 20;
inline constexpr uint64_t templateSteps = 1'000'000;
inline constexpr int templateRecursion = 64;
inline constexpr uint32_t regexMatchLimit = 1'000'000;
inline constexpr uint32_t regexDepthLimit = 1'000;
inline constexpr int stopStrings = 16;
inline constexpr int stopStringBytes = 256;
inline constexpr uint64_t manifestBytes = 512u << 20; // names and places of two million weights
inline constexpr uint64_t artifactListEntries = 1u << 16;
inline constexpr int64_t artifactContext = 1 << 26;
inline constexpr int64_t artifactStepTokens = 1 << 20;
inline constexpr int64_t artifactSequences = 1 << 16;
inline constexpr int64_t artifactWorkers = 1024;
inline constexpr int64_t artifactRanks = 4096; // that share an artifact
inline constexpr int64_t artifactExchanges = 1 << 20; // of a step
inline constexpr int64_t artifactRowBlocks = 16;
inline constexpr int64_t waitingSequences = 4096;
inline constexpr uint64_t idsFileBytes = 256u << 20; // files of prompts and of token ids
inline constexpr double perplexity = 1e12;
inline constexpr double temperature = 100;
inline constexpr double repetitionPenaltyMin = 0.01;
inline constexpr double repetitionPenaltyMax = 100;
} // namespace llmc::limits
