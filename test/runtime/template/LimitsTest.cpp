// Hostile templates: every limit at its value, one above, and far beyond.
#include "runtime/template/Template.h"
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string repeat(const std::string &text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i)
    out += text;
  return out;
}

std::string render(const std::string &source, const RenderOptions &options = {}) {
  StatusOr<Template> parsed = Template::parse(source, "chat_template");
  if (!parsed.ok())
    return parsed.status().message();
  StatusOr<std::string> text = parsed->render(Json::object(), options);
  return text.ok() ? *text : text.status().message();
}

TEST(TemplateLimitsTest, SourceBytes) {
  std::string fits(limits::templateSourceBytes, 'a');
  EXPECT_EQ(render(fits), fits);
  EXPECT_EQ(render(fits + "a"), "chat_template: source of 262145 bytes exceeds the limit 262144");
  EXPECT_EQ(render(fits + fits), "chat_template: source of 524288 bytes exceeds the limit 262144");
}

TEST(TemplateLimitsTest, Steps) {
  // Each text is one step.
  RenderOptions options;
  options.limits.steps = 3;
  EXPECT_EQ(render("a{# #}b{# #}c", options), "abc");
  EXPECT_EQ(render("a{# #}b{# #}c\n{# #}d", options), "chat_template line 2: stopped after 3 steps");
  std::string endless = "{% for a in range(100000) %}\n{% for b in range(100000) %}\n{% set c = a %}{% endfor %}"
                        "{% endfor %}";
  EXPECT_EQ(render(endless), "chat_template line 3: stopped after 1000000 steps");
  EXPECT_EQ(render("{{ range(10**9) | length }}"),
            "chat_template line 1: range of 1000000000 exceeds the limit 100000");
}

TEST(TemplateLimitsTest, OutputBytes) {
  RenderOptions options;
  options.limits.outputBytes = 10;
  EXPECT_EQ(render("{{ 'a' * 10 }}", options), "aaaaaaaaaa");
  EXPECT_EQ(render("{{ 'a' * 10 }}b", options), "chat_template line 1: output exceeds the limit of 10 bytes");
  EXPECT_EQ(render("{{ 'a' * 11 }}", options), "chat_template line 1: text of 11 bytes exceeds the limit 10");
  EXPECT_EQ(render("{% for i in range(1000) %}\n{{ 'x' * 100000 }}\n{% endfor %}"),
            "chat_template line 2: output exceeds the limit of 4194304 bytes");
  EXPECT_EQ(render("{{ 'ab' * 10**30 }}"), "chat_template line 1: text of 4294967296 bytes exceeds the limit 4194304");
  EXPECT_EQ(render("{{ '%99999999d' % 1 }}"), "chat_template line 1: text of 99999998 bytes exceeds the limit 4194304");
  EXPECT_EQ(render("{{ '{:>99999999}'.format('') }}"),
            "chat_template line 1: text of 99999999 bytes exceeds the limit 4194304");
}

