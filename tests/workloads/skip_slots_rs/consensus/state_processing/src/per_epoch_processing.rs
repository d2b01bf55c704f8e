//! The epoch transition (Altair's, with Electra's queue of deposits).

pub mod justification_and_finalization;
pub mod pending_deposits;
pub mod progressive_balances;
pub mod resets;
pub mod single_pass;

use crate::Error;
use phase_timer::{Phase, PhaseTimer};
use types::BeaconState;

#[inline(never)]
pub fn process_epoch(state: &mut BeaconState) -> Result<(), Error> {
    let timer = PhaseTimer::start(Phase::EpochProcessing);
    let totals = progressive_balances::compute_totals(state)?;
    justification_and_finalization::process_justification_and_finalization(state, &totals)?;
    single_pass::process_epoch_single_pass(state, &totals)?;
    pending_deposits::process_pending_deposits(state)?;
    resets::process_resets(state)?;
    drop(timer);
    state.apply_pending_mutations()?;
    Ok(())
}
