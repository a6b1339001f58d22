//! Whether a cluster would run a file, found out before anything is spent.
//!
//! The last word has the runtime's own loader and verifier, set up as the cluster sets them up for a deploy. What people get
//! wrong most is looked for before, because the loader tells little about it.

use std::sync::Arc;

use agave_feature_set::{FEATURE_NAMES, FeatureSet};
use solana_address::Address;
use solana_program_runtime::{
    execution_budget::SVMTransactionExecutionBudget,
    invoke_context::InvokeContext,
    solana_sbpf::{
        elf::{ElfError, Executable},
        program::{BuiltinProgram, SBPFVersion},
        verifier::{RequisiteVerifier, Verifier, VerifierError},
    },
};
use solana_syscalls::create_program_runtime_environment;
use thiserror::Error;

use crate::{
    chain::{Chain, ChainError, RpcChain},
    plan::MAX_PROGRAM_LEN,
};

/// Length of an ELF's header, in bytes.
const HEADER: usize = 64;
/// Machines that programs are compiled for: eBPF and SBPF.
const MACHINES: [u16; 2] = [247, 263];
/// Owner of feature-gate accounts.
const FEATURE_PROGRAM: Address = Address::from_str_const("Feature111111111111111111111111111111111111");
/// A syscall that running programs have, and that none may be deployed with.
const NOT_DEPLOYABLE: &[u8] = b"sol_alloc_free_";

/// Why a file is no program that the cluster would run.
#[derive(Debug, Error)]
pub enum ProgramFileError {
    /// It has no bytes.
    #[error("the file is empty, expected an ELF (`.so`)")]
    Empty,
    /// It begins otherwise.
    #[error("the file is no ELF: it begins with {found}, expected 7f454c46")]
    NotElf {
        /// Its first bytes in hexadecimal digits.
        found: String,
    },
    /// It is for another machine.
    #[error("the ELF is for {}, expected one for Solana (machine 247 or 263)", machine(*found))]
    Machine {
        /// What its header says.
        found: u16,
    },
    /// It ends too early.
    #[error("the ELF is cut off: it has {len} bytes, and its header speaks of {expected}")]
    Truncated {
        /// Length of the file in bytes.
        len: usize,
        /// What it should have at least.
        expected: u64,
    },
    /// No account could hold it.
    #[error("the program has {len} bytes, at most {MAX_PROGRAM_LEN} are allowed")]
    TooLong {
        /// Length of the file in bytes.
        len: usize,
    },
    /// It calls what the cluster does not have.
    #[error("the program calls `{name}`, which this cluster does not have")]
    Syscall {
        /// The function.
        name: String,
    },
    /// The loader does not take it.
    #[error("the cluster's loader would refuse the program")]
    Loader(#[source] ElfError),
    /// The verifier does not take it.
    #[error("the cluster's verifier would refuse the program")]
    Verifier(#[source] VerifierError),
}

impl ProgramFileError {
    /// What the user can do.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::NotElf { .. } | Self::Machine { .. } => {
                "`cargo build-sbf` puts programs into `target/deploy`; nothing was spent"
            }
            Self::Truncated { .. } => "copy or build the file again; nothing was spent",
            Self::TooLong { .. } => "make the program smaller; nothing was spent",
            Self::Syscall { .. } => {
                "the function is missing at link time, or a feature gate of the cluster is closed; nothing was spent"
            }
            Self::Loader(_) | Self::Verifier(_) => {
                "build the program with tools of the cluster's version; nothing was spent"
            }
        }
    }
}

fn machine(number: u16) -> String {
    match number {
        3 => "x86 (machine 3)".to_owned(),
        62 => "x86_64 (machine 62)".to_owned(),
        183 => "aarch64 (machine 183)".to_owned(),
        other => format!("machine {other}"),
    }
}

/// Checks a file as the cluster would when it is deployed.
pub(super) fn check(elf: &[u8], features: &FeatureSet) -> Result<(), ProgramFileError> {
    check_header(elf)?;
    if elf.len() > MAX_PROGRAM_LEN {
        return Err(ProgramFileError::TooLong { len: elf.len() });
    }
    let loader = loader(features).map_err(ProgramFileError::Loader)?;
    let executable =
        Executable::<InvokeContext<'static, 'static>>::load(elf, Arc::new(loader)).map_err(|error| {
            match error {
                ElfError::UnresolvedSymbol(name, _, _) => ProgramFileError::Syscall { name },
                error => ProgramFileError::Loader(error),
            }
        })?;
    let (_, code) = executable.get_text_bytes();
    let (config, version) = (executable.get_config(), executable.get_sbpf_version());
    RequisiteVerifier::verify(code, config, version).map_err(ProgramFileError::Verifier)
}

