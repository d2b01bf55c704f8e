//! How much effective balance was active, and how much of it attested.

use crate::Error;
use safe_arith::SafeArith;
use types::chain_spec::{EFFECTIVE_BALANCE_INCREMENT, EPOCHS_PER_SLASHINGS_VECTOR, TIMELY_TARGET_FLAG_INDEX};
use types::BeaconState;

/// Gwei.  `previous_flags`: unslashed balance by flag, of the previous epoch.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    pub active: u64,
    pub previous_flags: [u64; 3],
    pub current_target: u64,
    pub slashed: u64,
}

#[inline(never)]
pub fn compute_totals(state: &BeaconState) -> Result<Totals, Error> {
    let (previous, current) = (state.previous_epoch(), state.current_epoch());
    let mut totals = Totals { active: 0, previous_flags: [0; 3], current_target: 0, slashed: 0 };
    let participation = state.previous_epoch_participation.iter().zip(state.current_epoch_participation.iter());
    for (validator, (previous_flags, current_flags)) in state.validators.iter().zip(participation) {
        let balance = validator.effective_balance;
        if validator.is_active_at(current) {
            totals.active.safe_add_assign(balance)?;
            if !validator.slashed && (current_flags >> TIMELY_TARGET_FLAG_INDEX) & 1 == 1 {
                totals.current_target.safe_add_assign(balance)?;
            }
        }
        if !validator.slashed && validator.is_active_at(previous) {
            for (flag, total) in totals.previous_flags.iter_mut().enumerate() {
                if (previous_flags >> flag) & 1 == 1 {
                    total.safe_add_assign(balance)?;
                }
            }
        }
    }
    totals.active = totals.active.max(EFFECTIVE_BALANCE_INCREMENT);
    totals.slashed = state.slashings.iter().take(EPOCHS_PER_SLASHINGS_VECTOR).sum();
    Ok(totals)
}
