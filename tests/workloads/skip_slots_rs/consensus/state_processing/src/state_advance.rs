//! Slots without blocks.

use crate::per_slot_processing::per_slot_processing;
use crate::Error;
use phase_timer::{Phase, PhaseTimer};
use types::{BeaconState, Hash256};

/// Advances to `target_slot` with all state roots.  `state_root`: that of the state as it is, if known.
#[inline(never)]
pub fn complete_state_advance(state: &mut BeaconState, mut state_root: Option<Hash256>, target_slot: u64) -> Result<(), Error> {
    let _timer = PhaseTimer::start(Phase::Slots);
    check_target_slot(state.slot, target_slot)?;
    while state.slot < target_slot {
        per_slot_processing(state, state_root.take())?;
    }
    Ok(())
}

/// Advances to `target_slot` without hashing: the roots that would be needed are zero, so the result is no valid state.
#[inline(never)]
pub fn partial_state_advance(state: &mut BeaconState, target_slot: u64) -> Result<(), Error> {
    let _timer = PhaseTimer::start(Phase::Slots);
    check_target_slot(state.slot, target_slot)?;
    while state.slot < target_slot {
        per_slot_processing(state, Some(Hash256::ZERO))?;
    }
    Ok(())
}

fn check_target_slot(slot: u64, target_slot: u64) -> Result<(), Error> {
    if slot > target_slot {
        return Err(Error::TargetInThePast);
    }
    Ok(())
}
