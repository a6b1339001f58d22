//! What became of programs, for people and as JSON.

use committor_client::{
    deploy::{DeployedProgram, ProgramAction, ProgramQuote},
    plan::{ProgramGoal, upgrade_message},
};
use serde::Serialize;
use solana_address::Address;

use super::Target;
use crate::{
    args::{Global, Output},
    deployer::explorer,
    exit::{CommandError, Kind},
    output,
};

/// A program, as it is reported.
#[derive(Serialize)]
pub struct Program {
    program_id: String,
    file: String,
    bytes: usize,
    action: ProgramAction,
    /// Who may upgrade it; null if nobody, or if there is no program yet.
    upgrade_authority: Option<String>,
    /// The buffer that it goes through.
    buffer: String,
    /// Transactions that landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    landed: Option<u64>,
    /// What upgrades the program from the buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade: Option<Upgrade>,
    /// Whether its bytes wait in the buffer for a program that does not exist yet.
    #[serde(skip)]
    is_waiting: bool,
}

/// What whoever can upgrade a program needs to do it from a buffer.
#[derive(Serialize)]
struct Upgrade {
    authority: String,
    /// Gets the buffer's lamports.
    spill: String,
    /// The transaction's message, without a blockhash, as base58 and as base64.
    message: String,
    message_base64: String,
}

impl Program {
    /// As a dry run has it.
    pub fn quoted(target: &Target, quote: &ProgramQuote) -> Self {
        Self {
            program_id: target.deploy.program.to_string(),
            file: target.name.clone(),
            bytes: target.deploy.elf.len(),
            action: quote.action,
            upgrade_authority: quote.authority.map(|authority| authority.to_string()),
            buffer: quote.buffer.to_string(),
            landed: None,
            upgrade: None,
            is_waiting: false,
        }
    }

    /// As it was left.
    pub fn deployed(target: &Target, done: &DeployedProgram, payer: Address) -> Self {
        let program = target.deploy.program;
        let in_buffer = matches!(target.deploy.goal, ProgramGoal::InBuffer { .. }) && !done.is_deployed;
        let upgrade = done.authority.filter(|_| in_buffer);
        let upgrade = upgrade.map(|authority| Upgrade::new(program, done.buffer, authority, payer));
        Self {
            program_id: program.to_string(),
            file: target.name.clone(),
            bytes: target.deploy.elf.len(),
            action: done.action,
            upgrade_authority: done.authority.map(|authority| authority.to_string()),
            buffer: done.buffer.to_string(),
            landed: Some(done.transactions),
            upgrade,
            is_waiting: in_buffer && done.authority.is_none(),
        }
    }
}

impl Upgrade {
    fn new(program: Address, buffer: Address, authority: Address, spill: Address) -> Self {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let message = upgrade_message(&program, &buffer, &authority, &spill);
        Self {
            authority: authority.to_string(),
            spill: spill.to_string(),
            message: bs58::encode(&message).into_string(),
            message_base64: BASE64_STANDARD.encode(&message),
        }
    }
}

/// One program, or those that came together.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Documents {
    One(Box<Program>),
    Many { programs: Vec<Program> },
}

impl Documents {
    pub fn new(mut programs: Vec<Program>, are_bundled: bool) -> Self {
        match programs.pop() {
            Some(program) if !are_bundled => Self::One(Box::new(program)),
            last => Self::Many { programs: programs.into_iter().chain(last).collect() },
        }
    }
}

/// Prints what became of programs.
pub fn print(global: &Global, programs: Vec<Program>, are_bundled: bool) -> Result<Kind, CommandError> {
    if global.output != Output::Display {
        output::json(&Documents::new(programs, are_bundled), global.output)?;
        return Ok(Kind::Success);
    }
    for program in &programs {
        show(global, program)?;
    }
    Ok(Kind::Success)
}

fn show(global: &Global, program: &Program) -> Result<(), CommandError> {
    let Program { program_id, file, bytes, buffer, upgrade_authority: authority, .. } = program;
    let again = program.action == ProgramAction::Nothing;
    if let Some(Upgrade { authority, spill, message, message_base64 }) = &program.upgrade {
        output::print(&format!("{buffer}\n"))?;
        let how = if again { "was there already" } else { "is written and read back" };
        eprintln!(
            "{file} {how}: {bytes} bytes in a buffer of {authority}, who can upgrade {program_id} with it"
        );
        eprintln!("  program  {program_id}\n  buffer   {buffer}\n  spill    {spill}");
        eprintln!("  with a keypair:  solana program upgrade {buffer} {program_id}");
        eprintln!("  with a multisig: this message, of an upgrade by {authority}, in base58\n{message}");
        eprintln!("  or in base64\n{message_base64}");
        return Ok(());
    }
    if program.is_waiting {
        output::print(&format!("{buffer}\n"))?;
        eprintln!("{file} is in the buffer: {bytes} bytes; there is no program {program_id} yet");
        eprintln!(
            "`committor deploy {file}` with the same authority and the program's keypair goes on from there"
        );
        return Ok(());
    }
    output::print(&format!("{program_id}\n"))?;
    let how = match program.action {
        ProgramAction::Deploy => "is deployed and read back",
        ProgramAction::Upgrade => "is upgraded and read back",
        ProgramAction::Settle | ProgramAction::Buffer => "was there already, and the rest is settled",
        ProgramAction::Nothing => "was there already",
    };
    let authority = authority.as_ref().map_or("nobody", String::as_str);
    eprintln!("{file} {how}: {bytes} bytes; {authority} can upgrade it");
    explorer(global, program_id).iter().for_each(|link| eprintln!("{link}"));
    Ok(())
}
