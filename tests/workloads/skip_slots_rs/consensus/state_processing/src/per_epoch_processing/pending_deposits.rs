//! Deposits: more for validators that are known, and new validators.

use crate::{list_error, Error};
use phase_timer::{Phase, PhaseTimer};
use safe_arith::SafeArith;
use types::{BeaconState, List, PendingDeposit, Validator};

#[inline(never)]
pub fn process_pending_deposits(state: &mut BeaconState) -> Result<(), Error> {
    let deposits = std::mem::replace(&mut state.pending_deposits, List::empty()).to_vec();
    let indices = find_validators(state, &deposits);
    let mut new_validators = Vec::new();
    for (deposit, index) in deposits.iter().zip(indices) {
        match index {
            Some(index) => increase_balance(state, index, deposit.amount)?,
            None => new_validators.push(deposit),
        }
    }
    for deposit in new_validators {
        add_validator_to_registry(state, deposit)?;
    }
    Ok(())
}

#[inline(never)]
fn find_validators(state: &BeaconState, deposits: &[PendingDeposit]) -> Vec<Option<usize>> {
    let _timer = PhaseTimer::start(Phase::Rpds);
    let mut indices = Vec::with_capacity(deposits.len());
    for deposit in deposits {
        indices.push(state.pubkey_cache.get(&deposit.pubkey));
    }
    indices
}

fn increase_balance(state: &mut BeaconState, index: usize, amount: u64) -> Result<(), Error> {
    let balance = state.balances.get_mut(index).ok_or(types::Error::UnknownValidator(index))?;
    balance.safe_add_assign(amount)?;
    Ok(())
}

fn add_validator_to_registry(state: &mut BeaconState, deposit: &PendingDeposit) -> Result<(), Error> {
    let index = state.validators.len();
    state.validators.push(Validator::from_deposit(deposit)).map_err(list_error)?;
    state.balances.push(deposit.amount).map_err(list_error)?;
    state.previous_epoch_participation.push(0).map_err(list_error)?;
    state.current_epoch_participation.push(0).map_err(list_error)?;
    state.inactivity_scores.set(index, 0);
    Ok(())
}
