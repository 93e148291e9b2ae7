#include <array>

#include "report/model_report.h"
#include "report/page_files.h"
#include "report/page_text.h"

namespace hone {
namespace {

// In the order in which they need each other.
constexpr std::array kScripts = {"text.js",     "elements.js", "figures.js", "memory.js",
                                 "layers.js",   "drawing.js",  "graph.js",   "devices.js",
                                 "sharding.js", "report.js"};

// The page has these marks; what replaces them is not looked into.
std::string filled(std::string_view page, std::string_view mark, std::string_view text) {
  const size_t at = page.find(mark);
  HONE_CHECK(at != std::string_view::npos, "the page has no place for {}", mark);
  return std::string(page.substr(0, at)).append(text).append(page.substr(at + mark.size()));
}

// JSON in a script element: nothing in it may look like a tag or a comment. Only strings have '<'.
std::string in_script(std::string json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::string report_page(const ModelReport& report) {
  std::string script;
  for (const std::string_view name : kScripts) script += page_file(name);
  // The data come last: they alone are from outside.
  std::string page = filled(page_file("report.html"), "{{STYLE}}", page_file("report.css"));
  page = filled(page, "{{SCRIPT}}", script);
  const size_t title = page.find("{{TITLE}}");
  page = filled(page, "{{TITLE}}", "");
  page = filled(page, "{{DATA}}", in_script(report_json(report)));
  return page.insert(title, html(page_text(report.model)));
}

}  // namespace hone
