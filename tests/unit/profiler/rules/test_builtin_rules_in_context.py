"""The built-in rules on whole stacks: what a helper's time belongs to depends on who called it."""

from __future__ import annotations

import pytest

from profiler.rules.loader import load_rule_sets
from support.attribution import attributed, categories_of_samples
from support.profile_from_text import DrawnSample, draw
from symbolize.function_key import function_key

RULES = load_rule_sets()
EPOCH = (
    "state_processing::state_advance::complete_state_advance",
    "state_processing::per_epoch_processing::single_pass::process_epoch_single_pass",
)
SLOT = ("state_processing::state_advance::complete_state_advance", "state_processing::per_slot_processing::per_slot_processing")
BLOCK = ("state_processing::per_block_processing::per_block_processing",)
TREE_HASH = ("types::beacon_state::BeaconState<E>::update_tree_hash_cache", "milhouse::tree::Tree<T>::tree_hash")
ACTIVE_INDICES = "types::beacon_state::BeaconState<E>::get_active_validator_indices"
ITERATION = "<milhouse::interface_iter::InterfaceIter<T,U> as core::iter::traits::iterator::Iterator>::next"
LEAVES_UPDATED = "milhouse::tree::Tree<T>::with_updated_leaves"
BTREE = "alloc::collections::btree::search::<impl alloc::collections::btree::node::NodeRef<B,K,V,T>>::search_tree"
BTREE_MAP_GET = "<alloc::collections::btree::map::BTreeMap<usize,T> as milhouse::update_map::UpdateMap<T>>::get"
APPLIED = "milhouse::interface::Interface<T,B,U>::apply_updates"
RWLOCK = "parking_lot::raw_rwlock::RawRwLock::lock_shared_slow"
IDLE_WORKER = ("rayon_core::registry::ThreadBuilder::run", "rayon_core::registry::WorkerThread::wait_until_cold")
WOKEN = ("rayon_core::sleep::Sleep::wake_specific_thread",)
EVM_CALL = ("evmone::baseline::execute(evmone::VM&)",)
HASH_ONE = "core::hash::BuildHasher::hash_one"
RPDS_GET = "rpds::map::hash_trie_map::HashTrieMap<K,V,P,H>::get"
KEYS_EQUAL = "<types::public_key_bytes::PublicKeyBytes as core::cmp::PartialEq>::eq"
SIP = "<core::hash::sip::Hasher<S> as core::hash::Hasher>::write"
HASH_MAP = "std::collections::hash::map::HashMap<K,V,S>::get"
INTX = "intx::operator*(intx::uint<256u> const&, intx::uint<256u> const&)"


def frame(name: str) -> str:
    """A drawn frame of a function as tools show it; "libc.so.6!name" puts it into that file."""
    dso, bang, function = name.rpartition("!")
    found = function_key(function)
    trait = f" as {found.trait_key}" if found.trait_key else ""
    return f"{dso}{bang}{found.key}{trait}"


def categories(*stack: str) -> tuple[str, str]:
    """(leaf, owner) category of one sample; frames outermost first."""
    run = attributed(draw([DrawnSample(tuple(frame(name) for name in ("main", *stack)))]).symbolized(), RULES)
    return categories_of_samples(run)[0], categories_of_samples(run, "owner")[0]


