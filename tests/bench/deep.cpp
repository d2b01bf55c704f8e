// A program with deep, varied call stacks in two threads: tree walks, sorting, allocation.
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

static volatile std::uint64_t sink;

struct Node {
    Node *left, *right;
    std::uint64_t value;
};

__attribute__((noinline)) std::uint64_t mix(std::uint64_t x) {
    for (int i = 0; i < 40; i++) {
        x ^= x >> 13;
        x *= 0x9e3779b97f4a7c15ULL;
        x ^= x >> 7;
    }
    return x;
}

std::uint64_t walk(const Node *node, int depth);

template <int Side>
__attribute__((noinline)) std::uint64_t descend(const Node *node, int depth) {
    return walk(Side == 0 ? node->left : node->right, depth + 1) * (Side + 2);
}

__attribute__((noinline)) std::uint64_t walk(const Node *node, int depth) {
    return node ? descend<0>(node, depth) ^ descend<1>(node, depth) ^ node->value : mix(depth);
}

Node *grow(int depth, std::uint64_t &seed) {
    if (depth == 0) return nullptr;
    seed = mix(seed);
    return new Node{grow(depth - 1, seed), grow(depth - 1, seed), seed};
}

std::uint64_t quicksort(std::vector<std::uint64_t> &values, long begin, long end) {
    if (end - begin < 2) return 0;
    const std::uint64_t pivot = values[(begin + end) / 2];
    long i = begin, j = end - 1;
    while (i <= j) {
        while (values[i] < pivot) i++;
        while (values[j] > pivot) j--;
        if (i <= j) std::swap(values[i++], values[j--]);
    }
    return 1 + quicksort(values, begin, j + 1) + quicksort(values, i, end);
}

void work(int rounds, int depth);

// A dozen callers, each with a frame as large as real ones often are, so that stack dumps are full.
template <int Level>
__attribute__((noinline)) void enter(int rounds, int depth) {
    volatile char buffer[1000];
    buffer[rounds % 1000] = 1;
    if constexpr (Level == 0) {
        work(rounds, depth);
    } else {
        enter<Level - 1>(rounds, depth);
    }
    sink = sink + buffer[rounds % 1000];
}

__attribute__((noinline)) void work(int rounds, int depth) {
    std::uint64_t seed = depth;
    const Node *root = grow(depth, seed);
    for (int round = 0; round < rounds; round++) {
        sink = sink + walk(root, 0);
        std::vector<std::uint64_t> values(20000);
        for (auto &value : values) value = seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        sink = sink + quicksort(values, 0, static_cast<long>(values.size()));
    }
}

int main(int count, char **arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 10;
    std::thread other(enter<11>, rounds, 14);
    enter<11>(rounds, 14);
    other.join();
}