TEST(TemplateLimitsTest, Recursion) {
  auto recurse = [](int n) {
    return "{% macro r(n) %}{% if n > 1 %}{{ r(n - 1) }}{% else %}end{% endif %}{% endmacro %}{{ r(" +
           std::to_string(n) + ") }}";
  };
  EXPECT_EQ(render(recurse(limits::templateRecursion)), "end");
  EXPECT_EQ(render(recurse(limits::templateRecursion + 1)), "chat_template line 1: macro calls nest deeper than 64");
  EXPECT_EQ(render("{% macro r() %}{{ r() }}{% endmacro %}{{ r() }}"),
            "chat_template line 1: macro calls nest deeper than 64");
  EXPECT_EQ(render("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
            "chat_template line 1: recursive loops nest deeper than 64");
  // Macro calls inside deep expressions: what counts in the end is the stack.
  std::string deep =
      "{% macro r() %}{{ " + repeat("(1,", 90) + " r() " + repeat(")", 90) + " }}{% endmacro %}{{ r() }}";
  EXPECT_EQ(render(deep), "chat_template line 1: evaluation nests deeper than 1500");
}

TEST(TemplateLimitsTest, Nesting) {
  // The template's own body is the first level, the braces' expression the second.
  EXPECT_EQ(render("{{ " + repeat("(", 98) + "1" + repeat(")", 98) + " }}"), "1");
  std::string tooDeep = "chat_template line 1: expressions or blocks nest deeper than 100";
  for (size_t n : {99, 50'000}) {
    EXPECT_EQ(render("{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}"), tooDeep);
    EXPECT_EQ(render("{{ " + repeat("[", n)), tooDeep);
    EXPECT_EQ(render("{{ " + repeat("-", n) + "1 }}"), tooDeep);
    EXPECT_EQ(render("{{ " + repeat("not ", n) + "1 }}"), tooDeep);
    EXPECT_EQ(render("{% set " + repeat("(", n)), tooDeep);
  }
  EXPECT_EQ(render(repeat("{% if true %}", 101) + repeat("{% endif %}", 101)), tooDeep);
  EXPECT_EQ(render("{{ a" + repeat(".a", 50'000) + " }}"), "chat_template line 1: expressions nest deeper than 100");
  EXPECT_EQ(render("{{ 'a'" + repeat("|trim", 50'000) + " }}"),
            "chat_template line 1: expressions nest deeper than 100");
  // Chains of operators do not nest.
  EXPECT_EQ(render("{{ 1" + repeat(" + 1", 50'000) + " }}"), "50001");
  EXPECT_EQ(render("{{ '' " + repeat("~ ''", 20'000) + " }}"), "");
}

TEST(TemplateLimitsTest, Values) {
  auto nest = [](int n) {
    return "{% set ns = namespace(x=[]) %}{% for i in range(" + std::to_string(n) +
           ") %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | length }}";
  };
  EXPECT_EQ(render(nest(99)), "1");
  EXPECT_EQ(render(nest(100)), "chat_template line 1: values nest deeper than 100");
  EXPECT_EQ(render(nest(100'000)), "chat_template line 1: values nest deeper than 100");
  // 2^90 leaves: shared in memory, but not for whoever walks them.
  EXPECT_EQ(render("{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
                   "{{ ns.x | tojson | length }}")
                .substr(0, 28),
            "chat_template line 1: text o");
  EXPECT_EQ(render("{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}{% for i in range(90) %}"
                   "{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}{{ a.x == b.x }}"),
            "chat_template line 1: stopped after 1000000 steps");
  EXPECT_EQ(render("{% set ns = namespace(x=(1,)) %}{% for i in range(90) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}"
                   "{{ {ns.x: 1} }}"),
            "chat_template line 1: unhashable type: 'tuple'");
  // A search whose worst case is 2^42 comparisons.
  EXPECT_EQ(render("{{ ('a' * 2000000 + 'b') in 'a' * 4000000 }}"),
            "chat_template line 1: stopped after 1000000 steps");
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"),
            "chat_template line 1: value nests deeper than 200");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in range(20000) %}{% set before = ns.m %}"
                   "{% macro m() %}{{ before }}{% endmacro %}{% set ns.m = m %}{% endfor %}done"),
            "done");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in range(20000) %}{% set before = ns.l %}"
                   "{% for x in [1] recursive %}{% set ns.l = loop %}{% endfor %}{% endfor %}done"),
            "done");
}

TEST(TemplateLimitsTest, Integers) {
  EXPECT_EQ(render("{{ 170141183460469231731687303715884105727 }}"), "170141183460469231731687303715884105727");
  EXPECT_EQ(render("{{ 170141183460469231731687303715884105728 }}"),
            "chat_template line 1: integer of 39 digits does not fit 128 bits");
  EXPECT_EQ(render("{{ 170141183460469231731687303715884105727 + 1 }}"),
            "chat_template line 1: the result of '+' does not fit a 128-bit integer");
  EXPECT_EQ(render("{{ (-170141183460469231731687303715884105727 - 1) // -1 }}"),
            "chat_template line 1: the result of '-' does not fit a 128-bit integer");
  EXPECT_EQ(render("{{ (-170141183460469231731687303715884105727 - 1) % -1 }}"), "0");
  EXPECT_EQ(render("{{ 'abc'[10**30:] }}|{{ 'abc'[-(10**30):2] }}|{{ 'abc'[::10**30] }}"), "|ab|a");
}

} // namespace
