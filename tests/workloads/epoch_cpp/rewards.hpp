// The reward arithmetic of one validator.
#pragma once

#include <cstdint>

#include "epoch_processing.hpp"

namespace epoch_processing {

std::uint64_t process_integer_square_root(std::uint64_t value);

// Change of balance for one participation flag; negative for a penalty.
std::int64_t process_flag_delta(const Totals& totals, std::uint64_t base_reward, unsigned flag, bool participated);

std::uint64_t process_inactivity_penalty(std::uint64_t effective_balance, std::uint64_t score);

}  // namespace epoch_processing
