#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"

// Proofs that a peer knows a secret, without sending it (RFC 2104 on FIPS 180-4).

namespace hone {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> bytes);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);
// Takes the same time wherever they differ.
bool are_equal(const Digest& a, const Digest& b);

Result<Digest> random_digest();  // of the system, for a challenge

}  // namespace hone
