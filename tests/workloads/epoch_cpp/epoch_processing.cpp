#include "epoch_processing.hpp"

#include <cstring>

#include "rewards.hpp"

namespace epoch_processing {

constexpr std::uint64_t kBaseRewardFactor = 64;
constexpr std::uint64_t kScoreBias = 4;
constexpr std::uint64_t kScoreRecovery = 16;
constexpr std::uint64_t kDownwardHysteresis = kIncrement / 4;
constexpr std::uint64_t kUpwardHysteresis = kIncrement / 4 * 5;

static inline bool process_participated(std::uint8_t flags, unsigned flag) { return ((flags >> flag) & 1) != 0; }

static inline std::uint64_t process_decrease(std::uint64_t balance, std::uint64_t amount) {
    return balance < amount ? 0 : balance - amount;
}

Totals process_totals(const Registry& registry) {
    Totals totals{};
    for (std::size_t i = 0; i < registry.count; ++i) {
        if ((registry.flags[i] & kActive) == 0) continue;
        const std::uint64_t increments = registry.effective_balances[i] / kIncrement;
        totals.active += increments;
        for (unsigned flag = 0; flag < 3; ++flag) {
            if (process_participated(registry.flags[i], flag)) totals.participating[flag] += increments;
        }
    }
    if (totals.active == 0) totals.active = 1;
    totals.base_reward_per_increment =
        kIncrement * kBaseRewardFactor / process_integer_square_root(totals.active * kIncrement);
    totals.is_leak = 3 * totals.participating[1] < 2 * totals.active;
    return totals;
}

void process_inactivity(const Registry& registry, const Totals& totals) {
    for (std::size_t i = 0; i < registry.count; ++i) {
        if ((registry.flags[i] & kActive) == 0) continue;
        std::uint64_t score = registry.inactivity_scores[i];
        if (process_participated(registry.flags[i], 1)) {
            score = process_decrease(score, 1);
        } else {
            score += kScoreBias;
        }
        if (!totals.is_leak) score = process_decrease(score, kScoreRecovery);
        registry.inactivity_scores[i] = score;
    }
}

void process_rewards(const Registry& registry, const Totals& totals) {
    for (std::size_t i = 0; i < registry.count; ++i) {
        const std::uint8_t flags = registry.flags[i];
        if ((flags & kActive) == 0) continue;
        const std::uint64_t effective = registry.effective_balances[i];
        const std::uint64_t base_reward = effective / kIncrement * totals.base_reward_per_increment;
        std::uint64_t balance = registry.balances[i];
        for (unsigned flag = 0; flag < 3; ++flag) {
            const std::int64_t delta = process_flag_delta(totals, base_reward, flag, process_participated(flags, flag));
            balance = delta < 0 ? process_decrease(balance, static_cast<std::uint64_t>(-delta))
                                : balance + static_cast<std::uint64_t>(delta);
        }
        if (!process_participated(flags, 1)) {
            balance = process_decrease(balance, process_inactivity_penalty(effective, registry.inactivity_scores[i]));
        }
        registry.balances[i] = balance;
    }
}

void process_effective_balances(const Registry& registry) {
    for (std::size_t i = 0; i < registry.count; ++i) {
        const std::uint64_t balance = registry.balances[i];
        const std::uint64_t effective = registry.effective_balances[i];
        if (balance + kDownwardHysteresis < effective || effective + kUpwardHysteresis < balance) {
            const std::uint64_t rounded = balance - balance % kIncrement;
            registry.effective_balances[i] = rounded < kMaximumEffectiveBalance ? rounded : kMaximumEffectiveBalance;
        }
    }
}

void process_state_copy(const Registry& to, const Registry& from) {
    const std::size_t bytes = from.count * sizeof(std::uint64_t);
    std::memmove(to.balances, from.balances, bytes);
    std::memmove(to.effective_balances, from.effective_balances, bytes);
    std::memmove(to.inactivity_scores, from.inactivity_scores, bytes);
    std::memmove(to.flags, from.flags, from.count);
    // Keeps the last call from becoming a jump, which would leave memmove without its owner on the stack.
    asm volatile("" : : : "memory");
}

}  // namespace epoch_processing
