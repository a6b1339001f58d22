//! Views of the programs' accounts.

use std::collections::BTreeSet;

use anchor_lang_idl::types::{Idl, IdlAccount, IdlSerialization, IdlTypeDef};
use anyhow::{Context, Result, ensure};

use super::program::{Module, import};
use super::types::{collect_defined, define, mentions_address, parts};
use super::{SourceFile, names};

/// Generates the accounts, if there are any.
pub(super) fn generate(idl: &Idl) -> Result<Option<Module>> {
    if idl.accounts.is_empty() {
        return Ok(None);
    }
    let accounts: Vec<_> =
        idl.accounts.iter().map(|account| Ok((account, definition(account, idl)?))).collect::<Result<_>>()?;
    let mut source = String::from("//! The program's accounts, as they lie in memory.\n\n");
    source.push_str(&imports(&accounts));
    for (account, definition) in &accounts {
        let item = define(definition, idl).with_context(|| format!("account `{}`", account.name))?;
        source.push_str(&format!("\n{item}\n{}", implementation(account)));
    }
    Ok(Some(Module {
        name: "accounts",
        files: vec![SourceFile { path: "accounts.rs".to_owned(), source }],
        exports: accounts.iter().map(|(account, _)| names::pascal(&account.name)).collect(),
    }))
}

fn definition<'a>(account: &IdlAccount, idl: &'a Idl) -> Result<&'a IdlTypeDef> {
    let name = &account.name;
    let definition = idl.types.iter().find(|definition| definition.name == *name);
    let definition = definition.with_context(|| format!("the account `{name}` has no type of its name"))?;
    let zero_copy = definition.serialization == IdlSerialization::Bytemuck;
    ensure!(zero_copy, "the account `{name}` is not zero-copy, which is not supported");
    Ok(definition)
}

fn imports(accounts: &[(&IdlAccount, &IdlTypeDef)]) -> String {
    let types: Vec<_> = accounts.iter().flat_map(|(_, definition)| parts(definition)).collect();
    let mut defined = BTreeSet::new();
    for ty in &types {
        collect_defined(ty, &mut defined);
    }
    for (account, _) in accounts {
        defined.remove(&account.name);
    }
    let mut lines = String::from("use crate::AccountError;\nuse bytemuck::{Pod, Zeroable};\n");
    if types.iter().any(|ty| mentions_address(ty)) {
        lines.push_str("use solana_address::Address;\n");
    }
    let defined: Vec<_> = defined.iter().map(|name| names::pascal(name)).collect();
    lines + &import(&defined, 1)
}

fn implementation(account: &IdlAccount) -> String {
    let name = names::pascal(&account.name);
    let discriminator = &account.discriminator;
    let discriminator_len = discriminator.len();
    format!(
        "impl {name} {{
            /// The bytes that every account of this type starts with.
            pub const DISCRIMINATOR: [u8; {discriminator_len}] = {discriminator:?};

            /// The length in bytes of the discriminator and the fields. The account may hold more after them.
            pub const LEN: usize = Self::DISCRIMINATOR.len() + size_of::<Self>();

            /// Reads the fields from an account's data, and ignores what comes after them.
            ///
            /// # Errors
            /// [`AccountError::TooShort`] below [`Self::LEN`] bytes, and [`AccountError::WrongDiscriminator`] if the
            /// data starts with something else than [`Self::DISCRIMINATOR`].
            pub fn read(data: &[u8]) -> Result<Self, AccountError> {{
                let account = {name:?};
                let Some(bytes) = data.get(..Self::LEN) else {{
                    return Err(AccountError::TooShort {{ account, expected: Self::LEN, actual: data.len() }});
                }};
                let (discriminator, fields) = bytes.split_at(Self::DISCRIMINATOR.len());
                if discriminator != Self::DISCRIMINATOR {{
                    return Err(AccountError::WrongDiscriminator {{ account }});
                }}
                Ok(bytemuck::pod_read_unaligned(fields))
            }}
        }}
        "
    )
}
