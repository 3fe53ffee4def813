#include "runtime/template/PlainText.h"
#include <algorithm>

namespace llmc::jinja {
namespace {

bool isMark(char c) { return c == plainBegin || c == plainEnd; }

// Where a place of the text lies once the marks at `marks` (ascending) are gone.
size_t withoutMarks(size_t place, const std::vector<size_t> &marks) {
  return place - static_cast<size_t>(std::lower_bound(marks.begin(), marks.end(), place) - marks.begin());
}

} // namespace

std::string withoutForgedMarks(const std::string &text) {
  if (std::none_of(text.begin(), text.end(), isMark))
    return text;
  std::string out;
  for (char c : text)
    if (isMark(c))
      out += "\xEF\xBF\xBD";
    else
      out += c;
  return out;
}

StatusOr<ByteRanges> takePlainMarks(std::string &text, ByteRanges *moved) {
  ByteRanges ranges;
  std::vector<size_t> marks;
  size_t depth = 0, begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!isMark(text[at]))
      continue;
    size_t place = at - marks.size();
    marks.push_back(at);
    if (text[at] == plainBegin) {
      if (depth++ == 0)
        begin = place;
      continue;
    }
    if (depth == 0)
      return Status::error("a text made by the filter 'plain' lost its beginning; apply the filter last");
    if (--depth == 0 && begin < place)
      ranges.emplace_back(begin, place);
  }
  if (depth != 0)
    return Status::error("a text made by the filter 'plain' lost its end; apply the filter last");
  if (marks.empty())
    return ranges;
  if (moved)
    for (auto &[first, last] : *moved) {
      first = withoutMarks(first, marks);
      last = withoutMarks(last, marks);
    }
  text.erase(std::remove_if(text.begin(), text.end(), isMark), text.end());
  return ranges;
}

} // namespace llmc::jinja
