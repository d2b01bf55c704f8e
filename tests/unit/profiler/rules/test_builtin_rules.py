"""The built-in rule sets against symbols as they stand in the binaries of the clients."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from profiler.model.category import Places
from profiler.model.function import Function, NameSource
from profiler.model.function_table import table_of_named
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
        "ring_core_0_17_14__sha256_block_data_order_avx",
        "ring_core_0_17_14__sha256_block_data_order_ssse3",
        "ring::digest::Context::update",
        "sha2::sha256::soft::compress",
        "sha2::sha256::x86_sha::compress",
        "blst_sha256_block_data_order",
        "<ethereum_hashing::DynamicContext as ethereum_hashing::Sha256Context>::update",
        "ethereum_hashing::hash",
        "sha_256_generic",
        "sha_256_arm",
        "hashtree_sha256_avx2_x8",
        "hashtree_sha256_avx_x1",
        "hashtree_sha256_sse_x1",
        "github.com/OffchainLabs/hashtree.HashtreeHash",
        "github.com/prysmaticlabs/prysm/v5/crypto/hash/htr.VectorizedSha256",
        "github.com/prysmaticlabs/prysm/v5/crypto/hash.Hash",
        "crypto/sha256.block",
        "crypto/internal/fips140/sha256.blockSHANI",
        "sha256_block_data_order_shaext",
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
    "Keccak": ["keccakf1600_generic", "ethash_keccak256", "keccakf1600_bmi"],
    "tree hashing": [
        "persistent_tree::hash_cell::HashCell::get_or_init",
        "persistent_tree::tree::Tree<T>::tree_hash",
        "<persistent_tree::list::List<T> as tree_hash::TreeHash>::tree_hash_root",
        "tree_hash::merkle_hasher::MerkleHasher::write",
        "tree_hash::merkle_hasher::MerkleHasher::finish",
        "tree_hash::merkle_hasher::MerkleHasher::process_leaf",
        "tree_hash::merkle_hasher::MerkleHasher::process_right_node",
        "milhouse::tree::Tree<T>::tree_hash::{{closure}}",
        "milhouse::hash_cell::HashCell::get",
        "ssz::hc::Hc<T>::hash_tree_root",
        "<milhouse::list::List<T,N,U> as tree_hash::TreeHash>::tree_hash_root",
        "github.com/prysmaticlabs/prysm/v5/proto/prysm/v1alpha1.(*BeaconState).HashTreeRootWith",
        "github.com/prysmaticlabs/fastssz.(*Hasher).Merkleize",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/state/fieldtrie.(*FieldTrie).RecomputeTrie",
        "hash_tree_root__spec47ssz95merkleization_u512",
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
        "milhouse::list::List<T,N,U>::to_vec",
        "<persistent_tree::iter::Iter<T> as core::iter::traits::iterator::Iterator>::next",
        "persistent_tree::list::List<T>::iter",
        "milhouse::list::List<T,N,U>::get_cow",
        "milhouse::list::List<T,N,U>::iter",
        "milhouse::vector::Vector<T,N,U>::iter_from",
        "milhouse::interface::Interface<T,B,U>::get",
        "milhouse::interface::Interface<T,B,U>::iter_from",
        "<milhouse::list::ListInner<T,N> as milhouse::interface::ImmList<T>>::iter_from",
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
        "milhouse::builder::Builder<T>::push",
        "milhouse::builder::Builder<T>::finish",
        "milhouse::cow::Cow<T>::to_mut",
        "types::beacon_state::BeaconState<E>::apply_pending_mutations",
        "milhouse::interface::Interface<T,B,U>::apply_updates",
        "<alloc::collections::btree::map::BTreeMap<usize,T> as milhouse::update_map::UpdateMap<T>>::insert",
        "persistent_tree::tree::Tree::with_updated_leaf",
        "<vec_map::VecMap<T> as milhouse::update_map::UpdateMap<T>>::insert",
        "ssz::persistent_list::PersistentList<T,N,B>::update",
        "milhouse::tree::Tree<T>::with_updated_leaf",
        "milhouse::tree::Tree<T>::with_updated_leaves",
        "milhouse::tree::Tree<T>::rebase_on",
        "milhouse::tree::Tree<T>::intra_rebase",
        "milhouse::update_map::MaxMap<M>::for_each_range",
        "milhouse::builder::Builder<T>::push_node",
        "<milhouse::tree::Tree<T> as core::clone::Clone>::clone",
        "persistent_tree::with_updated",
        "persistent_tree::rebuild_path",
        "persistent_tree::build",
        "persistent_tree::update",
    ],
    "RPDS": [
        "rpds::set::hash_trie_set::HashTrieSet<T,P,H>::insert",
        "rpds::map::hash_trie_map::HashTrieMap<K,V,P,H>::insert",
        "archery::shared_pointer::SharedPointer<T,P>::clone",
        "types::beacon_state::pubkey_cache::PubkeyCache::insert",
        "types::beacon_state::slashings_cache::SlashingsCache::record",
    ],
    "shuffling": [
        "shuffle_list__spec47shuffling_u77",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/helpers.ComputeShuffledIndex",
        "swap_or_not_shuffle::shuffle_list::shuffle_list",
        "types::beacon_state::committee_cache::CommitteeCache::initialized",
        "shuffling::shuffle_list(std::vector<unsigned int>&)",
        "shuffling::compute_shuffled_index",
        "grandine::shuffling::shuffle_slice",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/helpers.innerShuffleList",
    ],
    "active indices": [
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/helpers.ActiveValidatorIndices",
        "types::beacon_state::BeaconState<E>::get_active_validator_indices",
    ],
    "epoch processing": [
        "state_processing::per_epoch_processing::base::validator_statuses::ValidatorStatuses::new",
        "state_processing::per_epoch_processing::capella::process_historical_summaries_update",
        "state_processing::per_epoch_processing::registry_updates::process_registry_updates",
        "state_processing::per_epoch_processing::slashings::process_slashings",
        "state_processing::per_epoch_processing::resets::process_eth1_data_reset",
        "state_processing::per_epoch_processing::effective_balance_updates::process_effective_balance_updates",
        "state_processing::epoch_cache::initialize_epoch_cache",
        "types::beacon_state::exit_cache::ExitCache::record_validator_exit",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/altair.ProcessEpochParticipation",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/epoch/precompute.ProcessJustificationAndFinalizationPreCompute",
        "process_epoch__beacon95chain47spec47state95transition95epoch_u123",
        "process_registry_updates__x_u5",
        "state_transition_epoch__state95transition_u9",
        "state_processing::per_epoch_processing::single_pass::process_epoch_single_pass",
        "state_processing::per_epoch_processing::altair::participation_cache::ParticipationCache::new",
        "types::beacon_state::progressive_balances_cache::ProgressiveBalancesCache::on_attestation",
        "epoch_processing::process_rewards",
        "epoch_processing::process_inactivity",
        "transition_functions::altair::epoch_processing::process_epoch",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/altair.AttestationsDelta",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/core/altair.ProcessInactivityScores",
    ],
    "state and blocks": [
        "ethlambda_state_transition::state_transition",
        "ethlambda_state_transition::process_slots",
        "ethlambda_state_transition::process_attestations",
        "ethlambda_state_transition::try_finalize",
        "ethlambda_state_transition::serialize_justifications",
        "state_processing::state_advance::partial_state_advance",
        "state_processing::per_block_processing::process_operations",
        "types::slot_epoch::Epoch::start_slot",
        "types::chain_spec::ChainSpec::fork_name_at_epoch",
        "types::phase0::containers::Validator::is_slashable",
        "<types::beacon_state::BeaconState<E> as core::clone::Clone>::clone",
        "state_processing::state_advance::complete_state_advance",
        "state_processing::per_slot_processing::per_slot_processing",
        "types::validator::Validator::is_active_at",
        "ethlambda_state_transition::process_block",
    ],
    "fork choice": [
        "ethlambda_blockchain::store::Store::on_block",
        "fork_choice::ForkChoice::on_attestation",
        "proto_array::proto_array::ProtoArray::apply_score_changes",
        "ethlambda_fork_choice::compute_lmd_ghost_head",
    ],
    "BLS": [
        "from_mont_384",
        "to_mont_256",
        "sub_mod_256",
        "mulx_mont_sparse_256",
        "evmone::crypto::bls::g1_add",
        "map_to_g2",
        "sqr_fp12",
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
        "<milhouse::list::List<T,N,U> as ssz::decode::Decode>::from_ssz_bytes",
        "ethereum_ssz::decode::x",
        "libssz_types::list::SszList<T,N>::push",
        "ssz_codec__x_u1",
        "github.com/prysmaticlabs/prysm/v5/proto/prysm/v1alpha1.(*Validator).MarshalSSZTo",
        "readSszValue__x_u3",
        "ssz::decode::impls::decode_list_of_variable_length_items",
        "<alloc::vec::Vec<T> as ssz::encode::Encode>::ssz_append",
        "types::beacon_state::BeaconState<E>::from_ssz_bytes",
        "ssz_types::variable_list::VariableList<T,N>::new",
        "libssz::decode",
    ],
    "elliptic curves": [
        "evmone::crypto::ModArith<intx::uint<256u> >::mul",
        "evmone::crypto::modinv",
        "evmone::crypto::ecc::add<evmone::crypto::bn254::Curve>",
        "evmone::crypto::bn254::mul",
        "evmmax::ModArith<intx::uint<256u> >::mul(intx::uint<256u> const&) const",
        "intx::operator*(intx::uint<256u> const&, intx::uint<256u> const&)",
        "evmone::crypto::secp256k1::mul",
    ],
    "XMSS": [
        "p3_baby_bear::baby_bear::BabyBear::new",
        "p3_symmetric::sponge::hash",
        "p3_field::field::Field::inverse",
        "p3_dft::radix_2::dft",
        "p3_matrix::dense::row",
        "leansig::signature::verify",
        "p3_koala_bear::poseidon2::permute",
    ],
    "proof aggregation": [
        "rec_aggregation::xmss_aggregate::aggregate",
        "lean_multisig::prove",
        "ethlambda_blockchain::reaggregate::run",
        "lean_vm::execute",
        "sub_protocols::sumcheck::prove",
    ],
    "database": ["rocksdb::DBImpl::Get(rocksdb::ReadOptions const&)"],
    "network": [
        "quinn_proto::connection::Connection::poll_transmit",
        "yamux::connection::Connection::poll",
        "libp2p_gossipsub::behaviour::poll",
        "snap::compress",
    ],
    "EVM": [
        "evmone::instr::core::add(evmone::StackTop)",
        "evmone::advanced::execute",
        "evmone::baseline::execute(evmone::VM&)",
    ],
    "EVM state": [
        "evmone::state::transition(evmone::state::StateView const&)",
        "evmone::test::state::mpt_hash",
    ],
    "KZG": [
        "c_kzg::bindings::KzgProof::verify_kzg_proof",
        "evmone::crypto::kzg_verify_proof(std::byte const*)",
        "verify_blob_kzg_proof_batch",
    ],
    "pairings": [
        "evmmax::bn254::pairing_check(std::span<int>)",
        "evmmax::bn254::(anonymous namespace)::miller_loop",
    ],
    "modexp": [
        "evmone::crypto::modexp(std::span<int>)",
    ],
    "beacon chain": [
        "beacon_chain::beacon_chain::BeaconChain<T>::process_block",
        "github.com/prysmaticlabs/prysm/v5/beacon-chain/blockchain.(*Service).onBlock",
    ],
    "block production": [
        "ethlambda_blockchain::block_builder::build_block",
    ],
    "thread pool": [
        "crossbeam_deque::deque::Stealer<T>::steal",
        "crossbeam_epoch::default::pin",
        "rayon_core::sleep::Sleep::sleep",
        "rayon_core::registry::WorkerThread::find_work",
        "rayon_core::registry::WorkerThread::wait_until_cold",
        "sched_yield",
        "runtime.findRunnable",
        "tokio::runtime::scheduler::multi_thread::idle::Idle::notify",
    ],
    "memmove": [
        "__memmove_avx_unaligned_erms",
        "__memset_erms",
        "__memcpy_ssse3_back",
        "__memcmp_sse4_1",
        "__memcpy_generic",
        "__memmove_chk",
        "memcpy@plt",
        "memcpy@@GLIBC_2.14",
        "runtime.memequal",
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
        "_rjem_mallocx",
        "_rjem_calloc",
        "_rjem_realloc",
        "_rjem_rallocx",
        "_rjem_sdallocx",
        "_rjem_free",
        "_rjem_je_tcache_bin_flush_small",
        "calloc",
        "realloc",
        "rallocx",
        "dallocx",
        "aligned_alloc",
        "systrim.constprop.0",
        "tcache_thread_shutdown",
        "__rustc::__rust_dealloc",
        "__rustc::__rust_realloc",
        "__rustc::__rdl_alloc_zeroed",
        "__rust_no_alloc_shim_is_unstable",
        "alloc::alloc::exchange_malloc",
        "mi_free",
        "_mi_page_malloc",
        "_mi_malloc_generic",
        "mi_heap_malloc_aligned",
        "mi_find_page.isra.0",
        "_mi_segment_page_alloc",
        "mi_new",
        "runtime.scanobject",
        "runtime.gcDrain",
        "runtime.greyobject",
        "runtime.sweepone",
        "runtime.gcBgMarkWorker.func2",
        "runtime.(*mcache).nextFree",
        "runtime.(*mspan).sweep",
        "runtime.gcWriteBarrier1",
        "tc_malloc",
        "nimNewObj__system_u1",
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
        "<core::hash::sip::Hasher<S> as core::hash::Hasher>::finish",
        "std::hash::random::DefaultHasher::new",
        "siphasher::sip::SipHasher::new",
        "<my::Key as core::hash::Hash>::hash",
        "std::_Hash_bytes",
        "runtime.aeshashbody",
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
        "fopen64",
        "vfprintf",
        "os.(*File).Read",
        "read@plt",
        "read",
        "__write",
        "__GI___libc_write",
        "_IO_file_xsputn",
        "<std::fs::File as std::io::Read>::read",
        "std::io::Write::write_fmt",
        "fsync",
    ],
    "serialization and logs": [
        "log::__private_api::log",
        "metrics::inc_counter",
        "metrics::start_timer_vec",
        "prometheus::histogram::HistogramCore::observe",
        "slog::Logger::log",
        "env_logger::Logger::log",
        "regex_automata::meta::regex::Regex::search",
        "serde_core::de::Deserialize",
        "serde_json::de::from_str",
        "tracing::span::Span::enter",
    ],
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
        "rayon_core::registry::ThreadBuilder::run",
        "rayon_core::join::join_context::{{closure}}",
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

# Names that clients and unrelated programs share.
UNRELATED_SYMBOLS = {
    "module: types": ["types::Registry::find", "types::intern(char const*)", "types::user::User::load"],
    "module: log": ["log::write(int)", "log::Sink::flush"],
    "module: metrics": ["metrics::euclidean(float const*)", "metrics::Distance::cosine"],
    "module: backend": ["backend::Renderer::draw"],
    "module: state": ["state::apply"],
    "module: vec_map": ["vec_map::VecMap<V>::insert"],
    "module: tokio": ["tokio::runtime::task::harness::poll_future"],
    "package: strings": ["strings.Index"],
    "package: main": ["main.(*server).handle", "main.main.func1"],
    UNMATCHED: [
        "process_registry_key",
        "process_slashes",
        "playlist_shuffle_list",
        "memcpy_to_device",
        "memset_pattern",
        "mi_rename",
        "mi_lock_database",
        "log_write",
        "types_init",
        "my_malloc",
        "free_node",
        "hash_final",
        "shuffle",
        "operator_new_count",
        "openssl_init",
        "reader_read",
    ],
}

KERNEL_SYMBOLS = {
    "kernel: page faults": [
        "asm_exc_page_fault",
        "exc_page_fault",
        "handle_mm_fault",
        "do_anonymous_page",
        "clear_page_erms",
        "do_wp_page",
    ],
    "kernel: memory map": [
        "__x64_sys_munmap",
        "do_mmap",
        "__x64_sys_madvise",
        "__x64_sys_brk",
        "do_mmap",
        "do_madvise",
        "zap_pte_range",
        "unmap_page_range",
    ],
    "kernel: other": ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "[kernel]"],
    "locks": ["__x64_sys_futex", "futex_wait"],
    "I/O": ["ksys_read", "vfs_write", "__x64_sys_pread64", "sys_write", "SyS_sendto", "__sys_recvfrom", "__arm64_sys_fsync"],
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
    matches = MATCHER.match(table_of_named(functions), [file], [dso], places)
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


@pytest.mark.parametrize("category", UNRELATED_SYMBOLS)
def test_names_of_unrelated_programs(category: str) -> None:
    names = UNRELATED_SYMBOLS[category]
    assert dict(zip(names, taken(names, "app"), strict=True)) == dict.fromkeys(names, category)


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
        ("/home/me/app/src/codec/emmintrin_users.cpp", "directory: codec"),
        ("/build/app/third_party/zlib-1.2.13/deflate.c", "directory: zlib"),
        ("/build/app/src/lib/zstd/common.c", "directory: zstd"),
        ("codec/deflate.c", "directory: codec"),
        ("../codec/deflate.c", UNMATCHED),
        # Where a checkout lies does not matter.
        ("/home/me/src/app-before/emmintrin_users.cpp", UNMATCHED),
        ("/home/me/app-before/emmintrin_users.cpp", UNMATCHED),
        ("/src/app/main.c", UNMATCHED),
        ("/usr/src/app-1.2/main.c", UNMATCHED),
        ("deflate.c", UNMATCHED),
        ("/usr/src/keccak.c", "Keccak"),
        ("/src/intx/include/intx/intx.hpp", "elliptic curves"),
        ("/build/x/src/reed_solomon/ecc.hpp", "directory: reed_solomon"),
        ("/srv/node/relay.py", "Python: relay"),
        ("relay.py", "Python: relay"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "Python: yaml"),
        ("/opt/v/lib/python3.12/site-packages/six.py", "Python: six"),
        ("/root/.pyenv/versions/3.11.7/lib/python3.11/json/decoder.py", "Python: standard library"),
        ("<frozen importlib._bootstrap>", "Python: standard library"),
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
