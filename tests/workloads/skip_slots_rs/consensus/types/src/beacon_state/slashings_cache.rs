//! The slashed validators; clones share their nodes.

use super::List;
use crate::Validator;
use rpds::HashTrieSetSync;

#[derive(Clone, Debug, Default)]
pub struct SlashingsCache {
    slashed_validators: HashTrieSetSync<usize>,
}

impl SlashingsCache {
    pub fn new(validators: &List<Validator>) -> Self {
        let mut cache = Self::default();
        for (index, validator) in validators.iter().enumerate() {
            if validator.slashed {
                cache.record_validator_slashing(index);
            }
        }
        cache
    }

    pub fn record_validator_slashing(&mut self, index: usize) {
        self.slashed_validators.insert_mut(index);
    }

    pub fn is_slashed(&self, index: usize) -> bool {
        self.slashed_validators.contains(&index)
    }
}
