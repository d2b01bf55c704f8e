//! A validator's record in the registry.

use crate::chain_spec::{EFFECTIVE_BALANCE_INCREMENT, FAR_FUTURE_EPOCH, MAX_EFFECTIVE_BALANCE};
use crate::{Hash256, PendingDeposit, PublicKeyBytes};
use ssz_derive::{Decode, Encode};
use tree_hash_derive::TreeHash;

#[derive(Clone, Debug, PartialEq, Encode, Decode, TreeHash)]
pub struct Validator {
    pub pubkey: PublicKeyBytes,
    pub withdrawal_credentials: Hash256,
    pub effective_balance: u64,
    pub slashed: bool,
    pub activation_eligibility_epoch: u64,
    pub activation_epoch: u64,
    pub exit_epoch: u64,
    pub withdrawable_epoch: u64,
}

impl Validator {
    pub fn from_deposit(deposit: &PendingDeposit) -> Self {
        Self {
            pubkey: deposit.pubkey,
            withdrawal_credentials: deposit.withdrawal_credentials,
            effective_balance: (deposit.amount - deposit.amount % EFFECTIVE_BALANCE_INCREMENT).min(MAX_EFFECTIVE_BALANCE),
            slashed: false,
            activation_eligibility_epoch: FAR_FUTURE_EPOCH,
            activation_epoch: FAR_FUTURE_EPOCH,
            exit_epoch: FAR_FUTURE_EPOCH,
            withdrawable_epoch: FAR_FUTURE_EPOCH,
        }
    }

    pub fn is_active_at(&self, epoch: u64) -> bool {
        self.activation_epoch <= epoch && epoch < self.exit_epoch
    }

    /// Whether it takes part in rewards and penalties.
    pub fn is_eligible_at(&self, previous_epoch: u64) -> bool {
        self.is_active_at(previous_epoch) || (self.slashed && previous_epoch + 1 < self.withdrawable_epoch)
    }
}
