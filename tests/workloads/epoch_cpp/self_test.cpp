#include "self_test.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "merkle.hpp"
#include "persistent_tree.hpp"
#include "random_numbers.hpp"
#include "sha256.hpp"
#include "shuffling.hpp"

namespace self_test {
namespace {

using sha256::Digest;

int failures = 0;

void check(const std::string& what, bool holds) {
    std::printf("%s: %s\n", what.c_str(), holds ? "ok" : "FAILED");
    if (!holds) ++failures;
}

const std::uint8_t* bytes_of(const std::string& text) { return reinterpret_cast<const std::uint8_t*>(text.data()); }

std::string hex(const Digest& digest) {
    std::string result;
    for (unsigned i = 0; i < 32; ++i) {
        char pair[3];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>(digest.words[i / 8] >> (8 * (i % 8))) & 0xff);
        result += pair;
    }
    return result;
}

// Examples of FIPS 180-2, appendix B, and of NIST's SHA-256 examples.
void check_sha256_vectors() {
    const std::string name = std::string("SHA-256, ") + sha256::backend_name() + ", ";
    const auto matches = [](const std::string& message, const char* expected) {
        return hex(sha256::digest(bytes_of(message), message.size())) == expected;
    };
    check(name + "empty message", matches("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    check(name + "abc", matches("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    check(name + "448 bits", matches("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
    check(name + "896 bits", matches("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                                     "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                                     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"));
    check(name + "a million a", matches(std::string(1'000'000, 'a'),
                                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

Digest chunk_of(const std::vector<std::uint64_t>& values, std::size_t chunk) {
    Digest result{};
    for (std::size_t k = 0; k < 4 && 4 * chunk + k < values.size(); ++k) result.words[k] = values[4 * chunk + k];
    return result;
}

// SSZ's merkleize with its limit, by the definition: 2**depth chunks, zeros where the values end.
Digest plain_root(const std::vector<std::uint64_t>& values, std::size_t first_chunk, unsigned depth) {
    if (4 * first_chunk >= values.size()) return merkle::zero_hash(depth);
    if (depth == 0) return chunk_of(values, first_chunk);
    const Digest left = plain_root(values, first_chunk, depth - 1);
    const Digest right = plain_root(values, first_chunk + (std::size_t{1} << (depth - 1)), depth - 1);
    Digest pair[2] = {left, right};
    return sha256::digest(reinterpret_cast<const std::uint8_t*>(pair), sizeof pair);
}

Digest plain_list_root(const std::vector<std::uint64_t>& values) {
    Digest pair[2] = {plain_root(values, 0, 38), Digest{{values.size(), 0, 0, 0}}};
    return sha256::digest(reinterpret_cast<const std::uint8_t*>(pair), sizeof pair);
}

void check_tree(std::size_t count) {
    const std::string name = "tree of " + std::to_string(count) + " values, ";
    random_numbers::Generator generator(count);
    std::vector<std::uint64_t> values(count);
    for (std::uint64_t& value : values) value = generator.next();
    persistent_tree::Tree tree = persistent_tree::build(values.data(), count);
    merkle::Workspace workspace(tree.depth());
    check(name + "root", merkle::hash_tree_root(tree, workspace) == plain_list_root(values));

    const std::vector<std::uint64_t> old_values = values;
    const persistent_tree::Tree old_tree = tree;
    for (std::size_t i = 0; i < count; i += 1 + generator.below(40)) values[i] = generator.next();
    const persistent_tree::UpdateList list = persistent_tree::update_list(old_values.data(), values.data(), count);
    tree = persistent_tree::with_updated(tree, list.updates, list.count);
    std::free(list.updates);
    check(name + "root after an update", merkle::hash_tree_root(tree, workspace) == plain_list_root(values));
    check(name + "root of the old version", merkle::hash_tree_root(old_tree, workspace) == plain_list_root(old_values));

    std::vector<std::uint64_t> seen(count);
    persistent_tree::iterate(tree, seen.data());
    check(name + "iteration", seen == values);
    persistent_tree::iterate(old_tree, seen.data());
    check(name + "iteration of the old version", seen == old_values);
    bool all_equal = true;
    for (std::size_t i = 0; i < count; ++i) all_equal = all_equal && persistent_tree::get(tree, i) == values[i];
    check(name + "single values", all_equal);
}

void check_shuffling(std::size_t count) {
    const Digest seed{{1, 2, 3, count}};
    std::vector<std::uint32_t> list(count);
    for (std::size_t i = 0; i < count; ++i) list[i] = static_cast<std::uint32_t>(7 * i);
    std::vector<Digest> sources(shuffling::kRounds * shuffling::hashes_per_round(count));
    shuffling::shuffle_list(list.data(), count, seed, sources.data());
    bool all_equal = true;
    for (std::size_t i = 0; i < count; ++i) {
        all_equal = all_equal && list[i] == 7 * shuffling::compute_shuffled_index(i, count, seed);
    }
    check("shuffling of " + std::to_string(count) + " against the definition", all_equal);
}

}  // namespace

int run() {
    sha256::force_portable(true);
    check_sha256_vectors();
    sha256::force_portable(false);
    check_sha256_vectors();
    for (const auto allocation : {persistent_tree::Allocation::heap, persistent_tree::Allocation::pool}) {
        persistent_tree::set_allocation(allocation);
        for (const std::size_t count : {1u, 16u, 17u, 1000u, 4096u}) check_tree(count);
    }
    for (const std::size_t count : {1u, 2u, 255u, 256u, 257u, 1000u}) check_shuffling(count);
    return failures == 0 ? 0 : 1;
}

void print_vectors() {
    constexpr std::size_t count = 100;
    std::vector<std::uint64_t> values(count);
    std::vector<std::uint32_t> list(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = 3 * i;
        list[i] = static_cast<std::uint32_t>(i);
    }
    const persistent_tree::Tree tree = persistent_tree::build(values.data(), count);
    merkle::Workspace workspace(tree.depth());
    const std::uint64_t sevens = 0x0707070707070707u;
    std::vector<Digest> sources(shuffling::kRounds * shuffling::hashes_per_round(count));
    shuffling::shuffle_list(list.data(), count, Digest{{sevens, sevens, sevens, sevens}}, sources.data());
    std::printf("{\"list_root\": \"%s\", \"shuffled\": [", hex(merkle::hash_tree_root(tree, workspace)).c_str());
    for (std::size_t i = 0; i < count; ++i) std::printf("%s%u", i == 0 ? "" : ", ", list[i]);
    std::printf("]}\n");
}

}  // namespace self_test
