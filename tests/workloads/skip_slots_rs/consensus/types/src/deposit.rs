//! A deposit that waits for the next epoch.

use crate::{Hash256, PublicKeyBytes};
use ssz_derive::{Decode, Encode};
use tree_hash_derive::TreeHash;

#[derive(Clone, Debug, PartialEq, Encode, Decode, TreeHash)]
pub struct PendingDeposit {
    pub pubkey: PublicKeyBytes,
    pub withdrawal_credentials: Hash256,
    pub amount: u64,
    pub slot: u64,
}
