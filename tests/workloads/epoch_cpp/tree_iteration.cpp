#include "persistent_tree.hpp"

namespace persistent_tree {

Iterator::Iterator(const Tree& tree) : remaining_(tree.size()) {
    if (tree.root() != nullptr) pending_[pending_count_++] = tree.root();
}

const std::uint64_t* Iterator::next(std::size_t* count) {
    if (pending_count_ == 0) return nullptr;
    const Node* node = pending_[--pending_count_];
    while (!node->is_leaf) {
        const Branch* branch = static_cast<const Branch*>(node);
        if (branch->right != nullptr) pending_[pending_count_++] = branch->right;
        node = branch->left;
    }
    *count = remaining_ < kLeafValues ? remaining_ : kLeafValues;
    remaining_ -= *count;
    return static_cast<const Leaf*>(node)->values.at;
}

std::uint64_t get(const Tree& tree, std::uint64_t index) {
    const Node* node = tree.root();
    for (unsigned depth = tree.depth(); depth != 0; --depth) {
        const Branch* branch = static_cast<const Branch*>(node);
        const bool go_right = ((index >> (kLeafDepth + depth - 1)) & 1) != 0;
        node = go_right ? branch->right : branch->left;
    }
    return static_cast<const Leaf*>(node)->values.at[index % kLeafValues];
}

void iterate(const Tree& tree, std::uint64_t* out) {
    Iterator iterator(tree);
    std::size_t count = 0;
    while (const std::uint64_t* values = iterator.next(&count)) {
        for (std::size_t i = 0; i < count; ++i) {
            out[i] = values[i];
            // One value at a time: a block copy would become a call of memcpy.
            asm volatile("" : : : "memory");
        }
        out += count;
    }
}

}  // namespace persistent_tree
