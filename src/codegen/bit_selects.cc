#include "codegen/bit_selects.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <vector>

namespace hone::code {
namespace {

using namespace llvm::PatternMatch;

llvm::Value* without_casts(llvm::Value* value) {
  while (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
  return value;
}

// select(k, mixed, whole), or with the operands swapped.
struct BitSelect {
  llvm::SelectInst* select;
  llvm::Value* mixed;
  llvm::Value* whole;
  bool is_swapped;

  llvm::Value* choose(llvm::IRBuilder<>& builder, llvm::Value* of_mixed,
                      llvm::Value* of_whole) const {
    if (is_swapped) std::swap(of_mixed, of_whole);
    return builder.CreateSelect(select->getCondition(), of_mixed, of_whole);
  }
};

unsigned lanes(const llvm::Value* value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type == nullptr ? 0 : type->getNumElements();
}

// mixed = (whole & mask) | other. Null: it is something else.
llvm::Value* split_or(const BitSelect& bits, llvm::IRBuilder<>& builder) {
  auto* mixed = llvm::dyn_cast<llvm::BinaryOperator>(without_casts(bits.mixed));
  if (mixed == nullptr || mixed->getOpcode() != llvm::Instruction::Or ||
      lanes(mixed) != lanes(bits.select))
    return nullptr;
  for (unsigned side = 0; side < 2; ++side) {
    llvm::Value *whole = nullptr, *kept = mixed->getOperand(side);
    llvm::Constant* mask = nullptr;
    if (!match(kept, m_And(m_Value(whole), m_Constant(mask))) ||
        without_casts(whole) != without_casts(bits.whole))
      continue;
    llvm::Value* rest = builder.CreateAnd(whole, builder.CreateNot(mask));
    return builder.CreateOr(kept, bits.choose(builder, mixed->getOperand(1 - side), rest));
  }
  return nullptr;
}

// mixed = copysign(size, sign), one of which is the whole.
llvm::Value* split_copysign(const BitSelect& bits, llvm::IRBuilder<>& builder) {
  auto* mixed = llvm::dyn_cast<llvm::IntrinsicInst>(without_casts(bits.mixed));
  if (mixed == nullptr || mixed->getIntrinsicID() != llvm::Intrinsic::copysign ||
      lanes(mixed) != lanes(bits.select))
    return nullptr;
  llvm::Value* parts[] = {mixed->getArgOperand(0), mixed->getArgOperand(1)};
  for (int side = 0; side < 2; ++side) {
    if (without_casts(parts[side]) != without_casts(bits.whole)) continue;
    llvm::Value* other = parts[1 - side];
    parts[1 - side] = bits.choose(builder, other, parts[side]);
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, parts[0], parts[1]);
  }
  return nullptr;
}

void split(llvm::SelectInst& select) {
  for (bool is_swapped : {false, true}) {
    const BitSelect bits = {.select = &select,
                            .mixed = select.getOperand(is_swapped ? 2 : 1),
                            .whole = select.getOperand(is_swapped ? 1 : 2),
                            .is_swapped = is_swapped};
    llvm::IRBuilder<> builder(&select);
    llvm::Value* made = split_or(bits, builder);
    if (made == nullptr) made = split_copysign(bits, builder);
    if (made == nullptr) continue;
    select.replaceAllUsesWith(builder.CreateBitCast(made, select.getType()));
    select.eraseFromParent();
    return;
  }
}

}  // namespace

void split_bit_selects(llvm::Function& function) {
  std::vector<llvm::SelectInst*> selects;
  for (llvm::Instruction& each : llvm::instructions(function))
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&each))
      if (lanes(select) > 0 && lanes(select->getCondition()) == lanes(select))
        selects.push_back(select);
  for (llvm::SelectInst* select : selects) split(*select);
}

}  // namespace hone::code
