#include "codegen/lane_access.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <optional>
#include <vector>

namespace hone::code {
namespace {

// A masked access with its operands by name.
struct MaskedAccess {
  llvm::IntrinsicInst* call;
  llvm::Value* stored;  // null: it loads
  llvm::Value* to;      // a pointer, or a vector of them
  llvm::Value* mask;
  llvm::Value* otherwise;  // of the lanes that are shut; null: it stores
  llvm::Align alignment;

  llvm::FixedVectorType* type() const {
    return llvm::cast<llvm::FixedVectorType>(stored ? stored->getType() : call->getType());
  }
  unsigned lanes() const { return type()->getNumElements(); }
  bool is_scattered() const { return to->getType()->isVectorTy(); }
};

std::optional<MaskedAccess> masked_access(llvm::Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return std::nullopt;
  const auto operand = [&](unsigned i) { return call->getArgOperand(i); };
  const auto alignment = [&](unsigned i) {
    return llvm::Align(llvm::cast<llvm::ConstantInt>(operand(i))->getZExtValue());
  };
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter:
      return MaskedAccess{call, operand(0), operand(1), operand(3), nullptr, alignment(2)};
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather:
      return MaskedAccess{call, nullptr, operand(0), operand(2), operand(3), alignment(1)};
    default: return std::nullopt;
  }
}

bool has_instruction(const MaskedAccess& access, const llvm::TargetTransformInfo& machine) {
  llvm::FixedVectorType* type = access.type();
  switch (access.call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_store: return machine.isLegalMaskedStore(type, access.alignment);
    case llvm::Intrinsic::masked_load: return machine.isLegalMaskedLoad(type, access.alignment);
    case llvm::Intrinsic::masked_scatter:
      return machine.isLegalMaskedScatter(type, access.alignment) &&
             !machine.forceScalarizeMaskedScatter(type, access.alignment);
    default:
      return machine.isLegalMaskedGather(type, access.alignment) &&
             !machine.forceScalarizeMaskedGather(type, access.alignment);
  }
}

// The only lane that a mask lets through, or nothing.
std::optional<unsigned> single_lane(const llvm::Constant& mask, unsigned lanes) {
  std::optional<unsigned> found;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const llvm::Constant* bit = mask.getAggregateElement(lane);
    if (bit == nullptr || !llvm::isa<llvm::ConstantInt>(bit)) return std::nullopt;
    if (bit->isZeroValue()) continue;
    if (found) return std::nullopt;
    found = lane;
  }
  return found;
}

// One for each lane.
llvm::Value* pointers(llvm::IRBuilder<>& builder, const MaskedAccess& access) {
  if (access.is_scattered()) return access.to;
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < access.lanes(); ++lane) steps.push_back(builder.getInt64(lane));
  return builder.CreateGEP(access.type()->getElementType(), access.to,
                           llvm::ConstantVector::get(steps));
}

// The alignment of an element that starts at a multiple of the access's alignment, or `lane`
// elements after one.
llvm::Align alignment(const MaskedAccess& access) {
  if (access.is_scattered()) return access.alignment;
  return llvm::commonAlignment(access.alignment, access.type()->getScalarSizeInBits() / 8);
}

// LLVM does so itself, but while it selects instructions, where a block of 1,024 of them (an
// unrolled loop) takes it half an hour.
void store_lane(const MaskedAccess& access, unsigned lane) {
  llvm::IRBuilder<> builder(access.call);
  llvm::Value* to = builder.CreateConstGEP1_64(access.type()->getElementType(), access.to, lane);
  llvm::StoreInst* single = builder.CreateAlignedStore(
      builder.CreateExtractElement(access.stored, lane), to, alignment(access));
  single->setAAMetadata(access.call->getAAMetadata());
  access.call->eraseFromParent();
}

// One per function, for elements of up to 64 bits.
class Slot {
 public:
  explicit Slot(llvm::Function& function) : function_(function) {}
  llvm::Value* get() {
    if (slot_ == nullptr) {
      llvm::IRBuilder<> builder(&*function_.getEntryBlock().getFirstInsertionPt());
      slot_ = builder.CreateAlloca(builder.getInt64Ty());
    }
    return slot_;
  }

 private:
  llvm::Function& function_;
  llvm::Value* slot_ = nullptr;
};

// Addresses and results are chosen as vectors: of a choice between numbers LLVM makes a branch.
void access_each_lane(const MaskedAccess& access, Slot& slot) {
  llvm::IRBuilder<> builder(access.call);
  llvm::Type* element = access.type()->getElementType();
  llvm::Value* shut = builder.CreateVectorSplat(access.lanes(), slot.get());
  llvm::Value* to = builder.CreateSelect(access.mask, pointers(builder, access), shut);
  llvm::Value* loaded = llvm::PoisonValue::get(access.type());
  for (unsigned lane = 0; lane < access.lanes(); ++lane) {
    llvm::Value* at = builder.CreateExtractElement(to, lane);
    if (access.stored != nullptr)
      builder.CreateAlignedStore(builder.CreateExtractElement(access.stored, lane), at,
                                 alignment(access));
    else
      loaded = builder.CreateInsertElement(
          loaded, builder.CreateAlignedLoad(element, at, alignment(access)), lane);
  }
  if (access.stored == nullptr)
    access.call->replaceAllUsesWith(builder.CreateSelect(access.mask, loaded, access.otherwise));
  access.call->eraseFromParent();
}

}  // namespace

void rewrite_masked_accesses(llvm::Function& function, const llvm::TargetTransformInfo& machine) {
  std::vector<llvm::Instruction*> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function))
    if (masked_access(instruction)) calls.push_back(&instruction);
  Slot slot(function);
  for (llvm::Instruction* call : calls) {
    const MaskedAccess access = *masked_access(*call);  // its operands may have been rewritten
    const auto* constant = llvm::dyn_cast<llvm::Constant>(access.mask);
    if (constant == nullptr) {
      if (!has_instruction(access, machine)) access_each_lane(access, slot);
    } else if (access.stored != nullptr && !access.is_scattered()) {
      if (const auto lane = single_lane(*constant, access.lanes())) store_lane(access, *lane);
    }
  }
}

}  // namespace hone::code
