#include "shuffling_bits.hpp"

namespace shuffling {

Message::Message(const sha256::Digest& seed, unsigned round) : bytes{} {
    for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::uint8_t>(seed.words[i / 8] >> (8 * (i % 8)));
    bytes[32] = static_cast<std::uint8_t>(round);
}

void compute_set_position(Message& message, std::uint32_t block) {
    for (unsigned i = 0; i < 4; ++i) message.bytes[33 + i] = static_cast<std::uint8_t>(block >> (8 * i));
}

bool compute_bit(const sha256::Digest* hashes, std::size_t position) {
    return ((hashes[position / 256].words[(position / 64) % 4] >> (position % 64)) & 1) != 0;
}

void compute_swaps(std::uint32_t* list, std::size_t low, std::size_t high, const sha256::Digest* hashes) {
    while (low < high) {
        if (compute_bit(hashes, high)) {
            const std::uint32_t kept = list[low];
            list[low] = list[high];
            list[high] = kept;
        }
        ++low;
        --high;
    }
}

}  // namespace shuffling
