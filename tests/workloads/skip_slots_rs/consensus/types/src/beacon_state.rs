//! The state, and what is computed from it and kept.

pub mod committee_cache;
pub mod pubkey_cache;
pub mod slashings_cache;

use crate::chain_spec::{
    DOMAIN_BEACON_ATTESTER, EPOCHS_PER_HISTORICAL_VECTOR, MAX_SEED_LOOKAHEAD, SLOTS_PER_EPOCH, SLOTS_PER_HISTORICAL_ROOT,
};
use crate::{Checkpoint, Error, Hash256, PendingDeposit, Validator};
use committee_cache::CommitteeCache;
use phase_timer::{Phase, PhaseTimer};
use pubkey_cache::PubkeyCache;
use slashings_cache::SlashingsCache;
use ssz::Decode as _;
use ssz_derive::{Decode, Encode};
use std::sync::Arc;
use tree_hash::TreeHash as _;
use tree_hash_derive::TreeHash;
use typenum::{U1099511627776, U134217728, U65536, U8192};

#[cfg(feature = "btree-updates")]
pub type UpdateMap<T> = std::collections::BTreeMap<usize, T>;

#[cfg(not(feature = "btree-updates"))]
pub type UpdateMap<T> = milhouse::update_map::MaxMap<vec_map::VecMap<T>>;

pub type List<T, N = U1099511627776> = milhouse::List<T, N, UpdateMap<T>>;
pub type Vector<T, N> = milhouse::Vector<T, N, UpdateMap<T>>;

#[derive(Clone, Debug, Encode, Decode, TreeHash)]
pub struct BeaconState {
    pub genesis_time: u64,
    pub genesis_validators_root: Hash256,
    pub slot: u64,
    pub latest_block_root: Hash256,
    pub block_roots: Vector<Hash256, U8192>,
    pub state_roots: Vector<Hash256, U8192>,
    pub validators: List<Validator>,
    pub balances: List<u64>,
    pub randao_mixes: Vector<Hash256, U65536>,
    pub slashings: Vector<u64, U8192>,
    pub previous_epoch_participation: List<u8>,
    pub current_epoch_participation: List<u8>,
    pub justification_bits: u8,
    pub previous_justified_checkpoint: Checkpoint,
    pub current_justified_checkpoint: Checkpoint,
    pub finalized_checkpoint: Checkpoint,
    pub inactivity_scores: persistent_tree::List,
    pub pending_deposits: List<PendingDeposit, U134217728>,

    #[ssz(skip_serializing, skip_deserializing)]
    #[tree_hash(skip_hashing)]
    pub committee_caches: [Arc<CommitteeCache>; 3],
    #[ssz(skip_serializing, skip_deserializing)]
    #[tree_hash(skip_hashing)]
    pub pubkey_cache: PubkeyCache,
    #[ssz(skip_serializing, skip_deserializing)]
    #[tree_hash(skip_hashing)]
    pub slashings_cache: SlashingsCache,
}

impl BeaconState {
    /// Reads a state, of which no cache is built.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Ok(Self::from_ssz_bytes(bytes)?)
    }

    pub fn current_epoch(&self) -> u64 {
        self.slot / SLOTS_PER_EPOCH
    }

    pub fn previous_epoch(&self) -> u64 {
        self.current_epoch().saturating_sub(1)
    }

    /// Builds what is missing: committees of the previous, the current and the next epoch, public keys, slashed validators.
    pub fn build_all_caches(&mut self) -> Result<(), Error> {
        for (place, epoch) in [self.previous_epoch(), self.current_epoch(), self.current_epoch() + 1].into_iter().enumerate() {
            self.committee_caches[place] = Arc::new(CommitteeCache::initialized(self, epoch)?);
        }
        self.update_pubkey_cache();
        self.slashings_cache = SlashingsCache::new(&self.validators);
        Ok(())
    }

    /// Moves the committees on by an epoch and shuffles those of the next one.
    pub fn advance_caches(&mut self) -> Result<(), Error> {
        self.committee_caches.rotate_left(1);
        self.committee_caches[2] = Arc::new(CommitteeCache::initialized(self, self.current_epoch() + 1)?);
        let _timer = PhaseTimer::start(Phase::Rpds);
        self.update_pubkey_cache();
        Ok(())
    }

    /// Enters the validators that the cache does not know yet.
    pub fn update_pubkey_cache(&mut self) {
        for index in self.pubkey_cache.len()..self.validators.len() {
            if let Some(validator) = self.validators.get(index) {
                self.pubkey_cache.insert(validator.pubkey, index);
            }
        }
    }

    /// Indices of the validators that are active in an epoch, ascending.
    #[inline(never)]
    pub fn get_active_validator_indices(&self, epoch: u64) -> Vec<usize> {
        let _timer = PhaseTimer::start(Phase::ActiveIndices);
        let mut active = Vec::with_capacity(self.validators.len());
        for (index, validator) in self.validators.iter().enumerate() {
            if validator.is_active_at(epoch) {
                active.push(index);
            }
        }
        active
    }

    pub fn get_seed(&self, epoch: u64) -> [u8; 32] {
        let mix_epoch = epoch + EPOCHS_PER_HISTORICAL_VECTOR as u64 - MAX_SEED_LOOKAHEAD - 1;
        let mix = self.randao_mixes.get(mix_epoch as usize % EPOCHS_PER_HISTORICAL_VECTOR).copied().unwrap_or_default();
        let mut preimage = [0; 44];
        preimage[..4].copy_from_slice(&DOMAIN_BEACON_ATTESTER);
        preimage[4..12].copy_from_slice(&epoch.to_le_bytes());
        preimage[12..].copy_from_slice(mix.as_slice());
        ethereum_hashing::hash_fixed(&preimage)
    }

    pub fn set_state_root(&mut self, slot: u64, root: Hash256) -> Result<(), Error> {
        set_root(&mut self.state_roots, slot, root)
    }

    pub fn set_block_root(&mut self, slot: u64, root: Hash256) -> Result<(), Error> {
        set_root(&mut self.block_roots, slot, root)
    }

    /// Makes trees of the pending changes of all lists.
    #[inline(never)]
    pub fn apply_pending_mutations(&mut self) -> Result<(), Error> {
        let _timer = PhaseTimer::start(Phase::TreeUpdate);
        self.block_roots.apply_updates()?;
        self.state_roots.apply_updates()?;
        self.validators.apply_updates()?;
        self.balances.apply_updates()?;
        self.randao_mixes.apply_updates()?;
        self.slashings.apply_updates()?;
        self.previous_epoch_participation.apply_updates()?;
        self.current_epoch_participation.apply_updates()?;
        self.inactivity_scores.apply_updates();
        self.pending_deposits.apply_updates()?;
        Ok(())
    }

    /// The root of the whole state; only what has changed is hashed.
    #[inline(never)]
    pub fn update_tree_hash_cache(&mut self) -> Result<Hash256, Error> {
        self.apply_pending_mutations()?;
        let _timer = PhaseTimer::start(Phase::TreeHashing);
        Ok(self.tree_hash_root())
    }
}

/// The change is kept until the trees are made.  A vector of pending changes grows up to its place.
fn set_root(roots: &mut Vector<Hash256, U8192>, slot: u64, root: Hash256) -> Result<(), Error> {
    let _timer = PhaseTimer::start(Phase::TreeUpdate);
    let place = slot as usize % SLOTS_PER_HISTORICAL_ROOT;
    if let Some(kept) = roots.get_mut(place) {
        *kept = root;
    }
    Ok(())
}
