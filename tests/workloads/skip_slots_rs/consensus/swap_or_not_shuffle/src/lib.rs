//! The swap-or-not shuffle of a whole list (`compute_shuffled_index` of the consensus specification, for all indices at once).

use ethereum_hashing::hash_fixed;
use phase_timer::{Phase, PhaseTimer};

const SEED_SIZE: usize = 32;
const ROUND_SIZE: usize = 1;
const POSITION_WINDOW_SIZE: usize = 4;
const PIVOT_VIEW_SIZE: usize = SEED_SIZE + ROUND_SIZE;
const POSITIONS_PER_SOURCE_BITS: u32 = 8;
const TOTAL_SIZE: usize = SEED_SIZE + ROUND_SIZE + POSITION_WINDOW_SIZE;

/// What is hashed: seed, round, and the number of a window of 256 positions.
struct HashInput([u8; TOTAL_SIZE]);

impl HashInput {
    fn new(seed: &[u8; SEED_SIZE]) -> Self {
        let mut bytes = [0; TOTAL_SIZE];
        bytes[..SEED_SIZE].copy_from_slice(seed);
        Self(bytes)
    }

    fn pivot(&mut self, round: u8, list_size: usize) -> usize {
        self.0[SEED_SIZE] = round;
        let digest = hash_fixed(&self.0[..PIVOT_VIEW_SIZE]);
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        (u64::from_le_bytes(first) % list_size as u64) as usize
    }

    /// Hashes of all windows of the round that `pivot` was asked for last.
    fn fill_sources(&mut self, sources: &mut [Source]) {
        for (window, source) in sources.iter_mut().enumerate() {
            self.0[PIVOT_VIEW_SIZE..].copy_from_slice(&(window as u32).to_le_bytes());
            *source = hash_fixed(&self.0);
        }
    }
}

/// One bit for each of 256 positions.
pub type Source = [u8; 32];

/// How many sources a round over so many elements needs.
pub fn sources_per_round(list_size: usize) -> usize {
    list_size.div_ceil(1 << POSITIONS_PER_SOURCE_BITS)
}

/// Shuffles `input`, so that element `i` of the result is `input[compute_shuffled_index(i)]` where `forwards` is false, and
/// the other way round where it is true.  None for a list that is empty or too long for the specification.
pub fn shuffle_list(mut input: Vec<usize>, rounds: u8, seed: &[u8; SEED_SIZE], forwards: bool) -> Option<Vec<usize>> {
    if input.is_empty() || input.len() > u32::MAX as usize || rounds == 0 {
        return None;
    }
    let mut hash_input = HashInput::new(seed);
    let mut sources = vec![[0; 32]; sources_per_round(input.len())];
    for step in 0..rounds {
        let round = if forwards { step } else { rounds - 1 - step };
        let pivot = {
            let _timer = PhaseTimer::start(Phase::Sha256);
            let pivot = hash_input.pivot(round, input.len());
            hash_input.fill_sources(&mut sources);
            pivot
        };
        shuffle_round(&mut input, pivot, &sources);
    }
    Some(input)
}

/// One round.  `pivot` is a place in the list; `sources`: as many as `sources_per_round` says.
#[inline(never)]
pub fn shuffle_round(list: &mut [usize], pivot: usize, sources: &[Source]) {
    swap_mirrored(list, 0, pivot, sources);
    if pivot + 1 < list.len() {
        swap_mirrored(list, pivot + 1, list.len() - 1, sources);
    }
}

/// Decides for each pair of positions that mirror each other between `first` and `last`, by the bit of the higher one.
fn swap_mirrored(list: &mut [usize], first: usize, last: usize, sources: &[Source]) {
    for offset in 0..(last - first).div_ceil(2) {
        let (low, high) = (first + offset, last - offset);
        let byte = sources[high >> POSITIONS_PER_SOURCE_BITS][(high & 0xff) >> 3];
        if (byte >> (high & 7)) & 1 == 1 {
            list.swap(low, high);
        }
    }
}
