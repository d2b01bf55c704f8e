//! A persistent list of u64 as a binary Merkle tree, with a hash in every node that is computed at most once.
//!
//! The cell of that hash is chosen when building: a lock around it (as milhouse has it), or none (feature `lock-free`).

pub mod hash_cell;
pub mod iter;
pub mod list;
pub mod tree;

pub use iter::Iter;
pub use list::List;
