#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/doctor.h"

namespace hone::cli {

Status cmd_doctor(const Arguments& arguments, Console& console) {
  const Diagnosis diagnosis = HONE_TRY(diagnose(arguments, console));
  console.write(arguments.given("json") ? diagnosis_json(diagnosis)
                                        : diagnosis_text(diagnosis, console));
  return {};
}

}  // namespace hone::cli
