// All ops of the llm dialect, by what they are about.
#ifndef LLMC_DIALECTS_LLM_DIALECT_OPS_TD
#define LLMC_DIALECTS_LLM_DIALECT_OPS_TD
include "dialects/llm/LlmAttentionOps.td"
include "dialects/llm/LlmCollectiveOps.td"
include "dialects/llm/LlmExpertOps.td"
include "dialects/llm/LlmRecurrentOps.td"

#endif // LLMC_DIALECTS_LLM_DIALECT_OPS_TD
