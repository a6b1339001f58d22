//! The programs' constants.

use anchor_lang_idl::types::{Idl, IdlConst, IdlType};
use anyhow::{Context, Result, bail};

use super::program::Module;
use super::types::{self, Place};
use super::{SourceFile, docs};

/// Generates the constants, if there are any.
pub(super) fn generate(idl: &Idl) -> Result<Option<Module>> {
    if idl.constants.is_empty() {
        return Ok(None);
    }
    let mut source = String::from("//! The program's constants.\n\n");
    if idl.constants.iter().any(|constant| constant.ty == IdlType::Pubkey) {
        source.push_str("use solana_address::Address;\n\n");
    }
    for constant in &idl.constants {
        source.push_str(&define(constant).with_context(|| format!("constant `{}`", constant.name))?);
    }
    Ok(Some(Module {
        name: "constants",
        files: vec![SourceFile { path: "constants.rs".to_owned(), source }],
        exports: idl.constants.iter().map(|constant| constant.name.clone()).collect(),
    }))
}

fn define(constant: &IdlConst) -> Result<String> {
    let IdlConst { name, docs, ty, value } = constant;
    let docs = docs::comment(docs, &format!("The constant `{name}`."));
    // An IDL carries the value as Rust source, except for an address.
    let (ty, value) = match ty {
        IdlType::Bytes => ("&[u8]".to_owned(), format!("&{value}")),
        IdlType::String => ("&str".to_owned(), value.clone()),
        IdlType::Pubkey => ("Address".to_owned(), format!("Address::from_str_const({value:?})")),
        IdlType::Option(_) | IdlType::Vec(_) | IdlType::Defined { .. } => {
            bail!("the type {ty:?} is not supported")
        }
        _ => (types::rust(ty, Place::Borsh)?, value.clone()),
    };
    Ok(format!("{docs}pub const {name}: {ty} = {value};\n\n"))
}
