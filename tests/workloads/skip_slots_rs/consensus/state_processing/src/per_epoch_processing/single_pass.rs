//! All that happens to each validator, in one walk through the lists.

use super::progressive_balances::Totals;
use crate::{list_error, Error};
use safe_arith::SafeArith;
use types::chain_spec::{
    BASE_REWARD_FACTOR, CHURN_LIMIT, EFFECTIVE_BALANCE_INCREMENT, EJECTION_BALANCE, EPOCHS_PER_SLASHINGS_VECTOR,
    FAR_FUTURE_EPOCH, HYSTERESIS_DOWNWARD, HYSTERESIS_UPWARD, INACTIVITY_PENALTY_QUOTIENT, INACTIVITY_SCORE_BIAS,
    INACTIVITY_SCORE_RECOVERY_RATE, MAX_EFFECTIVE_BALANCE, MAX_SEED_LOOKAHEAD, PARTICIPATION_FLAG_WEIGHTS,
    PROPORTIONAL_SLASHING_MULTIPLIER, TIMELY_HEAD_FLAG_INDEX, TIMELY_TARGET_FLAG_INDEX, WEIGHT_DENOMINATOR,
};
use types::{BeaconState, Validator};

/// What is the same for all validators.
pub struct EpochContext {
    previous_epoch: u64,
    current_epoch: u64,
    finalized_epoch: u64,
    is_in_inactivity_leak: bool,
    base_reward_per_increment: u64,
    active_increments: u64,
    flag_increments: [u64; 3],
    adjusted_slashings: u64,
    total_active: u64,
    /// Validators that may still be activated.
    activations: u64,
}

impl EpochContext {
    pub fn new(state: &BeaconState, totals: &Totals) -> Result<Self, Error> {
        let finality_delay = state.previous_epoch().saturating_sub(state.finalized_checkpoint.epoch);
        Ok(Self {
            previous_epoch: state.previous_epoch(),
            current_epoch: state.current_epoch(),
            finalized_epoch: state.finalized_checkpoint.epoch,
            is_in_inactivity_leak: finality_delay > 4,
            base_reward_per_increment: EFFECTIVE_BALANCE_INCREMENT
                .safe_mul(BASE_REWARD_FACTOR)?
                .safe_div(totals.active.isqrt())?,
            active_increments: totals.active.safe_div(EFFECTIVE_BALANCE_INCREMENT)?,
            flag_increments: totals.previous_flags.map(|balance| balance / EFFECTIVE_BALANCE_INCREMENT),
            adjusted_slashings: totals.slashed.safe_mul(PROPORTIONAL_SLASHING_MULTIPLIER)?.min(totals.active),
            total_active: totals.active,
            activations: CHURN_LIMIT,
        })
    }
}

/// What becomes of a validator.  `validator`: as it is changed, if it is.
pub struct Outcome {
    pub validator: Option<Validator>,
    pub balance: u64,
    pub score: u64,
}

#[inline(never)]
pub fn process_epoch_single_pass(state: &mut BeaconState, totals: &Totals) -> Result<(), Error> {
    let mut context = EpochContext::new(state, totals)?;
    let mut changed_scores = Vec::new();
    let mut validators = state.validators.iter_cow();
    let mut balances = state.balances.iter_cow();
    let participation = state.previous_epoch_participation.iter();
    for (score, flags) in state.inactivity_scores.iter().zip(participation) {
        let (Some((index, mut validator)), Some((_, mut balance))) = (validators.next_cow(), balances.next_cow()) else {
            break;
        };
        let outcome = process_single_validator(&validator, *balance, *flags, *score, &mut context)?;
        if outcome.score != *score {
            changed_scores.push((index, outcome.score));
        }
        if outcome.balance != *balance {
            *balance.make_mut().map_err(list_error)? = outcome.balance;
        }
        if let Some(changed) = outcome.validator {
            *validator.make_mut().map_err(list_error)? = changed;
        }
    }
    for (index, score) in changed_scores {
        state.inactivity_scores.set(index, score);
    }
    Ok(())
}

/// The arithmetic for validators in a plain array, with an inactivity score of 3: the sum of their new balances.
#[inline(never)]
pub fn process_validators(validators: &[Validator], participation: &[u8], context: &mut EpochContext) -> Result<u64, Error> {
    let mut sum = 0u64;
    for (validator, flags) in validators.iter().zip(participation) {
        let outcome = process_single_validator(validator, validator.effective_balance, *flags, 3, context)?;
        sum.safe_add_assign(outcome.balance)?;
    }
    Ok(sum)
}

