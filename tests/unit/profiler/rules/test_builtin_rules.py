"""The built-in rule sets against symbols as they stand in the binaries of the clients."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from profiler.model.category import Places
from profiler.model.symbols import Function, NameSource
from profiler.rules import loader
from profiler.rules.loader import builtin_names, load_rule_sets
from profiler.rules.matcher import RuleMatcher
from symbolize.function_key import function_key

TRANSPARENT, UNMATCHED = "(transparent)", "(unmatched)"
MATCHER = RuleMatcher(load_rule_sets())
RULES = load_rule_sets().rules
KERNEL = "[kernel]"

USER_SYMBOLS = {
    "SHA-256": [
        "sha2::sha256::x86::digest_blocks",
        "sha2::sha256::x86::compress",
        "sha2::sha256::compress256",
        "sha2::sha256::soft::sha256_digest_block_u32",
        "ring_core_0_17_8__sha256_block_data_order",
        "ring_core_0_17_8__sha256_block_data_order_nohw",
        "ring_core_0_17_14__sha256_block_data_order_hw",
        "blst_sha256_block_data_order_shaext",
        "ethereum_hashing::hash_fixed",
        "ethereum_hashing::hash32_concat",
        "<ethereum_hashing::DynamicContext as ethereum_hashing::Sha256Context>::finalize",
        "digest::core_api::wrapper::CoreWrapper<T>::update",
        "block_buffer::BlockBuffer<B,K>::digest_blocks",
        "sha_256_x86_sha",
        "evmone::crypto::sha256(std::byte*, std::byte const*, unsigned long)",
        "evmone::crypto::(anonymous namespace)::calc_chunk(unsigned char*)",
        "hashtree_sha256_shani_x2",
        "hashtree_sha256_avx512_x16",
        "github.com/prysmaticlabs/gohashtree.HashtreeHash",
        "github.com/minio/sha256-simd.blockIntelSha",
        "crypto/internal/fips140/sha256.block",
        "sha256::compress_portable(unsigned int*, unsigned char const*)",
        "sha256::compress_shani",
        "sha256::hash_pair",
        "sha256::digest",
    ],
    "Keccak": ["ethash_keccak256", "keccakf1600_bmi"],
    "tree hashing": [
        "tree_hash::merkle_hasher::MerkleHasher::process_left_node",
        "tree_hash::merkle_root",
        "tree_hash::mix_in_length",
        "<types::beacon_state::BeaconState<E> as tree_hash::TreeHash>::tree_hash_root",
        "<alloc::vec::Vec<T> as tree_hash::TreeHash>::tree_hash_root",
        "<u64 as tree_hash::TreeHash>::tree_hash_root",
        "milhouse::tree::Tree<T>::tree_hash",
        "milhouse::packed_leaf::PackedLeaf<T>::tree_hash",
        "types::beacon_state::BeaconState<E>::update_tree_hash_cache",
        "libssz_merkle::merkleize",
        "ssz::merkle_tree::MerkleTree<D>::push",
        "merkle::hash_tree_root(node const&)",
        "merkle::hash_node",
        "hash_tree_root",
    ],
    "tree iteration": [
        "<milhouse::iter::Iter<T> as core::iter::traits::iterator::Iterator>::next",
        "<milhouse::interface_iter::InterfaceIter<T,U> as core::iter::traits::iterator::Iterator>::next",
        "milhouse::interface_iter::InterfaceIterCow<T,U>::next_cow",
        "milhouse::level_iter::LevelIter<T>::next",
        "milhouse::list::List<T,N,U>::get",
        "milhouse::list::List<T,N,U>::get_mut",
        "milhouse::list::List<T,N,U>::iter_from",
        "milhouse::tree::Tree<T>::get_recursive",
        "persistent_tree::iterate(persistent_tree::Node const*)",
        "persistent_tree::Iterator<Validator>::next()",
        "persistent_tree::get",
        "persistent_tree::for_each",
    ],
    "tree update": [
        "milhouse::tree::Tree<T>::with_updated_leaf",
        "milhouse::tree::Tree<T>::with_updated_leaves",
        "milhouse::tree::Tree<T>::rebase_on",
        "milhouse::tree::Tree<T>::intra_rebase",
        "milhouse::update_map::MaxMap<M>::for_each_range",
        "milhouse::builder::Builder<T>::push_node",
        "<milhouse::tree::Tree<T> as core::clone::Clone>::clone",
        "vec_map::VecMap<V>::insert",
        "persistent_tree::with_updated",
        "persistent_tree::rebuild_path",
        "persistent_tree::build",
        "persistent_tree::update",
    ],
    "RPDS": [
        "rpds::map::hash_trie_map::HashTrieMap<K,V,P,H>::insert",
        "archery::shared_pointer::SharedPointer<T,P>::clone",
        "types::beacon_state::pubkey_cache::PubkeyCache::insert",
        "types::beacon_state::slashings_cache::SlashingsCache::record",
    ],
    "shuffling": [
        "swap_or_not_shuffle::shuffle_list::shuffle_list",
        "types::beacon_state::committee_cache::CommitteeCache::initialized",
        "shuffling::shuffle_list(std::vector<unsigned int>&)",
        "shuffling::compute_shuffled_index",
        "grandine::shuffling::shuffle_slice",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/helpers.innerShuffleList",
    ],
    "active indices": ["types::beacon_state::BeaconState<E>::get_active_validator_indices"],
    "epoch processing": [
        "state_processing::per_epoch_processing::single_pass::process_epoch_single_pass",
        "state_processing::per_epoch_processing::altair::participation_cache::ParticipationCache::new",
        "types::beacon_state::progressive_balances_cache::ProgressiveBalancesCache::on_attestation",
        "<u64 as safe_arith::SafeArith>::safe_add",
        "safe_arith::SafeArith::safe_mul",
        "epoch_processing::process_rewards",
        "epoch_processing::process_inactivity",
        "transition_functions::altair::epoch_processing::process_epoch",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/altair.AttestationsDelta",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/altair.ProcessInactivityScores",
    ],
    "state and blocks": [
        "state_processing::state_advance::complete_state_advance",
        "state_processing::per_slot_processing::per_slot_processing",
        "types::validator::Validator::is_active_at",
        "ethlambda_state_transition::process_block",
    ],
    "fork choice": ["ethlambda_fork_choice::compute_lmd_ghost_head"],
    "BLS": [
        "blst_p1_add",
        "mulx_mont_384",
        "sqr_mont_384",
        "redcx_mont_256",
        "add_mod_384",
        "miller_loop_n",
        "final_exp",
        "POINTonE1_double",
        "bls::generic_public_key::GenericPublicKey<P>::deserialize",
    ],
    "SSZ": [
        "ssz::decode::impls::decode_list_of_variable_length_items",
        "<alloc::vec::Vec<T> as ssz::encode::Encode>::ssz_append",
        "types::beacon_state::BeaconState<E>::from_ssz_bytes",
        "ssz_types::variable_list::VariableList<T,N>::new",
        "libssz::decode",
    ],
    "elliptic curves": [
        "evmmax::ModArith<intx::uint<256u> >::mul(intx::uint<256u> const&) const",
        "intx::operator*(intx::uint<256u> const&, intx::uint<256u> const&)",
        "evmone::crypto::secp256k1::mul",
    ],
    "XMSS": ["leansig::signature::verify", "p3_koala_bear::poseidon2::permute"],
    "proof aggregation": ["lean_vm::execute", "sub_protocols::sumcheck::prove"],
    "database": ["rocksdb::DBImpl::Get(rocksdb::ReadOptions const&)"],
    "network": ["libp2p_gossipsub::behaviour::poll", "snap::compress"],
    "EVM": ["evmone::baseline::execute(evmone::VM&)"],
    "memmove": [
        "__memmove_avx512_unaligned_erms",
        "__memset_avx512_unaligned_erms",
        "__memcpy_evex_unaligned_erms",
        "__memcmp_evex_movbe",
        "memcpy@GLIBC_2.14",
        "memmove",
        "bcmp",
        "compiler_builtins::mem::memcpy",
        "runtime.memmove",
        "runtime.memclrNoHeapPointers",
    ],
    "malloc": [
        "malloc",
        "cfree@GLIBC_2.2.5",
        "free",
        "_int_malloc",
        "_int_free",
        "_int_free_merge_chunk",
        "malloc_consolidate",
        "__libc_calloc",
        "__libc_malloc",
        "sysmalloc",
        "unlink_chunk.constprop.0",
        "tcache_get_n",
        "sdallocx",
        "mallocx",
        "posix_memalign",
        "_rjem_malloc",
        "_rjem_sdallocx",
        "_rjem_je_arena_tcache_fill_small",
        "_rjem_je_prof_tctx_create",
        "je_malloc",
        "__rustc::__rust_alloc",
        "__rustc::__rdl_dealloc",
        "__rustc::__rg_alloc",
        "_RNvCs9ltgdHTiPiY_7___rustc35___rust_no_alloc_shim_is_unstable_v2",
        "<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::alloc",
        "operator new(unsigned long)",
        "operator delete[](void*)",
        "mi_malloc",
        "runtime.mallocgc",
        "runtime.gcBgMarkWorker",
    ],
    "DefaultHasher": [
        "<core::hash::sip::Hasher<S> as core::hash::Hasher>::write",
        "std::hash::random::RandomState::new",
        "<std::hash::random::DefaultHasher as core::hash::Hasher>::finish",
        "core::hash::BuildHasher::hash_one",
        "ahash::fallback_hash::AHasher::write",
    ],
    "locks": [
        "parking_lot::raw_rwlock::RawRwLock::lock_shared_slow",
        "pthread_mutex_lock",
        "__pthread_rwlock_rdlock",
        "___pthread_mutex_unlock",
        "std::sys::sync::mutex::futex::Mutex::lock_contended",
        "std::sync::poison::rwlock::RwLock<T>::read",
        "sync.(*Mutex).Lock",
        "runtime.lock2",
    ],
    "I/O": [
        "read",
        "__write",
        "__GI___libc_write",
        "_IO_file_xsputn",
        "<std::fs::File as std::io::Read>::read",
        "std::io::Write::write_fmt",
        "fsync",
    ],
    "serialization and logs": ["serde_json::de::from_str", "tracing::span::Span::enter"],
    TRANSPARENT: [
        "core::num::<impl u32>::rotate_right",
        "core::slice::iter::Iter<T>::next",
        "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold",
        "alloc::vec::Vec<T,A>::push",
        "<[T] as core::slice::index::SliceIndex<T>>::get",
        "<u64 as core::ops::arith::Add>::add",
        "<F as rayon_core::job::Job>::execute",
        "std::rt::lang_start_internal",
        "std::vector<int, std::allocator<int> >::push_back(int const&)",
        "void std::__introsort_loop<int*, long>(int*, int*, long)",
        "bool __gnu_cxx::operator!=<int*>(int)",
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "core::ops::function::FnOnce::call_once",
        "core::ptr::drop_in_place<alloc::vec::Vec<u8>>",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "rayon::iter::plumbing::bridge_producer_consumer::helper",
        "rayon_core::registry::WorkerThread::wait_until_cold",
        "itertools::zip_eq_impl::ZipEq<I,J>::next",
        "smallvec::SmallVec<A>::push",
        "main",
        "lcli::main",
        "_start",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "clone3",
        "start_thread",
        "phase::iterate(State&)",
        "phase::sha256",
        "runtime.goexit",
    ],
    "module: foo": ["foo::bar::baz", "foo::bar(int)"],
    "package: github.com/x/y": ["github.com/x/y.(*T).Run"],
    UNMATCHED: ["plain_c_function", "(anonymous namespace)::helper(int)"],
}

KERNEL_SYMBOLS = {
    "kernel: page faults": ["asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_anonymous_page", "clear_page_erms"],
    "kernel: memory map": ["__x64_sys_munmap", "do_mmap", "__x64_sys_madvise", "zap_pte_range", "unmap_page_range"],
    "kernel: other": ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "[kernel]"],
    "locks": ["__x64_sys_futex", "futex_wait"],
    "I/O": ["ksys_read", "vfs_write", "__x64_sys_pread64"],
    TRANSPARENT: [
        "asm_sysvec_apic_timer_interrupt",
        "sysvec_apic_timer_interrupt",
        "irqentry_exit",
        "irqentry_exit_to_user_mode",
        "finish_task_switch",
        "__schedule",
        "_raw_spin_unlock_irqrestore",
    ],
}


def taken(names: Sequence[str], dso: str, file: str = "") -> list[str]:
    """What takes each function when no ``under`` pattern holds."""
    keys = [function_key(name) for name in names]
    functions = [Function(n, n, k.key, k.trait_key, NameSource.SYMBOL_TABLE) for n, k in zip(names, keys, strict=True)]
    rows = np.arange(len(names), dtype=np.int32)
    places = Places(rows, np.full(len(names), 0 if file else -1, np.int32), np.zeros(len(names), np.int32))
    matches = MATCHER.match(functions, [file], [dso], places)
    found = []
    for start, end in zip(matches.start[:-1].tolist(), matches.start[1:].tolist(), strict=True):
        entries = [entry for entry in range(start, end) if matches.under[entry] < 0]
        category = matches.category[entries[0]] if entries else None
        found.append(UNMATCHED if category is None else TRANSPARENT if category < 0 else matches.categories[category])
    return found


@pytest.mark.parametrize("category", USER_SYMBOLS)
def test_user_symbols(category: str) -> None:
    names = USER_SYMBOLS[category]
    assert dict(zip(names, taken(names, "lighthouse"), strict=True)) == dict.fromkeys(names, category)


@pytest.mark.parametrize("category", KERNEL_SYMBOLS)
def test_kernel_symbols(category: str) -> None:
    names = KERNEL_SYMBOLS[category]
    assert dict(zip(names, taken(names, KERNEL), strict=True)) == dict.fromkeys(names, category)


def test_kernel_rules_keep_away_from_user_code() -> None:
    names = ["exc_page_fault", "do_mmap", "futex_hash", "__schedule", "vfs_read"]
    assert taken(names, "app") == [UNMATCHED] * len(names)
    assert taken(["exc_page_fault"], "[vdso]") == ["library: vdso"]
    assert taken(["nf_hook_slow"], "[nf_tables]") == ["kernel: other"]


@pytest.mark.parametrize(
    ("file", "category"),
    [
        ("/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h", TRANSPARENT),
        ("/usr/lib/llvm-19/lib/clang/19/include/shaintrin.h", TRANSPARENT),
        ("/usr/include/c++/12/bits/stl_algo.h", TRANSPARENT),
        ("/usr/include/c++/12/tuple", TRANSPARENT),
        ("/rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/core/src/num/uint_macros.rs", TRANSPARENT),
        ("/rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/core/src/hash/sip.rs", "DefaultHasher"),
        ("/src/evmone/lib/evmone_precompiles/ecc.hpp", "elliptic curves"),
        ("/src/app/emmintrin_users.cpp", UNMATCHED),
    ],
)
def test_source_files(file: str, category: str) -> None:
    assert taken(["bare_name"], "app", file) == [category]


@pytest.mark.parametrize(
    ("dso", "category"),
    [
        ("libm.so.6", "library: libm"),
        ("libstdc++.so.6.0.30", "library: libstdc++"),
        ("libm-2.31.so", "library: libm"),
        ("ld-linux-x86-64.so.2", "library: ld-linux-x86-64"),
        ("app", UNMATCHED),
    ],
)
def test_libraries_are_the_last_resort(dso: str, category: str) -> None:
    assert taken(["__sin_fma"], dso) == [category]


def test_passthrough_categories() -> None:
    passthrough = {rule.category for rule in RULES if rule.is_passthrough}
    assert passthrough == {
        "memmove",
        "malloc",
        "DefaultHasher",
        "kernel: page faults",
        "kernel: memory map",
        "kernel: other",
    }


def test_every_category_has_a_group_and_the_kernel_is_one() -> None:
    groups: dict[str, set[str]] = {}
    for rule in RULES:
        if rule.category:
            groups.setdefault(rule.category, set()).update({rule.group} - {""})
    assert {category for category, found in groups.items() if len(found) != 1} == set()
    assert {category for category, found in groups.items() if found == {"kernel"}} == {
        "kernel: page faults",
        "kernel: memory map",
        "kernel: other",
    }


def test_rule_sets_by_themselves() -> None:
    assert builtin_names() == ("common", "ethereum", "native")
    for name in builtin_names():
        categories = {rule.category for rule in load_rule_sets((name,)).rules}
        assert {"memmove", "malloc", "kernel: other"} <= categories
    assert {"SHA-256", "tree iteration", "shuffling"} <= {rule.category for rule in load_rule_sets(("ethereum",)).rules}
    assert not any(rule.is_fallback for rule in load_rule_sets(("ethereum",)).rules)
    assert load_rule_sets().name == "ethereum+native"


def test_shared_rules_are_tried_once_and_last() -> None:
    origins = [rule.origin for rule in RULES]
    files = [re.sub(r":\d+$", "", origin) for origin in origins]
    assert len(set(origins)) == len(origins)
    assert list(dict.fromkeys(files)) == ["ethereum.toml", "native.toml", "common.toml"]


@pytest.mark.parametrize("name", builtin_names())
def test_patterns_in_lists_are_right_one_by_one(name: str) -> None:
    text = Path(loader.__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    checked, trusted = loader.parse_rule_file(text, name), loader.parse_rule_file(text, name, is_builtin=True)
    assert checked == trusted
    assert checked.rules
