//! Which programs are deployed, and where.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    str::FromStr,
};

use committor_client::{SharedSigner, config::KeypairSource, deploy::ProgramDeploy};
use committor_localnet::programs;
use solana_address::Address;
use solana_signer::Signer;

use super::Deploy;
use crate::{
    args::Global,
    exit::{CommandError, Kind},
    files,
};

/// A program as the user names it.
#[derive(Clone, Debug)]
pub enum ProgramId {
    /// By its address, which is enough for one that exists.
    Address(Address),
    /// By its keypair.
    Keypair(KeypairSource),
}

impl FromStr for ProgramId {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        match text.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) => Ok(Self::Keypair(text.parse()?)),
        }
    }
}

/// A program that is to be deployed.
pub struct Target {
    /// What the user calls it.
    pub name: String,
    pub deploy: ProgramDeploy,
}

/// The programs that the command names.
pub fn targets(global: &Global, command: &Deploy) -> Result<Vec<Target>, CommandError> {
    let Some(path) = &command.file else { return bundled(global, command) };
    let elf = files::read(path)?.into();
    let (program, keypair) = match &command.program_id {
        Some(ProgramId::Address(address)) => (*address, None),
        Some(ProgramId::Keypair(source)) => signer(global, source)?,
        None => signer(global, &beside(path)?)?,
    };
    let (max_len, goal) = (command.max_len, command.goal());
    let deploy = ProgramDeploy { elf, program, keypair, max_len, goal };
    Ok(vec![Target { name: path.display().to_string(), deploy }])
}

fn signer(global: &Global, source: &KeypairSource) -> Result<(Address, Option<SharedSigner>), CommandError> {
    let keypair = global.keys.get(source)?;
    Ok((keypair.pubkey(), Some(keypair)))
}

/// Where `cargo build-sbf` puts a program's keypair.
fn beside(program: &Path) -> Result<KeypairSource, CommandError> {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let path: PathBuf = program.with_file_name(format!("{stem}-keypair.json"));
    if path.exists() {
        return Ok(KeypairSource::File(path));
    }
    let (program, path) = (program.display(), path.display());
    let message = format!("there is no {path} that would say which program {program} is");
    Err(CommandError::new(Kind::Usage, message)
        .hint("`--program-id` names its keypair, or the address of one that is to be upgraded")
        .hint(format!("`solana-keygen new -o {path}` makes a keypair for a new one; nothing was done")))
}

/// This project's own, the one that the other depends on first.
fn bundled(global: &Global, command: &Deploy) -> Result<Vec<Target>, CommandError> {
    let own = [
        ("chunk_buffer.so", programs::CHUNK_BUFFER_ID, programs::CHUNK_BUFFER),
        ("delegation.so", programs::DELEGATION_ID, programs::DELEGATION),
    ];
    let mut keypairs = Vec::with_capacity(command.program_keypair.len());
    for source in &command.program_keypair {
        let keypair = global.keys.get(source)?;
        let address = keypair.pubkey();
        if !own.iter().any(|(_, id, _)| *id == address) {
            let [buffer, delegation] = own.map(|(_, id, _)| id);
            let message = format!("keypair {source} is that of {address}, expected {buffer} or {delegation}");
            return Err(CommandError::new(Kind::Usage, message).hint(
                "the addresses are built in; CONTRIBUTING.md says how to build with your own; nothing was done",
            ));
        }
        keypairs.push(keypair);
    }
    let target = |(name, program, elf): (&str, Address, &[u8])| {
        let keypair = keypairs.iter().find(|keypair| keypair.pubkey() == program).cloned();
        let deploy = ProgramDeploy { elf: elf.into(), program, keypair, max_len: None, goal: command.goal() };
        Target { name: name.to_owned(), deploy }
    };
    Ok(own.into_iter().map(target).collect())
}
