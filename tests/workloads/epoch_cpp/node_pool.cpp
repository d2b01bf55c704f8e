#include "node_pool.hpp"

#include <cstdlib>

namespace persistent_tree {

constexpr std::size_t kSlabNodes = 4096;

// Nodes that are free, linked through their first word.
struct FreeNode {
    FreeNode* next;
};

static Allocation mode = Allocation::heap;
static FreeNode* free_leaves = nullptr;
static FreeNode* free_branches = nullptr;

static void* checked(void* memory) {
    if (memory == nullptr) std::abort();
    return memory;
}

static FreeNode* update_add_slab(FreeNode* list, std::size_t node_bytes) {
    char* slab = static_cast<char*>(checked(std::malloc(kSlabNodes * node_bytes)));
    for (std::size_t i = kSlabNodes; i-- > 0;) {
        FreeNode* node = reinterpret_cast<FreeNode*>(slab + i * node_bytes);
        node->next = list;
        list = node;
    }
    return list;
}

void set_allocation(Allocation allocation) { mode = allocation; }

bool update_uses_heap() { return mode == Allocation::heap; }

void reserve_pool(std::size_t nodes) {
    for (std::size_t have = 0; have < nodes; have += kSlabNodes) {
        free_leaves = update_add_slab(free_leaves, sizeof(Leaf));
        free_branches = update_add_slab(free_branches, sizeof(Branch));
    }
}

Leaf* update_allocate_leaf() {
    Leaf* leaf;
    if (mode == Allocation::heap) {
        leaf = static_cast<Leaf*>(checked(std::malloc(sizeof(Leaf))));
    } else {
        if (free_leaves == nullptr) free_leaves = update_add_slab(nullptr, sizeof(Leaf));
        leaf = reinterpret_cast<Leaf*>(free_leaves);
        free_leaves = free_leaves->next;
    }
    leaf->references = 1;
    leaf->is_leaf = true;
    leaf->has_root = false;
    return leaf;
}

Branch* update_allocate_branch() {
    Branch* branch;
    if (mode == Allocation::heap) {
        branch = static_cast<Branch*>(checked(std::malloc(sizeof(Branch))));
    } else {
        if (free_branches == nullptr) free_branches = update_add_slab(nullptr, sizeof(Branch));
        branch = reinterpret_cast<Branch*>(free_branches);
        free_branches = free_branches->next;
    }
    branch->references = 1;
    branch->is_leaf = false;
    branch->has_root = false;
    return branch;
}

void update_retain(Node* node) {
    if (node != nullptr) ++node->references;
}

void update_release(Node* node) {
    if (node == nullptr || --node->references != 0) return;
    const bool is_leaf = node->is_leaf;
    if (!is_leaf) {
        Branch* branch = static_cast<Branch*>(node);
        update_release(branch->left);
        update_release(branch->right);
    }
    if (mode == Allocation::heap) {
        std::free(node);
        return;
    }
    FreeNode* freed = reinterpret_cast<FreeNode*>(node);
    FreeNode** list = is_leaf ? &free_leaves : &free_branches;
    freed->next = *list;
    *list = freed;
}

}  // namespace persistent_tree
