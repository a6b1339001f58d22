//! The module of one program: its address, and everything of it re-exported.

use std::collections::BTreeSet;

use anchor_lang_idl::types::Idl;
use anyhow::{Result, ensure};

use super::{SourceFile, accounts, constants, docs, errors, instructions, types};

/// One module of a program and the public names in it.
pub(super) struct Module {
    /// The module's name.
    pub(super) name: &'static str,
    /// The files of the module.
    pub(super) files: Vec<SourceFile>,
    /// What the program's module re-exports from it.
    pub(super) exports: Vec<String>,
}

/// Generates every file of the program that `idl` describes.
pub(super) fn generate(idl: &Idl) -> Result<Vec<SourceFile>> {
    ensure!(idl.events.is_empty(), "events are not supported, and there is `{}`", idl.events[0].name);
    let modules = [
        accounts::generate(idl)?,
        constants::generate(idl)?,
        errors::generate(idl)?,
        instructions::generate(idl)?,
        types::generate(idl)?,
    ];
    let modules: Vec<_> = modules.into_iter().flatten().collect();
    refuse_duplicates(&modules)?;
    let root = SourceFile { path: "mod.rs".to_owned(), source: root_source(idl, &modules) };
    let files = modules.into_iter().flat_map(|module| module.files);
    Ok(std::iter::once(root).chain(files).collect())
}

fn root_source(idl: &Idl, modules: &[Module]) -> String {
    let fallback = format!("The program `{}`.", idl.metadata.name);
    let mut source = docs::comment(&idl.docs, &fallback).replace("///", "//!");
    source.push('\n');
    for Module { name, .. } in modules {
        source.push_str(&format!("pub mod {name};\n"));
    }
    source.push('\n');
    for Module { name, exports, .. } in modules {
        source.push_str(&format!("pub use self::{name}::{{{}}};\n", exports.join(", ")));
    }
    source.push_str(&format!(
        "use solana_address::Address;\n\n\
         /// The address of the program.\n\
         pub const ID: Address = Address::from_str_const({:?});\n",
        idl.address
    ));
    source
}

/// Two things of one name could not both be re-exported; better said in terms of the IDL than by the compiler.
fn refuse_duplicates(modules: &[Module]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for Module { name, exports, .. } in modules {
        for export in exports {
            ensure!(seen.insert(export), "the {name} have a `{export}`, and so has another part of the IDL");
        }
    }
    Ok(())
}

/// A `use` line for names of the program's module, seen from `levels` modules below it.
pub(super) fn import(names: &[String], levels: usize) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("use {}{{{}}};\n", "super::".repeat(levels), names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An IDL whose one instruction takes `args` and whose one account has `fields`.
    fn idl(args: Value, fields: Value) -> Idl {
        let idl = json!({
            "address": "11111111111111111111111111111111",
            "metadata": { "name": "sample", "version": "0.1.0", "spec": "0.1.0" },
            "instructions": [{
                "name": "set_value",
                "discriminator": [3],
                "accounts": [
                    { "name": "authority", "signer": true },
                    { "name": "receiver", "writable": true, "optional": true },
                    { "name": "system_program", "address": "11111111111111111111111111111111" },
                ],
                "args": args,
            }],
            "accounts": [{ "name": "Sample", "discriminator": [9] }],
            "types": [{
                "name": "Sample",
                "serialization": "bytemuck",
                "repr": { "kind": "c" },
                "type": { "kind": "struct", "fields": fields },
            }],
            "errors": [{ "code": 6000, "name": "Refused", "msg": "the value is refused" }],
        });
        serde_json::from_value(idl).expect("an IDL")
    }

    fn source(files: &[SourceFile], path: &str) -> String {
        let file = files.iter().find(|file| file.path == path).expect("the file is generated");
        super::super::rustfmt::format(&file.source).expect("the source is Rust")
    }

    fn refusal(idl: &Idl) -> String {
        let error = generate(idl).err().expect("the IDL is refused");
        format!("{error:#}")
    }

    #[test]
    fn an_instruction_keeps_the_accounts_flags_and_order_of_the_idl() {
        let files = generate(&idl(json!([{ "name": "value", "type": "bytes" }]), json!([]))).expect("files");
        let source = source(&files, "instructions/set_value.rs");
        let expected = [
            "AccountMeta::new_readonly(self.authority, true)",
            "AccountMeta::new(address, false)",
            "AccountMeta::new_readonly(",
        ];
        let mut rest = source.as_str();
        for part in expected {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part} comes later in\n{source}"));
            rest = &rest[at + part.len()..];
        }
        assert!(source.contains("pub receiver: Option<Address>"));
        assert!(source.contains("pub value: &'a [u8]"));
        assert!(!source.contains("pub system_program"), "a fixed address is not for the caller to choose");
    }

    #[test]
    fn every_part_of_the_idl_is_re_exported() {
        let files = generate(&idl(json!([{ "name": "value", "type": "u8" }]), json!([]))).expect("files");
        let source = source(&files, "mod.rs");
        for name in ["Sample", "SampleError", "SetValue", "SetValueArgs", "ID"] {
            assert!(source.contains(name), "{name} is not in\n{source}");
        }
    }

    #[test]
    fn what_cannot_be_generated_is_refused_by_its_place() {
        let argument = refusal(&idl(json!([{ "name": "price", "type": "f64" }]), json!([])));
        assert!(argument.contains("`set_value`") && argument.contains("`price`"), "{argument}");
        let field = refusal(&idl(json!([]), json!([{ "name": "done", "type": "bool" }])));
        assert!(field.contains("`Sample`") && field.contains("`done`"), "{field}");
    }

    #[test]
    fn two_parts_of_one_name_are_refused() {
        let mut idl = idl(json!([]), json!([]));
        idl.instructions[0].name = "sample".to_owned();
        assert!(refusal(&idl).contains("`Sample`"));
    }
}