/// What an ELF's header tells without a loader.
pub(super) fn check_header(elf: &[u8]) -> Result<(), ProgramFileError> {
    const MAGIC: &[u8] = b"\x7fELF";
    if elf.is_empty() {
        return Err(ProgramFileError::Empty);
    }
    if !elf.starts_with(MAGIC) {
        let found = elf.iter().take(MAGIC.len()).map(|byte| format!("{byte:02x}")).collect();
        return Err(ProgramFileError::NotElf { found });
    }
    let cut_off = |expected| ProgramFileError::Truncated { len: elf.len(), expected };
    let Some(header) = elf.first_chunk::<HEADER>() else { return Err(cut_off(HEADER as u64)) };
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| header[at + index]));
    let found = u16_at(18);
    if !MACHINES.contains(&found) {
        return Err(ProgramFileError::Machine { found });
    }
    // Where the tables of segments and sections begin, and the length and number of their entries.
    let table_end =
        |start: u64, len: u16, count: u16| start.saturating_add(u64::from(len) * u64::from(count));
    let expected =
        table_end(u64_at(32), u16_at(54), u16_at(56)).max(table_end(u64_at(40), u16_at(58), u16_at(60)));
    if expected > elf.len() as u64 { Err(cut_off(expected)) } else { Ok(()) }
}

/// The runtime's loader, as strict as it is when a program is deployed.
fn loader(features: &FeatureSet) -> Result<BuiltinProgram<InvokeContext<'static, 'static>>, ElfError> {
    let gates = features.runtime_features();
    let budget = SVMTransactionExecutionBudget::new_with_defaults(false);
    let running = create_program_runtime_environment(&gates, &budget, true, false)
        .map_err(|error| ElfError::FailedToParse(error.to_string()))?;
    let mut config = running.get_config().clone();
    if gates.disable_sbpf_v0_v1_v2_deployment {
        config.enabled_sbpf_versions = SBPFVersion::V3..=*config.enabled_sbpf_versions.end();
    }
    let mut loader = BuiltinProgram::new_loader(config);
    for (_, (name, function)) in running.get_function_registry().iter() {
        if name != NOT_DEPLOYABLE {
            loader.register_function(&String::from_utf8_lossy(name), function)?;
        }
    }
    Ok(loader)
}

/// The feature gates that are open on a cluster, of all that this version knows.
pub(super) async fn features(chain: &RpcChain) -> Result<FeatureSet, ChainError> {
    let gates: Vec<Address> = FEATURE_NAMES.keys().copied().collect();
    let accounts = chain.accounts(&gates).await?;
    let mut features = FeatureSet::default();
    for (gate, account) in gates.iter().zip(accounts) {
        // `Feature { activated_at: Option<u64> }`: the first byte tells.
        if account.is_some_and(|gate| gate.owner == FEATURE_PROGRAM && gate.data.first() == Some(&1)) {
            features.activate(gate, 0);
        }
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &[u8] = include_bytes!("../../../programs/artifacts/chunk_buffer.so");

    /// All gates but those that close the door to the bytecode version of the project's programs.
    fn features() -> FeatureSet {
        let mut features = FeatureSet::all_enabled();
        features.deactivate(&agave_feature_set::disable_sbpf_v0_v1_v2_deployment::ID);
        features.deactivate(&agave_feature_set::disable_sbpf_v0_execution::ID);
        features
    }

    fn refused(elf: &[u8]) -> String {
        refused_with(elf, &features())
    }

    fn refused_with(elf: &[u8], features: &FeatureSet) -> String {
        let error = check(elf, features).unwrap_err();
        assert!(error.hint().contains("nothing was spent"));
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    }

    fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut elf = PROGRAM.to_vec();
        elf[at..at + bytes.len()].copy_from_slice(bytes);
        elf
    }

    #[test]
    fn whether_a_program_passes_depends_on_the_clusters_features() {
        check(PROGRAM, &features()).unwrap();
        let refused = refused_with(PROGRAM, &FeatureSet::default());
        assert_eq!(refused, "the program calls `sol_curve_validate_point`, which this cluster does not have");
        let refused = refused_with(PROGRAM, &FeatureSet::all_enabled());
        assert!(refused.contains("sbpf_version"), "{refused}");
    }

    #[test]
    fn what_is_no_program_is_named() {
        assert_eq!(refused(b""), "the file is empty, expected an ELF (`.so`)");
        assert_eq!(refused(b"words"), "the file is no ELF: it begins with 776f7264, expected 7f454c46");
        let other = refused(&changed(18, &62u16.to_le_bytes()));
        assert_eq!(other, "the ELF is for x86_64 (machine 62), expected one for Solana (machine 247 or 263)");
        assert!(refused(&PROGRAM[..40]).starts_with("the ELF is cut off: it has 40 bytes"));
        let half = refused(&PROGRAM[..PROGRAM.len() / 2]);
        assert!(half.starts_with("the ELF is cut off"), "{half}");
        let mut long = PROGRAM.to_vec();
        long.resize(MAX_PROGRAM_LEN + 1, 0);
        assert_eq!(refused(&long), "the program has 10485716 bytes, at most 10485715 are allowed");
    }

    #[test]
    fn a_call_that_the_cluster_does_not_know_is_named() {
        let name = b"sol_memcpy_\0";
        let at = PROGRAM.windows(name.len()).position(|window| window == name).unwrap();
        let refused = refused(&changed(at, b"sol_memcpyX"));
        assert_eq!(refused, "the program calls `sol_memcpyX`, which this cluster does not have");
    }

    #[test]
    fn code_that_the_verifier_refuses_is_named() {
        let text = u64::from_le_bytes(PROGRAM[24..32].try_into().unwrap()) as usize;
        let refused = refused(&changed(text, &[0xff; 8]));
        assert!(refused.starts_with("the cluster's verifier would refuse the program: "), "{refused}");
    }
}
