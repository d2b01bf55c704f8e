//! What starts anew with an epoch.

use crate::{list_error, Error};
use types::chain_spec::{EPOCHS_PER_HISTORICAL_VECTOR, EPOCHS_PER_SLASHINGS_VECTOR};
use types::{BeaconState, List};

pub fn process_resets(state: &mut BeaconState) -> Result<(), Error> {
    let next_epoch = state.current_epoch() + 1;
    if let Some(slashings) = state.slashings.get_mut(next_epoch as usize % EPOCHS_PER_SLASHINGS_VECTOR) {
        *slashings = 0;
    }
    let mix = state.randao_mixes.get(state.current_epoch() as usize % EPOCHS_PER_HISTORICAL_VECTOR).copied();
    if let (Some(next), Some(mix)) = (state.randao_mixes.get_mut(next_epoch as usize % EPOCHS_PER_HISTORICAL_VECTOR), mix) {
        *next = mix;
    }
    process_participation_flag_updates(state)
}

#[inline(never)]
fn process_participation_flag_updates(state: &mut BeaconState) -> Result<(), Error> {
    let zeros = List::repeat(0, state.validators.len()).map_err(list_error)?;
    state.previous_epoch_participation = std::mem::replace(&mut state.current_epoch_participation, zeros);
    Ok(())
}
