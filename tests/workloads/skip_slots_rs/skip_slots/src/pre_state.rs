//! The state to start from.

use crate::random_numbers::Generator;
use ssz::Encode;
use std::sync::Arc;
use types::chain_spec::{FAR_FUTURE_EPOCH, MAX_EFFECTIVE_BALANCE};
use types::{BeaconState, Checkpoint, Error, Hash256, List, PendingDeposit, PublicKeyBytes, Validator, Vector};

const EPOCH: u64 = 1000;
/// In the middle of an epoch: what its end changes is hashed by the slots after it.
const SLOT: u64 = 32 * EPOCH + 16;
const VALIDATORS_PER_DEPOSIT: usize = 4;
/// One deposit in so many is of a new validator.
const DEPOSITS_PER_NEW_VALIDATOR: usize = 16;
const ALL_FLAGS: u8 = 7;

/// A state that was decoded from SSZ bytes, with its caches, and its root.  The same for the same number of validators.
#[inline(never)]
pub fn prepare(validators: usize) -> Result<(BeaconState, Hash256), Error> {
    let mut generator = Generator::new(validators as u64);
    let bytes = state(validators, &mut generator)?.as_ssz_bytes();
    let mut state = BeaconState::decode(&bytes)?;
    state.build_all_caches()?;
    let root = state.update_tree_hash_cache()?;
    Ok((state, root))
}

fn state(validators: usize, generator: &mut Generator) -> Result<BeaconState, Error> {
    let registry: Vec<Validator> = (0..validators).map(|_| validator(generator)).collect();
    let balances = registry.iter().map(|each| each.effective_balance + generator.below(1_000_000_000)).collect();
    let deposits = deposits(&registry, generator);
    let scores: Vec<u64> = (0..validators).map(|_| generator.below(64)).collect();
    Ok(BeaconState {
        genesis_time: 1_606_824_023,
        genesis_validators_root: root(generator),
        slot: SLOT,
        latest_block_root: root(generator),
        block_roots: Vector::try_from_iter((0..8192).map(|_| root(generator)))?,
        state_roots: Vector::try_from_iter((0..8192).map(|_| root(generator)))?,
        validators: List::new(registry)?,
        balances: List::new(balances)?,
        randao_mixes: Vector::try_from_iter((0..65_536).map(|_| root(generator)))?,
        slashings: Vector::try_from_iter((0..8192).map(|_| 0))?,
        previous_epoch_participation: List::new((0..validators).map(|_| flags(generator)).collect())?,
        current_epoch_participation: List::new((0..validators).map(|_| flags(generator)).collect())?,
        justification_bits: 0xf,
        previous_justified_checkpoint: Checkpoint { epoch: EPOCH - 2, root: root(generator) },
        current_justified_checkpoint: Checkpoint { epoch: EPOCH - 1, root: root(generator) },
        finalized_checkpoint: Checkpoint { epoch: EPOCH - 2, root: root(generator) },
        inactivity_scores: persistent_tree::List::new(&scores),
        pending_deposits: List::new(deposits)?,
        committee_caches: [Arc::default(), Arc::default(), Arc::default()],
        pubkey_cache: Default::default(),
        slashings_cache: Default::default(),
    })
}

fn root(generator: &mut Generator) -> Hash256 {
    Hash256::from(generator.bytes::<32>())
}

/// Most of them with the full balance; few slashed, few gone.
fn validator(generator: &mut Generator) -> Validator {
    let has_full_balance = generator.below(16) > 0;
    let has_left = generator.below(32) == 0;
    Validator {
        pubkey: PublicKeyBytes(generator.bytes::<48>()),
        withdrawal_credentials: root(generator),
        effective_balance: if has_full_balance { MAX_EFFECTIVE_BALANCE } else { MAX_EFFECTIVE_BALANCE / 32 * 24 },
        slashed: generator.below(256) == 0,
        activation_eligibility_epoch: 0,
        activation_epoch: generator.below(EPOCH / 2),
        exit_epoch: if has_left { EPOCH - 1 - generator.below(8) } else { FAR_FUTURE_EPOCH },
        withdrawable_epoch: if has_left { EPOCH + 256 } else { FAR_FUTURE_EPOCH },
    }
}

fn flags(generator: &mut Generator) -> u8 {
    if generator.below(16) > 0 {
        ALL_FLAGS
    } else {
        generator.below(4) as u8
    }
}

fn deposits(registry: &[Validator], generator: &mut Generator) -> Vec<PendingDeposit> {
    (0..registry.len() / VALIDATORS_PER_DEPOSIT)
        .map(|number| {
            let known = registry[generator.below(registry.len() as u64) as usize].pubkey;
            let is_new = number % DEPOSITS_PER_NEW_VALIDATOR == 0;
            PendingDeposit {
                pubkey: if is_new { PublicKeyBytes(generator.bytes::<48>()) } else { known },
                withdrawal_credentials: root(generator),
                amount: if is_new { MAX_EFFECTIVE_BALANCE } else { 1_000_000_000 },
                slot: SLOT - 1,
            }
        })
        .collect()
}
