//! An epoch and the root of its first block.

use crate::Hash256;
use ssz_derive::{Decode, Encode};
use tree_hash_derive::TreeHash;

#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode, TreeHash)]
pub struct Checkpoint {
    pub epoch: u64,
    pub root: Hash256,
}
