//! The shuffled validators of an epoch.

use super::BeaconState;
use crate::chain_spec::SHUFFLE_ROUND_COUNT;
use crate::Error;
use phase_timer::{Phase, PhaseTimer};
use swap_or_not_shuffle::shuffle_list;

#[derive(Clone, Debug, Default)]
pub struct CommitteeCache {
    shuffling: Vec<usize>,
}

impl CommitteeCache {
    #[inline(never)]
    pub fn initialized(state: &BeaconState, epoch: u64) -> Result<Self, Error> {
        let active = state.get_active_validator_indices(epoch);
        let seed = state.get_seed(epoch);
        let _timer = PhaseTimer::start(Phase::Shuffling);
        let shuffling = shuffle_list(active, SHUFFLE_ROUND_COUNT, &seed, false).ok_or(Error::Shuffling)?;
        Ok(Self { shuffling })
    }

    pub fn shuffling(&self) -> &[usize] {
        &self.shuffling
    }
}
