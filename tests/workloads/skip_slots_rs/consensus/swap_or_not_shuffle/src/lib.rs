//! The swap-or-not shuffle of a whole list (`compute_shuffled_index` of the consensus specification, for all indices at once).

use ethereum_hashing::hash_fixed;

const SEED_SIZE: usize = 32;
const ROUND_SIZE: usize = 1;
const POSITION_WINDOW_SIZE: usize = 4;
const PIVOT_VIEW_SIZE: usize = SEED_SIZE + ROUND_SIZE;
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

    fn source(&mut self, position: usize) -> [u8; 32] {
        self.0[PIVOT_VIEW_SIZE..].copy_from_slice(&((position >> 8) as u32).to_le_bytes());
        hash_fixed(&self.0)
    }
}

/// Shuffles `input`, so that element `i` of the result is `input[compute_shuffled_index(i)]` where `forwards` is false, and
/// the other way round where it is true.  None for a list that is empty or too long for the specification.
pub fn shuffle_list(mut input: Vec<usize>, rounds: u8, seed: &[u8; SEED_SIZE], forwards: bool) -> Option<Vec<usize>> {
    if input.is_empty() || input.len() > u32::MAX as usize || rounds == 0 {
        return None;
    }
    let mut hash_input = HashInput::new(seed);
    for step in 0..rounds {
        let round = if forwards { step } else { rounds - 1 - step };
        shuffle_round(&mut input, round, &mut hash_input);
    }
    Some(input)
}

fn shuffle_round(list: &mut [usize], round: u8, hash_input: &mut HashInput) {
    let size = list.len();
    let pivot = hash_input.pivot(round, size);
    swap_mirrored(list, 0, pivot, hash_input);
    if pivot + 1 < size {
        swap_mirrored(list, pivot + 1, size - 1, hash_input);
    }
}

/// Decides for each pair of positions that mirror each other between `first` and `last`, by the bit of the higher one.
fn swap_mirrored(list: &mut [usize], first: usize, last: usize, hash_input: &mut HashInput) {
    let mut source = hash_input.source(last);
    for offset in 0..(last - first).div_ceil(2) {
        let (low, high) = (first + offset, last - offset);
        if offset > 0 && high & 0xff == 0xff {
            source = hash_input.source(high);
        }
        let byte = source[(high & 0xff) >> 3];
        if (byte >> (high & 7)) & 1 == 1 {
            list.swap(low, high);
        }
    }
}