/// The arithmetic of the walk for one validator.  `flags`: its participation in the previous epoch.
pub fn process_single_validator(
    validator: &Validator,
    balance: u64,
    flags: u8,
    score: u64,
    context: &mut EpochContext,
) -> Result<Outcome, Error> {
    let flags = if validator.slashed { 0 } else { flags };
    let mut outcome = Outcome { validator: None, balance, score };
    if validator.is_eligible_at(context.previous_epoch) {
        outcome.score = process_inactivity_updates(score, flags, context)?;
        let (reward, penalty) = rewards_and_penalties(validator, flags, outcome.score, context)?;
        outcome.balance = balance.safe_add(reward)?.saturating_sub(penalty);
    }
    outcome.validator = process_registry_updates(validator, context);
    outcome.balance = outcome.balance.saturating_sub(process_slashings(validator, context)?);
    let effective_balance = process_effective_balance_update(validator, outcome.balance)?;
    if effective_balance != validator.effective_balance {
        outcome.validator.get_or_insert_with(|| validator.clone()).effective_balance = effective_balance;
    }
    Ok(outcome)
}

fn process_inactivity_updates(score: u64, flags: u8, context: &EpochContext) -> Result<u64, Error> {
    let mut score = score;
    if (flags >> TIMELY_TARGET_FLAG_INDEX) & 1 == 1 {
        score = score.saturating_sub(1);
    } else {
        score.safe_add_assign(INACTIVITY_SCORE_BIAS)?;
    }
    if !context.is_in_inactivity_leak {
        score = score.saturating_sub(INACTIVITY_SCORE_RECOVERY_RATE);
    }
    Ok(score)
}

/// Reward and penalty in Gwei.
fn rewards_and_penalties(validator: &Validator, flags: u8, score: u64, context: &EpochContext) -> Result<(u64, u64), Error> {
    let (mut reward, mut penalty) = (0u64, 0u64);
    let increments = validator.effective_balance.safe_div(EFFECTIVE_BALANCE_INCREMENT)?;
    let base_reward = increments.safe_mul(context.base_reward_per_increment)?;
    for (flag, weight) in PARTICIPATION_FLAG_WEIGHTS.iter().enumerate() {
        if (flags >> flag) & 1 == 1 {
            if !context.is_in_inactivity_leak {
                let numerator = base_reward.safe_mul(*weight)?.safe_mul(context.flag_increments[flag])?;
                reward.safe_add_assign(numerator.safe_div(context.active_increments.safe_mul(WEIGHT_DENOMINATOR)?)?)?;
            }
        } else if flag as u32 != TIMELY_HEAD_FLAG_INDEX {
            penalty.safe_add_assign(base_reward.safe_mul(*weight)?.safe_div(WEIGHT_DENOMINATOR)?)?;
        }
    }
    if (flags >> TIMELY_TARGET_FLAG_INDEX) & 1 == 0 {
        let divisor = INACTIVITY_SCORE_BIAS.safe_mul(INACTIVITY_PENALTY_QUOTIENT)?;
        penalty.safe_add_assign(validator.effective_balance.safe_mul(score)?.safe_div(divisor)?)?;
    }
    Ok((reward, penalty))
}

/// The validator as it is changed, if it is.
fn process_registry_updates(validator: &Validator, context: &mut EpochContext) -> Option<Validator> {
    let may_enter_queue =
        validator.activation_eligibility_epoch == FAR_FUTURE_EPOCH && validator.effective_balance == MAX_EFFECTIVE_BALANCE;
    let may_activate = validator.activation_epoch == FAR_FUTURE_EPOCH
        && validator.activation_eligibility_epoch <= context.finalized_epoch
        && context.activations > 0;
    let must_exit = validator.is_active_at(context.current_epoch)
        && validator.effective_balance <= EJECTION_BALANCE
        && validator.exit_epoch == FAR_FUTURE_EPOCH;
    if !(may_enter_queue || may_activate || must_exit) {
        return None;
    }
    let mut changed = validator.clone();
    if may_enter_queue {
        changed.activation_eligibility_epoch = context.current_epoch + 1;
    }
    if may_activate {
        changed.activation_epoch = context.current_epoch + 1 + MAX_SEED_LOOKAHEAD;
        context.activations -= 1;
    }
    if must_exit {
        changed.exit_epoch = context.current_epoch + 1 + MAX_SEED_LOOKAHEAD;
        changed.withdrawable_epoch = changed.exit_epoch + 256;
    }
    Some(changed)
}

fn process_slashings(validator: &Validator, context: &EpochContext) -> Result<u64, Error> {
    let half = EPOCHS_PER_SLASHINGS_VECTOR as u64 / 2;
    if !validator.slashed || context.current_epoch.safe_add(half)? != validator.withdrawable_epoch {
        return Ok(0);
    }
    let increments = validator.effective_balance.safe_div(EFFECTIVE_BALANCE_INCREMENT)?;
    let numerator = increments.safe_mul(context.adjusted_slashings)?;
    Ok(numerator.safe_div(context.total_active)?.safe_mul(EFFECTIVE_BALANCE_INCREMENT)?)
}

fn process_effective_balance_update(validator: &Validator, balance: u64) -> Result<u64, Error> {
    let effective = validator.effective_balance;
    if balance.safe_add(HYSTERESIS_DOWNWARD)? < effective || effective.safe_add(HYSTERESIS_UPWARD)? < balance {
        return Ok(balance.safe_sub(balance.safe_rem(EFFECTIVE_BALANCE_INCREMENT)?)?.min(MAX_EFFECTIVE_BALANCE));
    }
    Ok(effective)
}
