#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/onnx_text.h"
#include "cli/op_text.h"
#include "front/hlo/hlo.h"
#include "ir/op_def.h"
#include "session/echo.h"

namespace hone::cli {

namespace {

Status list_onnx(const Arguments& arguments, Console& console) {
  if (arguments.given("markdown")) {
    console.write(onnx_markdown());
    return {};
  }
  const std::string wanted = arguments.text("NAME");
  TextTable table("ll", {"op", "since versions"});
  std::vector<std::string> names;
  for (const OnnxRow& row : onnx_rows()) {
    names.push_back(row.name);
    if (wanted.empty() || wanted == row.name) table.add_row({row.name, row.versions});
  }
  if (table.empty())
    return usage_error("the ONNX op '{}' is not imported", excerpt(wanted))
        .with_hint(did_you_mean(wanted, names));
  console.write(table.to_string());
  return {};
}

Status list_hlo(const Arguments& arguments, Console& console) {
  if (arguments.given("markdown")) {
    console.write(hlo_markdown());
    return {};
  }
  const std::string wanted = arguments.text("NAME");
  TextTable table("ll", {"StableHLO", "HLO"});
  std::vector<std::string_view> names;
  for (const HloOp& op : hlo_ops()) {
    names.push_back(op.stablehlo);
    if (!op.hlo.empty()) names.push_back(op.hlo);
    if (wanted.empty() || wanted == op.stablehlo || wanted == op.hlo)
      table.add_row({std::string(op.stablehlo), std::string(op.hlo)});
  }
  if (table.empty())
    return usage_error("the op '{}' of StableHLO or HLO is not imported", excerpt(wanted))
        .with_hint(did_you_mean(wanted, names));
  console.write(table.to_string());
  return {};
}

}  // namespace

Status cmd_ops(const Arguments& arguments, Console& console) {
  if (arguments.given("onnx")) return list_onnx(arguments, console);
  if (arguments.given("hlo")) return list_hlo(arguments, console);
  if (arguments.given("markdown")) {
    console.write(ops_markdown());
    return {};
  }
  if (arguments.given("NAME")) {
    const std::string wanted = arguments.text("NAME");
    const std::optional<Opcode> opcode = opcode_from_name(wanted);
    if (!opcode) {
      return usage_error("there is no op '{}'", excerpt(wanted))
          .with_hint(did_you_mean(wanted, known_words(Take::op, "")));
    }
    console.write(op_text(op_def(*opcode)));
    return {};
  }
  for (std::string_view title : op_families()) {
    TextTable table("ll");
    for (Opcode opcode : ops_of_family(title))
      table.add_row({op_signature(op_def(opcode)), op_summary(op_def(opcode))});
    console.print("{}\n{}\n", console.styled(Style::bold, title), table.to_string("  "));
  }
  console.note("'hone ops NAME' says more about one.");
  return {};
}

}  // namespace hone::cli
