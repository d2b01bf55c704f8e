//! Small results that can be computed elsewhere: shuffles, and roots of lists.

use state_processing::Error;
use swap_or_not_shuffle::shuffle_list;
use tree_hash::TreeHash as _;
use types::{Checkpoint, Hash256, List, PublicKeyBytes};

const SEED: [u8; 32] = [7; 32];
const ROUNDS: u8 = 90;

pub fn print() -> Result<(), Error> {
    for length in [1, 2, 3, 5, 255, 256, 257, 1000] {
        let shuffled = shuffle_list((0..length).collect(), ROUNDS, &SEED, false).unwrap_or_default();
        println!("{{\"shuffled\": {shuffled:?}, \"seed\": {SEED:?}}}");
    }
    for length in [0u64, 1, 4, 5, 1000] {
        let values: Vec<u64> = (0..length).map(|place| place * place + 1).collect();
        let own = persistent_tree::List::new(&values).tree_hash_root();
        let list = List::<u64>::new(values).map_err(types::Error::from)?.tree_hash_root();
        println!("{{\"length\": {length}, \"milhouse\": \"{list:x}\", \"persistent_tree\": \"{own:x}\"}}");
    }
    let checkpoint = Checkpoint { epoch: 5, root: Hash256::from([9; 32]) }.tree_hash_root();
    println!("{{\"checkpoint\": \"{checkpoint:x}\", \"pubkey\": \"{:x}\"}}", PublicKeyBytes([3; 48]).tree_hash_root());
    changed_list()
}

/// A list with changes and a new value has the root of the list that is made of the values at once.
fn changed_list() -> Result<(), Error> {
    let mut list = persistent_tree::List::new(&(0..1000).collect::<Vec<u64>>());
    list.tree_hash_root();
    for (index, value) in [(0, 77), (511, 5), (999, 1), (1000, 2)] {
        list.set(index, value);
    }
    list.apply_updates();
    let values: Vec<u64> = list.iter().copied().collect();
    println!("{{\"changed\": {values:?}, \"root\": \"{:x}\"}}", list.tree_hash_root());
    Ok(())
}