@pytest.mark.parametrize(
    ("stack", "category"),
    [
        # The lock around a cached hash, against any other lock.
        ((*SLOT, *TREE_HASH, RWLOCK), "tree hashing"),
        ((*SLOT, *TREE_HASH, "lock_api::rwlock::RwLock<R,T>::read", "parking_lot_core::parking_lot::park"), "tree hashing"),
        ((*SLOT, "store::hot_cold_store::HotColdDB::get", RWLOCK), "locks"),
        ((*BLOCK, RWLOCK), "locks"),
        ((*EPOCH, LEAVES_UPDATED, "lock_api::rwlock::RwLock<R,T>::new"), "tree update"),
        ((*TREE_HASH, "milhouse::tree::Tree<T>::node", "lock_api::rwlock::RwLock<R,T>::new"), "tree update"),
        # The map of pending changes, against any other map.
        ((*EPOCH, LEAVES_UPDATED, BTREE), "tree update"),
        ((*EPOCH, LEAVES_UPDATED, "vec_map::VecMap<V>::get"), "tree update"),
        ((*EPOCH, ITERATION, BTREE), "tree iteration"),
        ((*EPOCH, ITERATION, "<vec_map::VecMap<T> as milhouse::update_map::UpdateMap<T>>::get"), "tree iteration"),
        ((*EPOCH, ITERATION, BTREE_MAP_GET), "tree iteration"),
        ((*EPOCH, APPLIED, BTREE_MAP_GET, BTREE), "tree update"),
        ((*EPOCH, BTREE), "epoch processing"),
        (("app::run", BTREE), "module: app"),
        # Helpers of milhouse belong to whoever walks or changes the tree.
        ((*EPOCH, ITERATION, "milhouse::utils::opt_packing_factor"), "tree iteration"),
        ((*EPOCH, ITERATION, "<u64 as tree_hash::TreeHash>::tree_hash_packing_factor"), "tree iteration"),
        ((*EPOCH, LEAVES_UPDATED, "milhouse::utils::compute_level"), "tree update"),
        ((*TREE_HASH, "milhouse::utils::Length::as_usize"), "tree hashing"),
        # Accessors of the state, checked arithmetic.
        ((*EPOCH, "types::validator::Validator::is_active_at"), "epoch processing"),
        ((*EPOCH, "state_processing::common::decrease_balance"), "epoch processing"),
        ((*BLOCK, "types::validator::Validator::is_active_at"), "state and blocks"),
        ((*EPOCH, "<u64 as safe_arith::SafeArith>::safe_add"), "epoch processing"),
        ((*EPOCH, "safe_arith::SafeArith::safe_mul"), "epoch processing"),
        ((*BLOCK, "<u64 as safe_arith::SafeArith>::safe_add"), "state and blocks"),
        ((*EPOCH, "types::beacon_state::committee_cache::CommitteeCache::initialized"), "shuffling"),
        ((*EPOCH, ACTIVE_INDICES, "types::validator::Validator::is_active_at"), "active indices"),
        ((*EPOCH, ACTIVE_INDICES, ITERATION), "tree iteration"),
        # What types do for their holders.
        ((*EPOCH, LEAVES_UPDATED, "<types::validator::Validator as core::clone::Clone>::clone"), "tree update"),
        ((*BLOCK, HASH_ONE, "<types::public_key_bytes::PublicKeyBytes as core::hash::Hash>::hash"), "DefaultHasher"),
        ((*EPOCH, RPDS_GET, KEYS_EQUAL), "RPDS"),
        ((*EPOCH, RPDS_GET, "<bls::PublicKeyBytes as core::cmp::PartialEq>::eq"), "RPDS"),
        ((*EPOCH, "<ssz_types::fixed_vector::FixedVector<T,N> as core::ops::index::Index<I>>::index"), "epoch processing"),
        ((*BLOCK, "ssz_types::bitfield::Bitfield<T>::get"), "state and blocks"),
        ((*BLOCK, "<ssz_types::variable_list::VariableList<T,N> as ssz::decode::Decode>::from_ssz_bytes"), "SSZ"),
        (
            ("lcli::skip_slots::run", "<types::state::beacon_state::BeaconState<E> as core::clone::Clone>::clone"),
            "state and blocks",
        ),
        # Crates with names that are everyone's.
        (("lcli::skip_slots::run", "types::some_module::f"), "state and blocks"),
        (("app::run", "types::some_module::f"), "module: types"),
        (("lean_vm::prove", "backend::field::mul"), "proof aggregation"),
        (("lean_vm::prove", "p3_koala_bear::mul"), "proof aggregation"),
        (("app::draw", "backend::field::mul"), "module: backend"),
        # Hashing of map keys and of data.
        (("sha3::Keccak256::update", "block_buffer::BlockBuffer::digest_blocks"), "Keccak"),
        (("ethereum_hashing::hash", "block_buffer::BlockBuffer::digest_blocks"), "SHA-256"),
        # 256-bit arithmetic, by what it is for.
        ((*EVM_CALL, "evmone::instr::core::mul(evmone::StackTop)", INTX), "EVM"),
        ((*EVM_CALL, "evmone::crypto::modexp(std::span<int>)", INTX), "modexp"),
        ((*EVM_CALL, "evmmax::secp256k1::ecrecover()", "evmmax::ModArith<T>::mul(T const&) const", INTX), "elliptic curves"),
        ((*EVM_CALL, "evmmax::bn254::pairing_check()", "evmmax::ModArith<T>::mul(T const&) const"), "pairings"),
        # Thread pools: a search for work is the pool's, work that was found is not.
        ((*IDLE_WORKER,), "thread pool"),
        ((*IDLE_WORKER, "crossbeam_deque::deque::Stealer<T>::steal"), "thread pool"),
        ((*EPOCH, "rayon_core::join::join_context", "rayon_core::registry::WorkerThread::find_work"), "thread pool"),
        ((*SLOT, *TREE_HASH, *WOKEN, "std::sys::sync::mutex::futex::Mutex::lock_contended"), "thread pool"),
        ((*SLOT, *TREE_HASH, *WOKEN, "[kernel]!__x64_sys_futex", "[kernel]!try_to_wake_up"), "thread pool"),
        ((*SLOT, *TREE_HASH, "std::sync::poison::rwlock::RwLock<T>::read"), "tree hashing"),
        ((*IDLE_WORKER, "rayon_core::job::StackJob::execute", "app::work"), "module: app"),
        ((*IDLE_WORKER, "rayon_core::job::StackJob::execute", *TREE_HASH), "tree hashing"),
        # Values in memory are written without input or output.
        (("app::encode", "<alloc::vec::Vec<u8> as std::io::Write>::write_all"), "module: app"),
        (("app::encode", "<std::fs::File as std::io::Write>::write_all"), "I/O"),
        (("app::run", "libc.so.6!read", "[kernel]!__x64_sys_read", "[kernel]!copy_page_to_iter"), "I/O"),
        (("app::run", "libc.so.6!read", "[kernel]!sys_read", "[kernel]!copy_user_enhanced_fast_string"), "I/O"),
        (("app::run", "[kernel]!__ia32_sys_futex", "[kernel]!hash_futex"), "locks"),
        # Libraries that nothing names more closely.
        (("app::run", "libjemalloc.so.2!arena_slab_alloc"), "malloc"),
        (("app::run", "libmimalloc.so.2.1!unknown_internal"), "malloc"),
        (("app::run", "libm.so.6!__sin_fma"), "library: libm"),
    ],
    ids=lambda value: "/".join(name[-28:] for name in value[-2:]) if isinstance(value, tuple) else value,
)
def test_leaf(stack: tuple[str, ...], category: str) -> None:
    assert categories(*stack)[0] == category


