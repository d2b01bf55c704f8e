#include "rewards.hpp"

namespace epoch_processing {

constexpr std::uint64_t kWeights[3] = {14, 26, 14};
constexpr std::uint64_t kWeightDenominator = 64;
constexpr std::uint64_t kInactivityScoreBias = 4;
constexpr std::uint64_t kInactivityPenaltyQuotient = 3 << 24;
constexpr unsigned kHeadFlag = 2;

std::uint64_t process_integer_square_root(std::uint64_t value) {
    std::uint64_t x = value;
    std::uint64_t y = (x + 1) / 2;
    while (y < x) {
        x = y;
        y = (x + value / x) / 2;
    }
    return x;
}

std::int64_t process_flag_delta(const Totals& totals, std::uint64_t base_reward, unsigned flag, bool participated) {
    const std::uint64_t weighted = base_reward * kWeights[flag];
    if (participated) {
        if (totals.is_leak) return 0;
        return static_cast<std::int64_t>(weighted * totals.participating[flag] / (totals.active * kWeightDenominator));
    }
    if (flag == kHeadFlag) return 0;
    return -static_cast<std::int64_t>(weighted / kWeightDenominator);
}

std::uint64_t process_inactivity_penalty(std::uint64_t effective_balance, std::uint64_t score) {
    return effective_balance * score / (kInactivityScoreBias * kInactivityPenaltyQuotient);
}

}  // namespace epoch_processing
