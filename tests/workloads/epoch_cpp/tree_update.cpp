#include <cstdlib>
#include <cstring>
#include <utility>

#include "node_pool.hpp"
#include "persistent_tree.hpp"

namespace persistent_tree {

static Node* build_node(const std::uint64_t* values, std::size_t count, unsigned depth) {
    if (count == 0) return nullptr;
    if (depth == 0) {
        Leaf* leaf = update_allocate_leaf();
        for (std::size_t i = 0; i < kLeafValues; ++i) leaf->values.at[i] = i < count ? values[i] : 0;
        return leaf;
    }
    const std::size_t half = kLeafValues << (depth - 1);
    Branch* branch = update_allocate_branch();
    branch->left = build_node(values, count < half ? count : half, depth - 1);
    branch->right = count > half ? build_node(values + half, count - half, depth - 1) : nullptr;
    return branch;
}

// How many of the updates, sorted by index, lie below `boundary`.
static std::size_t update_split(const Update* updates, std::size_t count, std::uint64_t boundary) {
    std::size_t low = 0;
    while (count > 0) {
        const std::size_t half = count / 2;
        if (updates[low + half].index < boundary) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static Node* update_leaf(const Leaf* old_leaf, const Update* updates, std::size_t count) {
    Leaf* leaf = update_allocate_leaf();
    if (update_uses_heap()) {
        std::memmove(&leaf->values, &old_leaf->values, sizeof(Values));
    } else {
        leaf->values = old_leaf->values;
    }
    for (std::size_t i = 0; i < count; ++i) leaf->values.at[updates[i].index % kLeafValues] = updates[i].value;
    return leaf;
}

static Node* rebuild_path(Node* node, unsigned depth, std::uint64_t first, const Update* updates, std::size_t count) {
    if (count == 0) {
        update_retain(node);
        return node;
    }
    if (depth == 0) return update_leaf(static_cast<const Leaf*>(node), updates, count);
    const Branch* old_branch = static_cast<const Branch*>(node);
    const std::uint64_t middle = first + (std::uint64_t{kLeafValues} << (depth - 1));
    const std::size_t left_count = update_split(updates, count, middle);
    Branch* branch = update_allocate_branch();
    branch->left = rebuild_path(old_branch->left, depth - 1, first, updates, left_count);
    branch->right = rebuild_path(old_branch->right, depth - 1, middle, updates + left_count, count - left_count);
    return branch;
}

Tree::Tree(const Tree& other) : root_(other.root_), depth_(other.depth_), size_(other.size_) { update_retain(root_); }

Tree::Tree(Tree&& other) noexcept : root_(std::exchange(other.root_, nullptr)), depth_(other.depth_), size_(other.size_) {}

Tree& Tree::operator=(Tree other) noexcept {
    std::swap(root_, other.root_);
    std::swap(depth_, other.depth_);
    std::swap(size_, other.size_);
    return *this;
}

Tree::~Tree() { update_release(root_); }

Tree build(const std::uint64_t* values, std::size_t count) {
    unsigned depth = 0;
    while ((kLeafValues << depth) < count) ++depth;
    return Tree(build_node(values, count, depth), depth, count);
}

Tree with_updated(const Tree& tree, const Update* updates, std::size_t count) {
    return Tree(rebuild_path(tree.root(), tree.depth(), 0, updates, count), tree.depth(), tree.size());
}

UpdateList update_list(const std::uint64_t* before, const std::uint64_t* after, std::size_t count) {
    UpdateList list{nullptr, 0};
    std::size_t capacity = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (before[i] == after[i]) continue;
        if (list.count == capacity) {
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            list.updates = static_cast<Update*>(std::realloc(list.updates, capacity * sizeof(Update)));
            if (list.updates == nullptr) std::abort();
        }
        list.updates[list.count] = Update{i, after[i]};
        ++list.count;
    }
    return list;
}

Tree with_changes(const Tree& tree, const std::uint64_t* before, const std::uint64_t* after) {
    const UpdateList list = update_list(before, after, tree.size());
    Tree updated = list.count != 0 ? with_updated(tree, list.updates, list.count) : tree;
    std::free(list.updates);
    return updated;
}

}  // namespace persistent_tree