@pytest.mark.parametrize(
    ("stack", "leaf", "owner"),
    [
        ((*EPOCH, LEAVES_UPDATED, "__rustc::__rust_alloc", "_rjem_malloc"), "malloc", "tree update"),
        ((*EPOCH, LEAVES_UPDATED, "malloc", "libc.so.6!_int_malloc"), "malloc", "tree update"),
        (
            (*EPOCH, "_rjem_je_arena_tcache_fill_small", "[kernel]!asm_exc_page_fault"),
            "kernel: page faults",
            "epoch processing",
        ),
        ((*EPOCH, RPDS_GET, KEYS_EQUAL, "libc.so.6!__memcmp_evex_movbe"), "memmove", "RPDS"),
        ((*SLOT, *TREE_HASH, "mi_malloc", "_mi_malloc_generic"), "malloc", "tree hashing"),
        ((*EPOCH, "libc.so.6!__memmove_avx512_unaligned_erms"), "memmove", "epoch processing"),
        (
            (*BLOCK, RPDS_GET, SIP),
            "DefaultHasher",
            "RPDS",
        ),
        ((*BLOCK, HASH_MAP, HASH_ONE), "DefaultHasher", "state and blocks"),
        (
            ("github.com/x/y.Run", "runtime.newobject", "runtime.mallocgc", "runtime.(*mcache).nextFree"),
            "malloc",
            "package: github.com/x/y",
        ),
        (("runtime.gcBgMarkWorker", "runtime.gcDrain", "runtime.scanobject"), "malloc", "malloc"),
        (
            (*EPOCH, "libc.so.6!munmap", "[kernel]!__x64_sys_munmap", "[kernel]!unmap_vmas"),
            "kernel: memory map",
            "epoch processing",
        ),
        # An interrupt's time is that of the frame that it interrupted.
        (
            (*EPOCH, "[kernel]!asm_sysvec_apic_timer_interrupt", "[kernel]!hrtimer_interrupt"),
            "epoch processing",
            "epoch processing",
        ),
        ((*EPOCH, "malloc", "[kernel]!irqentry_exit", "[kernel]!__schedule"), "malloc", "epoch processing"),
    ],
    ids=lambda value: value[-1][-40:] if isinstance(value, tuple) else value,
)
def test_leaf_and_owner(stack: tuple[str, ...], leaf: str, owner: str) -> None:
    assert categories(*stack) == (leaf, owner)
